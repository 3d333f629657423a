"""Questions to begin a chat with: out of a site's own pages, kept only where their own page answers them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from pipelines.conversations.suggestions import RETRY, Suggestions
from pipelines.query.extractive.suggestions import PageText, Proposal, proposals
from pipelines.runtime.errors import Retryable
from schemas.answer import Answered, Certainty, Done, QuestionRephrased
from schemas.query import Question
from tests.browser.scripts import source
from tests.fakes.ports import FakeAnswers, Step

PAGES = [
    PageText("pool", "Otter pool | Town", "# Otter pool\n\n## Opening hours\n\n9 to 5\n\n## History\n\nOld."),
    PageText("faq", "Questions | Town", "## May I bring my dog?\n\nYes.\n\n**What does a card cost?**\n\n18 euros."),
    PageText("long", "Long | Town", f"## What does {'a very ' * 20}long one cost?\n\nMuch."),
]
SAID: dict[str, tuple[Certainty, str]] = {
    "May I bring my dog?": ("place", "faq"),
    "Otter pool: Opening hours": ("said", "pool"),
    "Elsewhere?": ("said", "pool"),
    "Nothing here?": ("pages", "fees"),
}


def test_questions_come_before_headings_that_want_something() -> None:
    assert [(each.page_id, each.question) for each in proposals(PAGES, "en-GB")] == [
        ("faq", "May I bring my dog?"),
        ("faq", "What does a card cost?"),
        ("pool", "Otter pool: Opening hours"),
    ]
    assert proposals([], "en") == []


def script(question: Question) -> Sequence[Step]:
    assert question.trial is not None  # neither kept nor logged, and no model writes
    assert (question.trial.strategy, question.groups, question.logged_as) == ("quote", (), None)
    certainty, page = SAID.get(question.question, ("said", "other"))
    answer: dict[str, Any] = {"citations": (), "extractive": True, "certainty": certainty}
    return [
        QuestionRephrased(question=question.question, mode="semantic"),
        Answered(text="So.", sources=(source(1, page, "Page"),), **answer),
        Done(),
    ]


class Site:
    """What it proposes, and whether it is being imported."""

    importing = False
    error: Exception | None = None
    asked = 0

    def __init__(self, *questions: tuple[str, str]) -> None:
        self.proposed = [Proposal(page, question) for page, question in questions]

    async def propose(self, site: str, lang: str) -> Sequence[Proposal]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.proposed

    def suggestions(self) -> Suggestions:
        return Suggestions(self.propose, FakeAnswers(script), lambda _: self.importing, lambda: datetime.now(UTC))


async def made(suggestions: Suggestions) -> tuple[str, ...]:
    """What is suggested once nothing is being made."""
    suggestions.of("town", "en")
    await asyncio.gather(*(each.task for each in suggestions._made.values() if each.task is not None))
    return suggestions.of("town", "en")


async def test_only_what_its_own_page_answers_is_suggested_and_made_again_after_an_import() -> None:
    site = Site(*((SAID.get(text, ("", "faq"))[1], text) for text in SAID), ("faq", "What does a card cost?"))
    site.proposed[2] = Proposal("elsewhere", "Elsewhere?")  # another page answers it
    suggestions = site.suggestions()
    assert suggestions.of("town", "en") == ()  # nobody waits
    assert await made(suggestions) == ("May I bring my dog?", "Otter pool: Opening hours")
    assert (await made(suggestions), site.asked) == (suggestions.of("town", "en"), 1)
    site.importing, site.proposed = True, site.proposed[1:2]
    assert len(await made(suggestions)) == 2
    site.importing = False
    assert (await made(suggestions), site.asked) == (("Otter pool: Opening hours",), 2)
    await suggestions.aclose()


async def test_where_nothing_is_found_it_is_tried_again_soon_and_then_ever_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("pipelines.conversations.suggestions.monotonic", lambda: now)
    site = Site()
    suggestions = site.suggestions()
    for later, asked in ((0.0, 1), (RETRY - 1, 1), (RETRY, 2), (RETRY * 3 - 1, 2), (RETRY * 3, 3)):
        now = later
        assert (await made(suggestions), site.asked) == ((), asked)
    site.proposed, now = [Proposal("faq", "May I bring my dog?")], RETRY * 7
    assert await made(suggestions) == ("May I bring my dog?",)


async def test_where_a_server_is_away_what_was_known_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(("faq", "May I bring my dog?"))
    suggestions = site.suggestions()
    assert await made(suggestions) == ("May I bring my dog?",)
    site.error = Retryable("Elasticsearch is away")
    suggestions._made["town", "en"].good_until = 0.0
    assert await made(suggestions) == ("May I bring my dog?",)
    assert site.asked == 2
    begun = suggestions._made["town", "en"].good_until
    monkeypatch.setattr("pipelines.conversations.suggestions.monotonic", lambda: begun + RETRY)
    site.error = None
    await made(suggestions)
    assert site.asked == 3
