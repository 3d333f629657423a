"""The examples in a prompt are those that are most like the question."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from adapters.elastic.client import ElasticsearchDown
from adapters.embedders.fake import FakeEmbedder
from pipelines.query.rephrase import examples as module
from pipelines.query.rephrase.examples import SHOTS, Examples
from pipelines.query.site_prompts import SitePrompts
from pipelines.runtime.errors import Retryable
from schemas.example import RephraseExample
from schemas.query import Question, Turn
from tests.asking import question

SITE_PROMPTS = SitePrompts()
PROMPT = SITE_PROMPTS.of("town").prompts["rephrase"]
DOGS = "How much is the tax for a second dog?"


def live(n: int, asked: str, output: str | None = None, lang: str = "en", before: str = "") -> RephraseExample:
    return RephraseExample(
        id=f"example-{n}",
        site="town",
        lang=lang,
        history=(Turn(question=before, answer="Yes."),) if before else (),
        question=asked,
        output=output or asked,
        added_at=datetime.now(UTC),
    )


class Store:
    def __init__(self, *kept: RephraseExample) -> None:
        self.kept = list(kept)
        self.read = 0
        self.down = False

    async def of_site(self, site: str) -> list[RephraseExample]:
        self.read += 1
        if self.down:
            raise ElasticsearchDown("away")
        return [example for example in self.kept if example.site == site]


class Models:
    def __init__(self) -> None:
        self.model = FakeEmbedder(dims=512)
        self.down = False

    async def for_site(self, site: str) -> FakeEmbedder:
        if self.down:
            raise Retryable("no model")
        return self.model


async def picked(
    request: Question, *kept: RephraseExample, lang: str = "en", models: Models | None = None
) -> Sequence[str]:
    """Titles: the operator's examples are called by their id."""
    chosen = await Examples(SITE_PROMPTS, Store(*kept), models or Models(), 15).pick(request, lang)
    return [example.title for example in chosen]


async def test_the_example_most_like_the_question_comes_last() -> None:
    titles = await picked(question("How much is the tax for a dog?"), live(1, DOGS), live(2, "Where is the lake?"))
    assert len(titles) == SHOTS
    assert titles[-1] == "example-1"


async def test_what_was_said_before_counts_as_well() -> None:
    request = question("And in winter?", history=(Turn(question="Is the ferry running?", answer="Hourly."),))
    titles = await picked(
        request,
        live(1, "And then?", "Is the castle open then?", before="Is the castle open?"),
        live(2, "And then?", "Is the ferry running then?", before="Is the ferry running?"),
    )
    assert titles.index("example-2") > (titles.index("example-1") if "example-1" in titles else -1)


@pytest.mark.parametrize("alone", [True, False])
async def test_questions_to_leave_alone_and_questions_to_rewrite_are_both_shown(alone: bool) -> None:
    alike = [live(n, f"{DOGS} {n}", None if alone else f"{DOGS} {n}, in this town") for n in range(20)]
    chosen = await Examples(SITE_PROMPTS, Store(*alike), Models(), 15).pick(question(DOGS), "en")
    assert len(chosen) == SHOTS
    assert {module._left_alone(example) for example in chosen} == {True, False}


async def test_examples_are_of_the_sites_language() -> None:
    titles = await picked(question(DOGS), live(1, DOGS, lang="de"), live(2, DOGS, lang="en-GB"))
    assert "example-1" not in titles
    assert titles[-1] == "example-2"


async def test_a_language_without_examples_gets_the_english_ones() -> None:
    titles = await picked(question(DOGS), lang="pt")
    assert set(titles) <= {example.title for example in PROMPT.examples["en"]}


async def test_an_example_added_to_a_running_system_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    examples = Examples(SITE_PROMPTS, store, Models(), 15)
    assert all(e.title != "example-1" for e in await examples.pick(question(DOGS), "en"))
    store.kept.append(live(1, DOGS))
    await examples.pick(question(DOGS), "en")
    assert store.read == 1  # not for every question
    monkeypatch.setattr(module, "REFRESH", 0.0)
    assert (await examples.pick(question(DOGS), "en"))[-1].title == "example-1"


async def test_examples_are_embedded_once_and_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    english, german = len(PROMPT.examples["en"]), len(PROMPT.examples["de"])
    models = Models()
    monkeypatch.setattr(module, "KEPT_VECTORS", english + german - 1)
    examples = Examples(SITE_PROMPTS, Store(), models, 15)
    for _ in range(3):
        await examples.pick(question(DOGS), "en")
    assert len(models.model.embedded) == english
    for _ in range(3):
        await examples.pick(question(DOGS), "de")
    assert len(models.model.embedded) == english + german
    await examples.pick(question(DOGS), "en")
    assert len(models.model.embedded) == english + german + 1  # the one that had to make room


async def test_more_examples_than_are_remembered_are_chosen_from_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_VECTORS", 1)
    examples = Examples(SITE_PROMPTS, Store(live(1, DOGS)), Models(), 15)
    for _ in range(2):
        assert (await examples.pick(question(DOGS), "en"))[-1].title == "example-1"


async def test_what_fails_costs_the_choice_and_not_the_answer() -> None:
    models, store = Models(), Store(live(1, DOGS))
    models.down = store.down = True
    examples = Examples(SITE_PROMPTS, store, models, 15)
    for _ in range(3):
        assert len(await examples.pick(question(DOGS), "en")) == SHOTS
    assert store.read == 1
