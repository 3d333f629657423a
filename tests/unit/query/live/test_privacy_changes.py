"""What a site keeps of its visitors: changed while the system runs, undone, and never deleting what nobody meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipelines.query.live.live_texts import LiveTexts
from pipelines.query.live.privacy_changes import PrivacyChanges, WouldDelete
from pipelines.query.live.site_privacy import SitePrivacy, deleted_by, filed_rules
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.live.text_changes import BadText, NoEarlierText, Place, TextChanged, TextChanges, UnknownText
from pipelines.query.masks import Masks
from schemas.privacy import MAX_DAYS, PrivacyChange, PrivacyOrder, PrivacyRules, PrivacyState
from schemas.text_version import NewText, TextVersion
from tests.fakes.stores import FakeTextStore
from wiring.settings import Settings, SiteSettings

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
FILED = PrivacyRules(log_questions="on", conversations=90, outcomes=365)
JUST = PrivacyChange()
SURE = PrivacyChange(sure=True)


class World:
    """A site, who changes what it keeps, and a process that goes by it."""

    def __init__(self) -> None:
        # No such folder: a wrong file of prompts must keep nobody from changing this.
        town = SiteSettings.model_validate({"prompts": "nowhere"})
        self.settings = Settings(sites={"town": town, "village": SiteSettings(log_questions="without-text")})
        self.store = FakeTextStore()
        self.now = NOON
        texts = TextChanges(self.store, self.settings, lambda: self.now)
        self.changes = PrivacyChanges(texts, self.settings, lambda: self.now)
        self.privacy = SitePrivacy(self.settings.sites)
        self.live = LiveTexts(self.store, self.privacy.take, SitePrompts().take)

    async def put(self, **more: object) -> PrivacyState:
        return await self.changes.put("town", PrivacyOrder.model_validate(more), "anna")

    async def rules(self) -> tuple[str, int, int]:
        """As a worker knows them."""
        assert await self.live.look()
        found = self.privacy.of("town")
        assert found is not None
        return (found.log_questions, found.conversations, found.outcomes)


@pytest.fixture
def world() -> World:
    return World()


async def test_what_is_changed_counts_until_it_is_taken_back(world: World) -> None:
    assert await world.rules() == ("on", 90, 365)
    state = await world.put(log_questions="off", note="asked for by the council")
    assert (state.live, state.rules.log_questions, state.filed) == (1, "off", FILED)
    assert (state.versions[0].by, state.versions[0].note) == ("anna", "asked for by the council")
    assert await world.rules() == ("off", 90, 365)
    assert not Masks(world.settings.sites, world.privacy).logs("town")
    assert Masks(world.settings.sites, world.privacy).logs("village")
    state = await world.put(outcomes=400)  # what is not given stays
    assert await world.rules() == ("off", 90, 400)
    state = await world.changes.remove("town", SURE, "ben")
    assert (state.live, await world.rules()) == (0, ("on", 90, 365))
    assert [one.rules is None for one in state.versions] == [True, False, False]


async def test_words_are_kept_as_the_site_wants_it_by_now(world: World) -> None:
    masks = Masks(world.settings.sites, world.privacy)
    assert masks.kept("town", "Where is the pool?") == "Where is the pool?"
    await world.put(log_questions="without-text")
    assert await world.live.look()
    assert (masks.logs("town"), masks.kept("town", "Where is the pool?")) == (True, None)


async def test_who_keeps_less_is_asked_and_told_what_goes(world: World) -> None:
    with pytest.raises(WouldDelete) as refused:
        await world.put(conversations=30)
    assert "conversations whose last question is from before 2026-04-04 12:00 UTC" in str(refused.value)
    assert "not before 2026-05-04 13:00 UTC" in str(refused.value)
    assert "logged questions" not in str(refused.value)
    with pytest.raises(WouldDelete, match="logged questions and runs from before 2026-05-03 12:00 UTC"):
        await world.put(outcomes=1)
    assert world.store.kept == {}
    await world.put(conversations=30, sure=True)
    await world.put(conversations=60)  # more again: nobody is asked
    with pytest.raises(WouldDelete):
        await world.changes.restore("town", 1, JUST, "ben")
    await world.put(conversations=200)
    with pytest.raises(WouldDelete):
        await world.changes.remove("town", JUST, "ben")
    with pytest.raises(WouldDelete):
        await world.changes.roll_back("town", JUST, "ben")


async def test_for_an_hour_what_was_kept_before_is_not_deleted(world: World) -> None:
    state = await world.put(conversations=30, outcomes=30, sure=True)
    assert (state.rules.conversations, state.deleted_by) == (30, FILED)
    world.now += timedelta(minutes=59)
    state = await world.changes.roll_back("town", JUST, "ben")  # in time
    assert (state.rules, state.deleted_by) == (FILED, FILED)
    await world.put(conversations=30, sure=True)
    world.now += timedelta(minutes=61)
    state = await world.changes.state("town")
    assert (state.deleted_by and state.deleted_by.conversations) == 30


async def test_steps_back_and_versions(world: World) -> None:
    with pytest.raises(NoEarlierText):
        await world.changes.roll_back("town", SURE, "ben")
    with pytest.raises(UnknownText):
        await world.changes.remove("town", SURE, "ben")
    await world.put(log_questions="off")
    await world.put(log_questions="without-text")
    assert (await world.changes.roll_back("town", JUST, "ben")).rules.log_questions == "off"
    assert (await world.changes.roll_back("town", JUST, "ben")).rules.log_questions == "on"
    assert (await world.changes.restore("town", 2, JUST, "ben")).rules.log_questions == "without-text"
    with pytest.raises(UnknownText):
        await world.changes.restore("town", 99, JUST, "ben")


async def test_prompts_are_logged_while_the_system_runs(world: World) -> None:
    masks = Masks(world.settings.sites, world.privacy)
    await world.put(outcomes=400)
    await world.rules()
    assert not masks.logs_prompts("town")
    state = await world.put(log_prompts=True, note="wrong fees")
    assert (state.rules.log_prompts, state.rules.outcomes, state.versions[0].note) == (True, 400, "wrong fees")
    await world.rules()
    assert masks.logs_prompts("town")
    await world.put(log_questions="without-text")
    await world.rules()
    assert not masks.logs_prompts("town")
    await world.changes.roll_back("town", JUST, "ben")
    await world.changes.roll_back("town", JUST, "ben")
    await world.rules()
    assert not masks.logs_prompts("town")


async def test_what_an_earlier_release_wrote_logs_prompts_as_the_file_says(world: World) -> None:
    version = {"site": "town", "kind": "privacy", "name": "rules", "version": 1, "by": "anna", "at": NOON}
    text = '{"log_questions": "on", "conversations": 30, "outcomes": 30}'
    await world.store.add(TextVersion.model_validate(version | {"text": text}))
    for filed in (True, False):
        town = SiteSettings(log_prompts=filed)
        privacy = SitePrivacy({"town": town})
        assert await LiveTexts(world.store, privacy.take).look()
        assert privacy.of("town") == PrivacyRules(log_questions="on", conversations=30, outcomes=30, log_prompts=filed)
        assert Masks({"town": town}, privacy).logs_prompts("town") is filed


async def test_the_second_of_two_is_told(world: World) -> None:
    await world.put(log_questions="off", over=0)
    with pytest.raises(TextChanged):
        await world.put(log_questions="without-text", over=0)


async def test_what_is_no_rule_is_not_kept_and_what_a_later_release_wrote_deletes_nothing(world: World) -> None:
    texts = TextChanges(world.store, world.settings, lambda: NOON)
    for text in ("{}", '{"log_questions": "on", "conversations": 0, "outcomes": 1}', "x"):
        with pytest.raises(BadText):
            await texts.put(Place("town", "privacy", "rules"), NewText(text=text), "anna")
    with pytest.raises(UnknownText):
        await texts.history(Place("town", "privacy", "other"))
    version = {"site": "town", "kind": "privacy", "name": "rules", "version": 1, "by": "anna", "at": NOON}
    later = TextVersion.model_validate(version | {"text": '{"log_questions": "weekends"}'})
    await world.store.add(later)
    assert await world.rules() == ("on", 90, 365)
    assert (await world.changes.state("town")).deleted_by is None
    assert deleted_by([later], FILED, NOON) is None


def test_days_beyond_counting_are_cut() -> None:
    site = SiteSettings.model_validate({"retention": {"conversations": 10_000_000, "outcomes": 1}})
    assert filed_rules(site) == PrivacyRules(log_questions="on", conversations=MAX_DAYS, outcomes=1)
