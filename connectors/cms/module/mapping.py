"""Parses the module's answers, line by line. Pages are PageDocuments already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, ValidationError

from connectors.cms.frame import Listed, UnreadablePage
from pipelines.runtime.errors import Permanent
from schemas.base import Lang, PageId, Revision, Wire, problems
from schemas.page import PageDocument


class NotOurModule(Permanent):
    """The answer is not one of our module's."""

    code = "not-pagewire-module"


class ListedName(Wire):
    """A page's key."""

    id: PageId
    lang: Lang


class RenderProblem(ListedName):
    """Why the page cannot be rendered."""

    reason: str


class AnswerLine(Wire):
    """One line: `now` first, then a listed page or a whole one, last `next` or `end`."""

    now: int | None = Field(default=None, description="Milliseconds since 1970 at the site.")
    id: PageId | None = None
    lang: Lang | None = None
    revision: Revision | None = None
    page: dict[str, Any] | None = Field(default=None, description="A PageDocument, if the site's own code made it one.")
    problem: RenderProblem | None = None
    later: ListedName | None = Field(default=None, description="It did not fit into this answer.")
    next: str | None = Field(default=None, description="The inventory goes on behind this key.")
    end: bool = Field(default=False, description="That was all of the inventory.")


@dataclass
class Answer:
    """All lines of one answer."""

    now: int
    listed: list[Listed] = field(default_factory=list)
    pages: list[PageDocument | UnreadablePage] = field(default_factory=list)
    later: list[ListedName] = field(default_factory=list)
    next: str | None = None
    end: bool = False


def read(body: bytes) -> Answer:
    """Raises: NotOurModule."""
    lines = body.splitlines()
    if not lines or (now := _line(1, lines[0]).now) is None:
        raise NotOurModule("this is not an answer of Pagewire's module")
    answer = Answer(now)
    for number, raw in enumerate(lines[1:], 2):
        line = _line(number, raw)
        if line.id and line.lang and line.revision is not None:
            answer.listed.append(Listed(line.id, line.lang, line.revision))
        elif line.page is not None:
            answer.pages.append(_page(line.page))
        elif line.problem:
            answer.pages.append(UnreadablePage(Listed(line.problem.id, line.problem.lang, 0), line.problem.reason))
        elif line.later:
            answer.later.append(line.later)
        else:
            answer.next, answer.end = line.next, line.end
    return answer


def _page(said: dict[str, Any]) -> PageDocument | UnreadablePage:
    try:
        return PageDocument.model_validate(said)
    except (
        ValidationError
    ) as err:  # the site's own `pagewire_document` may return anything; other pages are not affected
        return UnreadablePage(Listed(str(said.get("id")), str(said.get("lang")), 0), problems(err))


def _line(number: int, raw: bytes) -> AnswerLine:
    try:
        return AnswerLine.model_validate_json(raw)
    except ValidationError as err:
        raise NotOurModule(f"line {number}: {problems(err)}") from None
