"""The console's playground over the gateway's fakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from bs4 import BeautifulSoup
from fastapi import FastAPI

from adapters.elastic.client import ElasticsearchDown
from gateway.console.playground import marked
from pipelines.runtime.errors import Retryable
from pipelines.runtime.settings import StepSettings
from prompts.loader import written
from schemas.answer import Citation, Failed
from schemas.outcome import OutcomeEvent
from schemas.query import Question, Trial
from schemas.rebuild import RebuildList, RebuildOrder
from schemas.text_version import TextVersion
from tests.asking import NOON
from tests.console import CARD, ERASED, EVIL, OUTCOMES, console_ports, fill, tried
from tests.edge import ADMIN, EVERYTHING_TOWN
from tests.fakes.ports import FakePorts, Step
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in
from wiring.settings import Settings

PLAYGROUND = "/console/playground"
ASKED = {"question": "What does a library card cost?", "do": "ask"}


@pytest.fixture
def fakes() -> FakePorts:
    made = console_ports()
    made.answers.script = tried
    return made


@pytest.fixture
async def webmaster(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    """Of the site `town` alone, with two groups."""
    assert (await sign_in(stranger, EVERYTHING_TOWN)).status_code == 303
    return stranger


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """With models, and groups of the webmaster's key."""
    keys = [
        key.model_copy(update={"groups": ("staff", "board")}) if key.name == "webmaster" else key
        for key in settings.keys
    ]
    return settings.model_copy(
        update={"keys": tuple(keys), "llm_model": "usual", "steps": {"rephrase": StepSettings(model="small")}}
    )


async def token(client: httpx.AsyncClient) -> str:
    return str(one(page_of(await client.get(PLAYGROUND)), ".who input[name=token]")["value"])


async def post(client: httpx.AsyncClient, status: int = 200, path: str = PLAYGROUND, **form: str) -> BeautifulSoup:
    sent = {"token": await token(client)} | form
    return page_of(await client.post(f"{path}?site=town", data=sent, headers=OURS), status)


async def test_the_site_is_shown_as_it_is_now_or_as_its_file_has_it_where_nobody_can_tell(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    text = {"site": "town", "kind": "settings", "name": "answers", "version": 1, "by": "anna", "at": NOON}
    await fakes.texts.add(TextVersion.model_validate(text | {"text": "strategy: react"}))
    for error, strategy in ((None, "react"), (ElasticsearchDown("away"), "plain")):
        fakes.texts.error = error
        page = page_of(await webmaster.get(PLAYGROUND))
        assert said(page, "#strategy1 option")[0] == f"as the website: {strategy}"


async def test_one_question_in_one_column_is_asked_as_it_is_for_visitors(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    page = page_of(await webmaster.get(PLAYGROUND))
    assert page.select("header nav a[aria-current]")[0].get_text() == "Playground"
    assert said(page, "fieldset legend") == ["Column A"]
    assert one(page, "#groups1")["value"] == "staff, board"
    assert said(page, "#strategy1 option")[:2] == ["as the website: plain", "quotations from the pages"]
    assert page.select(".trials") == []
    page = await post(webmaster, **ASKED, columns="1", groups1="staff, board")
    [asked] = fakes.answers.asked
    assert (asked.question, asked.trial, asked.groups) == (ASKED["question"], Trial(), ("staff", "board"))
    assert asked.logged_as is None
    assert one(page, "#question").get_text() == ASKED["question"]
    assert page.select("script") == []


async def test_columns_have_settings_of_their_own(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    await post(
        webmaster,
        **ASKED,
        columns="3",
        strategy1="quote",
        lang2="de",
        model2="small",
        temperature2="0.5",
        examples2="0",
        groups2="staff",
        before3="Is there a library?",
        answered3="Yes,\r\nthere is.",
    )
    first, second, third = fakes.answers.asked
    assert first.trial == Trial(strategy="quote")
    assert first.groups == ()
    assert (second.trial, second.lang) == (Trial(model="small", temperature=0.5, examples=0), "de")
    assert second.groups == ("staff",)
    [turn] = third.history
    assert (turn.question, turn.answer) == ("Is there a library?", "Yes,\nthere is.")


async def test_a_column_more_or_less_asks_nothing(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    typed = {"question": "", "columns": "1", "strategy1": "react", "groups1": "staff"}
    page = await post(webmaster, **typed, do="more")
    assert said(page, "fieldset legend") == ["Column A", "Column B"]
    assert [str(each["value"]) for each in page.select("option[value=react][selected]")] == ["react", "react"]
    page = await post(webmaster, **typed | {"columns": "3"}, do="more")
    assert len(page.select("fieldset")) == 3
    assert page.select("button[value=more]") == []
    page = await post(webmaster, **typed | {"columns": "2"}, do="fewer")
    assert len(page.select("fieldset")) == 1
    assert page.select("button[value=fewer]") == []
    for nonsense in ("0", "4", "x", "²"):
        assert len((await post(webmaster, **typed | {"columns": nonsense}, do="fewer")).select("fieldset")) == 1
    assert fakes.answers.asked == []


async def test_it_shows_how_the_answer_came_about(webmaster: httpx.AsyncClient) -> None:
    page = await post(webmaster, **ASKED, columns="1")
    column = one(page, ".trial")
    assert said(column, "h2") == ["A · plain answer shown"]
    assert said(column, ".seen") == [f"A card costs 18 euros2. {EVIL}"]
    assert said(column, ".seen sup") == ["2"]
    text = column.get_text()
    assert "What does a library card of the library cost?" in text
    assert "0, the pages contain the answer" in text
    facts = dict(zip(said(column, ".facts dt"), said(column, ".facts dd"), strict=True))
    assert facts["Chance that it can be answered"] == "0.913, at least 0.350 is needed"
    assert said(column, ".hits .cited a") == ["Town library"]
    assert said(column, ".hits .hint")[0] == "content, chunk 2 · Score 0.0325 · by words alone"
    assert "large: 1,834 read, 87 written" in text
    rows = [said(row, "td") for row in column.select("tbody tr")]
    assert ["answer", "1,830 ms"] in rows
    assert [row[0] for row in rows[-2:]] == ["Until the first word", "Whole answer"]
    assert said(column, "pre") == [f"You answer. {EVIL}", "<source-ab12> Adults 18 euros."]
    assert "model" in said(column, "section li code")


async def test_what_differs_from_the_first_column_is_marked(webmaster: httpx.AsyncClient) -> None:
    page = await post(webmaster, **ASKED, columns="3", strategy3="quote")
    first, same, other = page.select(".trial")
    marked = "h3:has(.badge)"
    assert (said(first, marked), said(same, marked)) == ([], [])
    assert said(other, marked) == ["Answer for visitors differs from A", "Input of the model differs from A"]
    assert said(other, "h2") == ["C · quotations from the pages page shown"]


async def test_a_column_that_fails_says_why(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    def script(question: Question) -> Sequence[Step]:
        if question.lang == "de":
            return [Failed(code="model-denied", message="Gerade nicht.")]
        return tried(question)

    fakes.answers.script = script
    page = await post(webmaster, **ASKED, columns="2", lang1="de")
    failed, fine = page.select(".trial")
    assert said(failed, "h2") == ["A failed model-denied"]
    assert said(failed, ".wrong") == ["Gerade nicht."]
    assert failed.select("section") == []
    assert len(fine.select("section")) == 10


@pytest.mark.parametrize(
    ("form", "named"),
    [
        ({"question": " "}, "Question"),
        ({"strategy2": "magic"}, "B: Strategy"),
        ({"temperature1": "3", "examples2": "many"}, "A: Temperature, B: Examples in the prompt"),
        ({"lang1": "?"}, "A: Language of the answer"),
        ({"answered1": "Yes."}, "A: Conversation so far"),
    ],
)
async def test_what_cannot_be_tried_is_named(
    webmaster: httpx.AsyncClient, fakes: FakePorts, form: dict[str, str], named: str
) -> None:
    page = await post(webmaster, 422, **ASKED | {"columns": "2"} | form)
    assert said(page, "[role=alert]") == [f"Please check: {named}."]
    assert len(page.select("fieldset")) == 2
    assert fakes.answers.asked == []


async def test_what_the_key_may_not_is_said_beside_what_was_typed(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    page = await post(webmaster, 403, **ASKED, columns="1", groups1="mayor")
    assert said(page, "[role=alert]") == ["groups: only those of the key can be tried out"]
    assert one(page, "#question").get_text() == ASKED["question"]
    await post(webmaster, 422, **ASKED, columns="1", model1="dear")
    assert fakes.answers.asked == []


async def test_another_site_is_not_asked(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    sent = {"token": await token(webmaster)} | ASKED
    page_of(await webmaster.post(f"{PLAYGROUND}?site=other", data=sent, headers=OURS), 403)
    page_of(await webmaster.post(f"{PLAYGROUND}?site=town", data=sent), 403)
    page_of(await webmaster.post(f"{PLAYGROUND}?site=town", data=ASKED, headers=OURS), 403)
    page_of(await webmaster.post(f"{PLAYGROUND}/example?site=town", data=ASKED, headers=OURS), 403)
    assert fakes.answers.asked == []


async def test_a_logged_question_can_be_asked_again(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    page = page_of(await webmaster.get(f"/console/questions/{CARD}?site=town"))
    [again] = [str(link["href"]) for link in page.select("a") if "again=" in str(link["href"])]
    assert parse_qs(urlsplit(again).query) == {"site": ["town"], "again": [CARD]}
    page = page_of(await webmaster.get(again))
    assert one(page, "#question").get_text() == OUTCOMES[CARD].question
    assert one(page, "#lang1 option[selected]")["value"] == "en"
    french = OutcomeEvent(
        site="town", request_id="request-0009", conversation="c", event=OUTCOMES[CARD].model_copy(update={"lang": "fr"})
    )
    await fakes.outcomes.put(french)
    page = page_of(await webmaster.get(f"{PLAYGROUND}?again=request-0009"))
    assert one(page, "#lang1 option[selected]")["value"] == "fr"  # of the question, if not of the site
    erased = page_of(await webmaster.get(f"/console/questions/{ERASED}?site=town"))
    assert "again=" not in str(erased)
    page_of(await webmaster.get(f"{PLAYGROUND}?again=lost-request"), 404)


async def test_an_example_like_others_is_shown_with_them_before_it_is_kept(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    new = {
        "lang": "en",
        "question": "What is a card?",
        "output": "18 euros [1].",
        "title1": "Fees",
        "text1": "18 euros.",
    }
    sent = {"token": await token(webmaster)} | new
    path = f"{PLAYGROUND}/example?site=town"
    assert (await webmaster.post(path, data=sent, headers=OURS)).status_code == 303
    page = page_of(await webmaster.post(path, data=sent | {"output": "Ask at the desk [1]."}, headers=OURS), 409)
    assert "the new one would replace it" in said(page, ".rows .badge")
    assert one(page, "#text1").get_text() == "18 euros."
    fields = page.select("main form textarea, main form input")
    again = {str(each["name"]): str(each.get("value") or each.get_text()) for each in fields}
    form = one(page, "main form")
    assert (
        await webmaster.post(form["action"], data=again | {"sure": "yes", "declines": ""}, headers=OURS)
    ).status_code == 303
    assert [each.output for each in await fakes.examples.of_site("town")] == ["Ask at the desk [1]."]


async def test_a_good_answer_is_kept_as_an_example(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    page = await post(webmaster, **ASKED, columns="1")
    form = one(page, "form.keep")
    fields = {str(each["name"]): str(each["value"]) for each in form.select("input")}
    fields |= {str(each["name"]): each.get_text() for each in form.select("textarea")}
    assert fields["output"] == f"A card costs 18 euros [1]. {EVIL}"
    assert (fields["title1"], fields["text1"]) == ("Town library", "Adults 18 euros.")
    answer = await webmaster.post(str(form["action"]), data=fields | {"output": "It costs 18 euros [1]."}, headers=OURS)
    [example] = await fakes.examples.of_site("town")
    assert (example.kind, example.lang, example.output) == ("answer", "en", "It costs 18 euros [1].")
    assert example.question == "What does a library card of the library cost?"
    assert [source.text for source in example.sources] == ["Adults 18 euros."]
    assert answer.status_code == 303
    kept = page_of(await webmaster.get(answer.headers["location"]))
    assert example.id in said(kept, "[role=status]")[0]
    page = await post(webmaster, **ASKED, columns="1", groups1="staff")
    assert page.select("form.keep") == []  # not everybody may read what it may be made of
    wrong = await webmaster.post(str(form["action"]), data=fields | {"output": "Free [2]."}, headers=OURS)
    page_of(wrong, 422)


async def test_an_index_that_is_not_live_is_searched(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    for _ in range(3):
        await fakes.rebuilds.start("town", RebuildOrder.model_validate({"from": "changes"}))
    await fakes.rebuilds.promote("town", 2)
    await fakes.rebuilds.promote("town", 3)
    page = page_of(await webmaster.get(PLAYGROUND))
    assert said(page, "#index1 option") == [
        "the live index, as for visitors",
        "pagewire-town-000004 (candidate)",
        "pagewire-town-000002 (previous)",
    ]
    page = await post(webmaster, **ASKED, columns="2", index2="pagewire-town-000004")
    assert [question.trial for question in fakes.answers.asked] == [Trial(), Trial(index="pagewire-town-000004")]
    assert one(page, "#index2 option[selected]")["value"] == "pagewire-town-000004"
    live, other = page.select(".trial")
    assert "In the index:" not in live.get_text()
    assert "In the index: pagewire-town-000004" in other.get_text()
    await fakes.rebuilds.discard("town", 4)
    page = await post(webmaster, 404, **ASKED, columns="1", index1="pagewire-town-000004")
    assert said(page, "[role=alert]")[0].startswith("site town has no index pagewire-town-000004")
    assert one(page, "#index1 option[selected]")["value"] == "pagewire-town-000004"


async def test_a_prompt_is_changed_and_tried(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    page = await post(webmaster, question="", columns="2", prompt2="mine", do="prompt")
    assert fakes.answers.asked == []
    [ours, mine] = [each.get_text().strip() for each in page.select("textarea.raw")]
    assert (ours, mine) == (written("answer").strip(), "mine")
    changed = ours.replace("Be short", "Be long").replace("\n", "\r\n")
    await post(webmaster, **ASKED, columns="1", prompt1=changed)
    [asked] = fakes.answers.asked
    assert asked.trial == Trial(prompt=ours.replace("Be short", "Be long"))
    page = await post(webmaster, 422, **ASKED, columns="1", prompt1="Be long.")
    assert "must have front matter" in said(page, "[role=alert]")[0]
    assert one(page, "#prompt1").get_text().strip() == "Be long."


async def test_an_enter_key_asks(webmaster: httpx.AsyncClient) -> None:
    page = page_of(await webmaster.get(PLAYGROUND))
    assert page.select("form.filter button")[0]["value"] == "ask"  # a browser takes the form's first button


async def test_where_nobody_can_tell_the_indexes_the_rest_is_there(
    webmaster: httpx.AsyncClient, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(site: str) -> RebuildList:
        raise Retryable("no Elasticsearch")

    monkeypatch.setattr(fakes.rebuilds, "list", away)
    page = page_of(await webmaster.get(PLAYGROUND))
    assert page.select("#index1") == []
    assert page.select("#strategy1") != []


async def test_what_cannot_be_chosen_is_not_offered(stranger: httpx.AsyncClient, app: FastAPI) -> None:
    assert (await sign_in(stranger, ADMIN)).status_code == 303
    page = page_of(await stranger.get(PLAYGROUND))
    assert page.select("#groups1") == []  # the admin key has none
    assert said(page, "#model1 option") == ["as configured", "usual", "small"]
    edge = app.state.edge
    app.state.edge = replace(edge, settings=edge.settings.model_copy(update={"llm_model": None}))
    page = page_of(await stranger.get(PLAYGROUND))
    assert page.select("#model1, #temperature1, #examples1") == []
    assert "No model is configured, so answers quote the pages." in said(page, ".filter .hint")


def test_citations_stand_behind_what_they_support() -> None:
    cited = [Citation(n=2, start=0, end=5), Citation(n=1, start=0, end=5), Citation(n=1, start=6, end=11)]
    cited.append(Citation(n=2, start=2, end=5))
    assert marked("It is so.", []) == "It is so."
    assert marked("Seven eight.", cited) == "Seven [2][1] eight [1]."
