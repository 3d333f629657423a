"""The console's pages of labels over the gateway's fakes."""

from __future__ import annotations

import json

import httpx
import pytest

from gateway.console import labels as module
from gateway.fakes import FakePorts
from schemas.label import NewLabel
from tests.console import CARD, EVIL, SAUNA, console_ports, fill
from tests.edge import EDIT_TOWN, VIEW_TOWN
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

LIST = "/console/labels"
ONE = f"{LIST}/{CARD}"


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


@pytest.fixture
async def rater(stranger: httpx.AsyncClient, fakes: FakePorts) -> httpx.AsyncClient:
    await fill(fakes)
    assert (await sign_in(stranger, EDIT_TOWN)).status_code == 303
    return stranger


async def send(client: httpx.AsyncClient, path: str, **form: str) -> httpx.Response:
    token = str(one(page_of(await client.get(LIST)), ".who input[name=token]")["value"])
    return await client.post(path, data={"token": token} | form, headers=OURS)


async def other_says(fakes: FakePorts, mark: str, id: str = CARD, rater: str = "bo") -> None:
    new = NewLabel.model_validate({"mark": mark, "why": f"Because. {EVIL}"})
    await fakes.ports.labelling.put("town", id, new, rater)


async def test_a_rater_goes_from_one_question_to_the_next(rater: httpx.AsyncClient, fakes: FakePorts) -> None:
    page = page_of(await rater.get(LIST))
    assert said(page, ".tiles dd") == ["2", "0", "0", "2"]
    first = await rater.get(str(one(page, "a.go")["href"]))
    assert first.headers["location"] == f"{LIST}/{SAUNA}?site=town"  # it was disliked
    form = page_of(await rater.get(first.headers["location"]))
    assert "There is one!" not in form.get_text()  # what its visitor says would sway the rater
    assert [str(each["value"]) for each in form.select("input[name=mark]")] == [
        "right",
        "partly",
        "wrong",
        "unanswerable",
    ]
    skip = next(str(each["href"]) for each in form.select("form.label a"))
    assert (await rater.get(skip)).headers["location"] == f"{ONE}?site=town"
    kept = await send(rater, f"{LIST}/{SAUNA}?site=town", mark="wrong", why=" It has one.\r\nSince May. ", page1="pool")
    assert kept.headers["location"] == f"{LIST}/next?site=town&after={SAUNA}&done=kept"
    following = await rater.get(kept.headers["location"])
    assert following.headers["location"] == f"{ONE}?site=town&done=kept"
    assert said(page_of(await rater.get(following.headers["location"])), "[role=status]") == [
        "✓ Kept. Here is the next one."
    ]
    label = (await fakes.ports.labelling.get("town", SAUNA)).of("editor")
    assert label is not None
    assert (label.mark, label.why, label.pages) == ("wrong", "It has one.\nSince May.", ("pool",))
    await send(rater, ONE, mark="unanswerable", better="Eighteen euros.", page0="library")
    label = (await fakes.ports.labelling.get("town", CARD)).of("editor")
    assert label is not None
    assert (label.mark, label.better, label.pages) == ("unanswerable", "", ())
    over = await rater.get(f"{LIST}/next?site=town&after={CARD}&done=kept")
    assert over.headers["location"] == f"{LIST}?site=town&done=all"
    entries = [(entry.who, entry.via, entry.action, entry.target) for entry in fakes.audit_log.kept]
    assert entries == [("editor", "console", "labels.put", SAUNA), ("editor", "console", "labels.put", CARD)]


async def test_ones_own_label_is_changed_and_the_others_is_hidden(rater: httpx.AsyncClient, fakes: FakePorts) -> None:
    await send(rater, ONE, mark="partly", why="No price for children.", page0="fees-of-2026", page1="library")
    page = page_of(await rater.get(ONE))
    assert str(one(page, "input[name=mark][checked]")["value"]) == "partly"
    assert one(page, "#why").get_text() == "No price for children."
    assert [str(each["value"]) for each in page.select("[name^=page]") if each.has_attr("checked")] == ["library"]
    assert str(one(page, "#page0")["value"]) == "fees-of-2026"
    await other_says(fakes, "right", SAUNA)
    hidden = page_of(await rater.get(f"{LIST}/{SAUNA}"))
    assert "Because." not in hidden.get_text()
    assert "Somebody else has labelled this question." in hidden.get_text()
    assert "another’s label, not shown yet" in page_of(await rater.get(LIST)).get_text()


async def test_two_that_differ_stand_side_by_side_and_are_settled(rater: httpx.AsyncClient, fakes: FakePorts) -> None:
    await send(rater, ONE, mark="partly", better="18 euros.")
    await other_says(fakes, "wrong")
    page = page_of(await rater.get(ONE))
    heads = said(page, ".columns h2")
    assert heads[0] == "you partly right"
    assert heads[1].startswith("rater-")
    assert heads[1].endswith(" wrong")
    assert EVIL in one(page, ".columns").get_text()
    assert not page.select("script")
    assert str(one(page, "form.label")["action"]) == f"{ONE}/settle?site=town"
    assert (await send(rater, ONE, mark="right")).status_code == 409
    listed = page_of(await rater.get(f"{LIST}?state=disagreed"))
    assert said(listed, ".rows .question") == ["What does a library card cost for adults?"]
    assert said(listed, "tbody th") == [f"{heads[1].removesuffix(' wrong')}, editor"] * 2
    done = await send(rater, f"{ONE}/settle", mark="wrong", better="18 euros.")
    assert done.headers["location"] == f"{LIST}?site=town&state=disagreed&done=settled"
    page = page_of(await rater.get(ONE))
    assert "Settled by you wrong" in said(page, "main > .card h2")
    lines = (await rater.get(f"{LIST}?format=ndjson")).text.splitlines()
    assert [(json.loads(line)["mark"], json.loads(line)["reference"]) for line in lines] == [("wrong", "18 euros.")]


@pytest.mark.parametrize("path", [ONE, f"{ONE}/settle"])
async def test_what_was_typed_is_not_lost(rater: httpx.AsyncClient, fakes: FakePorts, path: str) -> None:
    if path != ONE:
        await other_says(fakes, "wrong")
        await other_says(fakes, "right", rater="eve")
    page = page_of(await send(rater, path, mark="", why="Twelve euros.", page0="fees-of-2026"), 422)
    assert [each.partition(":")[0] for each in said(page, "[role=alert] li")] == ["mark"]
    assert one(page, "#why").get_text() == "Twelve euros."
    assert str(one(page, "#page0")["value"]) == "fees-of-2026"


async def test_a_reader_looks_and_says_nothing(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    await other_says(fakes, "right")
    await sign_in(stranger, VIEW_TOWN)
    page = page_of(await stranger.get(LIST))
    assert not page.select("a.go")
    assert said(page, ".rows .question") == ["What does a library card cost for adults?"]
    page = page_of(await stranger.get(ONE))
    assert not page.select("form.label")
    assert "Because." not in page.get_text()
    await other_says(fakes, "wrong", rater="eve")
    assert "Because." in page_of(await stranger.get(ONE)).get_text()
    token = str(one(page, ".who input[name=token]")["value"])
    assert (await stranger.post(ONE, data={"token": token, "mark": "right"}, headers=OURS)).status_code == 403


async def test_many_come_in_pages(rater: httpx.AsyncClient, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTED", 1)
    for id in (CARD, SAUNA):
        await other_says(fakes, "right", id)
    page = page_of(await rater.get(f"{LIST}?done=all"))
    [older] = [str(link["href"]) for link in page.select(".paging a")]
    assert "done" not in older
    other = page_of(await rater.get(f"{LIST}{older}"))
    assert said(page, ".rows .question") != said(other, ".rows .question")
    assert said(other, ".paging a") == ["Newer"]
