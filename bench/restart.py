"""A worker starts again with answers under way: how soon is each of them going on?

answer.events: others' answers ─ beginnings of ours ─ others'      the log, as it was left
a new reader ─▶ the beginning of each of ours, all at once ─▶ `restart` in the log          what is measured

Without the start of the process and its place in the group: those are the same however long the log is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe
from time import perf_counter

from adapters.kafka import KafkaSender, Outgoing
from adapters.kafka.log import LogReader
from bench.report import report
from bench.servers import servers
from bench.system import home
from bench.transport import TEXT
from pipelines.query.publish import Publication, begin
from pipelines.runtime.record import Record
from schemas.answer import AnswerEvent, Token
from schemas.query import LogPlace, Question
from schemas.topics import ANSWERS
from wiring.settings import Settings

SITE = "restart"
BATCH = 2_000  # events that are sent together
TARGET = 3.0  # seconds until all are going on


def main(answers: int, events: int) -> None:
    """Seconds. `events`: of others, before the beginnings of ours and after them."""
    with home([SITE]) as settings:
        asyncio.run(_run(settings, answers, events))


async def _run(settings: Settings, answers: int, events: int) -> None:
    async with servers(settings) as configured, KafkaSender(configured, linger_ms=20) as sender:
        await _others(sender, events)
        asked = await _begun(sender, answers)
        await _others(sender, events)
        lines = []
        for name, questions in (("by the time it was asked", _unsaid(asked)), ("from where its record says", asked)):
            async with LogReader(configured, ANSWERS) as log:
                began = perf_counter()
                seconds = await asyncio.gather(*(_going_on(question, sender, log, began) for question in questions))
            lines.append((name, sorted(seconds)[len(seconds) // 2], max(seconds)))
    report(
        "restart",
        f"{answers} answers under way, {events} events of others before them and as many after",
        ("beginning looked for", "half of them, s", "all of them, s"),
        lines,
    )
    print(f"all going on within {TARGET:.0f} s: {lines[-1][2] <= TARGET}")


async def _others(sender: KafkaSender, events: int) -> None:
    ids = [token_urlsafe(16) for _ in range(200)]
    for start in range(0, events, BATCH):
        numbers = range(start, min(start + BATCH, events))
        await sender.send_many([_event(ids[number % len(ids)], number) for number in numbers])


async def _begun(sender: KafkaSender, answers: int) -> list[Question]:
    """The questions, each with a word of its answer in the log, and where that begins."""
    asked = []
    for _ in range(answers):
        request_id = token_urlsafe(16)
        [sent] = await sender.send_many([_event(request_id, 0)])
        now = datetime.now(UTC)
        asked.append(
            Question(
                request_id=request_id,
                conversation_id=token_urlsafe(16),
                site=SITE,
                lang="en",
                question="?",
                begins=LogPlace(partition=sent.partition, offset=sent.offset),
                asked_at=now,
                deadline=now + timedelta(minutes=10),
            )
        )
    return asked


def _unsaid(questions: Sequence[Question]) -> list[Question]:
    """As an older gateway asks them."""
    return [question.model_copy(update={"begins": None}) for question in questions]


def _event(request_id: str, seq: int) -> Outgoing:
    return Outgoing(ANSWERS, request_id, AnswerEvent(request_id=request_id, site=SITE, seq=seq, event=Token(text=TEXT)))


async def _going_on(question: Question, sender: KafkaSender, log: LogReader, began: float) -> float:
    """Seconds from the start until the next attempt is announced."""
    record = Record("query.retrieved", 0, 0, question.conversation_id.encode(), b"")
    publication = await begin(record, question, sender, log)
    assert isinstance(publication, Publication)
    return perf_counter() - began
