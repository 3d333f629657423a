"""Cases of evaluations over HTTP and in the console: what comes out goes into a dataset's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from bs4 import BeautifulSoup

from pipelines.evaluate.dataset import Case, Dataset, dumped, load_dataset
from schemas.evaluation import NewCase
from schemas.outcome import OutcomeEvent
from tests.console import CARD, ERASED, OUTCOMES, console_ports, fill, tried
from tests.edge import ADMIN, EVERYTHING_TOWN, STAFF_TOWN, VIEW_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

CASES = "/v1/admin/sites/town/cases"
FULL: dict[str, Any] = {
    "question": "And für Kinder?",
    "lang": "de",
    "history": ["What does a library card cost?"],
    "pages": ["library", "fees"],
    "answer": "Nothing:\nit is free.",
    "tags": ["prices", "follow-up"],
    "note": "asked on the phone",
}


async def file(client: httpx.AsyncClient, order: dict[str, Any], query: str = "", accept: str = "*/*") -> str:
    response = await client.post(CASES + query, json=order, headers={"Accept": accept})
    assert response.status_code == 200, response.text
    kind = "yaml" if "yaml" in query + accept else "ndjson"
    assert response.headers["content-disposition"] == f'attachment; filename="case.{kind}"'
    return response.text


@pytest.mark.parametrize("suffix", ["ndjson", "yaml"])
async def test_it_goes_at_the_end_of_a_dataset(client: httpx.AsyncClient, tmp_path: Path, suffix: str) -> None:
    there = Case(id="1", question="When does the pool open?", pages=("pool",))
    dataset = tmp_path / f"town.{suffix}"
    dataset.write_text(dumped(Dataset("town", (there,), "3"), f".{suffix}"), encoding="utf-8")
    with dataset.open("a", encoding="utf-8") as end:
        end.write(await file(client, FULL, f"?format={suffix}"))
        end.write(await file(client, {"question": "Is there a casino?", "expect": "refuse"}, f"?format={suffix}"))
    first, case, refused = load_dataset(dataset).cases
    assert first == there
    assert (case.question, case.lang, case.site) == ("And für Kinder?", "de", "town")
    assert (case.history, case.pages) == (("What does a library card cost?",), ("library", "fees"))
    assert (case.answers, case.expect) == (("Nothing:\nit is free.",), "answer")
    assert (case.tags, case.note) == (("prices", "follow-up"), "asked on the phone")
    assert (refused.expect, refused.pages, refused.answers) == ("refuse", (), ())
    assert len({first.id, case.id, refused.id}) == 3


async def test_it_is_in_the_form_that_is_asked_for(client: httpx.AsyncClient) -> None:
    line = await file(client, FULL)
    assert line.count("\n") == 1
    assert json.loads(line)["question"] == "And für Kinder?"
    [entry] = yaml.safe_load(await file(client, FULL, accept="application/yaml; q=1"))
    assert entry == json.loads(line)
    assert json.loads(await file(client, FULL | {"id": "card.1"}, accept="application/x-ndjson"))["id"] == "card.1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"question": " "},
        {"question": "x" * 4_001},
        {"expect": "refuse", "pages": ["library"]},
        {"expect": "courtesy", "answer": "Hello."},
        {"expect": "magic"},
        {"pages": ["p"] * 41},
        {"history": ["?"] * 11},
        {"answer": "x" * 8_001},
        {"tags": [" "]},
        {"id": "a b"},
        {"colour": "red"},
    ],
)
async def test_what_is_no_case_is_refused(client: httpx.AsyncClient, wrong: dict[str, Any]) -> None:
    assert_problem(await client.post(CASES, json={"question": "What?"} | wrong), 422, "invalid")


@pytest.mark.parametrize("key", [VIEW_TOWN, STAFF_TOWN])
async def test_who_only_looks_makes_none(client: httpx.AsyncClient, key: str) -> None:
    assert_problem(await client.post(CASES, json=FULL, headers=bearer(key)), 403, "forbidden")


def test_all_that_fits_into_an_order_fits_into_a_dataset() -> None:
    told = {"question": "x" * 4_000, "id": "y" * 100, "tags": ["t" * 64] * 20, "answer": "a" * 8_000}
    new = NewCase.model_validate(told | {"pages": ["p" * 200] * 40, "history": ["h" * 4_000] * 10})
    assert Case.model_validate(new.model_dump(exclude={"answer"}, exclude_defaults=True)).pages == new.pages


@pytest.fixture
def fakes() -> FakePorts:
    made = console_ports()
    made.answers.script = tried
    return made


@pytest.fixture
async def webmaster(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    assert (await sign_in(stranger, EVERYTHING_TOWN)).status_code == 303
    return stranger


def filled_in(form: BeautifulSoup) -> dict[str, str]:
    """As a browser would send it, but for the button."""
    boxes = {str(each["name"]): str(each["value"]) for each in form.select("input:not([type=checkbox])")}
    boxes |= {str(each["name"]): str(each["value"]) for each in form.select("input[checked]")}
    boxes |= {str(each["name"]): str(one(each, "option[selected]")["value"]) for each in form.select("select")}
    return boxes | {str(each["name"]): each.get_text() for each in form.select("textarea")}


async def sent(client: httpx.AsyncClient, form: BeautifulSoup, **typed: str) -> dict[str, Any]:
    answer = await client.post(str(form["action"]), data=filled_in(form) | typed, headers=OURS)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"].startswith("attachment")
    case: dict[str, Any] = yaml.safe_load(answer.text)[0] if "format" in typed else json.loads(answer.text)
    return case


async def test_a_question_that_was_tried_becomes_one(webmaster: httpx.AsyncClient) -> None:
    page = page_of(await webmaster.get("/console/playground"))
    asked = {"question": "What does a card cost?", "do": "ask", "columns": "1", "lang1": "en"}
    asked |= {
        "before1": "Is there a library?",
        "answered1": "Yes.",
        "token": str(one(page, ".who [name=token]")["value"]),
    }
    page = page_of(await webmaster.post("/console/playground?site=town", data=asked, headers=OURS))
    form = one(page, "form.case")
    assert said(form, "fieldset .hint") == ["library", "office"]
    assert [str(each["value"]) for each in form.select("input[checked]")] == ["library"]
    case = await sent(webmaster, form, answer="18 euros,\r\na year.", tags="prices, cards ,")
    assert case["id"]
    assert case == {
        "id": case["id"],
        "question": "What does a card cost?",
        "lang": "en",
        "site": "town",
        "history": ["Is there a library?"],
        "pages": ["library"],
        "answers": ["18 euros,\na year."],
        "expect": "answer",
        "tags": ["prices", "cards"],
    }
    refused = await sent(webmaster, form, expect="refuse", format="yaml")
    assert refused["expect"] == "refuse"
    assert refused.keys().isdisjoint({"pages", "answers"})


async def test_a_question_of_the_log_becomes_one(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    unsaid = OUTCOMES[CARD].model_copy(update={"answer": None})  # an older log has none
    await fakes.outcomes.put(OutcomeEvent(site="town", request_id=CARD, conversation="c", event=unsaid))
    page = page_of(await webmaster.get(f"/console/questions/{CARD}?site=town"))
    case = await sent(webmaster, one(page, "form.case"))
    assert (case["id"], case["question"], case["site"]) == (CARD, OUTCOMES[CARD].question, "town")
    cited = {hit.page_id for hit in OUTCOMES[CARD].hits if hit.cited}
    assert cited
    assert set(case["pages"]) == cited
    assert "answers" not in case
    assert case["tags"] == [OUTCOMES[CARD].became]
    answered = OUTCOMES[CARD].model_copy(update={"answer": "18 euros.", "became": "refused"})
    await fakes.outcomes.put(OutcomeEvent(site="town", request_id="request-0009", conversation="c", event=answered))
    form = one(page_of(await webmaster.get("/console/questions/request-0009?site=town")), "form.case")
    assert filled_in(form)["expect"] == "refuse"
    assert (await sent(webmaster, form, expect="answer"))["answers"] == ["18 euros."]
    erased = page_of(await webmaster.get(f"/console/questions/{ERASED}?site=town"))
    assert erased.select("form.case") == []


async def test_a_case_without_a_question_is_refused_and_so_are_forms_of_others(webmaster: httpx.AsyncClient) -> None:
    page = page_of(await webmaster.get("/console/playground"))
    token = str(one(page, ".who [name=token]")["value"])
    page_of(await webmaster.post("/console/case?site=town", data={"token": token}, headers=OURS), 422)
    page_of(await webmaster.post("/console/case?site=town", data={"question": "?", "token": token}), 403)
    page_of(await webmaster.post("/console/case?site=town", data={"question": "?"}, headers=OURS), 403)


async def test_who_may_not_edit_is_not_offered_any(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    for key, offered in ((VIEW_TOWN, 0), (ADMIN, 1)):
        assert (await sign_in(stranger, key)).status_code == 303
        page = page_of(await stranger.get(f"/console/questions/{CARD}?site=town"))
        assert len(page.select("form.case")) == offered
