"""Labels at the edge: a page's, and the filter of a search, a question, the same question again and a completion."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from gateway.content import bulk, content
from schemas.http import IndexedChunk, IndexedPage
from schemas.keys import page_key
from tests.edge import CHAT_ANYWHERE, EVERYTHING_TOWN, INGEST_TOWN, VIEW_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts

SITE = "/v1/sites/town"
FORMS: dict[str, Any] = {"kind": ("form", "notice"), "department": ("tax",)}


async def test_every_way_to_ask_takes_the_filter(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    headers = bearer(EVERYTHING_TOWN)
    query = "q=wages&label=kind:form&label=department:tax&label=kind:notice"
    assert (await stranger.get(f"{SITE}/search?{query}", headers=headers)).status_code == 200
    assert fakes.search.labels == [FORMS]
    asked = await stranger.post(f"{SITE}/chat", json={"question": "Wages?", "labels": FORMS}, headers=headers)
    conversation = asked.json()["conversation_id"]
    await stranger.post(f"{SITE}/conversations/{conversation}/regenerate", headers=headers)
    order = {"model": "town", "messages": [{"role": "user", "content": "Wages?"}], "labels": FORMS}
    await stranger.post("/v1/chat/completions", json=order, headers=headers)
    assert [question.labels for question in fakes.answers.asked] == [FORMS] * 3
    further = {"question": "And on Sundays?", "conversation_id": conversation}
    await stranger.post(f"{SITE}/chat", json=further, headers=headers)
    assert fakes.answers.asked[-1].labels == {}


@pytest.mark.parametrize("label", ["form", "kind:", "kind: ", ":form", "a b!:form", "kind:" + "x" * 201])
async def test_a_filter_that_is_none_is_refused(stranger: httpx.AsyncClient, fakes: FakePorts, label: str) -> None:
    answer = await stranger.get(f"{SITE}/search", params={"q": "x", "label": label}, headers=bearer(CHAT_ANYWHERE))
    assert assert_problem(answer, 422, "invalid")["errors"][0]["field"] == "label"
    assert fakes.search.searches == []


@pytest.mark.parametrize("values", [201, 100_000])
async def test_a_page_with_too_many_labels_is_told_the_bound(
    stranger: httpx.AsyncClient, fakes: FakePorts, values: int
) -> None:
    page: dict[str, Any] = {"id": "fees", "content": "x", "labels": {"kind": [str(n) for n in range(values)]}}
    answer = await stranger.put(f"{SITE}/pages/fees", json=page, headers=bearer(INGEST_TOWN))
    problem = assert_problem(answer, 422, "invalid")
    bound = "at most 200 are kept, the values of all keys together"
    assert problem["detail"] == f"labels: {values:,} labels; {bound}"
    assert len(answer.content) < 1_000
    good = await stranger.put(f"{SITE}/pages/fees", json=page | {"labels": FORMS}, headers=bearer(INGEST_TOWN))
    assert good.status_code == 202


async def test_a_page_with_too_many_strings_is_refused_before_it_is_parsed(
    stranger: httpx.AsyncClient, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million labels would hold the event loop for a second; one long text does not."""
    for module in (content, bulk):
        monkeypatch.setattr(module, "STRINGS", 100)

    async def saved(page: dict[str, Any]) -> list[Any]:
        put = await stranger.put(f"{SITE}/pages/fees", json=page, headers=bearer(INGEST_TOWN))
        line = json.dumps({"op": "upsert", "page": page})
        sent = await stranger.post(f"{SITE}/pages:bulk", content=line, headers=bearer(INGEST_TOWN))
        return [put.status_code, *(each["code"] for each in sent.json()["errors"])]

    assert await saved({"id": "fees", "content": '"' * 1_000}) == [202]
    assert await saved({"id": "fees", "labels": {f"k{n}": "v" for n in range(100)}}) == [413, "too-large"]


async def test_operators_read_the_labels_of_pages_that_they_may_read(
    stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    chunk = IndexedChunk(field="content", ord=0, text="x", title="Fees", url="/fees")
    for id, labels in (("fees", {"kind": ("form",)}), ("wages", {"kind": ("form", "secret")})):
        fakes.indexed.kept[key := page_key("town", "en", id)] = IndexedPage(chunks=(chunk,), total=1)
        fakes.indexed.labelled[key] = labels
    fakes.indexed.groups[key] = frozenset({"staff"})
    counted = await stranger.get("/v1/admin/sites/town/labels", headers=bearer(VIEW_TOWN))
    assert counted.json() == {"labels": [{"key": "kind", "value": "form", "pages": 1}], "more": False}
    for query, found in (("", ["fees"]), ("?label=kind:form", ["fees"]), ("?label=kind:news&url=/fees", [])):
        listed = await stranger.get(f"/v1/admin/sites/town/pages{query}", headers=bearer(VIEW_TOWN))
        assert [page["page_id"] for page in listed.json()["pages"]] == found
