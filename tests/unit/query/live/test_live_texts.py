"""Texts that are changed while the system runs: in force for all, kept whole, and never broken."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.query.live import live_texts, text_changes
from pipelines.query.live.live_texts import LiveTexts
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.live.text_changes import (
    BadText,
    NoEarlierText,
    Place,
    TextChanged,
    TextChanges,
    TooManyTexts,
    UnknownText,
)
from pipelines.runtime.errors import Retryable
from prompts.loader import written
from schemas.text_version import NewText, TextChange, TextKind, TextVersion
from tests.edge import until
from tests.fakes.stores import FakeTextStore
from wiring.settings import Settings, SiteSettings

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
LEAD_IN = Place("town", "canned", "lead-in.en")
ANSWER = Place("town", "prompts", "answer")
CONTACT = Place("town", "contact", "en")
GLOSSARY = Place("town", "glossary", "terms")
JUST = TextChange()


class World:
    """A store, editors of a site with a file of its own, and processes that say what is live."""

    def __init__(self, folder: Path) -> None:
        (folder / "canned.yaml").write_text("lead-in: {en: 'Our pages say:'}\n", encoding="utf-8")
        town = SiteSettings.model_validate(
            {
                "languages": ["en", "de"],
                "prompts": folder,
                "contact": {"en": "Call."},
                "glossary": {"Bad": {"en": "bath"}},
            }
        )
        self.settings = Settings(sites={"town": town, "village": SiteSettings()})
        self.store = FakeTextStore()

    @property
    def changes(self) -> TextChanges:
        return TextChanges(self.store, self.settings, lambda: NOON)

    async def said(self, place: Place) -> str | None:
        return (await self.changes.history(place)).text

    async def put(self, text: str, place: Place = LEAD_IN, **more: object) -> TextVersion:
        return await self.changes.put(place, NewText.model_validate({"text": text} | more), "anna")

    def process(self) -> tuple[SitePrompts, LiveTexts]:
        prompts = SitePrompts.of_settings(self.settings)
        return prompts, LiveTexts(self.store, prompts.take)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def lead_in(prompts: SitePrompts, site: str = "town") -> str:
    return prompts.of(site).phrases.say("lead-in", "en")


async def test_what_is_live_goes_before_files_and_they_before_ours(world: World) -> None:
    prompts, live = world.process()
    assert await live.look()
    assert (lead_in(prompts), lead_in(prompts, "village")) == ("Our pages say:", "The website says:")
    made = await world.put("We write:", note="shorter")
    assert (made.version, made.by, made.at, made.note) == (1, "anna", NOON, "shorter")
    assert lead_in(prompts) == "Our pages say:"
    assert await live.look()
    assert (lead_in(prompts), lead_in(prompts, "village")) == ("We write:", "The website says:")
    assert prompts.of("town").phrases.say("lead-in", "de") == "Auf der Website steht:"
    await world.changes.remove(LEAD_IN, JUST, "ben")
    assert await live.look()
    assert lead_in(prompts) == "Our pages say:"
    read = world.store.reads
    assert await live.look()
    assert world.store.reads == read  # nothing is new


async def test_a_contact_and_a_prompt_are_changed_alike(world: World) -> None:
    prompts, live = world.process()
    await world.put("Write to us.", CONTACT)
    await world.put("Schreiben Sie uns.", Place("town", "contact", "de"))
    text = written("answer").replace("{site}", "{site} (tried)", 1)
    await world.put(text, ANSWER)
    await live.look()
    own, site = prompts.of("town"), world.settings.site("town")
    assert [own.reached_by(site, lang) for lang in ("en", "de-AT", "fi")] == [
        "Write to us.",
        "Schreiben Sie uns.",
        "Write to us.",
    ]
    assert prompts.of("village").reached_by(site, "en") == "Call."
    assert own.prompts["answer"].fingerprint != prompts.filed("town").prompts["answer"].fingerprint
    assert own.prompts["answer"].examples == prompts.filed("town").prompts["answer"].examples
    assert (await world.changes.history(ANSWER)).text == text.strip()


async def test_a_glossary_takes_the_place_of_the_files(world: World) -> None:
    prompts, live = world.process()
    site = world.settings.site("town")
    filed = dict(prompts.of("town").glossary_of(site))
    assert (filed, (await world.changes.history(GLOSSARY)).text) == ({"Bad": {"en": "bath"}}, "Bad: {en: bath}")
    await world.put("Lido: {en: [pool, baths]}", GLOSSARY)
    await live.look()
    assert prompts.of("town").glossary_of(site) == {"Lido": {"en": ("pool", "baths")}}
    assert prompts.of("village").glossary is None
    await world.put("{}", GLOSSARY)
    await live.look()
    assert prompts.of("town").glossary_of(site) == {}
    await world.changes.remove(GLOSSARY, JUST, "ben")
    await live.look()
    assert prompts.of("town").glossary_of(site) == filed


@pytest.mark.parametrize(
    ("place", "text", "complaint"),
    [
        (ANSWER, "x: [", "answer.yaml: cannot be read"),
        (ANSWER, written("answer").replace("{site}", "{town}"), "variable"),
        (ANSWER, f"a: &a x\n---\n{written('answer')}", "anchors, aliases and tags"),
        (ANSWER, written("title"), "id is 'title'"),
        (LEAD_IN, "x" * 2_001, "more than 2,000 characters"),
        (CONTACT, "x" * 2_001, "more than 2,000 characters"),
        (GLOSSARY, "Bad: {en: Pool}\nPool: {en: Bad}", "in a circle"),
    ],
)
async def test_what_is_broken_is_not_kept(world: World, place: Place, text: str, complaint: str) -> None:
    for work in (world.changes.put, world.changes.propose):
        with pytest.raises(BadText, match=complaint):
            await work(place, NewText(text=text), "anna")
    assert world.store.kept == {}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("prompts", "anwser"),
        ("canned", "lead-in"),
        ("canned", "lead-out.en"),
        ("errors", "lead-in.en"),
        ("canned", "lead-in.EN"),
        ("contact", "12"),
        ("glossary", "en"),
        ("contact", "town-hall"),
    ],
)
async def test_what_nobody_says_cannot_be_changed(world: World, kind: TextKind, name: str) -> None:
    with pytest.raises(UnknownText):
        await world.put("x", Place("town", kind, name))


async def test_one_that_does_not_fit_any_more_is_passed_over(
    world: World, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    await world.put("We write:")
    for n, (kind, name, text) in enumerate((("prompts", "answer", "x: ["), ("canned", "gone.en", "Hello."))):
        await world.store.add(
            TextVersion.model_validate(
                {"site": "town", "kind": kind, "name": name, "version": 7, "text": text, "by": "anna", "at": NOON}
            )
        )
        prompts, live = world.process()
        assert await live.look(), n
        assert lead_in(prompts) == "We write:"
        assert prompts.of("town").prompts["answer"] == prompts.filed("town").prompts["answer"]
    told = capsys.readouterr()
    assert "canned/gone.en" in caplog.text + told.out + told.err


async def test_the_second_of_two_editors_is_told(world: World) -> None:
    assert (await world.put("A", over=0)).version == 1
    with pytest.raises(TextChanged, match="version 1 is live, not version 0"):
        await world.put("B", over=0)
    with pytest.raises(TextChanged):
        await world.changes.remove(LEAD_IN, TextChange(over=7), "ben")
    assert (await world.put("A", over=0)).version == 1  # the first request again: its answer was lost
    assert (await world.put("B", over=1)).version == 2
    assert await world.said(LEAD_IN) == "B"


async def test_two_at_the_same_moment_get_a_number_each(world: World) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(world.put(text)) for text in "ABCD"]
    assert sorted(task.result().version for task in tasks) == [1, 2, 3, 4]
    seen = (await world.changes.history(LEAD_IN)).live
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(_told(world, text, seen)) for text in "XY"]
    assert sorted(task.result() for task in both) == ["5", "text-changed"]


async def _told(world: World, text: str, over: int) -> str:
    try:
        return str((await world.put(text, over=over)).version)
    except TextChanged as err:
        return err.code


async def test_nothing_is_overwritten_and_everything_comes_back(world: World) -> None:
    for text in "AB":
        await world.put(text)
    back = await world.changes.restore(LEAD_IN, 1, TextChange(note="B was worse"), "ben")
    assert (back.version, back.text, back.of, back.by) == (3, "A", 1, "ben")
    assert await world.changes.restore(LEAD_IN, 1, JUST, "ben") == back  # the same request again
    with pytest.raises(UnknownText):
        await world.changes.restore(LEAD_IN, 9, JUST, "ben")
    await world.changes.remove(LEAD_IN, JUST, "ben")
    with pytest.raises(UnknownText):
        await world.changes.remove(LEAD_IN, JUST, "ben")
    history = await world.changes.history(LEAD_IN)
    assert (history.text, history.live, history.filed) == ("Our pages say:", 0, "Our pages say:")
    assert [(one.version, one.text) for one in history.versions] == [(4, None), (3, "A"), (2, "B"), (1, "A")]


async def test_steps_back_go_on_to_the_files(world: World) -> None:
    with pytest.raises(NoEarlierText):
        await world.changes.roll_back(LEAD_IN, JUST, "ben")
    for text in "AB":
        await world.put(text)
    await world.changes.restore(LEAD_IN, 1, JUST, "ben")
    said = []
    for _ in range(3):
        await world.changes.roll_back(LEAD_IN, JUST, "ben")
        said.append(await world.said(LEAD_IN))
    assert said == ["B", "A", "Our pages say:"]
    with pytest.raises(NoEarlierText):
        await world.changes.roll_back(LEAD_IN, JUST, "ben")
    await world.put("C")
    assert (await world.changes.roll_back(LEAD_IN, JUST, "ben")).of == 0


async def test_a_candidate_is_not_said_until_it_is_put_to_use(world: World) -> None:
    await world.put("A")
    candidate = await world.changes.propose(LEAD_IN, NewText(text="B"), "ben")
    assert (candidate.version, candidate.candidate) == (2, True)
    assert await world.changes.propose(LEAD_IN, NewText(text="B"), "ben") == candidate
    prompts, live = world.process()
    await live.look()
    assert (lead_in(prompts), (await world.changes.history(LEAD_IN)).live) == ("A", 1)
    await world.changes.restore(LEAD_IN, 2, TextChange(over=1), "ben")
    await live.look()
    assert lead_in(prompts) == "B"
    await world.changes.roll_back(LEAD_IN, JUST, "ben")
    await live.look()
    assert lead_in(prompts) == "A"


async def test_there_is_an_end_to_texts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_changes, "MAX_TEXTS", 1)
    await world.put("A")
    await world.put("B")
    with pytest.raises(TooManyTexts):
        await world.put("Call us.", CONTACT)


async def test_while_the_store_is_away_what_was_known_is_said_on(world: World) -> None:
    await world.put("A")
    prompts, live = world.process()
    await live.look()
    world.store.error = Retryable("away")
    assert not await live.look()
    assert lead_in(prompts) == "A"
    late, other = world.process()
    await other.start()  # a worker that starts meanwhile says what the files say, until the store is there
    assert lead_in(late) == "Our pages say:"
    await other.aclose()
    with pytest.raises(Retryable):
        await world.put("B")
    world.store.error = None
    assert await other.look()
    assert lead_in(late) == "A"


async def test_it_looks_again_by_itself_whatever_happens(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_texts, "REFRESH", 0.01)
    prompts, live = world.process()
    world.store.error = RuntimeError("nobody foresaw this")
    await live.start()
    try:
        await asyncio.sleep(0.05)
        world.store.error = None
        await world.put("A")
        await until(lambda: lead_in(prompts) == "A")
    finally:
        await live.aclose()
