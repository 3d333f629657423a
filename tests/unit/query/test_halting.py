"""While a site's chat is off none of its questions is worked on, and answers under way end."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.query.giving_up import while_chat_on
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.outcomes import Outcomes
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Sender
from schemas.answer import AnswerEvent, Done, Failed, Token
from schemas.base import WireError
from schemas.outcome import Outcome, OutcomeEvent
from schemas.query import Question
from tests.asking import question
from tests.unit.query.test_handlers import SETTINGS, FakeLog, FakeSender, event, record

PROMPTS = SitePrompts()


class Switch:
    def __init__(self) -> None:
        self.off = {"town": asyncio.Event(), "other": asyncio.Event()}

    def went_off(self, site: str) -> asyncio.Event:
        return self.off[site]


class Work:
    """A handler that writes until it is let go on."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended = ""
        self.error: Exception | None = None

    async def __call__(self, record: Record, sender: Sender) -> None:
        self.begun.set()
        if self.error is not None:
            raise self.error
        try:
            await self.go_on.wait()
            self.ended = "done"
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise


@pytest.fixture
def switch() -> Switch:
    return Switch()


@pytest.fixture
def work() -> Work:
    return Work()


async def handle(asked: Question, work: Work, switch: Switch, *written: AnswerEvent) -> FakeSender:
    handler = while_chat_on(work, Question, switch.went_off, PROMPTS, FakeLog(*written), Outcomes(SETTINGS))
    sender = FakeSender()
    await handler(record(asked), sender)
    return sender


def events(sender: FakeSender) -> list[object]:
    return [sent.message.event for sent in sender.sent if isinstance(sent.message, AnswerEvent)]


@pytest.mark.parametrize(("lang", "says"), [("de", "abgeschaltet"), ("en", "switched off")])
async def test_a_question_that_comes_is_told_so_in_its_language(
    switch: Switch, work: Work, lang: str, says: str
) -> None:
    switch.off["town"].set()
    sender = await handle(question().model_copy(update={"lang": lang, "logged_as": "a-hash"}), work, switch)
    failed, done = events(sender)
    assert isinstance(failed, Failed)
    assert (failed.code, says in failed.message, done) == ("chat-off", True, Done())
    assert not work.begun.is_set()
    [outcome] = [sent.message.event for sent in sender.sent if isinstance(sent.message, OutcomeEvent)]
    assert isinstance(outcome, Outcome)
    assert (outcome.became, outcome.failed) == ("failed", "chat-off")


async def test_an_answer_that_is_being_written_ends(switch: Switch, work: Work) -> None:
    answering = asyncio.create_task(handle(question(), work, switch, event(Token(text="The po"))))
    await work.begun.wait()
    switch.off["other"].set()
    await asyncio.sleep(0)
    assert not answering.done()
    switch.off["town"].set()
    sender = await answering
    assert work.ended == "cancelled"
    restart, failed, _ = events(sender)
    assert (getattr(restart, "type", ""), getattr(failed, "code", "")) == ("restart", "chat-off")


async def test_while_it_is_on_all_is_as_ever(switch: Switch, work: Work) -> None:
    work.go_on.set()
    assert (await handle(question(), work, switch)).sent == []
    assert work.ended == "done"
    work.error = RuntimeError("of the handler")
    with pytest.raises(RuntimeError, match="of the handler"):
        await handle(question(), work, switch)


async def test_who_is_let_go_lets_the_work_go(switch: Switch, work: Work) -> None:
    answering = asyncio.create_task(handle(question(), work, switch))
    await work.begun.wait()
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    assert work.ended == "cancelled"


async def test_what_is_no_question_is_a_dead_letter_as_ever(switch: Switch, work: Work) -> None:
    work.error = WireError("not a question")
    handler = while_chat_on(work, Question, switch.went_off, PROMPTS, FakeLog(), Outcomes(SETTINGS))
    with pytest.raises(WireError):
        await handler(Record("query.requests", 0, 0, b"x", b"{"), FakeSender())
