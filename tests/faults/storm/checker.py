"""The judge: what was sent and answered against what was read back. Pure; shares no code with what it judges.

history ─┐
         ├─▶ judge ─▶ faults found, by page and kind
evidence ┘
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

import numpy as np

from schemas.page import FieldName
from tests.faults.storm.evidence import ChunkFound, Logged, PageFound, ReadBack
from tests.faults.storm.history import Answer, History, Order, Sent
from tests.faults.storm.scripted_embedder import vector_of

Kind = Literal[
    "lost",  # accepted, and neither shown nor superseded nor in a dead letter
    "ghost",  # deleted or replaced, and still found
    "mixed",  # a page with texts of several revisions
    "orphan",  # a chunk that its page's head does not know
    "counts",  # the head counts other chunks than there are
    "dead",  # the newest revision stays in a dead letter
    "log",  # a topic's last record of a key is not the winner's: compaction would keep the wrong one
    "receipt",  # no receipt, or one that does not say what is so
    "vector",  # a chunk's vector is not its text's
    "unfound",  # in the index, and a search does not bring it up
    "invented",  # a change that nobody sent, or that was refused
    "poison",  # bytes nobody can read, and no dead letter of them
    "audit",  # the product's own audit says something else
]
FINAL = {"searchable", "deleted", "failed", "superseded"}
OVERLAP = 0.2  # PAGEWIRE_CHUNK_OVERLAP


@dataclass(frozen=True)
class Finding:
    """One thing that must not be."""

    kind: Kind
    page: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind.upper()} {self.page}: {self.what}"


def judge(history: History, found: ReadBack, unread: Set[tuple[str, Order]] = frozenset()) -> list[Finding]:
    """All that is wrong; empty when nothing is.

    Args:
        unread: Page and change of messages that were deleted before a stage had read them. Of these the newest change
            of a page is repaired, and must have its receipt; nobody hears any more of those before.
    """
    findings: list[Finding] = []
    for page in sorted({sent.page for sent in history.sent} | set(found.pages)):
        gone = {order for key, order in unread if key == page}
        judged = _Page(page, list(history.of(page)), found.pages[page], gone)
        findings += judged.findings()
    buried = {(letter.topic, letter.key, letter.value) for letter in found.letters}
    findings += [
        Finding("poison", poison.key.decode(errors="replace"), f"{poison.what} in {poison.topic} left no dead letter")
        for poison in history.poison
        if (poison.topic, poison.key, poison.value) not in buried
    ]
    findings += [Finding("receipt", page, what) for page, what in history.broken]
    return findings


@dataclass
class _Page:
    page: str
    sent: Sequence[Sent]
    found: PageFound
    unread: Set[Order] = frozenset()

    def findings(self) -> list[Finding]:
        return [Finding(kind, self.page, what) for kind, what in self._all()]

    def _all(self) -> Iterator[tuple[Kind, str]]:
        yield from self._intake()
        if self.winner is None:
            if self.found.head or self.found.chunks:
                yield "invented", "in the index, and no change of it is in the log"
            return
        yield from self._log()
        yield from self._index()
        yield from self._search()
        yield from self._receipts()

    @property
    def changes(self) -> list[Logged]:
        """Of cms.changes, those that can be read."""
        return [record for record in self.found.changes if record.order is not None]

    @property
    def winner(self) -> Order | None:
        """What the page must be at: the log decides what was accepted where no answer came."""
        return max((record.order for record in self.changes if record.order), default=None)

    @property
    def expected(self) -> list[Mapping[FieldName, str]]:
        """What the page's fields must be; several when two saves got the same revision."""
        numbers = {record.number for record in self.changes if record.order == self.winner}
        by_number = {sent.number: sent.fields for sent in self.sent}
        return [by_number[number] for number in numbers if number in by_number]

    def _intake(self) -> Iterator[tuple[Kind, str]]:
        """Whether the log holds what was accepted, and nothing else."""
        numbers: defaultdict[int, set[Order]] = defaultdict(set)
        for record in self.changes:
            if record.number is not None and record.order is not None:
                numbers[record.number].add(record.order)
        orders = {record.order for record in self.changes}
        for sent in self.sent:
            logged = numbers[sent.number] if sent.op == "upsert" else orders
            there = bool(logged) if sent.order is None else sent.order in logged
            if sent.op == "delete" and sent.order is None:
                there = any(order[1] for order in orders if order)
            beaten = sent.order is not None and self.winner is not None and self.winner > sent.order
            if sent.answer is Answer.ACCEPTED and not there:
                yield "lost", f"accepted, and not in the log: {sent}"
            if sent.answer in (Answer.SUPERSEDED, Answer.TAKEN) and not there and not beaten:
                yield "lost", f"called superseded, and nothing newer was accepted: {sent}"
        yield from self._strangers(orders)

    def _strangers(self, orders: Iterable[Order | None]) -> Iterator[tuple[Kind, str]]:
        possible = [sent for sent in self.sent if sent.answer is not Answer.REFUSED]
        numbers = {sent.number for sent in possible}
        deletes = {sent.order for sent in possible if sent.op == "delete"}
        unnumbered = any(sent.op == "delete" and sent.order is None for sent in possible)
        for record in self.changes:
            if record.order and record.order[1]:
                if record.order not in deletes and not unnumbered:
                    yield "invented", f"a delete that nobody sent: {record}"
            elif record.number not in numbers:
                yield "invented", f"a change that nobody sent, or that was refused: {record}"

    def _log(self) -> Iterator[tuple[Kind, str]]:
        # By partition: where a topic has got some, a key's older records stay in another one.
        tops: dict[tuple[str, str, int], Logged] = {}
        for record in [*self.changes, *self.found.products]:
            if record.order is not None and not record.superseded:
                tops[record.topic, record.key, record.partition] = record
        kept = {(record.topic, record.key) for record in tops.values() if record.order == self.winner}
        for record in tops.values():
            # Parts that a newer revision no longer has are overwritten by markers; the first part is always there.
            first = record.key == self.page or record.key.endswith("#0")
            if first and (record.topic, record.key) not in kept:
                yield "log", f"the winner is {self.winner}, on top of its key stands {record}"

    def _index(self) -> Iterator[tuple[Kind, str]]:
        head, chunks, winner = self.found.head, self.found.chunks, self.winner
        assert winner is not None
        revision, deleted = winner
        in_letter = any(letter.order == winner for letter in self.found.letters)
        if head is None or (head.revision, head.state == "deleted") != winner:
            shown = f"{head.revision} {head.state}" if head else "nothing"
            yield "dead" if in_letter else "lost", f"must be at {winner}, the index shows {shown}"
            if deleted and chunks:
                yield "ghost", f"deleted at {revision}, and {len(chunks)} chunks are there"
            return
        if deleted:
            if chunks:
                yield "ghost", f"deleted at {revision}, and these chunks are there: {_names(chunks)}"
            return
        known = [chunk for chunk in chunks if chunk.ord < head.counts.get(chunk.field, 0)]
        if orphans := [chunk for chunk in chunks if chunk not in known]:
            yield "orphan", f"beyond the head's {dict(head.counts)}: {_names(orphans)}"
        if strange := [chunk for chunk in known if chunk.revision != revision]:
            yield "mixed", f"the page is at {revision}, these chunks are not: {_names(strange)}"
        texts = _texts(known)
        have = {field: len(cores) for field, cores in texts.items()}
        if have != {field: count for field, count in head.counts.items() if count}:
            yield "counts", f"the head counts {dict(head.counts)}, there are {have}"
            return
        whole = {field: "".join(cores) for field, cores in texts.items()}
        if self.expected and whole not in self.expected:
            wrong = [field for field in {*whole, *self.expected[0]} if whole.get(field) != self.expected[0].get(field)]
            yield "mixed", f"not the text of {revision}: {', '.join(wrong)}"
        elif not strange and (misfits := _misfits(known)):
            yield "vector", f"vectors of other texts: {_names(misfits)}"

    def _search(self) -> Iterator[tuple[Kind, str]]:
        assert self.winner is not None
        revision, deleted = self.winner
        for mode in sorted({hit.mode for hit in self.found.hits}):
            hits = [hit for hit in self.found.hits if hit.mode == mode]
            if old := [hit for hit in hits if deleted or hit.revision != revision]:
                yield "ghost", f"{mode} search finds {old[0]} ({len(old)} such), the page is at {self.winner}"
        if not deleted and self.found.head and self.found.head.revision == revision and any(self.expected):
            for mode in ("keyword", "vector"):
                if not any(hit.mode == mode for hit in self.found.hits):
                    yield "unfound", f"{mode} search does not find revision {revision}"

    def _receipts(self) -> Iterator[tuple[Kind, str]]:
        final = {record.order for record in self.found.receipts if record.state in FINAL}
        letters = {letter.order for letter in self.found.letters}
        unread = self.unread - {self.winner}
        for order in sorted({record.order for record in self.changes if record.order} - final - letters - unread):
            yield "receipt", f"no receipt ever said what became of {order}"
        assert self.winner is not None
        revision, deleted = self.winner
        state = "deleted" if deleted else "searchable"
        receipt = self.found.receipt
        said = (receipt["accepted_revision"], receipt["state"]) if receipt else None
        if said != (revision, state) and not any(letter.order == self.winner for letter in self.found.letters):
            yield "receipt", f"an editor reads {said}, it is {(revision, state)}"


def _texts(chunks: Iterable[ChunkFound]) -> dict[FieldName, list[str]]:
    """The cores of each field, in order."""
    fields: defaultdict[FieldName, list[ChunkFound]] = defaultdict(list)
    for chunk in chunks:
        fields[chunk.field].append(chunk)
    return {name: [c.text for c in sorted(own, key=lambda c: c.ord)] for name, own in fields.items()}


def _misfits(chunks: Sequence[ChunkFound]) -> list[ChunkFound]:
    """Chunks whose vector is not that of their text and its neighbours' share."""
    texts = _texts(chunks)
    misfits = []
    for chunk in chunks:
        cores = texts[chunk.field]
        before = cores[chunk.ord - 1] if chunk.ord else ""
        after = cores[chunk.ord + 1] if chunk.ord + 1 < len(cores) else ""
        text = before[len(before) - round(len(before) * OVERLAP) :] + chunk.text + after[: round(len(after) * OVERLAP)]
        if chunk.vector and not np.allclose(chunk.vector, vector_of(text.strip()), atol=1e-3):
            misfits.append(chunk)
    return misfits


def _names(chunks: Iterable[ChunkFound]) -> str:
    return ", ".join(f"{chunk.field}#{chunk.ord} at {chunk.revision}" for chunk in chunks)
