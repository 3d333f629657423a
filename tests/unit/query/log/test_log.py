"""The log stage: outcomes are kept, and go when their time is over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest

from adapters.elastic.client import ElasticsearchDown
from pipelines.conversations.conversations import VersionedConversation
from pipelines.conversations.turns import ConversationOwner, begun
from pipelines.operate.audit_log import AuditLog
from pipelines.query.live.site_privacy import GRACE, SitePrivacy, written_rules
from pipelines.query.log.handler import log_handler
from pipelines.query.log.retention import Retention
from pipelines.query.masks import Masks
from pipelines.runtime.record import Record
from pipelines.runtime.settings import RetentionSettings
from schemas.conversation import Feedback
from schemas.outcome import DoubtedSentence, LoggedQuestion, Outcome, OutcomeEvent, Rated
from schemas.privacy import PrivacyRules
from schemas.query import ModelCall, PromptMessage
from schemas.text_version import TextKind, TextVersion
from tests.asking import NOON, question
from tests.fakes.conversations import FakeConversations
from tests.fakes.outcomes import FakeOutcomes
from tests.fakes.stores import FakeAuditLog, FakeHandovers, FakeRuns, FakeTextStore
from tests.published_runs import run
from wiring.settings import Settings, SiteSettings

SITES = {
    "town": SiteSettings(),
    "village": SiteSettings(retention=RetentionSettings(conversations=1, outcomes=2)),
}


def outcome(site: str, asked_at: datetime = NOON) -> OutcomeEvent:
    call = ModelCall(step="answer", messages=(PromptMessage(role="user", text="?"),))
    doubted = (DoubtedSentence(sentence="At 8.", kind="figure", said="8"),)
    said = Outcome(
        asked_at=asked_at, asked_in="en", lang="en", question="?", became="refused", calls=(call,), doubted=doubted
    )
    return OutcomeEvent(site=site, request_id="request-0001", conversation="c1", event=said)


async def kept() -> tuple[FakeOutcomes, FakeConversations]:
    outcomes, conversations = FakeOutcomes(), FakeConversations()
    for site in SITES:
        await outcomes.put(outcome(site))
        asked = question().model_copy(update={"site": site})
        owner = ConversationOwner(site, "visitor:v1")
        await conversations.put(VersionedConversation(begun(owner, asked, "3.4.1")))
    return outcomes, conversations


@pytest.mark.parametrize(
    ("days", "questions", "talks"),
    [
        (0.5, ["town", "village"], ["town", "village"]),
        (1.5, ["town", "village"], ["town"]),
        (2.5, ["town"], ["town"]),
        (89, ["town"], ["town"]),
        (91, ["town"], []),
        (364, ["town"], []),
        (366, [], []),
    ],
)
async def test_each_site_keeps_what_was_said_for_its_own_days(
    days: float, questions: list[str], talks: list[str]
) -> None:
    outcomes, conversations = await kept()

    async def moved() -> datetime:
        return NOON + timedelta(days=days)

    runs = FakeRuns()
    for site in SITES:
        await runs.put(run(site=site))
    await Retention(
        SITES, outcomes, conversations, runs, FakeHandovers(), moved, FakeAuditLog().expire, 365, FakeTextStore()
    ).sweep()
    assert sorted(site for site, _ in outcomes.kept) == questions
    assert sorted(site for site, _ in runs.kept) == questions
    assert sorted(owner.site for owner, _ in conversations.kept) == talks


async def test_a_thousand_sites_are_looked_through_at_once() -> None:
    asked: Counter[str] = Counter()

    class Counted(FakeTextStore):
        async def versions(self, site: str, kind: TextKind, name: str) -> list[TextVersion]:
            asked[f"versions of {site}"] += 1
            return await super().versions(site, kind, name)

    class CountedOutcomes(FakeOutcomes):
        async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
            asked[f"outcomes of {len(before)}"] += 1
            return await super().expire(before)

    async def moved() -> datetime:
        return NOON

    sites, texts = {f"site-{i}": SITES["town"] for i in range(999)} | {"town": SITES["town"]}, Counted()
    await texts.add(changed(1, {}))
    retention = Retention(
        sites,
        CountedOutcomes(),
        FakeConversations(),
        FakeRuns(),
        FakeHandovers(),
        moved,
        FakeAuditLog().expire,
        365,
        texts,
    )
    await retention.sweep()
    assert asked == {"versions of town": 1, "outcomes of 1000": 1}


async def test_the_audit_log_is_kept_for_its_own_days() -> None:
    acts = FakeAuditLog()
    log = AuditLog(acts, lambda: NOON)
    async with log.act("admin", "http", "keys.revoke", target="webmaster"):
        pass

    async def sweep(days: float) -> int:
        async def moved() -> datetime:
            return NOON + timedelta(days=days)

        await Retention(
            {},
            FakeOutcomes(),
            FakeConversations(),
            FakeRuns(),
            FakeHandovers(),
            moved,
            acts.expire,
            30,
            FakeTextStore(),
        ).sweep()
        return len(acts.kept)

    assert [await sweep(days) for days in (29.9, 30.1)] == [1, 0]


async def test_a_sweep_that_did_not_get_through_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.query.log.retention.PAUSE", 0.0)
    outcomes, conversations = await kept()
    outcomes.error = ElasticsearchDown("away")
    asked = asyncio.Event()

    async def now() -> datetime:
        asked.set()
        return NOON + timedelta(days=400)

    retention = Retention(
        SITES, outcomes, conversations, FakeRuns(), FakeHandovers(), now, FakeAuditLog().expire, 365, FakeTextStore()
    )
    await retention.start()
    async with asyncio.timeout(5):
        await asked.wait()
        outcomes.error = None
        while outcomes.kept or conversations.kept:  # noqa: ASYNC110  # it tells nobody
            await asyncio.sleep(0)
    await retention.aclose()
    assert [task for task in asyncio.all_tasks() if task.get_name() == "retention"] == []


async def test_an_outcome_becomes_a_document() -> None:
    store = FakeOutcomes()
    value = outcome("town").encode()
    await log_handler(store, lambda: Masks(SITES))(Record("query.outcomes", 0, 1, b"c", value), None)  # type: ignore[arg-type]
    logged = await store.get("town", "request-0001")
    assert logged is not None
    assert logged.outcome.became == "refused"


async def logged(rules: dict[str, object], *events: OutcomeEvent) -> LoggedQuestion | None:
    """What the log has of a question whose site keeps something else by now."""
    store, privacy = FakeOutcomes(), SitePrivacy(SITES)
    privacy.take([changed(1, rules)])
    handle = log_handler(store, lambda: Masks(SITES, privacy))
    for event in events:
        await handle(Record("query.outcomes", 0, 1, b"c", event.encode()), None)  # type: ignore[arg-type]
    return await store.get("town", "request-0001")


async def test_what_waited_is_kept_as_its_site_wants_it_by_now() -> None:
    feedback = Feedback(rating="down", comment="Call me.", at=NOON)
    rated = outcome("town").model_copy(update={"event": Rated(feedback=feedback)})
    found = await logged({"log_questions": "on"}, outcome("town"), rated)
    assert found is not None
    assert (found.outcome.question, found.outcome.calls, found.outcome.doubted) == ("?", (), ())
    found = await logged({"log_questions": "on", "log_prompts": True}, outcome("town"), rated)
    assert found is not None
    assert (found.outcome.question, found.feedback and found.feedback.comment) == ("?", "Call me.")
    assert (len(found.outcome.calls), len(found.outcome.doubted)) == (1, 1)
    found = await logged({"log_questions": "without-text", "log_prompts": True}, outcome("town"), rated)
    assert found is not None
    assert (found.outcome.question, found.feedback and found.feedback.comment) == (None, None)
    assert (found.outcome.calls, found.outcome.doubted) == ((), ())
    assert found.feedback is not None
    assert found.feedback.rating == "down"
    assert await logged({"log_questions": "off"}, outcome("town"), rated) is None


async def test_of_a_site_that_is_new_to_this_worker_nothing_is_lost() -> None:
    store = FakeOutcomes()
    await log_handler(store, lambda: Masks({}))(Record("query.outcomes", 0, 1, b"c", outcome("town").encode()), None)  # type: ignore[arg-type]
    found = await store.get("town", "request-0001")
    assert found is not None
    assert found.outcome.question == "?"


async def test_while_nobody_knows_what_is_kept_nothing_is_logged() -> None:
    def unknown() -> Masks:
        raise ElasticsearchDown("away")

    store = FakeOutcomes()
    with pytest.raises(ElasticsearchDown):
        await log_handler(store, unknown)(Record("query.outcomes", 0, 1, b"c", outcome("town").encode()), None)  # type: ignore[arg-type]
    assert store.kept == {}


@pytest.mark.parametrize(
    ("days", "left"),
    [(7 - 0.01, True), (7 + 0.01, False)],
    ids=["not within the hour in which it can be undone", "after it"],
)
async def test_what_is_kept_for_less_by_now_goes_an_hour_later(days: float, left: bool) -> None:
    """It was changed to two days when a week had passed but an hour."""
    outcomes, conversations = await kept()
    texts = FakeTextStore()
    at = NOON + timedelta(days=7) - GRACE
    await texts.add(changed(1, {"conversations": 2, "outcomes": 2}, at=at))

    async def moved() -> datetime:
        return NOON + timedelta(days=days)

    sites = {"town": SITES["town"]}
    await Retention(
        sites, outcomes, conversations, FakeRuns(), FakeHandovers(), moved, FakeAuditLog().expire, 365, texts
    ).sweep()
    assert (("town", "request-0001") in outcomes.kept) is left
    assert any(owner.site == "town" for owner, _ in conversations.kept) is left


async def test_where_it_cannot_be_read_what_is_kept_nothing_is_deleted() -> None:
    outcomes, conversations = await kept()

    async def moved() -> datetime:
        return NOON + timedelta(days=4_000)

    async def sweep(texts: FakeTextStore) -> None:
        await Retention(
            SITES, outcomes, conversations, FakeRuns(), FakeHandovers(), moved, FakeAuditLog().expire, 365, texts
        ).sweep()

    away = FakeTextStore()
    away.error = ElasticsearchDown("away")
    with pytest.raises(ElasticsearchDown):
        await sweep(away)
    of_a_later_release = FakeTextStore()
    for site in SITES:
        await of_a_later_release.add(
            changed(1, {}).model_copy(update={"site": site, "text": '{"log_questions": "weekends"}'})
        )
    await sweep(of_a_later_release)
    assert len(outcomes.kept) == len(conversations.kept) == len(SITES)


def changed(number: int, rules: dict[str, object], at: datetime = NOON) -> TextVersion:
    text = written_rules(
        PrivacyRules.model_validate({"log_questions": "on", "conversations": 90, "outcomes": 365} | rules)
    )
    return TextVersion(site="town", kind="privacy", name="rules", version=number, text=text, by="anna", at=at)


def test_the_defaults_are_a_quarter_and_a_year() -> None:
    site = Settings().sites["demo"]
    assert (site.retention.conversations, site.retention.outcomes, site.log_questions) == (90, 365, "on")
