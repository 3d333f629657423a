"""What a model says becomes a title, if it can be one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.query import titles as titles_module
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import Completion, ModelDown
from pipelines.query.titles import TITLE_CHARS, ModelTitles, title_of
from schemas.answer import Usage
from tests.fakes.chat_model import FakeChat

SITE_PROMPTS = SitePrompts()


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Opening hours of the pool", "Opening hours of the pool"),
        ('"Opening hours of the pool."', "Opening hours of the pool"),
        ("„Öffnungszeiten des Hallenbads“.", "Öffnungszeiten des Hallenbads"),
        ("\n\n**Opening** hours of the [pool](https://evil.example)\n\nThey are ...", "Opening hours of the pool"),
        ("# Pool", "Pool"),
        ("- `Pool`", "Pool"),
        ("Opening\thours", "Opening hours"),
        ("pool\u202egnp.exe", "poolgnp.exe"),
        ("Pool \x1b|hours", "Pool |hours"),
        ("プールの営業時間。", "プールの営業時間"),
        ("word " * 20, "word word word word word word word word word word word word…"),
        ("泳" * 80, "泳" * 59 + "…"),
        ("", None),
        ("...", None),
        ("\u200b\u200d", None),
        ("<script>alert(1)</script>", None),
        ("&lt;script&gt;alert(1)", None),
        ("AT&amp;T&nbsp;Park", "AT&T Park"),
        ("word " * 40, None),
    ],
)
def test_a_title_is_one_plain_line(said: str, title: str | None) -> None:
    assert title_of(said) == title


@given(st.text(max_size=300))
def test_whatever_is_said_a_title_is_short_plain_and_there(said: str) -> None:
    title = title_of(said)
    assert title is None or (0 < len(title) <= TITLE_CHARS and "<" not in title and title == " ".join(title.split()))


async def test_the_model_reads_question_and_answer_in_the_visitors_language() -> None:
    model = FakeChat("Öffnungszeiten")
    titles = ModelTitles(model, SITE_PROMPTS)
    assert (
        await titles.write("town", "de", "Wann hat das Bad offen?", "Es ist täglich ab 9 geöffnet.") == "Öffnungszeiten"
    )
    assert model.steps == ["title"]
    [(system, user)] = model.asked
    assert "Write in German." in system.content
    assert "Wann hat das Bad offen?" in user.content
    assert "täglich ab 9" in user.content
    await titles.write("town", "de", "Wann?", "")
    assert "answer" not in model.asked[1][1].content


async def test_it_reads_no_more_than_it_needs() -> None:
    model = FakeChat("Pool")
    await ModelTitles(model, SITE_PROMPTS).write("town", "en", "When is it open? " * 200, "It is open. " * 2_000)
    assert len(model.asked[0][1].content) < 2_000


@pytest.mark.parametrize("reply", [ModelDown("away"), "", Completion("A title that was c", Usage(), cut=True)])
async def test_without_a_title_there_is_none(reply: Any) -> None:
    assert await ModelTitles(FakeChat(reply), SITE_PROMPTS).write("town", "en", "When?", "Daily.") is None


async def test_a_model_that_is_silent_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs(FakeChat):
        async def complete(self, *args: Any, **kwargs: Any) -> Any:
            await asyncio.Event().wait()

    monkeypatch.setattr(titles_module, "PATIENCE", 0.01)
    assert await ModelTitles(Hangs(), SITE_PROMPTS).write("town", "en", "When?", "Daily.") is None
