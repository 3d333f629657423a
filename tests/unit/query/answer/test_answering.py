"""Answering: whatever the model does, the visitor's answer comes to an end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import process_time
from typing import Any
from urllib.parse import urljoin

import pytest

from pipelines.query.answer import pump
from pipelines.query.answer.answering import QUOTING_TIME, Answering
from pipelines.query.answer.judging import Claim, Judge, Verdicts
from pipelines.query.answer.strategies.base import StrategyContext
from pipelines.query.answer.strategies.courtesy import Courtesy
from pipelines.query.answer.strategies.registry import strategies
from pipelines.query.answer.tools.pages import Finder
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import (
    BadRequest,
    ChatModel,
    Completion,
    ContentFiltered,
    ContextTooLong,
    Delta,
    ExamplePicker,
    ModelCut,
    ModelDenied,
    ModelDown,
    ModelError,
    ModelSilent,
    QuestionSpent,
    RateLimited,
    TokensSpent,
    ToolSpec,
)
from pipelines.query.publish import Publication
from pipelines.query.token_budget import TokenBudget
from pipelines.query.translate import Translator
from pipelines.runtime.errors import PagewireError, Retryable
from pipelines.runtime.settings import JudgeName, StepSettings, StrategyName, ToolCalling
from prompts.loader import ChatMessage, Example, ToolCall, load, written
from schemas.answer import Answered, AnswerEvent, Citation, Done, Event, Failed, Restart, Token, Usage
from schemas.base import Message
from schemas.example import ExampleKind
from schemas.flow import SentenceCheck
from schemas.query import Corrected, CourtesyKind, Evidence, Gate, Question, Retrieved, Source, Sure, Trial, Tuned
from schemas.topics import Topic
from tests.asking import retrieved, source
from tests.fakes.chat_model import FakeChat
from tests.fakes.pages import FakeSender
from wiring.settings import Settings, SiteSettings

SETTINGS = Settings(sites={"town": SiteSettings(title="Town")}, llm_model="fake")
SITE_PROMPTS = SitePrompts()
PHRASES = SITE_PROMPTS.of("town").phrases
POOL = source(1, "The pool opens daily at 9. It is closed on Sundays.")
FERRY = ToolCall("search", '{"question": "ferry"}')
TICKETS = source(2, "A ticket costs 4 euros.", title="Tickets")


def asked(*sources: Source, lang: str = "en", seconds_left: float = 60) -> Retrieved:
    found = retrieved(*sources, lang=lang)
    deadline = datetime.now(UTC) + timedelta(seconds=seconds_left)
    return found.model_copy(update={"request": found.request.model_copy(update={"deadline": deadline})})


class NoPages:
    """Finds nothing."""

    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        return ()

    page = find


async def answer(
    question: Retrieved,
    model: ChatModel | None,
    sender: FakeSender | None = None,
    stopped: asyncio.Event | None = None,
    *,
    settings: Settings = SETTINGS,
    pages: Finder | None = None,
    examples: ExamplePicker | None = None,
    token_budget: TokenBudget | None = None,
) -> list[AnswerEvent]:
    sender = sender or FakeSender()
    means = StrategyContext(model, SITE_PROMPTS, pages or NoPages()) if model else None
    translator = Translator(model, load("translate")) if model else None
    courteous = Courtesy(means) if means else None
    answering = Answering(
        settings,
        SITE_PROMPTS,
        strategies(means) if means else {},
        translator,
        courteous,
        examples=examples,
        token_budget=token_budget,
    )
    to = Publication(sender, question.request, 1)
    await answering.answer(question, to, stopped or asyncio.Event())
    return [s.message for s in sender.sent if isinstance(s.message, AnswerEvent)]


class Requests(FakeSender):
    """Keeps the types of the events of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[list[str]] = []

    async def send_all(self, topic: Topic, key: str, messages: Sequence[Message]) -> None:
        self.requests.append([message.event.type for message in messages if isinstance(message, AnswerEvent)])
        await super().send_all(topic, key, messages)


async def test_without_a_model_the_whole_answer_is_one_request() -> None:
    """It is all there at once, and a request for each event would make the visitor wait for each confirmation."""
    sender = Requests()
    await answer(asked(POOL, TICKETS), None, sender)
    [events] = sender.requests
    assert (events[:3], events[-2:]) == (["rephrased", "sources", "token"], ["answer", "done"])


async def test_what_a_model_writes_within_a_beat_is_one_request() -> None:
    sender = Requests()
    await answer(asked(POOL, TICKETS), FakeChat("Closed on Sundays [1]. A ticket costs 4 euros [2]."), sender)
    assert sender.requests[0] == ["rephrased", "sources"]
    assert sender.requests[-1] == ["answer", "done"]
    written = sender.requests[1:-1]
    assert [kind for kinds in written for kind in kinds].count("citation") == 2
    assert len(written) <= 2  # the first piece goes out at once


async def test_with_a_model_the_sources_are_shown_before_it_writes() -> None:
    class Looks(FakeChat):
        async def stream(
            self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
        ) -> AsyncGenerator[Delta, None]:
            seen.extend(each.message.event.type for each in sender.sent if isinstance(each.message, AnswerEvent))
            async for delta in super().stream(messages, max_tokens=max_tokens, tools=tools):
                yield delta

    sender, seen = FakeSender(), list[str]()
    await answer(asked(POOL), Looks("Closed [1]."), sender)
    assert seen == ["rephrased", "sources"]


class OneExample:
    """Always the same; `asked` holds for what it was picked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    async def pick(self, kind: ExampleKind, request: Question, lang: str, question: str = "") -> list[Example]:
        self.asked.append((kind, lang, question))
        return [Example(title="One", variables={"question": "How deep?"}, output="Two metres [1].", verbatim=True)]


def kinds(events: Sequence[AnswerEvent]) -> list[str]:
    """The types in order, several in a row once."""
    types = [e.event.type for e in events]
    return [kind for i, kind in enumerate(types) if i == 0 or types[i - 1] != kind]


def last_attempt(events: Sequence[AnswerEvent]) -> list[Event]:
    return [e.event for e in events if e.attempt == max(e.attempt for e in events)]


def streamed(events: Sequence[AnswerEvent]) -> str:
    return "".join(e.text for e in last_attempt(events) if isinstance(e, Token))


def answered(events: Sequence[AnswerEvent]) -> Answered:
    *_, final, done = last_attempt(events)
    assert isinstance(final, Answered)
    assert isinstance(done, Done)
    return final


async def test_a_model_answers_with_citations() -> None:
    model = FakeChat(["Closed on ", "Sundays [1]", ". Bring a towel."])
    events = await answer(asked(POOL, TICKETS), model)
    assert kinds(events) == ["rephrased", "sources", "token", "citation", "token", "answer", "done"]
    final = answered(events)
    assert streamed(events) == final.text == "Closed on Sundays. Bring a towel."
    [cited] = final.citations
    assert (cited.n, final.text[cited.start : cited.end]) == (1, "Closed on Sundays")
    assert [(s.n, s.cited) for s in final.sources] == [(1, True), (2, False)]
    assert not final.extractive
    assert final.usage == Usage(model="fake", prompt_tokens=len(model.asked[0]), completion_tokens=3)
    assert final.timings_ms["answer"] >= 0


@pytest.mark.parametrize(
    ("said", "model", "tokens"),
    [("Closed [1].", "fake", 1), ("A ticket costs 99 euros [2].", "fake", 1), (ModelCut("half-way"), None, 0)],
)
async def test_the_tokens_of_all_calls_are_counted_as_far_as_they_are_known(
    said: Any, model: str | None, tokens: int
) -> None:
    rephrased = asked(POOL, TICKETS).model_copy(update={"usage": Usage(prompt_tokens=11, completion_tokens=7)})
    writes = FakeChat(said)
    used = answered(await answer(rephrased, writes)).usage
    read = len(writes.asked[0]) * tokens
    assert used == Usage(model=model, prompt_tokens=11 + read, completion_tokens=7 + tokens)


async def test_a_model_that_was_still_thinking_is_given_more_room_once() -> None:
    class Thinks(FakeChat):
        room: list[int | None] = []  # noqa: RUF012 - one test, one class

        async def stream(
            self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
        ) -> AsyncGenerator[Delta, None]:
            self.room.append(max_tokens)
            async for delta in super().stream(messages, max_tokens=max_tokens, tools=tools):
                yield delta

    model = Thinks(cut(""), "Closed [1].")
    assert answered(await answer(asked(POOL), model)).text == "Closed."
    assert model.room == [800, 3_200]
    assert answered(await answer(asked(POOL), FakeChat(cut("")))).extractive


@pytest.mark.parametrize(
    ("check", "text", "left_out", "said"),
    [
        ("drop", "It is closed on Sundays.", 1, "left out: figure '99 euros'"),
        (
            "mark",
            "A ticket costs 99 euros. *(so auf der Seite nicht gefunden)* It is closed on Sundays.",
            0,
            "marked: figure '99 euros'",
        ),
        ("off", "A ticket costs 99 euros. It is closed on Sundays.", 0, ""),
    ],
)
async def test_what_its_source_does_not_bear_out_is_marked_left_out_or_not_looked_at(
    check: SentenceCheck, text: str, left_out: int, said: str
) -> None:
    model = FakeChat(["A ticket costs ", "99 euros [2]. It is ", "closed on Sundays [1]."])
    settings = Settings(sites={"town": SiteSettings(sentence_check=check)}, llm_model="fake")
    events = await answer(asked(POOL, TICKETS, lang="de"), model, settings=settings)
    final = answered(events)
    assert streamed(events) == final.text == text
    assert (final.left_out, final.extractive) == (left_out, False)
    assert [final.text[each.start : each.end] for each in final.doubted] == (
        ["A ticket costs 99 euros."] if check == "mark" else []
    )
    assert [(s.n, s.cited) for s in final.sources] == [(1, True), (2, check != "drop")]
    assert [step.said for step in final.trace if step.asked == "check"] == ([said] if said else [])


async def test_a_model_whose_sources_bear_nothing_out_is_replaced_by_quotes() -> None:
    events = await answer(asked(POOL, TICKETS), FakeChat("A ticket costs 99 euros [2]. Enjoy."))
    final = answered(events)
    assert "99" not in streamed(events) + final.text
    assert "The pool opens daily at 9." in final.text
    assert (final.left_out, final.extractive, [s.said for s in final.trace if s.kind == "error"]) == (
        0,
        True,
        ["model-unfounded"],
    )


async def test_without_a_model_the_pages_are_quoted() -> None:
    events = await answer(asked(POOL, TICKETS), None)
    final = answered(events)
    assert final.extractive
    assert final.certainty == "place"
    assert "On this page: [Pool](</p1>)\n\n> The pool opens daily at 9." in final.text
    assert streamed(events) == final.text
    assert {c.quote for c in final.citations} == {"The pool opens daily at 9. It is closed on Sundays."}
    assert [s.cited for s in final.sources] == [any(c.n == n for c in final.citations) for n in (1, 2)]


async def test_how_sure_an_answer_without_a_model_is_stands_in_it() -> None:
    unit = Evidence(n=1, start=0, text=POOL.text, kind="prose", block=0, of=1, score=1.0)
    page = asked(POOL).model_copy(update={"evidence": (unit,), "sure": Sure(of="page", unit=0.6, page=0.6)})
    for question, certainty in (("When does the pool open?", "place"), ("What are the pool's days?", "place")):
        request = page.request.model_copy(update={"question": question})
        final = answered(await answer(page.model_copy(update={"request": request, "question": question}), None))
        assert (final.certainty, final.extractive) == (certainty, True)
    refused_ = answered(await answer(page.model_copy(update={"grade": 4}), None))
    assert refused_.certainty == "pages"
    assert answered(await answer(courtesy("thanks"), None)).certainty == "courtesy"
    assert answered(await answer(asked(POOL), FakeChat("It opens at 9 [1]."))).certainty is None


def courtesy(kind: CourtesyKind, lang: str = "en") -> Retrieved:
    return asked(lang=lang).model_copy(update={"courtesy": kind, "mode": "courtesy"})


@pytest.mark.parametrize("model", [None, FakeChat("An expensive answer.")], ids=["no model", "model"])
async def test_a_courtesy_is_answered_by_one_sentence_of_ours(model: FakeChat | None) -> None:
    events = await answer(courtesy("thanks", "de"), model)
    final = answered(events)
    assert (final.text, final.strategy, final.citations) == (PHRASES.say("thanks", "de"), "courtesy", ())
    assert model is None or model.asked == []


async def test_a_model_answers_what_is_asked_about_the_conversation() -> None:
    model = FakeChat("You asked about the pool.")
    assert answered(await answer(courtesy("conversation"), model)).text == "You asked about the pool."
    down = FakeChat(ModelDenied("no credit"))
    assert answered(await answer(courtesy("conversation"), down)).text == PHRASES.say("conversation", "en")
    assert answered(await answer(courtesy("conversation"), None)).text == PHRASES.say("conversation", "en")


async def test_who_wrote_it_and_whether_the_form_is_offered() -> None:
    target = {"webhook": {"url": "https://desk.example", "secret": "whsec_" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"}}
    site = SiteSettings.model_validate({"handover": target, "contact": {"en": "Call us."}})
    desk = Settings(sites={"town": site})
    unit = Evidence(n=1, start=0, text=POOL.text, kind="prose", block=0, of=1, score=1.0)
    page = asked(POOL).model_copy(update={"evidence": (unit,), "sure": Sure(of="page", unit=0.6, page=0.6)})
    person = courtesy("about").model_copy(update={"person": True})
    for found, model, by, offered in (
        (page, None, "quotation", False),
        (asked(POOL), FakeChat("It opens at 9 [1]."), "model", False),
        (courtesy("thanks"), None, "site", False),
        (page.model_copy(update={"grade": 4}), None, "site", True),
        (person, None, "site", True),
    ):
        final = answered(await answer(found, model, settings=desk))
        assert (final.generated_by, final.handover) == (by, offered)
        assert not answered(await answer(found, model)).handover  # off until it is configured
    form, contact = PHRASES.say("person", "en"), "Call us."
    assert answered(await answer(person, None, settings=desk)).text == f"{form}\n\n{contact}"
    alone = Settings(sites={"town": SiteSettings(contact={"en": contact})})
    assert answered(await answer(person, None, settings=alone)).text == contact


async def test_who_is_not_answered_is_told_how_to_reach_somebody() -> None:
    site = SiteSettings(title="Town", languages=("de", "en"), contact={"de": "Rufen Sie an.", "en": "Call us."})
    settings = Settings(sites={"town": site})
    for lang, text in (("en", "Call us."), ("de-AT", "Rufen Sie an."), ("pl", "Rufen Sie an.")):
        refused = asked(POOL, lang=lang).model_copy(update={"grade": 4})
        assert answered(await answer(refused, None, settings=settings)).text.endswith(f"\n\n{text}")
    assert answered(await answer(asked(), None, settings=settings)).text.endswith("\n\nCall us.")
    assert "Call us." not in answered(await answer(asked(POOL), None, settings=settings)).text
    assert "Call us." not in answered(await answer(courtesy("thanks"), None, settings=settings)).text


async def test_a_title_is_quoted_only_where_there_is_nothing_else() -> None:
    title = POOL.model_copy(update={"field": "title", "text": "Pool on Sundays"})
    assert "Pool on Sundays" not in answered(await answer(asked(title, TICKETS), None)).text
    assert "Pool on Sundays" in answered(await answer(asked(title), None)).text


@pytest.mark.parametrize("lang", ["en", "de", "de-AT"])
async def test_nothing_found_is_said_in_the_visitors_language_and_costs_no_model_call(lang: str) -> None:
    model = FakeChat("An invention.")
    final = answered(await answer(asked(lang=lang), model))
    assert (final.text, final.citations, final.sources) == (PHRASES.say("nothing-found", lang), (), ())
    assert model.asked == []


GIVEN_UP = [
    ModelDown("away"),
    ModelSilent("..."),
    ModelDenied("no credit"),
    BadRequest("no such model"),
    Retryable("?"),
]


@pytest.mark.parametrize("error", GIVEN_UP, ids=lambda error: error.code)
async def test_a_model_that_fails_before_its_first_word_is_replaced_by_quotes(error: PagewireError) -> None:
    model = FakeChat(error)
    events = await answer(asked(POOL), model)
    assert kinds(events)[:4] == ["rephrased", "sources", "restart", "token"]
    final = answered(events)
    assert final.extractive
    assert final.strategy == "quote"
    assert [step.said for step in final.trace if step.kind == "error"] == [error.code] * len(model.asked)
    assert len(model.asked) == (2 if type(error) is ModelDown else 1)  # another instance may be there


async def test_a_busy_model_is_asked_again_when_it_says_so() -> None:
    model = FakeChat(RateLimited("busy", retry_after=0.0), RateLimited("busy", retry_after=0.0), "Closed [1].")
    events = await answer(asked(POOL), model)
    assert kinds(events) == ["rephrased", "sources", "token", "citation", "answer", "done"]
    assert (answered(events).text, len(model.asked)) == ("Closed.", 3)


async def test_a_busy_model_is_not_waited_for_longer_than_the_visitor_waits() -> None:
    model = FakeChat(RateLimited("busy", retry_after=50.0), "Too late.")
    assert answered(await answer(asked(POOL, seconds_left=60), model)).extractive
    assert len(model.asked) == 1


async def test_a_prompt_that_is_too_long_is_shortened_from_its_end_once() -> None:
    filler = [source(n, f"Paragraph {n}. " * 60) for n in range(2, 9)]
    model = FakeChat(ContextTooLong("4096 tokens"), "Closed on Sundays [1].")
    final = answered(await answer(asked(POOL, *filler), model))
    assert (final.text, final.extractive) == ("Closed on Sundays.", False)
    first, second = (messages[-1].content for messages in model.asked)
    assert POOL.text in second
    assert len(second) < 0.7 * len(first)
    assert "Daily from 9." in first  # the conversation
    assert "Daily from 9." not in second
    still = FakeChat(ContextTooLong("4096 tokens"))
    assert answered(await answer(asked(POOL), still)).extractive
    assert len(still.asked) == 2


@pytest.mark.parametrize("words", [[], ["The pool is open. ", "It"]], ids=["at once", "half-way"])
async def test_what_the_filter_refuses_is_said_and_not_quoted(words: list[str]) -> None:
    class Filtered(Breaks):
        said, error = words, ContentFiltered("no")

    events = await answer(asked(POOL, lang="de"), Filtered())
    assert ("restart" in kinds(events)) == bool(words)
    *_, failed, done = last_attempt(events)
    assert failed == Failed(code="content-filtered", message=PHRASES.error("content-filtered", "de"))
    assert done == Done()
    assert streamed(events) == ""


async def test_a_model_that_writes_until_the_visitors_time_is_over_is_replaced_by_quotes() -> None:
    model = Endless()
    final = answered(await answer(asked(POOL, seconds_left=QUOTING_TIME + 0.2), model))
    assert final.extractive
    assert [step.said for step in final.trace if step.kind == "error"] == ["model-slow"]
    assert model.closed


class Breaks(FakeChat):
    """Fails after some words."""

    said: Sequence[str] = ["The pool is always open. ", "Come"]
    error: ModelError = ModelCut("the stream ended in the middle")

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        tools: Sequence[ToolSpec] = (),
    ) -> AsyncGenerator[Delta, None]:
        for word in self.said:
            yield Delta(word)
        raise self.error


async def test_a_model_that_breaks_off_has_its_words_taken_back() -> None:
    events = await answer(asked(POOL), Breaks())
    restart = next(e for e in events if isinstance(e.event, Restart))
    assert (restart.attempt, restart.seq, restart.event) == (2, 0, Restart(attempt=2))
    assert "always open" in "".join(e.event.text for e in events if e.attempt == 1 and isinstance(e.event, Token))
    assert "always open" not in answered(events).text
    assert streamed(events) == answered(events).text


def cut(text: str) -> Completion:
    return Completion(text, Usage(), cut=True)


CUT_STRATEGIES: list[tuple[StrategyName, str]] = [
    ("plain", ""),
    ("retrieval-gate", "NO"),
    ("retrieval-gate", "SEARCH: pool"),
    ("chain-of-thought", "Sundays are out."),
    ("tools", ""),
    ("self-ask", "Enough"),
    ("react", "Action: finish[]"),
]


@pytest.mark.parametrize(("strategy", "first"), CUT_STRATEGIES)
async def test_an_answer_cut_by_the_models_token_limit_says_so(strategy: StrategyName, first: str) -> None:
    model = FakeChat(*([first] if strategy != "plain" else []), cut("Closed on Sundays [1]. Bring a [1"))
    settings = Settings(sites={"town": SiteSettings(title="Town", strategy=strategy)}, llm_model="fake")
    events = await answer(asked(POOL), model, settings=settings)
    final = answered(events)
    assert (final.strategy, final.cut, final.extractive) == (strategy, True, False)
    assert streamed(events) == final.text == "Closed on Sundays. …"
    assert all(final.text[c.start : c.end] == "Closed on Sundays" for c in final.citations)


@pytest.mark.parametrize("reply", ["Closed on Sundays.", cut(""), cut("["), RateLimited("busy", 60)])
async def test_an_answer_that_nothing_cut_does_not_say_so(reply: Any) -> None:
    final = answered(await answer(asked(POOL), FakeChat(reply)))
    assert not final.cut
    assert not final.text.endswith("…")
    assert final.extractive == (not isinstance(reply, str))


@pytest.mark.parametrize("silence", ["", [], "  \n", ["[1]"]])
async def test_a_model_that_writes_nothing_is_replaced_by_quotes(silence: Any) -> None:
    assert answered(await answer(asked(POOL), FakeChat(silence))).extractive


async def test_a_defect_in_the_model_adapter_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        await answer(asked(POOL), FakeChat(ZeroDivisionError()))


async def test_after_the_deadline_nobody_is_kept_waiting() -> None:
    model = FakeChat("Too late.")
    events = await answer(asked(POOL, lang="de", seconds_left=-1), model)
    assert kinds(events) == ["rephrased", "sources", "error", "done"]
    assert events[-2].event == Failed(code="timeout", message=PHRASES.error("timeout", "de"))
    assert model.asked == []


class Bus(FakeSender):
    """Fails at the n-th token."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self._left = fails_at

    async def send(self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None) -> None:
        if isinstance(message, AnswerEvent) and isinstance(message.event, Token):
            self._left -= 1
            if self._left == 0:
                raise Retryable("Kafka did not confirm")
        await super().send(topic, key, message)


class Endless(FakeChat):
    """Writes faster than anybody reads, for ever."""

    def __init__(self) -> None:
        super().__init__("")
        self.closed = False
        self.written = 0

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        tools: Sequence[ToolSpec] = (),
    ) -> AsyncGenerator[Delta, None]:
        try:
            while True:
                self.written += 1
                yield Delta("Word. ")
                await asyncio.sleep(0)
        finally:
            self.closed = True


async def test_a_broker_that_fails_is_no_failure_of_the_model() -> None:
    """The stage tries again; quoting would give a worse answer, and needs the broker too."""
    sender = Bus(fails_at=2)
    model = Endless()
    async with asyncio.timeout(5):
        with pytest.raises(Retryable, match="Kafka"):
            await answer(asked(POOL), model, sender)
    assert not any(isinstance(s.message, AnswerEvent) and s.message.attempt > 1 for s in sender.sent)
    assert model.closed


async def test_giving_up_stops_the_model_even_when_its_words_have_piled_up() -> None:
    class Stuck(FakeSender):
        """The broker confirms no token."""

        async def send(self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None) -> None:
            if isinstance(message, AnswerEvent) and isinstance(message.event, Token):
                stuck.set()
                await asyncio.Event().wait()

    stuck = asyncio.Event()
    model = Endless()
    working = asyncio.create_task(answer(asked(POOL), model, Stuck()))
    await stuck.wait()
    ahead = -1
    while ahead != model.written:  # until it may write no further
        ahead = model.written
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert ahead < 3 * pump.WAITING
    working.cancel()
    done, _ = await asyncio.wait({working}, timeout=5)
    assert done
    assert working.cancelled()
    assert model.closed


async def test_a_slow_bus_makes_larger_tokens() -> None:
    class Slow(FakeSender):
        async def send(self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None) -> None:
            for _ in range(10):
                await asyncio.sleep(0)
            await super().send(topic, key, message)

    pieces = [f"word{n} " for n in range(200)]
    events = await answer(asked(POOL), FakeChat(pieces), Slow())
    assert answered(events).text == streamed(events) == "".join(pieces).strip()
    assert sum(isinstance(e.event, Token) for e in events) < len(pieces) / 2


async def test_a_model_that_says_everything_at_once_lets_others_have_their_turn() -> None:
    said = "Closed on Sundays [1]. " * 400
    await answer(asked(POOL, TICKETS), FakeChat("Closed on Sundays [1]."))  # what is read once is read
    gc.collect()  # else, of all that earlier tests have left, within one of the turns
    working, began, turns = asyncio.create_task(answer(asked(POOL, TICKETS), FakeChat(said))), process_time(), []
    while not working.done():
        turns.append(process_time())
        await asyncio.sleep(0)
    assert answered(working.result()).text == said.replace(" [1]", "").strip()
    assert max(after - before for before, after in pairwise(turns)) < (turns[-1] - began) / 4


async def test_citations_point_into_the_text_however_the_pieces_are_cut() -> None:
    pieces = list("Closed on Sundays [1]. A ticket costs 4 euros [2].")
    events = await answer(asked(POOL, TICKETS), FakeChat(pieces))
    final = answered(events)
    assert [final.text[c.start : c.end] for c in final.citations] == ["Closed on Sundays", "A ticket costs 4 euros"]
    assert tuple(e.event for e in events if isinstance(e.event, Citation)) == final.citations


class Bell(FakeSender):
    """Rings after the n-th token."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.stopped = asyncio.Event()
        self._left = at

    async def send(
        self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None, lane: Any = None
    ) -> None:
        await super().send(topic, key, message)
        if isinstance(message, AnswerEvent) and isinstance(message.event, Token):
            self._left -= 1
            if self._left == 0:
                self.stopped.set()


async def test_a_stop_ends_the_answer_with_what_there_is_and_hangs_up_on_the_model() -> None:
    class Cites(Endless):
        async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Delta, None]:
            yield Delta("Closed on Sundays [1]. ")
            async for delta in super().stream(*args, **kwargs):
                yield delta

    sender, model = Bell(at=3), Cites()
    async with asyncio.timeout(5):
        events = await answer(asked(POOL, TICKETS), model, sender, sender.stopped)
    final = answered(events)
    assert final.stopped
    assert final.text == streamed(events)
    assert final.text.startswith("Closed on Sundays. Word.")
    assert [c.n for c in final.citations] == [1]
    assert [s.cited for s in final.sources] == [True, False]
    assert not final.extractive
    assert model.closed
    assert [e.seq for e in events] == list(range(len(events)))


@pytest.mark.parametrize("model", [None, FakeChat("Closed [1].")], ids=["quoting", "model"])
async def test_a_stop_that_came_before_ends_the_answer_at_once(model: FakeChat | None) -> None:
    stopped = asyncio.Event()
    stopped.set()
    events = await answer(asked(POOL), model, stopped=stopped)
    assert kinds(events) == ["rephrased", "sources", "answer", "done"]
    assert (answered(events).stopped, answered(events).text) == (True, "")
    assert model is None or model.asked == []


async def test_a_stop_ends_the_wait_for_a_busy_model() -> None:
    class Rings(FakeChat):
        async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Delta, None]:
            asyncio.get_running_loop().call_soon(stopped.set)
            async for delta in super().stream(*args, **kwargs):
                yield delta

    stopped = asyncio.Event()
    model = Rings(RateLimited("busy", retry_after=25.0))
    async with asyncio.timeout(5):
        events = await answer(asked(POOL), model, stopped=stopped)
    assert answered(events).stopped
    assert len(model.asked) == 1


def refused(*sources: Source, grade: int = 4, lang: str = "en") -> Retrieved:
    return asked(*sources, lang=lang).model_copy(update={"grade": grade})


@pytest.mark.parametrize("grade", [2, 3, 4, 5])
async def test_what_the_gate_refuses_is_answered_without_a_model_and_with_candidates(grade: int) -> None:
    model = FakeChat("An invention.")
    final = answered(await answer(refused(POOL, grade=grade, lang="de"), model))
    assert PHRASES.say("see-pages", "de") in final.text
    assert "[Pool](</p1>)" in final.text
    assert (final.extractive, final.citations, model.asked) == (True, (), [])


async def test_while_pages_are_read_in_nothing_found_may_be_found_later() -> None:
    retrieved = refused(POOL)
    importing = retrieved.model_copy(update={"request": retrieved.request.model_copy(update={"importing": True})})
    said = [answered(await answer(each, FakeChat("An invention."))).text for each in (retrieved, importing)]
    assert [PHRASES.say("importing", "en") in text for text in said] == [False, True]


@pytest.mark.parametrize("grade", [0, 1])
async def test_what_the_gate_lets_through_is_answered(grade: int) -> None:
    assert answered(await answer(refused(POOL, grade=grade), FakeChat("Closed [1]."))).text == "Closed."


def going(strategy: StrategyName) -> Settings:
    return Settings(sites={"town": SiteSettings(title="Town", strategy=strategy)}, llm_model="fake")


class Ferries:
    """Finds one page, whatever is asked."""

    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        return (source(1, "The [ferry](ferry) runs hourly.", title="Ferry"),)

    page = find


async def test_a_strategy_that_searches_may_find_what_the_gate_did_not() -> None:
    model = FakeChat(FERRY, "Enough", "Hourly [1].")
    events = await answer(refused(grade=5), model, settings=going("react"), pages=Ferries())
    assert kinds(events) == ["rephrased", "sources", "token", "citation", "answer", "done"]
    final = answered(events)
    assert (final.text, final.strategy) == ("Hourly.", "react")
    assert [step.kind for step in final.trace] == ["model", "search", "model", "model"]
    assert [(s.n, s.cited) for s in final.sources] == [(1, True)]
    assert final.usage.completion_tokens == 3  # of all calls


async def test_a_strategy_that_finds_nothing_either_leaves_it_to_the_gate() -> None:
    model = FakeChat("Action: search[ferry]", "Action: finish[]", "An invention.")
    final = answered(await answer(refused(grade=5), model, settings=going("react")))
    assert (final.text, final.strategy, final.extractive) == (PHRASES.say("nothing-found", "en"), "quote", True)


async def test_a_strategy_that_breaks_down_quotes_what_it_has_found() -> None:
    model = FakeChat(FERRY, ModelDenied("no credit"))
    final = answered(await answer(refused(grade=5), model, settings=going("react"), pages=Ferries()))
    whole = f"The [ferry]({urljoin(final.sources[0].url, 'ferry')}) runs hourly."
    assert whole in final.text  # it leads where it leads on its page
    assert final.sources[0].text == whole
    assert final.extractive


async def test_a_model_that_fails_with_nothing_to_quote_is_told_plainly() -> None:
    events = await answer(refused(grade=5, lang="fr"), FakeChat(ModelDenied("no credit")), settings=going("react"))
    failed, done = last_attempt(events)[-2:]
    assert failed == Failed(code="model-denied", message=PHRASES.error("model-denied", "fr"))
    assert done == Done()


class NoIndex(NoPages):
    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        raise Retryable("Elasticsearch is away")


@pytest.mark.parametrize("named", ["model", "none"])
async def test_what_the_judge_refutes_is_not_in_the_answer(named: JudgeName) -> None:
    class Refutes:
        async def entailed(self, claims: Sequence[Claim], request: Question) -> Verdicts:
            return Verdicts(tuple(0.0 if "slide" in claim.sentence else 1.0 for claim in claims))

    sender, question = FakeSender(), asked(POOL)
    model = FakeChat("The pool is closed on Sundays [1]. Swimmers love the blue slide [1].")
    means = StrategyContext(model, SITE_PROMPTS, NoPages(), {"model": Judge(Refutes().entailed, 0.5, 5.0)})
    settings = Settings(sites={"town": SiteSettings(sentence_check="drop")}, judge=named, llm_model="fake")
    answering = Answering(settings, SITE_PROMPTS, strategies(means))
    await answering.answer(question, Publication(sender, question.request, 1), asyncio.Event())
    events = [s.message for s in sender.sent if isinstance(s.message, AnswerEvent)]
    judged = named == "model"
    assert ("restart" in kinds(events)) == judged
    final = answered(events)
    assert streamed(events) == final.text
    assert ("blue slide" in final.text, final.left_out, final.extractive) == (not judged, int(judged), False)


@pytest.mark.parametrize(("calls", "written"), [("auto", False), ("text", True)])
async def test_a_setting_says_whether_the_model_calls_tools(calls: ToolCalling, written: bool) -> None:
    site = SiteSettings(title="Town", strategy="react")
    model = FakeChat("Enough", "Closed [1].")
    await answer(asked(POOL), model, settings=Settings(sites={"town": site}, tool_calls=calls, llm_model="fake"))
    assert ("Action: name[input]" in model.asked[0][0].content) == written


async def test_a_search_that_fails_on_the_way_leaves_what_was_retrieved() -> None:
    model = FakeChat(FERRY)
    final = answered(await answer(asked(POOL), model, settings=going("react"), pages=NoIndex()))
    assert final.extractive
    assert "closed on Sundays" in final.text


async def test_our_own_words_are_translated_where_we_have_none() -> None:
    final = answered(await answer(refused(grade=5, lang="sv"), FakeChat("Inget hittades.")))
    assert final.text == "Inget hittades."
    without = answered(await answer(refused(grade=5, lang="sv"), None))
    assert without.text == PHRASES.say("nothing-found", "en")


async def test_the_sites_terms_are_in_the_prompt_in_the_visitors_language() -> None:
    site = SiteSettings(title="Town", glossary={"Hallenbad": {"en": "indoor pool"}, "Bürgeramt": {"en": "office"}})
    model = FakeChat("Closed [1].")
    pool = source(1, "Das Hallenbad ist sonntags zu.")
    await answer(asked(pool), model, settings=Settings(sites={"town": site}, llm_model="fake"))
    system = model.asked[0][0].content
    assert "Hallenbad: indoor pool" in system
    assert "Bürgeramt" not in system


async def test_the_model_reads_the_answers_that_are_like_the_one_wanted() -> None:
    model, examples = FakeChat("Daily from 9 [1]."), OneExample()
    wanted = asked(POOL)
    await answer(wanted, model, examples=examples)
    assert examples.asked == [("answer", "en", wanted.question)]
    assert [m.content for m in model.asked[0] if m.role == "assistant"] == ["Two metres [1]."]


async def test_where_no_model_writes_no_examples_are_picked() -> None:
    examples = OneExample()
    await answer(asked(POOL), None, examples=examples)
    assert examples.asked == []


@pytest.mark.parametrize("model", [None, FakeChat("Closed on Sundays [1].")])
async def test_a_broad_question_is_answered_and_can_be_narrowed(model: FakeChat | None) -> None:
    pages = [source(n, POOL.text, title) for n, title in enumerate(["Lido", "Sauna"], start=1)]
    broad = asked(*pages).model_copy(update={"grade": 1})
    assert [topic.label for topic in answered(await answer(broad, model)).narrower] == ["Lido", "Sauna"]
    stopped = asyncio.Event()
    stopped.set()
    assert answered(await answer(broad, model, stopped=stopped)).narrower == ()


def spent(settings: Settings = SETTINGS) -> TokenBudget:
    """The tokens of the day are."""
    sites = {"town": SiteSettings(daily_tokens=1)}
    token_budget = TokenBudget(Settings(sites=sites))
    with pytest.raises(TokensSpent):
        token_budget.open("town", "q", 1, 1)
    return token_budget


async def test_where_the_days_tokens_are_spent_the_pages_are_quoted_and_no_model_is_asked() -> None:
    model = FakeChat("Closed [1].")
    final = answered(await answer(asked(POOL), model, token_budget=spent()))
    assert (final.extractive, final.strategy, model.asked) == (True, "quote", [])
    assert "The pool opens daily at 9." in final.text
    assert [step.said for step in final.trace if step.kind == "error"] == ["tokens-spent"]


async def test_what_the_search_left_to_the_model_is_then_not_shown() -> None:
    unsure = Sure(of="nothing", unit=0.1, page=0.1)
    final = answered(await answer(asked(POOL).model_copy(update={"sure": unsure}), FakeChat("x"), token_budget=spent()))
    assert final.citations == ()
    assert "The pool opens" not in final.text


@pytest.mark.parametrize("sources", [(POOL,), ()])
async def test_where_a_questions_tokens_are_spent_on_the_way_the_pages_are_quoted(sources: tuple[Source, ...]) -> None:
    settings = Settings(sites={"town": SiteSettings(strategy="retrieval-gate")})
    final = answered(await answer(asked(*sources), FakeChat(QuestionSpent("spent")), settings=settings))
    assert (final.extractive, final.text != "") == (True, True)
    assert ("The pool opens daily" in final.text) is bool(sources)


async def test_the_answer_of_a_site_may_be_longer_and_read_more() -> None:
    class Room(FakeChat):
        async def complete(self, *args: Any, **how: Any) -> Completion:
            raise AssertionError

        async def stream(self, messages: Sequence[ChatMessage], **how: Any) -> AsyncGenerator[Delta, None]:
            self.room = how["max_tokens"]
            async for delta in super().stream(messages):
                yield delta

    settings = Settings(
        sites={"town": SiteSettings(steps={"answer": StepSettings(max_tokens=123)})},
        steps={"answer": StepSettings(max_tokens=456)},
        context_chars=200,
    )
    model = Room("Closed [1].")
    long = source(1, "The pool is closed on Sundays. " * 30)
    await answer(asked(long), model, settings=settings)
    assert model.room == 123
    assert len(model.asked[0][-1].content) < 1_200 < len(long.text) + 400
    assert model.steps == ["answer"]


def tried(trial: Trial, *sources: Source) -> Retrieved:
    found = asked(*sources)
    return found.model_copy(update={"gate": GATE, "request": found.request.model_copy(update={"trial": trial})})


GATE = Gate(distance=0.2, entropy=0, subject=0.5, by_figures=0, score=0.9, threshold=0.4)


async def test_a_trial_is_answered_as_it_says_and_tells_how() -> None:
    model = FakeChat("The pool closes on Sundays.", "Closed [1].")
    trial = Trial(strategy="chain-of-thought", model="large", temperature=0.5)
    final = answered(await answer(tried(trial, POOL, TICKETS), model))
    assert (final.text, final.strategy) == ("Closed.", "chain-of-thought")
    assert model.own == [StepSettings(model="large", temperature=0.5)] * 2
    assert final.trial is not None
    assert (final.trial.became, final.trial.gate) == ("answered", GATE)
    told = [(message.role, message.text) for message in final.trial.prompt]
    assert told == [(message.role, message.content) for message in model.asked[-1]]
    assert "The pool opens daily at 9." in told[-1][1]


async def test_what_nobody_tries_out_tells_nothing_of_it() -> None:
    model = FakeChat("Closed [1].")
    assert answered(await answer(asked(POOL), model)).trial is None
    assert model.own == [StepSettings()]


async def test_what_was_made_live_counts_for_all_and_a_trial_goes_before_it() -> None:
    live = Tuned(strategy="chain-of-thought", model="large", temperature=0.5)
    for trial, own in ((None, StepSettings(model="large", temperature=0.5)), (Trial(model="small"), None)):
        model = FakeChat("The pool closes on Sundays.", "Closed [1].")
        found = asked(POOL, TICKETS)
        request = found.request.model_copy(update={"tuned": live, "trial": trial})
        final = answered(await answer(found.model_copy(update={"request": request}), model))
        assert (final.text, final.strategy, final.trial is None) == ("Closed.", "chain-of-thought", trial is None)
        assert model.own == [own or StepSettings(model="small", temperature=0.5)] * 2


async def test_a_trial_may_do_without_the_model() -> None:
    model = FakeChat("Closed [1].")
    final = answered(await answer(tried(Trial(strategy="quote"), POOL), model))
    assert (final.strategy, final.extractive, model.asked) == ("quote", True, [])
    assert final.trial is not None
    assert final.trial.prompt == ()


async def test_a_trial_is_written_by_its_own_prompt() -> None:
    model = FakeChat("Closed [1].")
    own = written("answer").replace("from its own pages, and from nothing else", "in rhymes")
    final = answered(await answer(tried(Trial(prompt=own), POOL), model))
    assert final.text == "Closed."
    assert "in rhymes" in model.asked[0][0].content
    assert final.trial is not None
    assert "in rhymes" in final.trial.prompt[0].text


async def test_a_prompt_that_this_worker_cannot_use_ends_in_quotes() -> None:
    model = FakeChat("Closed [1].")
    final = answered(await answer(tried(Trial(prompt="Answer in rhymes."), POOL), model))
    assert (final.strategy, model.asked) == ("quote", [])
    assert [step.said for step in final.trace if step.kind == "error"] == ["prompt-not-tried"]


async def test_a_trial_tells_which_index_was_searched() -> None:
    found = tried(Trial(strategy="quote", index="pagewire-town-000002"), POOL)
    final = answered(await answer(found.model_copy(update={"index": "pagewire-town-000002"}), FakeChat()))
    assert final.trial is not None
    assert final.trial.index == "pagewire-town-000002"


async def test_what_a_trial_leaves_open_is_as_the_site_has_it() -> None:
    final = answered(await answer(tried(Trial(), POOL), FakeChat("None", "Closed [1]."), settings=going("react")))
    assert final.strategy == "react"


async def test_an_editors_words_are_the_answer_with_and_without_a_model() -> None:
    said = Corrected(ids=("c1",), kind="answer", text="Ask at the <b>desk</b>, it is <https://town.example/desk>.")
    for model in (None, FakeChat()):
        for sources, cited in (((POOL,), [1]), ((), [])):
            corrected = asked(*sources).model_copy(update={"corrected": said})
            answered = next(e.event for e in await answer(corrected, model) if isinstance(e.event, Answered))
            # Whoever shows it, the tags are text.
            assert answered.text == r"Ask at the \<b>desk\</b>, it is <https://town.example/desk>."
            assert (answered.certainty, answered.generated_by, answered.extractive) == ("said", "site", True)
            assert [source.n for source in answered.sources if source.cited] == cited
            assert answered.narrower == ()


async def test_it_is_said_who_has_written_an_answer() -> None:
    quoted, named = asked(POOL), asked()
    for question, model, by in (
        (quoted, FakeChat(["Nine [1]."]), "model"),
        (quoted, None, "quotation"),
        (named, None, "site"),
    ):
        answered = next(e.event for e in await answer(question, model) if isinstance(e.event, Answered))
        assert answered.generated_by == by
