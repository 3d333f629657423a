"""Filling an index from a topic: whatever it was made for, whatever comes twice, whatever cannot be done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.chunk import AttachmentPiece
from pipelines.ingest.documents.attachments import Attached
from pipelines.ingest.early_changes import early_part
from pipelines.ingest.embed import Embedding
from pipelines.ingest.handlers import chunked
from pipelines.operate.rebuild.index_builder import AHEAD, IndexBuilder
from pipelines.operate.rebuild.orders import WorkersAway
from pipelines.operate.rebuild.page_builder import BuildTarget, Built, SourceMessage
from pipelines.runtime.errors import Permanent, Retryable, SettingsError
from pipelines.runtime.indexes import IndexGone
from pipelines.runtime.record import Record
from pipelines.runtime.retry import RetryPolicy
from schemas.base import Message
from schemas.head import Head, LogPositions
from schemas.ingest import ChunkCounts, Chunker, PageChunks, PageEmbeddings
from schemas.keys import page_key
from schemas.page import Attachment, AttachmentPlace, FieldName, Op, PageChange, PageDocument, PageMeta
from schemas.rebuild import RebuildSource
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.pages import FakeIndex, FakePages
from tests.making import NOON, change, no_attachments, parts_of

CHUNKER = Chunker(mode="content", size=1000, overlap=0.2)
KEY = change().page_key


class Bench:
    """A candidate to fill beside a live index; `log` is cms.changes."""

    def __init__(self, source: RebuildSource = "embeddings", store: FakeIndex | None = None, retry_for: float = 0.0):
        self.model = FakeEmbedder(dims=4)
        self.store = store or FakeIndex(self.model.fingerprint, CHUNKER.fingerprint)
        self.live = FakePages()
        self.log: list[Record] = []
        self.source = source
        self.offset = 0
        self.filler = self.another(retry_for)

    def another(self, retry_for: float = 0.0, orders: Worker | None = None) -> IndexBuilder:
        """As after a kill."""
        target = BuildTarget("town", "fake", self.model.fingerprint, 4, CHUNKER, self._model)
        policy = RetryPolicy(1, retry_for, first_wait=0.001)
        embedding = Embedding(self, self.live)  # type: ignore[arg-type]
        return IndexBuilder(self.source, target, self.store, self.live, embedding, self, no_attachments, policy, orders)

    async def _model(self) -> FakeEmbedder:
        return self.model

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        return [record for record in self.log if start <= record.offset < (end or start + 1)]

    def change(self, revision: int, content: str = "", op: Op = "upsert", page_id: str = "fees") -> Record:
        """A change, put into the log."""
        page = PageDocument(id=page_id, lang="en", content=f"<p>{content}</p>") if op == "upsert" else None
        made = PageChange(
            op=op, site="town", lang="en", page_id=page_id, revision=revision, accepted_at=NOON, source="t", page=page
        )
        record = self.record(made.page_key, made, offset=len(self.log))
        self.log.append(record)
        return record

    def record(self, key: str, message: Message, offset: int | None = None) -> Record:
        self.offset += 1
        place = self.offset if offset is None else offset
        return Record("topic", 0, place, key.encode(), message.encode())

    def parts(
        self, revision: int, texts: Sequence[str] = (), op: Op = "upsert", per_part: int = 100, **more: str
    ) -> list[Record]:
        """Messages of ingest.embeddings."""
        model = more.pop("model", self.model.fingerprint)
        made = parts_of(change(revision, op, **more), {"content": list(texts)}, per_part, model)  # type: ignore[arg-type]
        return [self.record(part.change.page_key, part) for part in made]

    async def fill(self, *records: Record, filler: IndexBuilder | None = None) -> None:
        """One batch."""
        filler = filler or self.filler
        await filler.write(await filler.decode(records))

    def texts(self, page_id: str = "fees") -> list[str]:
        found = self.store.texts(page_key("town", "en", page_id))
        return [text for _, (_, text) in sorted(found.items(), key=lambda item: item[0][1])]


async def test_embeddings_that_fit_are_taken_as_they_are() -> None:
    bench = Bench()
    await bench.fill(*bench.parts(1, ["one", "two"]))
    assert bench.texts() == ["one", "two"]
    assert bench.model.embedded == []
    assert (bench.filler.tally.pages, bench.filler.tally.chunks, bench.filler.tally.embedded) == (1, 2, 0)


async def test_what_is_there_already_is_skipped_after_a_kill() -> None:
    class Counting(FakeIndex):
        writes = 0

        async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
            self.writes += 1
            return await super().write(part, head)

    store = Counting("fake-1-4", CHUNKER.fingerprint)
    bench = Bench("changes", store)
    records = [bench.change(1, "one"), bench.change(2, op="delete", page_id="old")]
    await bench.fill(*records)
    embedded = len(bench.model.embedded)
    assert (store.writes, embedded) == (2, 2)  # the chunk, and its one unit
    await bench.fill(*records, filler=bench.another())
    assert (store.writes, len(bench.model.embedded)) == (2, embedded)


async def test_a_record_of_another_model_is_made_again_from_the_change() -> None:
    bench = Bench()
    bench.change(1, "the pool opens at nine")
    [other] = bench.parts(1, ["the pool opens at nine"], model="other-4")
    await bench.fill(other)
    assert bench.texts() == ["the pool opens at nine"]
    assert (bench.filler.tally.remade, bench.filler.tally.embedded) == (1, 1)
    assert (await bench.store.heads([KEY]))[KEY].model == bench.model.fingerprint


@pytest.mark.parametrize("batches", [1, 2])
async def test_groups_taken_from_a_page_that_is_not_embedded_yet_do_not_see_its_old_text(batches: int) -> None:
    bench = Bench()
    ref = change(2)
    cut = PageChunks(change=ref, meta=PageMeta(title="Fees", url="/", groups=("staff",)), chunker=CHUNKER)
    ahead = early_part(cut)
    assert ahead
    records = [*bench.parts(1, ["one", "two"], per_part=1), bench.record(KEY, ahead)]
    for batch in [records] if batches == 1 else [records[:2], records[2:]]:
        await bench.fill(*batch)
    assert bench.texts() == ["one", "two"]
    assert bench.store.groups(KEY) == {("staff",)}
    assert (bench.filler.tally.pages, bench.filler.tally.failures) == (1, 0)


async def test_of_a_page_of_which_only_some_parts_are_left_nothing_is_shown() -> None:
    bench = Bench()
    first, _, last = bench.parts(1, ["one", "two", "three"], per_part=1)
    await bench.fill(first, last)
    assert bench.texts() == []
    assert await bench.store.heads([KEY]) == {}


async def test_the_parts_of_a_record_of_another_model_are_made_again_once() -> None:
    bench = Bench()
    bench.change(1, "all of it")
    await bench.fill(*bench.parts(1, ["a", "b", "c"], per_part=1, model="other-4"))
    assert bench.texts() == ["all of it"]
    assert (bench.filler.tally.remade, bench.filler.tally.pages) == (1, 1)


async def test_a_change_that_was_compacted_away_is_left_to_the_one_that_follows() -> None:
    bench = Bench()
    await bench.fill(*bench.parts(1, ["old"], model="other-4"))
    assert bench.texts() == []
    assert bench.filler.tally.failures == 0


async def test_superseded_parts_and_other_sites_are_passed_over() -> None:
    bench = Bench()
    [part] = parts_of(change(1), {"content": ["ghost"]}, model=bench.model.fingerprint)
    ghost = bench.record(KEY, part.model_copy(update={"superseded": True}))
    [other] = bench.parts(1, ["theirs"], site="town-hall")
    await bench.fill(ghost, other)
    assert bench.store.docs == {}


async def test_a_page_that_fails_is_counted_and_its_neighbours_go_in() -> None:
    class Refusing(FakeIndex):
        async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
            if part.change.page_id == "bad":
                raise Permanent("the mapping refuses it")
            return await super().write(part, head)

    bench = Bench(store=Refusing("fake-1-4", CHUNKER.fingerprint))
    tampered = Record("topic", 0, 7, b"town:en:worse", b"{not json")
    bad, good = bench.parts(1, ["x"], page_id="bad"), bench.parts(1, ["y"], page_id="good")
    await bench.fill(*bad, tampered, *good)
    assert bench.texts("good") == ["y"]
    tally = bench.filler.tally
    assert (tally.failures, tally.pages) == (2, 1)
    assert dict(tally.failed)["town:en:bad"] == "the mapping refuses it"
    assert "topic[0]@7" in dict(tally.failed)["town:en:worse"]


async def test_when_the_newest_revision_cannot_be_made_the_one_before_stands() -> None:
    class Refusing(FakeIndex):
        async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
            if part.change.revision == 2:
                raise Permanent("the mapping refuses it")
            return await super().write(part, head)

    bench = Bench("changes", Refusing("fake-1-4", CHUNKER.fingerprint))
    await bench.fill(bench.change(1, "good"), bench.change(2, "bad"))
    assert bench.texts() == ["good"]
    assert bench.filler.tally.failures == 1


async def test_parts_over_the_border_of_a_batch_leave_nothing_of_a_revision_that_lost() -> None:
    bench = Bench()
    first, last = bench.parts(1, ["a", "b", "c", "d"], per_part=3)
    await bench.fill(first)
    await bench.fill(last, *bench.parts(2, ["A"]))
    assert bench.texts() == ["A"]


async def test_the_same_revision_once_more_stands_as_it_was_written_last() -> None:
    bench = Bench("changes")
    await bench.fill(bench.change(1, "first"))
    again = bench.change(1, "second")
    await bench.fill(again)
    assert bench.texts() == ["second"]
    await bench.fill(bench.log[0])
    assert bench.texts() == ["second"]


@pytest.mark.parametrize("copy", [False, True], ids=["the change itself", "another copy of it"])
async def test_a_head_tells_what_the_save_cost_and_where_its_own_products_stand(copy: bool) -> None:
    bench = Bench("changes")
    cost = ChunkCounts(total=3, embedded=2, reused=1)
    stands = LogPositions(changes=2, chunks=5, embeddings=9)
    shown = Head(
        change=change(1, offset=7 * copy), state="live", cost=cost, origin=stands, settled_at=NOON, model="old"
    )

    async def heads(site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        return dict.fromkeys(page_keys, shown)

    bench.live.heads = heads  # type: ignore[method-assign]
    await bench.fill(bench.change(1, "text"), bench.change(2, "other", page_id="fees2"))
    head = (await bench.store.heads([KEY]))[KEY]
    assert (head.cost, head.settled_at, head.unplaced) == (cost, NOON, copy)
    assert head.origin == stands or copy
    assert (head.model, head.chunker) == (bench.model.fingerprint, CHUNKER.fingerprint)
    other = (await bench.store.heads(["town:en:fees2"]))["town:en:fees2"]
    assert (other.cost.total, other.origin.chunks) == (1, 0)


@pytest.mark.parametrize("in_log", [True, False])
async def test_a_winner_in_another_partition_is_lost_only_if_it_is_not_there(in_log: bool) -> None:
    """Partitions were added: what stands where says nothing of which comes first."""
    bench = Bench("changes")
    winner = change(2).model_copy(update={"partition": 1})
    shown = Head(change=winner, state="live", settled_at=NOON)

    async def heads(site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        return dict.fromkeys(page_keys, shown)

    bench.live.heads = heads  # type: ignore[method-assign]
    first = bench.change(2, "new")
    if not in_log:
        bench.log.clear()
    older = bench.change(1, "old")
    await bench.fill(older)
    assert bench.texts() == (["old"] if in_log else [])
    assert [key for key, _ in bench.filler.tally.failed] == ([] if in_log else [KEY])
    await bench.fill(first)
    assert bench.texts() == ["new"]


class Failing(FakeIndex):
    """Its writes fail."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__("fake-1-4", CHUNKER.fingerprint)
        self.errors = list(errors)

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        if self.errors:
            raise self.errors.pop(0)
        return await super().write(part, head)


async def test_a_service_that_is_away_is_waited_for() -> None:
    bench = Bench(store=Failing(Retryable("away"), Retryable("away")), retry_for=60.0)
    await bench.fill(*bench.parts(1, ["one"]))
    assert bench.texts() == ["one"]


@pytest.mark.parametrize("error", [Retryable("away for long"), IndexGone("gone"), SettingsError("a wrong key")])
async def test_what_no_page_can_do_ends_the_batch(error: Exception) -> None:
    bench = Bench(store=Failing(error), retry_for=0.0 if type(error) is Retryable else 60.0)
    with pytest.raises(type(error)):
        await bench.fill(*bench.parts(1, ["one"]))
    assert bench.filler.tally.failures == 0


ops: st.SearchStrategy[Op] = st.sampled_from(["upsert", "delete"])
histories = st.lists(
    st.tuples(st.integers(1, 6), ops, st.integers(0, 5), st.integers(1, 3)),
    min_size=1,
    max_size=6,
    unique_by=lambda one: one[0],
)


@given(history=histories, data=st.data())
async def test_however_a_topic_is_cut_into_batches_and_repeated_its_highest_revision_stands(
    history: list[tuple[int, Op, int, int]], data: st.DataObject
) -> None:
    bench = Bench()
    records: list[Record] = []
    for revision, op, length, per_part in history:
        records += bench.parts(revision, [f"{revision}.{i}" for i in range(length)], op, per_part)
    at = 0
    while at < len(records):
        end = data.draw(st.integers(at + 1, len(records)))
        await bench.fill(*records[at:end])
        if data.draw(st.booleans()):  # killed before the note, and begun again
            bench.filler = bench.another()
            continue_at = data.draw(st.integers(at, end))
            await bench.fill(*records[at:continue_at])
        at = end
    revision, op, length, _ = max(history)
    expected: dict[tuple[FieldName, int], tuple[int, str]] = {}
    if op == "upsert":
        expected = {("content", i): (revision, f"{revision}.{i}") for i in range(length)}
    assert bench.store.texts(KEY) == expected


async def test_attachments_are_read_from_the_changes_and_never_again_from_the_chunks() -> None:
    place = AttachmentPlace(file=0, title="Fees · 3/9", url="/fees.pdf#page=3")
    reads: list[str] = []

    async def read(site: str, page: PageDocument) -> Attached:
        reads.append(page.id)
        return Attached((AttachmentPiece(place, "A dog costs 96 euros."),), ("a note",))

    for source in ("changes", "chunks"):
        bench = Bench(source)  # type: ignore[arg-type]
        policy = RetryPolicy(1, 0)
        embedding = Embedding(bench, bench.live)  # type: ignore[arg-type]
        target = BuildTarget("town", "fake", bench.model.fingerprint, 4, CHUNKER, bench._model)
        filler = IndexBuilder(bench.source, target, bench.store, bench.live, embedding, bench, read, policy)
        record = bench.change(1, "Own.")
        change = PageChange.decode(record.value)
        assert change.page
        page = change.page.model_copy(update={"attachments": (Attachment(url="https://town.example/fees.pdf"),)})
        change = change.model_copy(update={"page": page})
        bench.log[0] = bench.record(change.page_key, change, offset=0)
        other = Chunker(mode="fixed", size=40, overlap=0)
        cut = chunked(change, other, 0, 0, await read("town", page))
        await bench.fill(bench.log[0] if source == "changes" else bench.record(KEY, cut), filler=filler)
        assert bench.texts() == ["Own.", "A dog costs 96 euros."]
        docs = [doc.chunk for doc in bench.store.docs.values() if doc.chunk]
        assert [chunk.place for chunk in docs] == [None, place]
    assert reads == ["fees", "fees", "fees"]  # twice by this test, once by the filler


class Worker:
    """Builds what is ordered, elsewhere; refuses revisions."""

    def __init__(self, *refused: int) -> None:
        self.refused = refused
        self.ordered: list[tuple[str, int]] = []
        self.at_once = 0
        self.most = 0

    async def built(self, given: SourceMessage) -> Built | None:
        if given.change.op == "delete":
            return None
        self.ordered.append((given.change.page_id, given.change.revision))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if given.change.revision in self.refused:
            raise Permanent("a worker gave it up")
        return Built(pages=1, chunks=2, embedded=1)


async def test_what_workers_build_is_ordered_and_counted_and_deletes_are_done_here() -> None:
    bench, worker = Bench("changes"), Worker()
    records = [bench.change(1, "one"), bench.change(2, op="delete", page_id="old"), bench.change(1, page_id="b")]
    await bench.fill(*records, filler=(filler := bench.another(orders=worker)))
    assert sorted(worker.ordered) == [("b", 1), ("fees", 1)]
    tally = filler.tally
    assert (tally.pages, tally.chunks, tally.embedded, bench.model.embedded) == (3, 4, 2, [])
    assert set(await bench.store.heads([page_key("town", "en", "old")]))


async def test_what_a_worker_gave_up_is_in_the_report_and_the_revision_before_is_ordered() -> None:
    bench, worker = Bench("changes"), Worker(2)
    filler = bench.another(orders=worker)
    await bench.fill(bench.change(1, "one"), bench.change(2, "two"), filler=filler)
    assert worker.ordered == [("fees", 2), ("fees", 1)]
    assert (filler.tally.failures, filler.tally.failed) == (1, [(KEY, "a worker gave it up")])


async def test_some_hundred_pages_are_ordered_ahead_and_no_more() -> None:
    bench, worker = Bench("changes"), Worker()
    records = [bench.change(1, page_id=f"p{n}") for n in range(AHEAD + 50)]
    await bench.fill(*records, filler=bench.another(orders=worker))
    assert (len(worker.ordered), worker.most) == (AHEAD + 50, AHEAD)


async def test_pages_that_are_there_are_not_ordered_again() -> None:
    bench, worker = Bench("changes"), Worker()
    records = [bench.change(1, "one")]
    await bench.fill(*records)
    await bench.fill(*records, filler=bench.another(orders=worker))
    assert worker.ordered == []


async def test_workers_that_are_away_end_it_at_once_for_they_have_been_waited_for() -> None:
    class Nobody(Worker):
        async def built(self, given: SourceMessage) -> Built | None:
            await super().built(given)
            raise WorkersAway("no worker runs the stage")

    bench, nobody = Bench("changes"), Nobody()
    with pytest.raises(WorkersAway):
        await bench.fill(bench.change(1, "one"), filler=bench.another(retry_for=60.0, orders=nobody))
    assert len(nobody.ordered) == 1
