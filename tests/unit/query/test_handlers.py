"""The query handlers: one message in, the right messages out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

from adapters.elastic.client import ElasticsearchDown
from pipelines.query import giving_up
from pipelines.query.answer.answering import Answering
from pipelines.query.answer.handler import answer_handler
from pipelines.query.answer.stops import Stops
from pipelines.query.examples import Examples
from pipelines.query.extractive.follow_ups import signs
from pipelines.query.giving_up import apology, with_deadline
from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.live.tuning import SiteTuning
from pipelines.query.model_calls import start_call
from pipelines.query.outcomes import Outcomes
from pipelines.query.ports import Completion, NoTrialIndex
from pipelines.query.publish import CLOCK_SKEW_MS
from pipelines.query.rephrase import rewrite as rewrite_module
from pipelines.query.rephrase.handler import rephrase_handler
from pipelines.query.rephrase.rewrite import Rewriter
from pipelines.query.retrieve.handler import retrieve_handler
from pipelines.query.search.ports import Candidates, Hit
from pipelines.query.search.search import Retrieval
from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.errors import Retryable
from pipelines.runtime.indexes import IndexGone
from pipelines.runtime.record import Record
from prompts.loader import ChatMessage
from schemas.answer import AnswerEvent, Done, Failed, Token, Usage
from schemas.base import Message, WireError
from schemas.example import WorkedExample
from schemas.privacy import PrivacyRules
from schemas.query import Earlier, Question, Rephrased, Retrieved, Trial, Tuned, Turn
from schemas.text_version import TextVersion
from schemas.topics import REPHRASED, RETRIEVED
from tests.asking import NOON, question, retrieved, source
from tests.fakes.chat_model import FakeChat
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.pages import FakeSender
from wiring.settings import Settings, SiteSettings

SETTINGS = Settings(sites={"town": SiteSettings(title="Town")})
SITE_PROMPTS = SitePrompts()
OUTCOMES = Outcomes(SETTINGS)
PHRASES = SITE_PROMPTS.of("town").phrases


def asked(text: str = "When is the pool open?", seconds_left: float = 60) -> Question:
    return question(text).model_copy(update={"deadline": datetime.now(UTC) + timedelta(seconds=seconds_left)})


def record(message: Message | bytes, fresh: bool = True) -> Record:
    value = message if isinstance(message, bytes) else message.encode()
    return Record("any", 0, 9, b"conversation-1", value, fresh=fresh)


class NoExamples:
    """Nobody has added any."""

    async def of_site(self, site: str) -> list[WorkedExample]:
        return []


def rewriter(model: FakeChat) -> Rewriter:
    return Rewriter(model, Examples(SITE_PROMPTS, NoExamples().of_site, Models()))


async def rephrased(request: Question, model: FakeChat | None) -> Rephrased:
    sender = FakeSender()
    await rephrase_handler(SETTINGS, SITE_PROMPTS, rewriter(model) if model else None)(record(request), sender)
    [sent] = sender.sent
    assert (sent.topic, sent.key) == (REPHRASED, "conversation-1")
    assert isinstance(sent.message, Rephrased)
    assert sent.message.request == request
    assert list(sent.message.timings_ms) == ["rephrase"]
    return sent.message


async def test_a_model_rewrites_the_question() -> None:
    model = FakeChat("When does the indoor pool open on Sundays?")
    made = await rephrased(asked(), model)
    assert (made.question, made.mode) == ("When does the indoor pool open on Sundays?", "semantic")
    assert made.usage == Usage(prompt_tokens=len(model.asked[0]), completion_tokens=1)  # its model writes no answer


async def test_what_the_visitor_calls_a_thing_is_rewritten_into_what_the_site_calls_it() -> None:
    model, sender = FakeChat("Wann öffnet das Hallenbad?"), FakeSender()
    glossary = {"Hallenbad": {"en": "indoor pool"}, "Bürgeramt": {"en": "office"}}
    settings = Settings(sites={"town": SiteSettings(title="Town", glossary=glossary)})
    request = asked("When does the indoor pool open?")
    await rephrase_handler(settings, SITE_PROMPTS, rewriter(model))(record(request), sender)
    prompt = "\n".join(message.content for message in model.asked[0])
    assert "indoor pool: Hallenbad" in prompt
    assert "Bürgeramt" not in prompt


@pytest.mark.parametrize(
    "model",
    [None, FakeChat(Retryable("busy")), FakeChat(Completion("When does the indoor pool", Usage(), cut=True))],
    ids=["no model", "failing model", "cut model"],
)
async def test_without_a_working_model_the_question_stays_as_it_is(model: FakeChat | None) -> None:
    assert (await rephrased(asked(), model)).question == "When is the pool open?"


async def test_a_courtesy_is_handed_on_as_one_in_the_language_it_was_said_in() -> None:
    model, sender = FakeChat("An expensive question?"), FakeSender()
    await rephrase_handler(SETTINGS, SITE_PROMPTS, rewriter(model))(record(asked("Vielen Dank!")), sender)
    [made] = [sent.message for sent in sender.sent if isinstance(sent.message, Rephrased)]
    assert (made.courtesy, made.mode, made.request.lang, model.asked) == ("thanks", "courtesy", "de", [])


async def test_a_question_leans_over_the_thanks_before_it() -> None:
    said = [Turn(question="When is the pool open?", answer="Daily."), Turn(question="thank you", answer="Welcome.")]
    request = asked("And for children please, how much?").model_copy(update={"history": tuple(said)})
    made = await rephrased(request, None)
    assert made.question == "And for children please, how much?"
    assert made.earlier == Earlier(question="When is the pool open?", signs=signs(made.question))


POOL = Turn(question="When is the pool open?", answer="Daily.", pages=("town:en:pool",))


@pytest.mark.parametrize("text", ["Sundays?", "And children?", "And what about the people who live next door?"])
async def test_in_a_conversation_a_model_rewrites_a_question_of_any_length(text: str) -> None:
    model = FakeChat("How much does the pool cost on Sundays?")
    made = await rephrased(asked(text).model_copy(update={"history": (POOL,)}), model)
    assert (made.question, made.mode, made.earlier) == ("How much does the pool cost on Sundays?", "semantic", None)
    assert model.asked != []


@pytest.mark.parametrize("model", [None, FakeChat(Retryable("busy"))], ids=["no model", "failing model"])
@pytest.mark.parametrize("text", ["Sundays?", "And children?", "Where is the museum?"])
async def test_without_a_working_model_it_is_handed_on_with_what_it_may_lean_on(
    text: str, model: FakeChat | None
) -> None:
    made = await rephrased(asked(text).model_copy(update={"history": (POOL,)}), model)
    assert made.question == text
    assert made.earlier == Earlier(question="When is the pool open?", pages=("town:en:pool",), signs=signs(text))


async def test_only_what_is_asked_after_a_greeting_is_searched() -> None:
    assert (await rephrased(asked("Hi! When is the pool open?"), None)).question == "When is the pool open?"


async def test_no_model_is_paid_for_short_questions() -> None:
    model = FakeChat("An expensive question?")
    made = await rephrased(asked("pool hours"), model)
    assert made.question == "pool hours"
    assert model.asked == []


async def test_a_question_whose_deadline_has_passed_is_given_up_before_any_work() -> None:
    late = asked(seconds_left=-1)
    never = rephrase_handler(SETTINGS, SITE_PROMPTS, None), Question, late
    neither = (
        retrieve_handler(SETTINGS, None, None),  # type: ignore[arg-type]
        Rephrased,
        Rephrased(request=late, question="When?", mode="semantic"),
    )
    for handler, read, message in (never, neither):
        sender = FakeSender()
        await with_deadline(handler, read, SITE_PROMPTS, FakeLog(), OUTCOMES)(record(message), sender)
        failed, done = [sent.message.event for sent in sender.sent if isinstance(sent.message, AnswerEvent)]
        assert failed == Failed(code="timeout", message=PHRASES.error("timeout", late.lang))
        assert done == Done()
        assert not any(isinstance(sent.message, Rephrased | Retrieved) for sent in sender.sent)


async def test_a_question_gets_its_sources() -> None:
    class Nothing:
        async def find(self, site: str, text: str, **how: Any) -> Retrieval:
            return Retrieval([], Candidates([], [], [], 0), None, [])

        async def chunks(self, site: str, addresses: Sequence[Any]) -> list[Hit]:
            return []

    sender = FakeSender()
    message = Rephrased(request=asked(), question="When?", mode="semantic")
    await retrieve_handler(SETTINGS, Nothing(), Nothing())(record(message), sender)  # type: ignore[arg-type]
    [sent] = sender.sent
    assert (sent.topic, sent.key) == (RETRIEVED, "conversation-1")
    assert isinstance(sent.message, Retrieved)
    assert sent.message.grade == 5


@pytest.mark.parametrize(("strategy", "writes"), [("quote", False), ("plain", True), (None, True)])
async def test_what_is_only_quoted_is_searched_as_without_a_model(
    monkeypatch: pytest.MonkeyPatch, strategy: str | None, writes: bool
) -> None:
    written: list[bool] = []

    async def noted(asked: Rephrased, *means: Any, writes: bool, **how: Any) -> Retrieved:
        written.append(writes)
        return retrieved()

    monkeypatch.setattr("pipelines.query.retrieve.handler.retrieve", noted)
    request = asked().model_copy(update={"trial": Trial(strategy=strategy)})
    message = Rephrased(request=request, question="When?", mode="semantic")
    await retrieve_handler(SETTINGS, None, None, writes=True)(record(message), FakeSender())  # type: ignore[arg-type]
    assert written == [writes]


async def test_a_question_is_searched_by_the_glossary_that_was_changed_last(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    async def noted(asked: Rephrased, *means: Any, glossary: Any, **how: Any) -> Retrieved:
        given.append(glossary)
        return retrieved()

    monkeypatch.setattr("pipelines.query.retrieve.handler.retrieve", noted)
    prompts = SitePrompts()
    handle = retrieve_handler(SETTINGS, None, None, site_prompts=prompts)  # type: ignore[arg-type]
    message = Rephrased(request=asked(), question="When?", mode="semantic")
    await handle(record(message), FakeSender())
    text = {"site": "town", "kind": "glossary", "name": "terms", "version": 1, "by": "anna", "at": NOON}
    prompts.take([TextVersion.model_validate(text | {"text": "Lido: {en: pool}"})])
    await handle(record(message), FakeSender())
    assert given == [{}, {"Lido": {"en": ("pool",)}}]


async def test_a_question_goes_on_with_the_settings_that_were_made_live_but_for_a_trial_without_them() -> None:
    tuning, sender = SiteTuning(SETTINGS), FakeSender()
    handle = rephrase_handler(SETTINGS, SITE_PROMPTS, None, tuning)
    await handle(record(asked()), sender)
    text = {"site": "town", "kind": "settings", "name": "answers", "version": 1, "by": "anna", "at": NOON}
    tuning.take([TextVersion.model_validate(text | {"text": "hits: 4"})])
    await handle(record(asked()), sender)
    await handle(record(asked().model_copy(update={"trial": Trial(think=True)})), sender)
    await handle(record(asked().model_copy(update={"trial": Trial(think=True), "tuned": Tuned()})), sender)
    marked = [sent.message.request for sent in sender.sent if isinstance(sent.message, Rephrased)]
    assert [request.tuned for request in marked] == [None, Tuned(hits=4), Tuned(hits=4), Tuned()]
    assert [request.under for request in marked] == [
        Tuned(),
        Tuned(hits=4),
        Tuned(hits=4, think=True),
        Tuned(think=True),
    ]


async def test_prompts_are_kept_from_the_moment_that_a_site_wants_them() -> None:
    class Recorded(FakeChat):
        async def complete(self, messages: Sequence[ChatMessage], **more: Any) -> Completion:
            start_call("rephrase", messages)
            return await super().complete(messages, **more)

    privacy, sender = SitePrivacy(SETTINGS.sites), FakeSender()
    handle = rephrase_handler(SETTINGS, SITE_PROMPTS, rewriter(Recorded("When?", "When?")), privacy=privacy)
    asking = asked().model_copy(update={"logged_as": "c"})
    await handle(record(asking), sender)
    rules = PrivacyRules(log_questions="on", conversations=9, outcomes=9, log_prompts=True).model_dump_json()
    text = {"site": "town", "kind": "privacy", "name": "rules", "version": 1, "by": "anna", "at": NOON, "text": rules}
    privacy.take([TextVersion.model_validate(text)])
    await handle(record(asking), sender)
    made = [sent.message for sent in sender.sent if isinstance(sent.message, Rephrased)]
    assert [[call.step for call in each.calls] for each in made] == [[], ["rephrase"]]


class Searchers:
    """Finds nothing, in each index that there is."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self.on_index: list[str] = []
        self.gone = False

    async def on(self, site: str, name: str) -> Searchers:
        if name not in self._names:
            raise NoTrialIndex(f"site {site} has no index {name} any more")
        self.on_index.append(name)
        return self

    async def find(self, site: str, text: str, **how: Any) -> Retrieval:
        if self.gone:
            raise IndexGone("index pagewire-town-000002 is gone")
        return Retrieval([], Candidates([], [], [], 0), None, [])


def trying(index: str | None) -> Rephrased:
    request = asked().model_copy(update={"trial": Trial(index=index)})
    return Rephrased(request=request, question="When?", mode="semantic")


async def test_a_trial_searches_the_index_that_it_names() -> None:
    searchers = Searchers("pagewire-town-000002")
    handle, sender = retrieve_handler(SETTINGS, searchers, None), FakeSender()  # type: ignore[arg-type]
    await handle(record(trying("pagewire-town-000002")), sender)
    await handle(record(trying(None)), sender)
    found = [sent.message.index for sent in sender.sent if isinstance(sent.message, Retrieved)]
    assert (found, searchers.on_index) == (["pagewire-town-000002", None], ["pagewire-town-000002"])


@pytest.mark.parametrize("gone", [False, True], ids=["before", "meanwhile"])
async def test_of_an_index_that_is_gone_who_tries_it_out_is_told_and_nobody_else(gone: bool) -> None:
    searchers = Searchers("pagewire-town-000002")
    searchers.gone = gone
    index = "pagewire-town-000002" if gone else "pagewire-town-000003"
    handler = retrieve_handler(SETTINGS, searchers, None)  # type: ignore[arg-type]
    handle, sender = (
        with_deadline(handler, Rephrased, SITE_PROMPTS, FakeLog(), OUTCOMES),
        FakeSender(),
    )
    await handle(record(trying(index)), sender)  # no dead letter, and the site's other questions go on
    failed, done = [sent.message.event for sent in sender.sent if isinstance(sent.message, AnswerEvent)]
    assert isinstance(failed, Failed)
    assert (failed.code, index in failed.message) == ("index-not-tried", True)
    assert done == Done()


class Reads:
    """A reranker, whoever asks it."""

    async def scores(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        return [0.5] * len(passages)


async def test_a_trial_leaves_the_reranker_out_or_wants_one_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    async def noted(asked: Rephrased, searcher: Any, chunks: Any, settings: Any, reader: Any, **how: Any) -> Retrieved:
        given.append(reader)
        return retrieved()

    monkeypatch.setattr("pipelines.query.retrieve.handler.retrieve", noted)

    async def asked_with(rerank: bool | None, reranker: Reads | None) -> FakeSender:
        request = asked().model_copy(update={"trial": Trial(rerank=rerank)})
        message = Rephrased(request=request, question="When?", mode="semantic")
        handler, sender = retrieve_handler(SETTINGS, None, None, reranker), FakeSender()  # type: ignore[arg-type]
        told = with_deadline(handler, Rephrased, SITE_PROMPTS, FakeLog(), OUTCOMES)
        await told(record(message), sender)
        return sender

    reads = Reads()
    for rerank in (None, True, False):
        await asked_with(rerank, reads)
    assert given == [reads, reads, None]
    # Visitors of a worker without one are answered all the same.
    for reranker, rerank in ((reads, True), (None, True), (reads, False)):
        live = asked().model_copy(update={"tuned": Tuned(rerank=rerank)})
        handle = retrieve_handler(SETTINGS, None, None, reranker)  # type: ignore[arg-type]
        await handle(record(Rephrased(request=live, question="When?", mode="semantic")), FakeSender())
    assert given[3:] == [reads, None, None]
    failed, _ = [s.message.event for s in (await asked_with(True, None)).sent if isinstance(s.message, AnswerEvent)]
    assert isinstance(failed, Failed)
    assert failed.code == "reranker-not-tried"
    assert len(given) == 6


class FakeLog:
    """What was written of the answer already."""

    def __init__(self, *written: AnswerEvent) -> None:
        self._written = written

    async def of_key(self, key: str, since_ms: int, *, begins: tuple[int, int] | None = None) -> list[Record]:
        assert since_ms == round(NOON.timestamp() * 1000) - CLOCK_SKEW_MS
        return [Record("answer.events", 0, i, key.encode(), e.encode()) for i, e in enumerate(self._written)]


class Models:
    async def for_site(self, site: str) -> FakeEmbedder:
        return FakeEmbedder()


def event(said: Any) -> AnswerEvent:
    return AnswerEvent(request_id=question().request_id, seq=0, event=said)


class NoTail:
    """Of stops; none come."""

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...


tail = NoTail()


async def answered(log: FakeLog, fresh: bool) -> list[str]:
    sender = FakeSender()
    message = retrieved(source(1, "The pool opens at 9.")).model_copy(update={"request": asked()})
    stops = Stops(log, lambda deliver: tail)
    handle = answer_handler(Answering(SETTINGS, SITE_PROMPTS, {}), log, stops, OUTCOMES)
    await handle(record(message, fresh), sender)
    assert {s.key for s in sender.sent} <= {message.request.request_id}
    return [s.message.event.type for s in sender.sent if isinstance(s.message, AnswerEvent)]


async def test_sources_become_an_answer() -> None:
    types = await answered(FakeLog(), fresh=True)
    assert (types[0], types[-2:]) == ("rephrased", ["answer", "done"])


async def test_an_answer_begun_by_another_worker_starts_again() -> None:
    types = await answered(FakeLog(event(Token(text="The po"))), fresh=False)
    assert types[:2] == ["restart", "rephrased"]


async def test_an_answer_given_by_another_worker_is_not_given_twice() -> None:
    assert await answered(FakeLog(event(Done())), fresh=False) == []


LETTER = DeadLetter("answer", "t", 0, 0, 0, "X", "no-such-code", "java.lang.NullPointer", 6, NOON, NOON)


@pytest.mark.parametrize(
    ("message", "question_of"),
    [
        (question(lang="de"), Question),
        (Rephrased(request=question(lang="de"), question="?", mode="semantic"), Rephrased),
        (retrieved(lang="de"), Retrieved),
    ],
    ids=["rephrase", "retrieve", "answer"],
)
async def test_a_visitor_whose_question_died_is_told_in_their_own_words(message: Message, question_of: Any) -> None:
    sender = FakeSender()
    await apology(question_of, SITE_PROMPTS, FakeLog(), OUTCOMES)(record(message), LETTER, sender)
    failed, done = [s.message.event for s in sender.sent if isinstance(s.message, AnswerEvent)]
    assert failed == Failed(code="no-such-code", message=PHRASES.error("error", "de"))
    assert "NullPointer" not in failed.message
    assert done == Done()


@pytest.mark.parametrize("value", [b"", b"not JSON", b'{"v": 2}'])
async def test_of_bytes_that_are_no_question_nobody_is_told(value: bytes) -> None:
    sender = FakeSender()
    for question_of in (Question, Rephrased, Retrieved):
        await apology(question_of, SITE_PROMPTS, FakeLog(), OUTCOMES)(record(value), LETTER, sender)
    assert sender.sent == []


async def test_bytes_that_are_no_message_are_refused_for_good() -> None:
    handlers = [
        rephrase_handler(SETTINGS, SITE_PROMPTS, None),
        retrieve_handler(SETTINGS, None, None),  # type: ignore[arg-type]
        answer_handler(None, FakeLog(), None, OUTCOMES),  # type: ignore[arg-type]
    ]
    for handle in handlers:
        with pytest.raises(WireError):
            await handle(record(b'{"v": 2}'), FakeSender())


class Hangs(FakeChat):
    async def complete(self, *args: Any, **kwargs: Any) -> Any:
        await asyncio.Event().wait()


async def test_a_model_that_never_answers_does_not_hold_the_question_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite_module, "PATIENCE", 0.01)
    assert (await rephrased(asked(), Hangs())).question == "When is the pool open?"


def test_a_slow_model_is_given_more_time_for_a_question_but_half_of_its_time_at_most() -> None:
    now = datetime.now(UTC)
    slow, quick = (Rewriter(FakeChat("?"), rewriter(FakeChat("?")).examples, silence) for silence in (120.0, 30.0))
    patient, hurried = (asked().model_copy(update={"deadline": now + timedelta(seconds=left)}) for left in (300, 50))
    assert [round(slow.patience(each)) for each in (patient, hurried)] == [40, 25]
    assert [round(quick.patience(each)) for each in (patient, hurried)] == [10, 10]


async def away(record: Record, sender: Any) -> None:
    raise ElasticsearchDown("connection refused")


async def given_up(seconds_since: float, *written: AnswerEvent) -> list[Any]:
    request = asked().model_copy(update={"asked_at": NOON, "lang": "de"})
    patience = datetime.now(UTC) - NOON - timedelta(seconds=seconds_since)
    sender = FakeSender()
    handle = with_deadline(away, Question, SITE_PROMPTS, FakeLog(*written), OUTCOMES)
    with patch.object(giving_up, "PATIENCE", patience):
        await handle(record(request), sender)
    return [s.message.event for s in sender.sent if isinstance(s.message, AnswerEvent)]


async def test_a_service_that_is_away_is_told_to_the_visitor_while_they_wait() -> None:
    message = PHRASES.error("elasticsearch-unavailable", "de")
    assert await given_up(1) == [Failed(code="elasticsearch-unavailable", message=message), Done()]
    assert message != PHRASES.error("error", "de")


async def test_a_short_outage_is_waited_for() -> None:
    with pytest.raises(ElasticsearchDown):
        await given_up(-60)


async def test_what_was_answered_is_not_failed_afterwards() -> None:
    assert await given_up(1, event(Done())) == []
