"""In-memory siblings of the ports, for tests of the edge and of the chat page without Kafka or Elasticsearch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gateway.ports import Acceptance, Change, Followed, Ports
from pipelines.query.ask import BadPosition
from pipelines.runtime.errors import PagewireError
from schemas.answer import Accepted, Answered, AnswerEvent, Done, Event, QuestionRephrased, SourcesFound, Token
from schemas.http import SearchHit, SearchKind, SystemStatus
from schemas.ingest import ChunkCounts, Receipt, ReceiptState
from schemas.keys import page_key
from schemas.query import Question

EPOCH = datetime(2026, 5, 4, 12, tzinfo=UTC)


@dataclass
class FakePages:
    """Intake and receipts in one: what is accepted is searchable at once, unless `settles` is off."""

    languages: dict[str, str]  # site -> its first language
    settles: bool = True
    error: PagewireError | None = None  # raised for every batch, ...
    refuses: Callable[[Change], PagewireError | None] = lambda _: None  # ... or for batches with such a change
    changes: dict[str, list[Change]] = field(default_factory=dict)
    batches: list[int] = field(default_factory=list)
    _receipts: dict[str, Receipt] = field(default_factory=dict)

    async def accept(self, site: str, changes: Sequence[Change], source: str) -> list[Acceptance]:
        if self.error is not None:
            raise self.error
        for change in changes:
            if (refusal := self.refuses(change)) is not None:
                raise refusal
        self.batches.append(len(changes))
        return [self._accept(site, change) for change in changes]

    async def receipt(self, site: str, lang: str, page_id: str) -> Receipt | None:
        return self._receipts.get(page_key(site, lang, page_id))

    async def settled(self, page_key: str, revision: int, timeout: float) -> Receipt | None:
        return self._receipts[page_key] if self.settles else None

    def _accept(self, site: str, change: Change) -> Acceptance:
        key = page_key(site, change.page.lang or self.languages[site], change.page.id)
        known = self._receipts.get(key)
        last = known.accepted_revision if known else 0
        revision = last + 1 if change.page.revision is None else change.page.revision
        if revision < last:
            return Acceptance(key, revision, superseded=True)
        self.changes.setdefault(key, []).append(change)
        state: ReceiptState = ("deleted" if change.op == "delete" else "searchable") if self.settles else "queued"
        self._receipts[key] = Receipt(
            page_key=key,
            accepted_revision=revision,
            searchable_revision=revision if state == "searchable" else None,
            state=state,
            chunks=ChunkCounts(total=1, embedded=1),
            accepted_at=EPOCH,
            searchable_at=EPOCH if state == "searchable" else None,
            lag_ms=0 if self.settles else None,
        )
        return Acceptance(key, revision)


Step = Event | float | BaseException


@dataclass
class FakeAnswers:
    """Plays a script after `accepted`: events, pauses in seconds, errors. Positions count events."""

    script: Callable[[Question], Sequence[Step]]
    asked: list[Question] = field(default_factory=list)
    following: int = 0  # readers at this moment
    pulled: int = 0  # events taken by readers

    async def ask(self, question: Question) -> AsyncGenerator[Followed, None]:
        self.asked.append(question)
        async for followed in self._play(question, -1):
            yield followed

    async def resume(self, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        question = next((q for q in self.asked if q.request_id == request_id), None)
        if question is None or not (position == "" or position.isdecimal()):
            raise BadPosition("not a position of this answer")
        async for followed in self._play(question, int(position or -1)):
            yield followed

    async def _play(self, question: Question, after: int) -> AsyncGenerator[Followed, None]:
        accepted = Accepted(request_id=question.request_id, conversation_id=question.conversation_id)
        self.following += 1
        seq = -1
        try:
            for step in (accepted, *self.script(question)):
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, float):
                    await asyncio.sleep(step)
                    continue
                seq += 1
                if seq > after:
                    self.pulled += 1
                    yield Followed(str(seq), AnswerEvent(request_id=question.request_id, seq=seq, event=step))
        finally:
            self.following -= 1


def plain_answer(question: Question) -> list[Step]:
    """A script: the shortest complete answer, in two tokens."""
    return [
        QuestionRephrased(question=question.question, mode="semantic"),
        SourcesFound(grade=0, sources=()),
        Token(text="The library opens "),
        Token(text="at nine."),
        Answered(text="The library opens at nine.", citations=(), sources=(), extractive=True),
        Done(),
    ]


@dataclass
class FakeSearch:
    """Returns the first `size` of its hits."""

    hits: Sequence[SearchHit] = ()
    error: PagewireError | None = None
    searches: list[tuple[str, str, SearchKind, int]] = field(default_factory=list)

    async def search(
        self, site: str, query: str, *, kind: SearchKind, size: int, groups: Iterable[str] = ()
    ) -> Sequence[SearchHit]:
        if self.error is not None:
            raise self.error
        self.searches.append((site, query, kind, size))
        return self.hits[:size]


@dataclass
class FakeStatus:
    """Says what it is told to."""

    problems: dict[str, str] = field(default_factory=dict)

    async def status(self) -> SystemStatus:
        return SystemStatus(at=EPOCH, kafka=True, elasticsearch=True, stages=(), sites=())

    async def ready(self) -> tuple[bool, dict[str, str]]:
        return not self.problems, dict(self.problems)


@dataclass(frozen=True)
class FakePorts:
    """All fakes, by their own types; `ports` is what the gateway takes."""

    pages: FakePages = field(default_factory=lambda: FakePages({"town": "en"}))
    answers: FakeAnswers = field(default_factory=lambda: FakeAnswers(plain_answer))
    search: FakeSearch = field(default_factory=FakeSearch)
    status: FakeStatus = field(default_factory=FakeStatus)

    @property
    def ports(self) -> Ports:
        return Ports(
            intake=self.pages, receipts=self.pages, answers=self.answers, search=self.search, status=self.status
        )
