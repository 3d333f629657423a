"""Answers for the chat's tests and pictures: what the fakes say, as the real stages would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from schemas.answer import Answered, Citation, Done, QuestionRephrased, SourcesFound, Token, WholeTable
from schemas.query import Question, Source

Script = Callable[[Question], Sequence[Any]]


def source(
    n: int, page_id: str, title: str, cited: bool = True, url: str | None = None, text: str = "", lang: str = "en"
) -> Source:
    return Source(
        n=n,
        page_id=page_id,
        lang=lang,
        title=title,
        url=f"/pages/{page_id}" if url is None else url,
        field="content",
        ord=0,
        text=text,
        score=0.9,
        revision=1,
        cited=cited,
    )


def written(
    text: str,
    sources: Sequence[Source] = (),
    citations: Sequence[Citation] = (),
    pause: float = 0,
    tables: Sequence[WholeTable] = (),
) -> Script:
    """A whole answer in pieces of four characters; `pause` seconds in its middle."""

    def script(question: Question) -> list[Any]:
        tokens: list[Any] = [Token(text=text[at : at + 4]) for at in range(0, len(text), 4)]
        if pause:
            tokens.insert(len(tokens) // 2, pause)
        return [
            QuestionRephrased(question=question.question, mode="semantic"),
            SourcesFound(grade=0, sources=tuple(sources)),
            *tokens,
            *citations,
            Answered(
                text=text,
                citations=tuple(citations),
                sources=tuple(sources),
                tables=tuple(tables),
                extractive=False,
            ),
            Done(),
        ]

    return script


PASSAGE = (
    "## Opening hours\n\nThe library is open from Tuesday to Friday, 10:00 to 18:00. A library card costs **12\n"
    "euros** a year. Children and young people under 18 read for free. Bring your identity card."
)
LIBRARY = written(
    "A library card costs **12 euros** a year. It is free for everybody under 18.\n\n- Bring your identity card",
    (source(1, "library", "Town library", text=PASSAGE), source(2, "fees", "Fees", text="No fee under 18.")),
    (
        Citation(n=1, start=0, end=41, quote="A library card costs **12 euros** a year."),
        Citation(n=2, start=42, end=76, quote="No fee under 18."),
    ),
)
