"""Judge and raters over HTTP and in the console."""

from __future__ import annotations

import httpx
import pytest

from gateway.fakes import FakePorts
from schemas.label import NewLabel
from schemas.outcome import Verdict, VerdictEvent
from tests.asking import NOON
from tests.console import CARD, SAUNA, console_ports, fill
from tests.edge import VIEW_TOWN, assert_problem, bearer
from tests.unit.gateway.test_console import page_of, said, sign_in

ROUTE = "/v1/admin/sites/town/judge-agreement"
SCREEN = "/console/evaluations/judge"


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


async def judged(fakes: FakePorts, id: str, faithfulness: float) -> None:
    verdict = Verdict(judged_at=NOON, judge="<b>small</b>", faithfulness=faithfulness, context_relevancy=1.0)
    event = VerdictEvent(site="town", request_id=id, conversation="c", asked_at=NOON, verdict=verdict)
    await fakes.outcomes.put_verdict(event)


async def test_where_nothing_is_judged_it_says_so(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    told = (await stranger.get(ROUTE, headers=bearer(VIEW_TOWN))).raise_for_status().json()
    assert (told["judge"], told["groups"]) == (None, [])
    await sign_in(stranger, VIEW_TOWN)
    [empty] = said(page_of(await stranger.get(f"{SCREEN}?site=town")), ".empty")
    assert "There is no judge." in empty
    assert "judging.share" in empty


async def test_judge_and_raters_stand_side_by_side(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    await judged(fakes, CARD, 1.0)
    await judged(fakes, SAUNA, 0.5)
    for rater in ("ada", "bo"):
        await fakes.ports.labelling.put("town", CARD, NewLabel(mark="right"), rater)
        await fakes.ports.labelling.put("town", SAUNA, NewLabel(mark="wrong"), rater)
    told = (await stranger.get(ROUTE, headers=bearer(VIEW_TOWN))).raise_for_status().json()
    whole = told["groups"][0]
    assert (told["judge"], told["judged"], whole["questions"]) == ("<b>small</b>", 2, 2)
    assert (whole["true_positives"]["value"], whole["true_negatives"]["value"]) == (1, 1)
    other = (await stranger.get(ROUTE, params={"figure": "context relevancy"}, headers=bearer(VIEW_TOWN))).json()
    assert other["groups"][0]["true_negatives"]["value"] == 0
    strict = (await stranger.get(ROUTE, params={"bar": 0.4}, headers=bearer(VIEW_TOWN))).json()
    assert strict["groups"][0]["judge_right"]["value"] == 1
    for wrong in ({"figure": "luck"}, {"bar": 2}):
        assert_problem(await stranger.get(ROUTE, params=wrong, headers=bearer(VIEW_TOWN)), 422, "invalid")
    await sign_in(stranger, VIEW_TOWN)
    page = page_of(await stranger.get(f"{SCREEN}?site=town"))
    assert said(page, ".badge") == ["too few labels"]
    assert "<b>small</b>" in said(page, "dl.facts code")
    assert len(page.select("table")) == 2
    listed = page_of(await stranger.get("/console/evaluations?site=town"))
    assert f"{SCREEN}?site=town" in [str(each["href"]) for each in listed.select("a")]
