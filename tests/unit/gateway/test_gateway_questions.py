"""The question log over HTTP: what is in it, who may read it, and what visitors do about it."""

from __future__ import annotations

import csv
from datetime import timedelta
from io import StringIO
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from gateway.edge.auth import token_secret
from gateway.edge.signed import Pseudonyms
from pipelines.runtime.settings import Site
from schemas.access_key import NewKey
from schemas.conversation import Feedback
from schemas.http import IndexedChunk, IndexedPage
from schemas.outcome import DoubtedSentence, Outcome, OutcomeEvent, OutcomeSource, QuestionRow, Rated
from schemas.query import ModelCall, PromptMessage
from tests.asking import NOON
from tests.edge import ADMIN, CHAT_ANYWHERE, EVERYTHING_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts
from wiring.settings import Settings

QUESTIONS = "/v1/admin/sites/town/questions"
SITE = "/v1/sites/town"


def outcome(minutes: int = 0, **changes: Any) -> Outcome:
    said = Outcome(
        restricted=False,
        asked_at=NOON + timedelta(minutes=minutes),
        asked_in="en",
        lang="en",
        question="When?",
        became="answered",
        hits=(OutcomeSource(page_id="pool", lang="en", field="content", ord=0, score=1.0, cited=True),),
    )
    return said.model_copy(update=changes)


async def logged(fakes: FakePorts, n: int, said: Outcome, conversation: str = "c1") -> None:
    event = OutcomeEvent(site="town", request_id=f"request-{n:04}", conversation=conversation, event=said)
    await fakes.outcomes.put(event)


async def test_questions_are_listed_counted_and_filtered(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await logged(fakes, 1, outcome())
    await logged(fakes, 2, outcome(1, became="refused", hits=(), question="Any sauna?"))
    rated = Rated(feedback=Feedback(rating="down", comment="No.", at=NOON))
    await fakes.outcomes.put(OutcomeEvent(site="town", request_id="request-0002", conversation="c1", event=rated))
    both = (await client.get(QUESTIONS)).json()
    assert [row["request_id"] for row in both["questions"]] == ["request-0002", "request-0001"]
    assert (both["counts"]["asked"], both["counts"]["refused"], both["counts"]["disliked"]) == (2, 1, 1)
    assert both["questions"][1]["pages"] == ["pool"]
    for query, expected in (
        ({"outcome": "refused"}, [2]),
        ({"feedback": "down"}, [2]),
        ({"from": (NOON + timedelta(minutes=1)).isoformat()}, [2]),
        ({"to": (NOON + timedelta(minutes=1)).isoformat()}, [1]),
        ({"text": "saun"}, [2]),
        ({"page": "pool"}, [1]),
        ({"lang": "de"}, []),
    ):
        found = (await client.get(QUESTIONS, params=query)).json()["questions"]
        assert [int(row["request_id"][-4:]) for row in found] == expected, query
    first = (await client.get(QUESTIONS, params={"limit": 1})).json()
    second = (await client.get(QUESTIONS, params={"limit": 1, "after": first["next"]})).json()
    assert [second["questions"][0]["request_id"], second["next"]] == ["request-0001", None]


async def test_one_question_is_shown_whole(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    doubted = DoubtedSentence(sentence="At 8.", kind="figure", said="8", cited=(1,))
    call = ModelCall(step="answer", messages=(PromptMessage(role="user", text="As sent."),), reply="At 8.")
    await logged(fakes, 1, outcome(calls=(call,), doubted=(doubted,)))
    for kind in ("json", "csv", "ndjson"):
        assert "As sent." not in (await client.get(QUESTIONS, params={"format": kind})).text
    shown = (await client.get(f"{QUESTIONS}/request-0001")).json()
    assert shown["outcome"]["calls"] == [call.dumped()]
    assert shown["outcome"]["doubted"] == [doubted.dumped()]
    assert shown["outcome"]["hits"][0]["page_id"] == "pool"
    assert (shown["conversation"], shown["feedback"], shown["erased"]) == ("c1", None, False)
    assert_problem(await client.get(f"{QUESTIONS}/request-0009"), 404, "unknown-question")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("?outcome=lost", 422, "invalid"),
        ("?from=yesterday", 422, "invalid"),
        ("?lang=%20", 422, "invalid"),
        ("?limit=0", 422, "invalid"),
        ("?after=nowhere", 400, "bad-cursor"),
    ],
)
async def test_a_wrong_filter_is_refused(client: httpx.AsyncClient, query: str, status: int, code: str) -> None:
    assert_problem(await client.get(f"{QUESTIONS}{query}"), status, code)


@pytest.mark.parametrize(("query", "accept"), [("?format=csv", "*/*"), ("", "text/csv")])
async def test_a_spreadsheet_has_all_of_them_and_no_formulas(
    client: httpx.AsyncClient, fakes: FakePorts, query: str, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.query.log.readable.PAGE", 2)
    await logged(fakes, 1, outcome(question='=HYPERLINK("http://evil.example";"When?")'))
    await logged(fakes, 2, outcome(1, question='He said "now",\nthen left'))
    await logged(fakes, 3, outcome(2, question="Größe?"))
    answer = await client.get(f"{QUESTIONS}{query}", headers={"Accept": accept})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="questions-town.csv"'
    rows = list(csv.DictReader(StringIO(answer.content.decode("utf-8"), newline="")))
    assert [row["question"] for row in rows] == [
        "Größe?",
        'He said "now",\nthen left',
        '\'=HYPERLINK("http://evil.example";"When?")',
    ]
    assert rows[0]["pages"] == "pool"


@pytest.mark.parametrize(("query", "accept"), [("?format=ndjson", "*/*"), ("", "application/x-ndjson")])
async def test_programs_have_all_of_them_a_line_each(
    client: httpx.AsyncClient, fakes: FakePorts, query: str, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.query.log.readable.PAGE", 2)
    for n in range(3):
        await logged(fakes, n, outcome(n, question="=1+1\nWhen?"))
    answer = await client.get(f"{QUESTIONS}{query}", headers={"Accept": accept})
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-disposition"] == 'attachment; filename="questions-town.ndjson"'
    rows = [QuestionRow.model_validate_json(line) for line in answer.text.splitlines()]
    assert [(row.request_id, row.question) for row in rows] == [(f"request-{n:04}", "=1+1\nWhen?") for n in (2, 1, 0)]


async def test_only_operators_of_the_site_may_read_it(app: FastAPI, fakes: FakePorts) -> None:
    async def status(key: str, path: str) -> int:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://t", headers=bearer(key)) as caller:
            return (await caller.get(path)).status_code

    for path in (QUESTIONS, f"{QUESTIONS}/request-0001"):
        assert await status(CHAT_ANYWHERE, path) == 403
        assert await status(EVERYTHING_TOWN, path.replace("town", "other")) == 403
    assert await status(EVERYTHING_TOWN, QUESTIONS) == 200
    assert await status(ADMIN, "/v1/admin/sites/nowhere/questions") == 404


async def asked(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.post(f"{SITE}/chat", json={"question": "When does it open?"})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_question_goes_into_the_log_under_a_name_that_tells_nothing(
    client: httpx.AsyncClient, fakes: FakePorts, settings: Settings
) -> None:
    body = await asked(client)
    [sent] = fakes.answers.asked
    assert sent.logged_as == Pseudonyms(token_secret(settings)).of("town", body["conversation_id"])
    assert body["conversation_id"] not in (sent.logged_as or "")
    assert Pseudonyms(token_secret(settings)).of("other", body["conversation_id"]) != sent.logged_as


async def test_feedback_joins_the_question_with_its_comment_masked(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    body = await asked(client)
    event = OutcomeEvent(
        site="town",
        request_id=body["request_id"],
        conversation=fakes.answers.asked[0].logged_as or "",
        event=outcome(),
    )
    await fakes.outcomes.put(event)
    said = {"rating": "down", "comment": "Write to anna@mail.example"}
    assert (await client.post(f"{SITE}/answers/{body['request_id']}/feedback", json=said)).status_code == 204
    shown = (await client.get(f"{QUESTIONS}/{body['request_id']}")).json()
    assert (shown["feedback"]["rating"], shown["feedback"]["comment"]) == ("down", "Write to [e-mail]")


@pytest.mark.parametrize(("wanted", "comment"), [("without-text", None), ("off", "nothing")])
async def test_feedback_is_logged_as_its_site_wants(
    client: httpx.AsyncClient, fakes: FakePorts, wanted: str, comment: str | None
) -> None:
    fakes.sites["town"] = Site.model_validate({"log_questions": wanted})
    body = await asked(client)
    said = {"rating": "down", "comment": "No."}
    assert (await client.post(f"{SITE}/answers/{body['request_id']}/feedback", json=said)).status_code == 204
    kept = [each.feedback for each in fakes.outcomes.kept.values() if each.feedback]
    assert [each.comment for each in kept] == ([] if comment == "nothing" else [None])


async def test_a_deleted_conversation_takes_its_words_along(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    body = await asked(client)
    name = fakes.answers.asked[0].logged_as or ""
    event = OutcomeEvent(site="town", request_id=body["request_id"], conversation=name, event=outcome())
    await fakes.outcomes.put(event)
    await logged(fakes, 1, outcome(), conversation="another")
    assert (await client.delete(f"{SITE}/conversations/{body['conversation_id']}")).status_code == 204
    await fakes.outcomes.put(event)  # delivered twice, or later than the deletion
    shown = (await client.get(f"{QUESTIONS}/{body['request_id']}")).json()
    assert (shown["outcome"]["question"], shown["erased"]) == (None, True)
    assert (await client.get(f"{QUESTIONS}/request-0001")).json()["outcome"]["question"] == "When?"


async def test_pages_of_a_group_are_named_to_keys_with_the_group_alone(
    app: FastAPI, stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    shown = {"pool": "Pool", "leave": "Leave of the staff", "unknown": ""}
    for page_id in ("pool", "leave"):
        chunk = IndexedChunk(field="content", ord=0, text="text", title=shown[page_id], url=f"/{page_id}")
        fakes.indexed.kept[f"town:en:{page_id}"] = IndexedPage(chunks=(chunk,), total=1)
    fakes.indexed.groups["town:en:leave"] = frozenset({"staff"})
    hits = tuple(
        OutcomeSource(
            page_id=page_id, lang="en", title=title, url=f"/{page_id}", field="content", ord=0, score=1.0, cited=True
        )
        for page_id, title in {**shown, "gone": "A page that is gone"}.items()
    )
    # By somebody with groups, by an earlier version, and by everybody.
    for n, restricted in enumerate((True, None, False)):
        await logged(fakes, n, outcome(n, hits=hits, became="page", restricted=restricted))
    everything = ["pool", "leave", "unknown", "gone"]
    keys = app.state.edge.ports.keys
    staff = (await keys.create(NewKey(name="staff", scopes=("view",), site="town", groups=("staff",)), "admin")).key
    nobody = (await keys.create(NewKey(name="nobody", scopes=("view",), site="town"), "admin")).key
    for key, allowed in ((staff, ["pool", "leave"]), (nobody, ["pool"]), (ADMIN, ["pool"])):
        headers = bearer(key)
        rows = (await stranger.get(QUESTIONS, headers=headers)).json()["questions"]
        assert [row["pages"] for row in rows] == [everything, allowed, allowed]
        lines = list(csv.DictReader(StringIO((await stranger.get(f"{QUESTIONS}?format=csv", headers=headers)).text)))
        assert [line["pages"].split() for line in lines] == [everything, allowed, allowed]
        one = (await stranger.get(f"{QUESTIONS}/request-0000", headers=headers)).json()
        assert [hit["page_id"] for hit in one["outcome"]["hits"]] == allowed
        tomorrow = {"to": (NOON + timedelta(days=1)).isoformat()}
        gaps = (await stranger.get("/v1/admin/sites/town/gaps", params=tomorrow, headers=headers)).json()
        (group,) = gaps["groups"]
        assert {page["page_id"]: page["found"] for page in group["pages"]}["leave"] == (3 if "leave" in allowed else 1)
