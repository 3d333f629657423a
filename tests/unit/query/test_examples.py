"""The examples in a prompt are those that are most like the question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from adapters.elastic.client import ElasticsearchDown
from pipelines.query import examples as module
from pipelines.query.examples import KINDS, ExampleComparison, Examples
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.runtime.embedder import Matrix32
from pipelines.runtime.errors import Retryable
from prompts.loader import Example, fence, load
from schemas.example import ExampleKind, ExampleSource, NewExample, WorkedExample
from schemas.query import Question, Trial, Tuned, Turn
from tests.asking import question
from tests.fakes.embedder import FakeEmbedder

SITE_PROMPTS = SitePrompts()
PROMPT = SITE_PROMPTS.of("town").prompts["rephrase"]
SHOTS = KINDS["rephrase"].shots
NAMES = SITE_PROMPTS.of("town").prompts["answer"].variables
VALUES = {name: f"<{name}>" for name in NAMES}
DOGS = "How much is the tax for a second dog?"


def live(n: int, asked: str, output: str | None = None, lang: str = "en", before: str = "") -> WorkedExample:
    return WorkedExample(
        id=f"example-{n}",
        site="town",
        lang=lang,
        history=(Turn(question=before, answer="Yes."),) if before else (),
        question=asked,
        output=output or asked,
        added_at=datetime.now(UTC),
    )


class Store:
    def __init__(self, *kept: WorkedExample) -> None:
        self.kept = list(kept)
        self.read = 0
        self.down = False

    async def of_site(self, site: str) -> list[WorkedExample]:
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
    request: Question, *kept: WorkedExample, lang: str = "en", models: Models | None = None
) -> Sequence[str]:
    """Titles: the operator's examples are called by their id."""
    chosen = await Examples(SITE_PROMPTS, Store(*kept).of_site, models or Models()).pick("rephrase", request, lang)
    return [example.title for example in chosen]


async def test_a_trial_puts_the_examples_of_the_answer_in_another_order() -> None:
    async def told(kind: ExampleKind, **trial: int) -> list[str]:
        request = question(DOGS).model_copy(update={"trial": Trial.model_validate(trial)})
        examples = Examples(SITE_PROMPTS, Store().of_site, Models())
        return [example.title for example in await examples.pick(kind, request, "en")]

    usual = await told("answer", examples=3)
    orders = [await told("answer", examples=3, order=seed) for seed in range(12)]
    assert all(sorted(order) == sorted(usual) for order in orders)  # the same ones
    assert len({tuple(order) for order in orders}) == 2
    assert await told("answer", examples=3, order=5) == orders[5]
    assert await told("rephrase", order=5) == await told("rephrase")  # only the answer is tried


async def test_a_trial_may_show_the_first_answers_for_every_question_and_short_ones() -> None:
    """Fixed: those of the file, in its order, whatever is asked. Short: by the prompt for short answers, which has six
    of its own; operators' answers, whole sentences, are not among them."""
    examples = Examples(SITE_PROMPTS, Store(answered(DOGS, "It costs 90 euros [1].", FEE)).of_site, Models())

    async def told(asked: str, **trial: Any) -> list[str]:
        request = question(asked).model_copy(update={"trial": Trial.model_validate(trial)})
        return [example.title for example in await examples.pick("answer", request, "en", asked)]

    titles = [example.title for example in load("short").examples["en"]]
    assert len(titles) == 6
    for asked in (DOGS, "When is the summer festival?"):
        assert await told(asked, short=True, shot_choice="fixed", examples=5) == titles[:5]
    near = await told("When is the summer festival?", short=True, examples=2)
    assert near[-1] == "A date"
    assert set(await told(DOGS, short=True, examples=6)) == set(titles)


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
    chosen = await Examples(SITE_PROMPTS, Store(*alike).of_site, Models()).pick("rephrase", question(DOGS), "en")
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
    examples = Examples(SITE_PROMPTS, store.of_site, Models())
    assert all(e.title != "example-1" for e in await examples.pick("rephrase", question(DOGS), "en"))
    store.kept.append(live(1, DOGS))
    await examples.pick("rephrase", question(DOGS), "en")
    assert store.read == 1  # not for every question
    monkeypatch.setattr(module, "REFRESH", 0.0)
    assert (await examples.pick("rephrase", question(DOGS), "en"))[-1].title == "example-1"


async def test_examples_are_embedded_once_and_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    english, german = len(PROMPT.examples["en"]), len(PROMPT.examples["de"])
    models = Models()
    monkeypatch.setattr(module, "KEPT_VECTORS", english + german - 1)
    examples = Examples(SITE_PROMPTS, Store().of_site, models)
    for _ in range(3):
        await examples.pick("rephrase", question(DOGS), "en")
    assert len(models.model.embedded) == english
    for _ in range(3):
        await examples.pick("rephrase", question(DOGS), "de")
    assert len(models.model.embedded) == english + german
    await examples.pick("rephrase", question(DOGS), "en")
    assert len(models.model.embedded) == english + german + 1  # the one that had to make room


async def test_more_examples_than_are_remembered_are_chosen_from_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_VECTORS", 1)
    examples = Examples(SITE_PROMPTS, Store(live(1, DOGS)).of_site, Models())
    for _ in range(2):
        assert (await examples.pick("rephrase", question(DOGS), "en"))[-1].title == "example-1"


async def test_what_fails_costs_the_choice_and_not_the_answer() -> None:
    models, store = Models(), Store(live(1, DOGS))
    models.down = store.down = True
    examples = Examples(SITE_PROMPTS, store.of_site, models)
    for _ in range(3):
        assert len(await examples.pick("rephrase", question(DOGS), "en")) == SHOTS
    assert store.read == 1


ANSWERS = SITE_PROMPTS.of("town").prompts["answer"].examples["en"]
FEE = ExampleSource(title="Dogs", text="A second dog costs {fee} euros.")


def answered(
    asked: str, output: str, *sources: ExampleSource, declines: bool = False, minute: int = 0
) -> WorkedExample:
    new = NewExample(kind="answer", question=asked, output=output, sources=sources, declines=declines)
    return WorkedExample.of(new, "town", "en", datetime(2026, 5, 4, 12, minute, tzinfo=UTC))


async def answers(asked: str, *kept: WorkedExample, models: Models | None = None) -> Sequence[Example]:
    examples = Examples(SITE_PROMPTS, Store(*kept).of_site, models or Models())
    return await examples.pick("answer", question("And that?"), "en", asked)


async def test_a_good_answer_to_a_question_like_it_comes_last() -> None:
    kept = answered(DOGS, "It costs {fee} euros [1].", FEE)
    chosen = await answers("How much is the tax for a dog?", kept, live(1, DOGS))
    assert [example.title for example in chosen][-1] == kept.id
    assert len(chosen) == len(ANSWERS) + 1
    messages = SITE_PROMPTS.of("town").prompts["answer"].messages(VALUES, "en", chosen)
    asked, said = messages[-3:-1]
    assert said.content == "It costs {fee} euros [1]."  # a brace in it names no variable
    assert f'<source-{fence("request-0001")} n="1">\nTitle: Dogs\n\nA second dog costs {{fee}} euros.' in asked.content
    assert DOGS in asked.content


@pytest.mark.parametrize("wanted", [0, 1, 2, 3])
async def test_a_trial_says_how_many_answers_are_shown(wanted: int) -> None:
    examples = Examples(SITE_PROMPTS, Store(answered(DOGS, "It costs 90 euros [1].", FEE)).of_site, Models())
    request = question("And that?").model_copy(update={"trial": Trial(examples=wanted)})
    assert len(await examples.pick("answer", request, "en", DOGS)) == wanted
    live = question("And that?").model_copy(update={"tuned": Tuned(examples=wanted)})
    assert len(await examples.pick("answer", live, "en", DOGS)) == wanted
    assert len(await examples.pick("rephrase", request, "en")) == SHOTS


async def test_an_answer_to_something_else_is_not_shown() -> None:
    kept = answered("Where is the lake?", "In the north [1].", FEE)
    assert [example.title for example in await answers(DOGS, kept)] == [e.title for e in ANSWERS]


async def test_a_rewriting_of_something_else_is_not_shown() -> None:
    assert "example-1" not in await picked(question(DOGS), live(1, "Where is the lake?"))


async def test_of_two_answers_to_one_question_the_newer_is_shown() -> None:
    older = answered(DOGS, "12 euros [1].", FEE).model_copy(update={"id": "older-one"})
    newer = answered(DOGS.upper(), "14 euros [1].", FEE, minute=1)
    titles = [example.title for example in await answers(DOGS, older, newer)]
    assert titles.count(newer.id) == 1
    assert "older-one" not in titles


async def test_some_answer_always_says_that_the_sources_do_not_hold_it() -> None:
    kept = [answered(f"{DOGS} {n}", f"{n} euros [1].", FEE) for n in range(9)]
    chosen = await answers(DOGS, *kept)
    assert len(chosen) == KINDS["answer"].shots
    assert [example.declines for example in chosen] == [True, False, False, False]
    kept = [answered(f"{DOGS} {n}", "I did not find that.", declines=True) for n in range(9)]
    assert not all(example.declines for example in await answers(DOGS, *kept))


async def test_an_answer_without_a_source_is_its_own() -> None:
    chosen = await answers(DOGS, answered(DOGS, "It is free!\n\n- For guide dogs\n- For rescue dogs."))
    assert chosen[-1].output == "It is free [1]!\n\n- For guide dogs [1]\n- For rescue dogs [1]."
    assert "It is free!\n\n- For guide dogs" in chosen[-1].variables["sources"]


async def test_the_files_examples_are_shown_where_the_operators_cannot_be_compared() -> None:
    models = Models()
    models.down = True
    assert list(await answers(DOGS, answered(DOGS, "12 euros [1].", FEE), models=models)) == list(ANSWERS[::-1])


async def test_nothing_is_embedded_where_all_examples_are_shown_anyway() -> None:
    models = Models()
    assert list(await answers(DOGS, models=models)) == list(ANSWERS)
    assert models.model.embedded == []


def test_the_same_question_again_takes_the_place_of_the_example() -> None:
    assert answered(DOGS, "12 euros [1].", FEE).id == answered(DOGS, "14 euros.").id
    assert answered(DOGS, "12 euros.").id != answered(DOGS + "!", "12 euros.").id


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"kind": "answer", "output": "12 euros [2].", "sources": [FEE]}, r"cites \[2\]"),
        ({"kind": "answer", "output": "12 euros [1]."}, r"cites \[1\]"),
        ({"output": "How much?", "sources": [FEE]}, "for examples of kind answer"),
        ({"output": "How much?", "declines": True}, "for examples of kind answer"),
    ],
)
def test_what_does_not_fit_its_kind_is_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        NewExample.model_validate({"question": DOGS, **wrong})


async def test_many_examples_are_compared_as_soon_as_their_vectors_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(FakeEmbedder):
        async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Matrix32:
            await asyncio.sleep(0.02)
            return await super().passages(texts, urgent=urgent)

    monkeypatch.setattr(module, "PATIENCE", 0.05)
    models, kept = Models(), [answered(f"{DOGS} {n}", f"{n} euros [1].", FEE) for n in range(80)]
    models.model = Slow(dims=512)
    examples = Examples(SITE_PROMPTS, Store(*kept).of_site, models)
    tries = 0
    while kept[7].id not in [e.title for e in await examples.pick("answer", question(), "en", f"{DOGS} 7")]:
        tries += 1
        assert tries < 20
    assert tries
    assert len(models.model.embedded) == len(kept) + len(ANSWERS)  # nothing twice


async def test_a_new_one_is_compared_with_those_of_its_kind_and_language_in_its_conversation() -> None:
    new = live(9, DOGS, before="Are dogs taxed?")
    kept = [
        live(1, DOGS, before="Are dogs taxed?"),
        live(2, DOGS.upper(), before="Are dogs taxed"),
        live(3, "How much is the tax for a third dog?", before="Are dogs taxed?"),
        live(4, "Where is the lake?"),
        live(5, DOGS, lang="de", before="Are dogs taxed?"),
    ]
    told = await ExampleComparison(Store(*kept).of_site, Models()).like(new)
    assert [(one.example.id, one.same) for one in told.like] == [
        ("example-1", True),
        ("example-2", True),
        ("example-3", False),
    ]
    assert [one.cosine for one in told.like] == sorted((one.cosine or 0 for one in told.like), reverse=True)


async def test_without_a_model_only_the_same_words_are_told() -> None:
    models = Models()
    models.down = True
    told = await ExampleComparison(Store(live(1, DOGS), live(2, DOGS + " And a cat?")).of_site, models).like(
        live(9, DOGS)
    )
    assert [(one.example.id, one.cosine, one.same) for one in told.like] == [("example-1", None, True)]
    assert told.least is None


async def test_only_so_many_sites_are_kept_in_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.query.examples.SITES", 2)
    examples = Examples(SITE_PROMPTS, Store().of_site, Models())
    for site in ("town", "village", "harbour"):
        await examples.pick("rephrase", question(DOGS).model_copy(update={"site": site}), "en")
    assert list(examples._live) == ["village", "harbour"]
