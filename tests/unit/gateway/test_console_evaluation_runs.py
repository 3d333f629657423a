"""An evaluation ordered in the console: the cost first, then the start, progress, stop and result."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest
from fastapi import FastAPI

from pipelines.operate import site_runs
from tests.edge import EVERYTHING_TOWN
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in
from tests.unit.gateway.test_gateway_evaluation_runs import DATASET, answer

NEW = "/console/evaluations/new?site=town"
RUN = "/console/evaluations/run?site=town"


@pytest.fixture(autouse=True)
def scripted(fakes: FakePorts, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.answers.script = answer
    monkeypatch.setattr(site_runs, "BEAT", 0.001)


@pytest.fixture
async def editor(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    assert (await sign_in(stranger, EVERYTHING_TOWN)).status_code == 303
    stranger.headers.update(OURS)
    return stranger


async def over(client: httpx.AsyncClient) -> httpx.Response:
    async with asyncio.timeout(20):
        while "refresh" in (shown := await client.get(RUN)).headers:  # noqa: ASYNC110  # nothing tells when
            await asyncio.sleep(0)
    return shown


def noted(fakes: FakePorts) -> list[tuple[str | None, ...]]:
    return [(entry.via, entry.action, entry.site, entry.target, entry.outcome) for entry in fakes.audit_log.kept]


async def test_an_evaluation_is_ordered_seen_and_read(
    editor: httpx.AsyncClient, fakes: FakePorts, app: FastAPI
) -> None:
    app.state.edge = replace(app.state.edge, settings=app.state.edge.settings.model_copy(update={"llm_model": "m"}))
    form = {"content": DATASET, "hits": "1, 5", "calls": "50", "note": "more hits"}
    page = page_of(await editor.get(NEW))
    assert "Start an evaluation" in said(page, "h1")
    token = str(one(page, "main input[name=token]")["value"])
    page = page_of(await editor.post(NEW, data={**form, "token": token, "do": "plan"}))
    facts = dict(zip(said(page, ".facts dt"), said(page, ".facts dd"), strict=True))
    assert facts["Settings compared"] == "base · hits 1 · hits 5"
    assert facts["Calls of the model for the answers"] == "24 at most"
    assert fakes.answers.asked == []
    assert one(page, "textarea[name=content]").text.strip() == DATASET.strip()
    wrong = page_of(await editor.post(NEW, data={**form, "token": token, "hits": "many"}))
    assert "hits" in said(wrong, ".wrong")[0]
    begun = await editor.post(NEW, data={**form, "token": token, "do": "start"})
    assert (begun.status_code, begun.headers["location"]) == (303, RUN)
    page = page_of(await over(editor))
    assert noted(fakes) == [("console", "evaluations.start", "town", "prices", "done")]  # neither plan nor refusal
    assert said(page, ".badge")[0] == "finished"
    right = said(page, "thead th").index("right")
    rows = [[cells[0], cells[1], cells[right]] for cells in (said(row, "th, td") for row in page.select("tbody tr"))]
    assert rows == [["base", "3", "0.333"], ["hits 1", "3", "0.333"], ["hits 5", "3", "1.000"]]
    link = page.select("tbody a")[2]["href"]
    assert "more hits: hits 5" in said(page_of(await editor.get(str(link))), ".intro")


async def test_a_run_is_stopped_from_its_page(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = lambda question: [*answer(question)[:1], 60.0]
    token = str(one(page_of(await editor.get(NEW)), "main input[name=token]")["value"])
    await editor.post(NEW, data={"content": DATASET, "token": token, "do": "start"})
    again = page_of(await editor.get(RUN))  # a reload shows it at work
    assert said(again, ".badge")[0] == "running"
    await editor.post("/console/evaluations/run/stop?site=town", data={"token": token})
    assert said(page_of(await over(editor)), ".badge")[0] == "stopped"
    assert noted(fakes)[1:] == [("console", "evaluations.stop", "town", "", "done")]
