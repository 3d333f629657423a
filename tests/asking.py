"""Builders for the query tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from schemas.query import Question, Retrieved, Source, Turn

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def question(text: str = "And on Sundays?", lang: str = "en", history: tuple[Turn, ...] = ()) -> Question:
    return Question(
        request_id="request-0001",
        conversation_id="conversation-1",
        site="town",
        lang=lang,
        question=text,
        history=history,
        asked_at=NOON,
        deadline=NOON + timedelta(seconds=90),
    )


def source(n: int, text: str, title: str = "Pool", lang: str = "en") -> Source:
    return Source(
        n=n,
        page_id=f"p{n}",
        lang=lang,
        title=title,
        url=f"/p{n}",
        field="content",
        ord=0,
        text=text,
        score=0.5,
        revision=1,
    )


def retrieved(*sources: Source, lang: str = "en", text: str = "Is the pool open on Sundays?") -> Retrieved:
    return Retrieved(
        request=question(lang=lang, history=(Turn(question="When is the pool open?", answer="Daily from 9."),)),
        question=text,
        mode="semantic",
        grade=0,
        sources=sources,
    )
