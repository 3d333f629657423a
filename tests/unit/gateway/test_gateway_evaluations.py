"""Published runs over HTTP and in the console."""

from __future__ import annotations

import httpx
import pytest

from gateway.console.evaluations import Rect, shares
from tests.console import EVIL, console_ports
from tests.edge import EDIT_TOWN, VIEW_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts
from tests.published_runs import AFTER, new_run, run
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

RUNS = "/v1/admin/sites/town/evaluations"
ALL = "/v1/admin/evaluations"
SCREEN = "/console/evaluations"
FAQ = run(2, fingerprint="0" * 12, dataset="faq").id


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


async def publish(client: httpx.AsyncClient, key: str = EDIT_TOWN, days: float = 0, **more: object) -> httpx.Response:
    content = new_run(days, **more).model_dump_json()  # type: ignore[arg-type]
    return await client.post(RUNS, content=content, headers=bearer(key) | {"Content-Type": "application/json"})


async def test_a_run_is_published_read_and_taken_away(stranger: httpx.AsyncClient, client: httpx.AsyncClient) -> None:
    done = await publish(stranger)
    assert done.status_code == 201
    id = done.json()["id"]
    assert (done.json()["published_by"], "results" in done.json()) == ("editor", False)
    assert (await publish(stranger)).json()["id"] == id
    other = (await publish(stranger, days=1, dataset="other")).json()["id"]
    assert [each["id"] for each in (await client.get(RUNS)).json()["runs"]] == [other, id]
    [listed] = (await client.get(RUNS, params={"dataset": "town"})).json()["runs"]
    assert (listed["id"], listed["published_by"]) == (id, "editor")
    whole = (await stranger.get(f"{RUNS}/{id}", headers=bearer(VIEW_TOWN))).json()
    assert (len(whole["results"]), whole["published_by"]) == (3, "")
    assert (await client.delete(f"{RUNS}/{id}")).status_code == 204
    for method in ("GET", "DELETE"):
        assert_problem(await client.request(method, f"{RUNS}/{id}"), 404, "unknown-run")


async def test_runs_are_found_without_their_site_in_the_path(
    stranger: httpx.AsyncClient, client: httpx.AsyncClient
) -> None:
    content, kind = new_run(0).model_dump_json(), {"Content-Type": "application/json"}
    own = (await stranger.post(ALL, content=content, headers=bearer(EDIT_TOWN) | kind)).json()
    assert_problem(await client.post(ALL, content=content, headers=kind), 422, "invalid")
    others = (await client.post(f"{ALL}?site=other", content=new_run(1).model_dump_json(), headers=kind)).json()
    assert (own["site"], others["site"]) == ("town", "other")
    listed = [each["id"] for each in (await client.get(ALL)).json()["runs"]]
    assert listed == [others["id"], own["id"]]
    assert [each["id"] for each in (await client.get(ALL, params={"site": "town"})).json()["runs"]] == [own["id"]]
    as_seen = (await stranger.get(ALL, headers=bearer(VIEW_TOWN))).json()["runs"]
    assert [(each["id"], each["published_by"]) for each in as_seen] == [(own["id"], "")]
    assert (await client.get(f"{ALL}/{own['id']}")).json() == (await client.get(f"{RUNS}/{own['id']}")).json()
    for method in ("GET", "DELETE"):
        hidden = await stranger.request(method, f"{ALL}/{others['id']}", headers=bearer(EDIT_TOWN))
        assert_problem(hidden, 404, "unknown-run")
        named = await stranger.request(method, f"{ALL}/{others['id']}?site=other", headers=bearer(EDIT_TOWN))
        assert_problem(named, 403, "forbidden")
    assert_problem(await client.get(f"{ALL}?site=nowhere"), 404, "unknown-site")
    assert_problem(await stranger.delete(f"{ALL}/{own['id']}", headers=bearer(VIEW_TOWN)), 403, "forbidden")
    assert (await stranger.delete(f"{ALL}/{own['id']}", headers=bearer(EDIT_TOWN))).status_code == 204
    assert_problem(await client.get(f"{ALL}/{own['id']}"), 404, "unknown-run")


@pytest.mark.parametrize(
    "more",
    [{"results": []}, {"fingerprint": "x"}, {"asked": 0}, {"groups": {"all": {"right": {"mean": 2}}}}, {"x": 1}],
    ids=["no-case", "fingerprint", "nothing-asked", "figure", "unknown"],
)
async def test_what_is_no_run_is_refused(client: httpx.AsyncClient, more: dict[str, object]) -> None:
    assert_problem(await client.post(RUNS, json=new_run().model_dump(mode="json") | more), 422, "invalid")


async def test_runs_are_bounded(client: httpx.AsyncClient) -> None:
    many = [{"case": f"c{n}", "question": "?"} for n in range(2_001)]
    assert_problem(await client.post(RUNS, json=new_run().model_dump(mode="json") | {"results": many}), 422, "invalid")


@pytest.fixture
async def reader(stranger: httpx.AsyncClient, fakes: FakePorts) -> httpx.AsyncClient:
    for each in (run(0), run(1, AFTER, note=f"small chunks {EVIL}"), run(2, fingerprint="0" * 12, dataset="faq")):
        await fakes.runs.put(each)
    await sign_in(stranger, VIEW_TOWN)
    return stranger


async def test_the_runs_of_a_dataset_with_their_trend(reader: httpx.AsyncClient) -> None:
    page = page_of(await reader.get(SCREEN))
    assert said(page, "section h2") == ["faq", "town", "Publish a run"]
    assert len(page.select(".chart rect")) == 4  # two bars with an interval each; of one run there is no trend
    assert [str(each["value"]) for each in page.select("input[checked]")] == [run(1).id, run(0).id]
    assert f"small chunks {EVIL}" in page.get_text()
    assert said(page_of(await reader.get(f"{SCREEN}?dataset=faq")), "section h2") == ["faq", "Publish a run"]
    assert "admin" not in " ".join(said(page, "table"))


async def test_a_run_shows_its_failures_first(reader: httpx.AsyncClient) -> None:
    page = page_of(await reader.get(f"{SCREEN}/{run(0).id}"))
    assert said(page, ".rows .question") == ["What of three?", "What of one?", "What of two?"]
    assert said(page, ".rows .badge") == ["not right", "right", "right"]
    assert [str(each["value"]) for each in page.select("#before option")] == [run(1).id]
    assert not page.select("form[method=post].keep")


async def test_two_runs_stand_side_by_side(reader: httpx.AsyncClient) -> None:
    page = page_of(await reader.get(f"{SCREEN}/compare?before={run(0).id}&after={run(1).id}"))
    assert said(page, ".rows .question") == ["What of two?", "What of three?", "What of one?"]
    assert said(page, "del") == ["nine", "a"]
    assert said(page, "ins") == ["ten", "No.", "each"]
    assert said(page, "tbody th") == ["right", "refusal"]
    other = page_of(await reader.get(f"{SCREEN}/compare?before={run(0).id}&after={FAQ}"))
    assert "The two runs asked different cases." in other.get_text()
    assert (await reader.get(f"{SCREEN}/compare?before={run(0).id}&after={'f' * 16}")).status_code == 404


async def test_an_editor_takes_a_run_away(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fakes.runs.put(run(0))
    await sign_in(stranger, EDIT_TOWN)
    page = page_of(await stranger.get(f"{SCREEN}/{run(0).id}"))
    form = one(page, "form[method=post].keep")
    token = str(one(form, "[name=token]")["value"])
    assert (await stranger.post(str(form["action"]), data={"token": token}, headers=OURS)).status_code == 422
    done = await stranger.post(str(form["action"]), data={"token": token, "sure": "yes"}, headers=OURS)
    assert done.headers["location"] == f"{SCREEN}?site=town&done=removed"
    assert fakes.runs.kept == {}
    assert [(entry.action, entry.via) for entry in fakes.audit_log.kept][-1] == ("evaluations.remove", "console")
    assert said(page_of(await stranger.get(done.headers["location"])), "[role=status]") == ["✓ The run is deleted."]


def test_a_share_is_a_bar_with_its_interval() -> None:
    assert shares([(0.5, 0.25, 0.75)]) == [
        Rect("answered", 105.0, 80.0, 490.0, 80.0),
        Rect("interval", 348.5, 40.0, 3, 80.0),
    ]
    assert shares([]) == []
