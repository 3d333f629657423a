"""Corrections over HTTP: tried, kept, undone, counted; refused where they would do harm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from pipelines.evaluate.dataset import Case
from pipelines.ingest.accept import Change
from schemas.http import IndexedChunk, IndexedPage
from schemas.keys import page_key
from schemas.outcome import Outcome, OutcomeEvent
from schemas.page import PageDocument
from tests.edge import EDIT_TOWN, VIEW_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts

CORRECTIONS = "/v1/admin/sites/town/corrections"
CARD = "What does a library card cost?"
SECRET = "Only the board may know."


async def save(fakes: FakePorts, page: str, text: str, lang: str = "en", groups: tuple[str, ...] = ()) -> None:
    """As the workers leave a page that was saved."""
    url = f"https://www.town.example/{lang}/{page}"
    document = PageDocument(id=page, lang=lang, url=url, title=page.title(), content=text)
    await fakes.pages.accept("town", [Change(op="upsert", page=document)], "test")
    chunk = IndexedChunk(field="content", ord=0, text=text, title=page.title(), url=url)
    key = page_key("town", lang, page)
    fakes.indexed.kept[key] = IndexedPage(chunks=(chunk,), total=1)
    if groups:
        fakes.indexed.groups[key] = frozenset(groups)


async def delete(fakes: FakePorts, page: str) -> None:
    document = PageDocument(id=page, lang="en", url="", title="", content="")
    await fakes.pages.accept("town", [Change(op="delete", page=document)], "test")
    del fakes.indexed.kept[page_key("town", "en", page)]


async def asked(fakes: FakePorts, *questions: str, **more: Any) -> None:
    for n, question in enumerate(questions, start=len(fakes.outcomes.kept)):
        said = Outcome(
            asked_at=datetime.now(UTC) - timedelta(minutes=n),
            asked_in="en",
            lang="en",
            question=question,
            became="refused",
            **more,
        )
        event = OutcomeEvent(site="town", request_id=f"request-{n:04}", conversation="c1", event=said)
        await fakes.outcomes.put(event)


@pytest.fixture
async def library(fakes: FakePorts) -> None:
    await save(fakes, "library", "A card costs 12 euros a year.")
    await save(fakes, "library", "Ein Ausweis kostet 12 Euro.", "de")
    await save(fakes, "minutes", SECRET, groups=("board",))


PINNED = {"kind": "page", "page": "library", "questions": [CARD]}
FIXED = {"kind": "answer", "page": "library", "questions": [CARD], "text": "12 euros."}
REFUSED = {"kind": "refusal", "questions": [CARD], "text": "Ask the library."}
PERSO = {"kind": "synonym", "word": "card", "means": "library ticket"}


async def listed(client: httpx.AsyncClient, **more: Any) -> list[dict[str, Any]]:
    answer = await client.get(CORRECTIONS, **more)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["corrections"]
    return found


async def put(client: httpx.AsyncClient, given: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(CORRECTIONS, json=given)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


@pytest.mark.usefixtures("library")
async def test_a_correction_is_kept_changed_taken_back_and_brought_back(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    made = await put(client, PINNED | {"note": "asked every day"})
    assert (made["version"], made["state"], made["by"], made["note"]) == (1, "in-force", "admin", "asked every day")
    page = made["correction"]["page"]
    assert (page["page_id"], page["lang"], page["title"]) == ("library", "en", "Library")
    assert (await put(client, PINNED))["version"] == 1  # a request that is repeated
    fixed = await put(client, FIXED)
    assert (fixed["id"], fixed["version"]) == (made["id"], 2)  # of one question the newest counts
    one = f"{CORRECTIONS}/{made['id']}"
    changed = await client.put(one, json=FIXED | {"questions": ["Card?", CARD], "over": 2})
    assert (changed.status_code, changed.json()["id"], changed.json()["version"]) == (200, made["id"], 3)
    assert_problem(await client.put(one, json=FIXED | {"over": 2}), 409, "text-changed")
    back = (await client.post(f"{one}/rollback")).json()
    assert back["live"]["correction"]["questions"] == [CARD]
    assert (await client.post(f"{one}/rollback")).json()["live"]["correction"]["kind"] == "page"
    assert (await client.delete(one)).status_code == 204
    assert await listed(client) == []
    history = (await client.get(one)).json()
    assert (history["live"], [each["version"] for each in history["versions"]]) == (None, [6, 5, 4, 3, 2, 1])
    restored = (await client.post(f"{one}/versions/2/restore")).json()
    assert restored["live"]["correction"]["text"] == "12 euros."
    assert_problem(await client.get(f"{CORRECTIONS}/none"), 404, "unknown-correction")
    actions = [entry.action for entry in fakes.audit_log.kept if entry.outcome == "done"]
    assert set(actions) == {f"corrections.{act}" for act in ("put", "rollback", "remove", "restore")}
    assert {entry.target for entry in fakes.audit_log.kept} == {made["id"]}


@pytest.mark.usefixtures("library")
async def test_it_is_tried_before_it_is_kept(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await asked(fakes, CARD, "what does a LIBRARY card cost", "How much is the library card?", "When is the pool open?")
    await put(client, REFUSED | {"questions": ["How much is the library card?"]})
    trial = (await client.post(f"{CORRECTIONS}:try", json=FIXED)).json()
    assert (trial["logged"], trial["answered"], trial["refused"]) == (3, 2, None)
    assert [(one["question"], one["asked"]) for one in trial["questions"]] == [
        (CARD, 2),
        ("How much is the library card?", 1),
    ]
    assert trial["by_reach"] == {"same": 1, "alike": 2, "wide": 2}
    assert [(one["names"], one["wins"]) for one in trial["rivals"]] == [
        (["How much is the library card?"], False),
        (["How much is the library card?"], True),
    ]
    only = (await client.post(f"{CORRECTIONS}:try", json=FIXED | {"reach": "same"})).json()
    assert (only["answered"], [one["question"] for one in only["beyond"]]) == (1, [])
    word = (await client.post(f"{CORRECTIONS}:try", json=PERSO)).json()
    assert (word["answered"], word["refused"]) == (2, None)
    assert len(await listed(client)) == 1


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (REFUSED | {"questions": ["What is it?"]}, "says nothing"),
        (REFUSED | {"questions": ["Hello!"]}, "says nothing"),
        (REFUSED | {"questions": ["What does it cost?"], "reach": "wide"}, "says nothing"),
        (REFUSED | {"questions": ["Opening hours"], "reach": "alike"}, "says nothing"),
        (PERSO | {"word": "the"}, "says nothing"),
        (REFUSED | {"questions": ["How much is a thing?"], "reach": "wide"}, "20 of 21"),
        (PERSO | {"word": "thing"}, "20 of 21"),
        (PERSO | {"word": "library ticket", "means": "card"}, "library ticket → card"),
        (PINNED | {"page": "nowhere"}, "no page 'nowhere'"),
        (PINNED | {"page": "minutes"}, "no page 'minutes'"),  # the editor may not read it
    ],
)
async def test_what_would_do_harm_is_refused_with_what_it_would_catch(
    client: httpx.AsyncClient, fakes: FakePorts, given: dict[str, Any], says: str
) -> None:
    await put(client, PERSO)
    await asked(fakes, *(f"How much is thing {n}?" for n in range(20)), "When is the pool open?")
    refused = await client.post(CORRECTIONS, json=given)
    assert_problem(refused, 422, "bad-correction")
    assert says in refused.json()["detail"]
    assert len(await listed(client)) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "page", "questions": [CARD]},
        {"kind": "answer", "questions": [CARD], "page": "library"},
        {"kind": "refusal", "text": "No."},
        {"kind": "synonym", "word": "card"},
        REFUSED | {"page": "library"},
        PERSO | {"questions": [CARD]},
        REFUSED | {"questions": ["x" * 301]},
        REFUSED | {"text": "x" * 2_001},
        REFUSED | {"reach": "far"},
    ],
)
async def test_what_does_not_fit_its_kind_is_refused(client: httpx.AsyncClient, given: dict[str, Any]) -> None:
    assert (await client.post(CORRECTIONS, json=given)).status_code == 422


@pytest.mark.usefixtures("library")
async def test_a_correction_whose_page_changes_or_goes_is_named(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await put(client, FIXED)
    await put(client, PINNED | {"questions": ["Where can I borrow a book?"]})

    async def states() -> list[str]:
        return [one["state"] for one in await listed(client)]

    await save(fakes, "library", "A card costs 12 euros\n a year.")  # saved again, with another line break
    assert await states() == ["in-force", "in-force"]
    await save(fakes, "library", "A card costs 15 euros a year.")
    assert await states() == ["in-force", "page-changed"]
    await put(client, FIXED | {"text": "15 euros."})
    assert set(await states()) == {"in-force"}
    await delete(fakes, "library")
    assert sorted(await states()) == ["in-force", "page-gone"]  # the German page is still there for the other one,
    assert [one["gone_in"] for one in await listed(client) if one["state"] == "in-force"] == [["en"]]  # in German


async def test_who_may_not_read_a_page_does_not_read_it_here(
    app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    await save(fakes, "minutes", SECRET)
    await put(client, FIXED | {"page": "minutes", "text": SECRET})
    fakes.indexed.groups[page_key("town", "en", "minutes")] = frozenset({"board"})
    [one] = await listed(client)
    assert one["state"] == "hidden"
    history = await client.get(f"{CORRECTIONS}/{one['id']}")
    for text in (str(one), history.text, (await client.get("/v1/admin/sites/town/cases")).text):
        assert SECRET not in text
        assert "Minutes" not in text


@pytest.mark.usefixtures("library")
async def test_what_is_put_right_joins_the_cases_of_evaluations(client: httpx.AsyncClient) -> None:
    for given in (FIXED, PERSO, REFUSED | {"questions": ["Can I sue the town?"]}):
        await put(client, given)
    lines = (await client.get("/v1/admin/sites/town/cases")).text.splitlines()
    cases = [Case.model_validate_json(line) for line in lines[1:]]
    assert [(case.question, case.expect, case.pages, case.answers) for case in cases] == [
        ("Can I sue the town?", "refuse", (), ()),
        (CARD, "answer", ("library",), ("12 euros.",)),
    ]
    assert (await client.get("/v1/admin/sites/town/cases", params={"format": "yaml"})).text.startswith("name: town")


@pytest.mark.usefixtures("library")
async def test_readers_look_and_editors_put_right(app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts) -> None:
    made = await put(client, FIXED)
    await asked(fakes, CARD, CARD, corrections=(made["id"],))
    assert [one["used"] for one in await listed(client)] == [2]
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as other:
        for key, may in ((VIEW_TOWN, False), (EDIT_TOWN, True)):
            assert len(await listed(other, headers=bearer(key))) == 1
            for path in (CORRECTIONS, f"{CORRECTIONS}:try"):
                answer = await other.post(path, json=FIXED, headers=bearer(key))
                assert answer.is_success == may, answer.text
