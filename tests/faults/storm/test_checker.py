"""The judge on made-up evidence: clean where all is well, and each kind of wrong seen for what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from schemas.page import Op
from tests.faults.storm.checker import judge
from tests.faults.storm.evidence import ChunkFound, HeadFound, HitFound, Letter, Logged, ReadBack
from tests.faults.storm.history import Answer, History, Poison, Sent
from tests.faults.storm.readback import titles_to_ask
from tests.faults.storm.scripted_embedder import vector_of

PAGE = "town:en:fees"
OLD, NEW = 100, 200


class Case:
    """A page saved twice, at OLD and NEW, and everything read back as it must be. Tests break it."""

    def __init__(self, last: Op = "upsert") -> None:
        self.history = History()
        self.found = ReadBack()
        self.page = self.found.pages[PAGE]
        self.first = self.send(1, "upsert", OLD)
        self.last = self.send(2, last, NEW)
        deleted = last == "delete"
        for offset, (revision, op) in enumerate(((OLD, "upsert"), (NEW, last))):
            number = None if op == "delete" else offset + 1
            order = (revision, op == "delete")
            self.page.changes.append(Logged("cms.changes", 0, offset, PAGE, 0, order, number))
            self.page.products.append(Logged("ingest.chunks", 0, offset, PAGE, 0, order, number))
            self.page.products.append(Logged("ingest.embeddings", 0, offset, PAGE + "#0", 0, order, number))
            state = "deleted" if op == "delete" else "searchable"
            self.page.receipts.append(Logged("ingest.receipts", 0, offset, PAGE, 0, order, None, state))
        self.page.head = HeadFound(NEW, "deleted" if deleted else "live", {} if deleted else {"title": 1, "content": 2})
        self.page.receipt = {"accepted_revision": NEW, "state": "deleted" if deleted else "searchable"}
        if not deleted:
            cores = [f"start {NEW} ", f"end {NEW}"]
            self.page.chunks = [
                chunk("title", 0, NEW, f"title {NEW}", f"title {NEW}"),
                chunk("content", 0, NEW, cores[0], cores[0] + cores[1][:1]),
                chunk("content", 1, NEW, cores[1], cores[0][-2:] + cores[1]),
            ]
            self.page.hits = [HitFound(mode, NEW, "title", 0) for mode in ("keyword", "vector")]

    def send(self, number: int, op: Op, revision: int | None, answer: Answer = Answer.ACCEPTED) -> Sent:
        fields: dict[Any, str] = {}
        if op == "upsert":
            fields = {"title": f"title {revision}", "content": f"start {revision} end {revision}"}
        sent = self.history.send(PAGE, op, revision, fields, "test", "gateway", number)
        self.history.answered(sent, answer, revision)
        return sent

    def kinds(self) -> set[str]:
        return {finding.kind for finding in judge(self.history, self.found)}


def chunk(field: Any, ord: int, revision: int, text: str, embedded: str) -> ChunkFound:
    vector = tuple(vector_of(embedded.strip()).tolist())
    return ChunkFound(f"{PAGE}#{field}#{ord}", field, ord, revision, text, vector)


def logged(case: Case, revision: int, number: int | None, op: Op = "upsert") -> Logged:
    return Logged("cms.changes", 0, len(case.page.changes), PAGE, 0, (revision, op == "delete"), number)


@pytest.mark.parametrize("last", ["upsert", "delete"])
def test_a_system_at_rest_is_clean(last: Op) -> None:
    assert judge(Case(last).history, Case(last).found) == []


def test_the_title_that_must_be_found_is_asked_for_after_any_number_of_others() -> None:
    case = Case()
    for _ in range(3):  # the same save again and again, through other gateways
        case.send(1, "upsert", OLD)
    for number in range(3, 10):  # refused, or late
        case.send(number, "upsert", number, Answer.SUPERSEDED)
    asked = titles_to_ask(list(case.history.of(PAGE)), case.page)
    assert asked == [f"title {NEW}", "title 9", "title 8", "title 7", "title 6"]


def test_of_a_deleted_page_only_titles_are_asked_for_that_must_not_be_found() -> None:
    case = Case("delete")
    assert titles_to_ask(list(case.history.of(PAGE)), case.page) == [f"title {OLD}"]


def lose_from_log(case: Case) -> None:
    case.page.changes.pop()


def lose_from_index(case: Case) -> None:
    case.page.head, case.page.chunks, case.page.hits = None, [], []


def show_old(case: Case) -> None:
    case.page.head = HeadFound(OLD, "live", {"title": 1})
    case.page.chunks = [chunk("title", 0, OLD, f"title {OLD}", f"title {OLD}")]
    case.page.hits = []


def mix_revisions(case: Case) -> None:
    case.page.chunks[2] = chunk("content", 1, OLD, f"end {OLD}", f"end {OLD}")


def mix_texts(case: Case) -> None:
    case.page.chunks[2] = chunk("content", 1, NEW, f"end {OLD}", f"end {OLD}")


def leave_orphan(case: Case) -> None:
    case.page.chunks.append(chunk("content", 2, OLD, "rest", "rest"))


def drop_chunk(case: Case) -> None:
    case.page.chunks.pop()


def swap_vectors(case: Case) -> None:
    first, second = case.page.chunks[1], case.page.chunks[2]
    case.page.chunks[1:] = [replace(first, vector=second.vector), replace(second, vector=first.vector)]


def find_old(case: Case) -> None:
    case.page.hits.append(HitFound("keyword", OLD, "content", 2))


def find_nothing(case: Case) -> None:
    case.page.hits = [hit for hit in case.page.hits if hit.mode != "vector"]


def bury_winner(case: Case) -> None:
    show_old(case)
    case.page.letters.append(Letter("ingest.chunks", 0, b"k", b"v", (), "refused", (0, 0), PAGE, (NEW, False)))


def top_with_loser(case: Case) -> None:
    case.page.changes.append(logged(case, OLD, 1))


def top_product_with_loser(case: Case) -> None:
    case.page.products.append(Logged("ingest.embeddings", 0, 9, PAGE + "#0", 0, (OLD, False), 1))


def forget_receipt(case: Case) -> None:
    case.page.receipts = [record for record in case.page.receipts if record.order != (OLD, False)]


def leave_queued(case: Case) -> None:
    case.page.receipt = {"accepted_revision": NEW, "state": "queued"}


def invent(case: Case) -> None:
    case.page.changes.insert(0, logged(case, 50, 77))


def log_refused(case: Case) -> None:
    case.send(3, "upsert", 50, Answer.REFUSED)
    case.page.changes.insert(0, logged(case, 50, 3))


def call_superseded(case: Case) -> None:
    case.send(3, "upsert", NEW + 1, Answer.SUPERSEDED)


def lose_poison(case: Case) -> None:
    case.history.poison.append(Poison("ingest.chunks", b"town:en:x", b"\xff", "noise"))


def break_promise(case: Case) -> None:
    case.history.broken.append((PAGE, "said to be searchable, and was not"))


@pytest.mark.parametrize(
    ("damage", "kinds"),
    [
        (lose_from_log, {"lost", "ghost", "log", "receipt"}),
        (lose_from_index, {"lost"}),
        (show_old, {"lost"}),
        (mix_revisions, {"mixed"}),
        (mix_texts, {"mixed"}),
        (leave_orphan, {"orphan"}),
        (drop_chunk, {"counts"}),
        (swap_vectors, {"vector"}),
        (find_old, {"ghost"}),
        (find_nothing, {"unfound"}),
        (bury_winner, {"dead"}),
        (top_with_loser, {"log"}),
        (top_product_with_loser, {"log"}),
        (forget_receipt, {"receipt"}),
        (leave_queued, {"receipt"}),
        (invent, {"invented", "receipt"}),
        (log_refused, {"invented", "receipt"}),
        (call_superseded, {"lost"}),
        (lose_poison, {"poison"}),
        (break_promise, {"receipt"}),
    ],
)
def test_what_is_wrong_is_seen(damage: Callable[[Case], None], kinds: set[str]) -> None:
    case = Case()
    damage(case)
    assert case.kinds() <= kinds
    assert case.kinds()


def keep_chunks(case: Case) -> None:
    case.page.chunks = [chunk("title", 0, OLD, f"title {OLD}", f"title {OLD}")]


def stay_live(case: Case) -> None:
    show_old(case)


@pytest.mark.parametrize(
    ("damage", "kinds"), [(keep_chunks, {"ghost"}), (stay_live, {"ghost", "lost"}), (find_old, {"ghost"})]
)
def test_ghosts_of_a_deleted_page_are_seen(damage: Callable[[Case], None], kinds: set[str]) -> None:
    case = Case("delete")
    damage(case)
    assert case.kinds() == kinds


@pytest.mark.parametrize("there", [True, False])
def test_a_change_without_an_answer_may_be_there_or_not(there: bool) -> None:
    case = Case()
    case.send(3, "upsert", None, Answer.UNKNOWN)
    if there:
        case.page.changes.insert(0, logged(case, 50, 3))
        case.page.receipts.append(Logged("ingest.receipts", 0, 9, PAGE, 0, (50, False), None, "superseded"))
    assert case.kinds() == set()


def test_a_delete_wins_at_the_same_revision() -> None:
    case = Case()
    case.send(3, "delete", NEW)
    case.page.changes.append(logged(case, NEW, None, "delete"))
    assert "lost" in case.kinds()
    assert case.page.head is not None
    case.page.head = HeadFound(NEW, "deleted", {})
    assert "ghost" in case.kinds()


def test_two_saves_of_the_same_revision_may_end_as_either_but_not_as_both() -> None:
    case = Case()
    twin = case.send(3, "upsert", NEW)
    twin.fields = {"title": "title 200", "content": "another text"}
    case.page.changes.append(logged(case, NEW, 3))
    assert case.kinds() == set()
    case.page.chunks[2] = chunk("content", 1, NEW, "another text", "another text")
    assert case.kinds() == {"mixed"}


def test_of_a_change_whose_message_was_deleted_unread_nobody_hears() -> None:
    case = Case()
    case.page.receipts = [record for record in case.page.receipts if record.order == (NEW, False)]
    assert case.kinds() == {"receipt"}
    assert judge(case.history, case.found, {(PAGE, (OLD, False))}) == []
    assert judge(case.history, case.found, {("town:en:other", (OLD, False))})
    case.page.receipts.clear()  # the newest one is repaired, and must have its own
    assert len(judge(case.history, case.found, {(PAGE, (OLD, False)), (PAGE, (NEW, False))})) == 1
