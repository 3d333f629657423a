"""Pages in over HTTP: what is accepted, what is refused, and with which words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from gateway.content import content
from pipelines.runtime.errors import PagewireError, Retryable, TooLarge
from tests.edge import assert_problem
from tests.fakes.ports import FakePorts

PAGES = "/v1/sites/town/pages"


async def test_a_save_is_accepted_with_its_key_and_revision(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    response = await client.put(f"{PAGES}/fees", json={"id": "fees", "title": "Fees", "revision": 7})
    assert response.status_code == 202
    assert response.json() == {"page_key": "town:en:fees", "revision": 7, "detail": None}
    [change] = fakes.pages.changes["town:en:fees"]
    assert (change.op, change.page.title) == ("upsert", "Fees")


async def test_waiting_answers_with_the_receipt(client: httpx.AsyncClient) -> None:
    response = await client.put(f"{PAGES}/fees?wait=searchable&timeout=5", json={"id": "fees", "revision": 7})
    assert response.status_code == 200
    assert response.json()["state"] == "searchable"
    assert response.json()["searchable_revision"] == 7


async def test_waiting_in_vain_answers_as_without_waiting(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.pages.settles = False
    response = await client.put(f"{PAGES}/fees?wait=searchable&timeout=0", json={"id": "fees", "revision": 7})
    assert response.status_code == 202
    assert response.json() == {
        "page_key": "town:en:fees",
        "revision": 7,
        "detail": "accepted, but not settled within 0 s; see its receipt, and `pagewire status`",
    }


async def test_an_older_save_says_that_it_lost(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await client.put(f"{PAGES}/fees", json={"id": "fees", "revision": 7})
    late = await client.put(f"{PAGES}/fees", json={"id": "fees", "revision": 3})
    assert (late.status_code, late.headers["pagewire-superseded"]) == (202, "true")
    waited = await client.put(f"{PAGES}/fees?wait=searchable", json={"id": "fees", "revision": 3})
    assert (waited.status_code, waited.headers["pagewire-superseded"]) == (200, "true")
    assert waited.json()["searchable_revision"] == 7
    assert len(fakes.pages.changes["town:en:fees"]) == 1


@pytest.mark.parametrize(
    ("path", "page_id", "key"),
    [
        ("news%2F12", "news/12", "town:en:news%2F12"),
        ("news/12", "news/12", "town:en:news%2F12"),
        ("%2Fde%2F%C3%BCber%20uns", "/de/über uns", "town:en:%2Fde%2F%C3%BCber%20uns"),
        ("100%25", "100%", "town:en:100%25"),
        ("news%252F12", "news%2F12", "town:en:news%252F12"),
        ("a:b%23c%3Fd", "a:b#c?d", "town:en:a%3Ab%23c%3Fd"),
        ("receipt", "receipt", "town:en:receipt"),
        ("x%2Freceipt", "x/receipt", "town:en:x%2Freceipt"),
        ("%F0%9F%8F%9B", "🏛", "town:en:%F0%9F%8F%9B"),
    ],
)
async def test_page_ids_with_any_characters(client: httpx.AsyncClient, path: str, page_id: str, key: str) -> None:
    saved = await client.put(f"{PAGES}/{path}", json={"id": page_id, "revision": 1})
    assert (saved.status_code, saved.json()) == (202, {"page_key": key, "revision": 1, "detail": None})
    receipt = await client.get(f"{PAGES}/{path}/receipt")
    assert (receipt.status_code, receipt.json()["page_key"]) == (200, key)
    deleted = await client.delete(f"{PAGES}/{path}")
    assert (deleted.status_code, deleted.json()["page_key"]) == (202, key)


async def test_delete_takes_language_and_revision(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    response = await client.delete(f"{PAGES}/fees?lang=de&revision=9&wait=searchable")
    assert (response.status_code, response.json()["state"]) == (200, "deleted")
    [change] = fakes.pages.changes["town:de:fees"]
    assert (change.op, change.page.revision) == ("delete", 9)


async def test_a_page_is_the_same_however_its_language_is_written(client: httpx.AsyncClient) -> None:
    for written in ("DE", "de", "De"):
        saved = await client.put(f"{PAGES}/fees", json={"id": "fees", "lang": written, "title": "Gebühren"})
        assert saved.json()["page_key"] == "town:de:fees"
        assert (await client.get(f"{PAGES}/fees/receipt?lang={written}")).json()["page_key"] == "town:de:fees"
        gone = await client.delete(f"{PAGES}/fees?lang={written}&wait=searchable")
        assert (gone.status_code, gone.json()["page_key"]) == (200, "town:de:fees")
    assert_problem(await client.get(f"{PAGES}/fees/receipt?lang=german"), 422, "invalid")


async def test_delete_also_in_a_language_the_site_no_longer_has(client: httpx.AsyncClient) -> None:
    assert (await client.delete(f"{PAGES}/fees?lang=it")).status_code == 202


async def test_no_receipt_without_a_change(client: httpx.AsyncClient) -> None:
    assert_problem(await client.get(f"{PAGES}/fees/receipt"), 404, "unknown-page")


PAGE: dict[str, Any] = {"id": "fees"}
BAD_PAGES: list[tuple[str, bytes, int, str, str | None]] = [
    ("nothing", b"", 400, "bad-json", None),
    ("not JSON", b"<html>", 400, "bad-json", None),
    ("not UTF-8", b'{"id":"\xff"}', 400, "bad-json", None),
    ("nested too deeply", b"[" * 100_000, 400, "bad-json", None),
    ("a list", b"[]", 422, "invalid", "body"),
    ("null", b"null", 422, "invalid", "body"),
    ("no id", b"{}", 422, "invalid", "id"),
    ("another id", b'{"id":"other"}', 422, "id-mismatch", None),
    ("a wrong type", b'{"id":"fees","title":7}', 422, "invalid", "title"),
    ("a wrong type inside", b'{"id":"fees","keywords":["a",null]}', 422, "invalid", "keywords.1"),
    ("an unknown field", b'{"id":"fees","colour":"red"}', 422, "invalid", "colour"),
    ("a surrogate", b'{"id":"fees","title":"\\ud800"}', 422, "invalid", "title"),
    ("a surrogate as field", b'{"id":"fees","\\ud800":1}', 422, "invalid", "body"),
    ("NUL in the id", b'{"id":"fe\\u0000es"}', 422, "invalid", "id"),
    ("not a number", b'{"id":"fees","revision":NaN}', 422, "invalid", "revision"),
    ("a negative revision", b'{"id":"fees","revision":-1}', 422, "invalid", "revision"),
    ("a revision past 64 bits", b'{"id":"fees","revision":99999999999999999999}', 422, "invalid", "revision"),
    ("a time without zone", b'{"id":"fees","changed_at":"2026-05-04T12:00:00"}', 422, "invalid", "changed_at"),
    ("a language that is none", b'{"id":"fees","lang":"german!"}', 422, "invalid", "lang"),
    ("an attachment twice", b'{"id":"fees","attachments":[{"url":"a","path":"b"}]}', 422, "invalid", "attachments.0"),
    ("too much content", json.dumps({"id": "fees", "content": "ü" * 5_001}).encode(), 413, "too-large", None),
    ("a title without end", json.dumps({"id": "fees", "title": "x" * 20_001}).encode(), 422, "invalid", "title"),
]


@pytest.mark.parametrize(
    ("body", "status", "code", "field"), [bad[1:] for bad in BAD_PAGES], ids=[bad[0] for bad in BAD_PAGES]
)
async def test_bad_pages_get_a_clear_answer(
    client: httpx.AsyncClient, fakes: FakePorts, body: bytes, status: int, code: str, field: str | None
) -> None:
    problem = assert_problem(await client.put(f"{PAGES}/fees", content=body), status, code)
    if field is not None:
        assert [e["field"] for e in problem["errors"]] == [field]
    assert fakes.pages.changes == {}


@pytest.mark.parametrize(
    "page",
    [
        {"content": ""},
        {"content": "<div><p></p><br></div>"},
        {"content": "<p>broken <b>html <table><td>"},
        {"content": "x" * 10_000},
        {"content": "ü" * 5_000},
        {"content": "👩‍👩‍👧 שלום עולם \u202e"},
        {"content": "NUL \u0000 inside"},
        {"title": "", "keywords": [], "groups": None, "changed_at": "2026-05-04T12:00:00Z"},
    ],
)
async def test_odd_pages_are_pages(client: httpx.AsyncClient, fakes: FakePorts, page: dict[str, Any]) -> None:
    assert (await client.put(f"{PAGES}/fees", json=PAGE | page)).status_code == 202
    [change] = fakes.pages.changes["town:en:fees"]
    assert change.page.content == page.get("content", "")


async def test_curls_content_type_does_not_matter(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await client.put(f"{PAGES}/fees", content=b'{"id":"fees"}', headers=headers)).status_code == 202


@pytest.mark.parametrize("path", ["fe%00es", "fees%0A", "fe%0D%0Aes", "x" * 257])
async def test_bad_ids_in_the_path(client: httpx.AsyncClient, path: str) -> None:
    for method in ("PUT", "DELETE"):
        problem = assert_problem(await client.request(method, f"{PAGES}/{path}"), 422, "invalid")
        assert problem["errors"][0]["field"] == "page_id"


async def test_refusals_do_not_repeat_what_was_sent(client: httpx.AsyncClient) -> None:
    secret = "do-not-repeat-me" * 1000
    response = await client.put(f"{PAGES}/fees", json={"id": "fees", "title": {"a": secret}, "x" + secret: secret})
    assert_problem(response, 422, "invalid")
    assert len(response.content) < 2_000


async def test_a_body_over_the_limit_is_not_read(client: httpx.AsyncClient) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 100_000

    assert_problem(await client.put(f"{PAGES}/fees", content=endless()), 413, "too-large")
    assert read * 100_000 < content.body_limit(_limits()) + 1_000_000


def _limits() -> Any:
    class Limits:
        content_limit = 10_000

    return Limits()


async def test_an_announced_body_over_the_limit_is_not_read_at_all(client: httpx.AsyncClient) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("was read")
        yield b""

    headers = {"Content-Length": "99999999"}
    assert_problem(await client.put(f"{PAGES}/fees", content=never(), headers=headers), 413, "too-large")


async def test_unknown_sites_and_routes(client: httpx.AsyncClient) -> None:
    assert_problem(await client.put("/v1/sites/nowhere/pages/fees", json=PAGE), 404, "unknown-site")
    assert_problem(await client.get("/v1/nothing"), 404, "not-found")
    wrong_method = await client.post(f"{PAGES}/fees", json=PAGE)
    assert_problem(wrong_method, 405, "method-not-allowed")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Retryable("Kafka at 127.0.0.1:19092 does not answer"), 503, "unavailable"),
        (TooLarge("page 'fees' is 9,000,000 bytes as a message"), 413, "too-large"),
    ],
)
async def test_the_ports_refusals(
    client: httpx.AsyncClient, fakes: FakePorts, error: PagewireError, status: int, code: str
) -> None:
    fakes.pages.error = error
    response = await client.put(f"{PAGES}/fees", json=PAGE)
    assert_problem(response, status, code)
    assert ("retry-after" in response.headers) == (status == 503)


async def test_a_bug_is_a_problem_without_internals(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.pages.refuses = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    with capture_logs([merge_contextvars]) as logs:
        response = await client.put(f"{PAGES}/fees", json=PAGE)
    problem = assert_problem(response, 500, "internal")
    assert "division" not in response.text
    [failure] = [line for line in logs if line["log_level"] == "error"]
    assert failure["trace_id"] == problem["instance"]
    assert failure["exc_info"]


def ndjson(*lines: dict[str, Any] | bytes) -> bytes:
    return b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)


async def test_bulk_keeps_the_good_lines(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    response = await client.post(
        f"{PAGES}:bulk",
        content=ndjson(
            {"op": "upsert", "page": {"id": "a", "revision": 2}},
            b"not json",
            {"op": "upsert", "page": {"id": "a", "revision": 1}},
            b"",
            {"op": "upsert", "page": {"id": "a", "revision": 3, "title": "newest"}},
            {"op": "remove", "page": {"id": "b"}},
            {"op": "upsert", "page": {"id": "b", "content": "x" * 10_001}},
            {"op": "upsert", "page": {"id": "b", "lang": "hu"}},
            {"op": "delete", "page": {"id": "c", "lang": "hu"}},
            {"page": {"id": "d"}, "extra": 1},
            b"\xff",
        ),
    )
    assert response.status_code == 200
    result = response.json()
    assert (result["accepted"], result["superseded"], result["rejected"]) == (4, 1, 5)
    assert [(e["line"], e["code"]) for e in result["errors"]] == [
        (2, "bad-json"),
        (6, "invalid"),
        (7, "too-large"),
        (10, "invalid"),
        (11, "bad-json"),
    ]
    assert [c.page.revision for c in fakes.pages.changes["town:en:a"]] == [2, 3]
    assert [c.op for c in fakes.pages.changes["town:hu:c"]] == ["delete"]
    assert [c.op for c in fakes.pages.changes["town:hu:b"]] == ["upsert"]  # a language the site does not list


async def test_saves_and_bulk_changes_go_in_lanes_of_their_own(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await client.put(f"{PAGES}/fees", json=PAGE)
    await client.delete(f"{PAGES}/fees")
    await client.post(f"{PAGES}:bulk", content=ndjson({"page": {"id": "a"}}))
    assert fakes.pages.lanes == ["save", "save", "bulk"]


async def test_bulk_goes_to_the_log_in_batches(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    body = ndjson(*({"page": {"id": f"p{n}"}} for n in range(1_201)))
    result = (await client.post(f"{PAGES}:bulk", content=body)).json()
    assert result["accepted"] == 1_201
    assert fakes.pages.batches == [500, 500, 201]


@pytest.mark.parametrize("piece", [1, 7, 1_000])
async def test_bulk_lines_however_they_arrive(client: httpx.AsyncClient, fakes: FakePorts, piece: int) -> None:
    body = ndjson({"page": {"id": "a", "title": "Ä"}}, b"", b"\r", {"page": {"id": "b"}}) + b"\r\n"

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), piece):
            yield body[start : start + piece]

    result = (await client.post(f"{PAGES}:bulk", content=pieces())).json()
    assert result == {"accepted": 2, "rejected": 0, "superseded": 0, "errors": []}
    assert set(fakes.pages.changes) == {"town:en:a", "town:en:b"}


async def test_a_bulk_line_without_end_is_skipped_not_stored(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"page": {"id": "a"}}\n{"page": {"id": "'
        for _ in range(100):
            yield b"x" * 100_000
        yield b'"}}\n{"page": {"id": "b"}}'

    result = (await client.post(f"{PAGES}:bulk", content=pieces())).json()
    assert (result["accepted"], [(e["line"], e["code"]) for e in result["errors"]]) == (2, [(2, "too-large")])
    assert set(fakes.pages.changes) == {"town:en:a", "town:en:b"}


async def test_one_refused_change_does_not_take_its_batch_along(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.pages.refuses = lambda change: TooLarge("as a message") if change.page.id == "b" else None
    body = ndjson({"page": {"id": "a"}}, {"page": {"id": "b"}}, {"page": {"id": "c"}})
    result = (await client.post(f"{PAGES}:bulk", content=body)).json()
    assert (result["accepted"], result["errors"]) == (
        2,
        [{"line": 2, "code": "too-large", "message": "as a message"}],
    )


async def test_bulk_without_a_broker_says_how_far_it_came(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.pages.error = Retryable("no broker")
    response = await client.post(f"{PAGES}:bulk", content=ndjson({"page": {"id": "a"}}))
    assert assert_problem(response, 503, "unavailable")["accepted"] == 0


@pytest.mark.parametrize("body", [b"", b"\n \r\n\n"])
async def test_a_bulk_without_a_line_is_no_success(client: httpx.AsyncClient, body: bytes) -> None:
    assert_problem(await client.post(f"{PAGES}:bulk", content=body), 400, "body-empty")


@pytest.mark.parametrize(("lines", "accepted"), [(0, 0), (1, 0), (600, 500)])
async def test_a_body_that_something_on_its_way_has_shortened_is_refused(
    client: httpx.AsyncClient, fakes: FakePorts, lines: int, accepted: int
) -> None:
    """Kludex/uvicorn issue 2722: with httptools, the body of a request that offers an upgrade is empty."""
    body = ndjson(*({"page": {"id": f"p{n}"}} for n in range(lines)))
    announced = {"Content-Length": str(len(body) + 1)}
    refused = await client.post(f"{PAGES}:bulk", content=body, headers=announced)
    assert assert_problem(refused, 400, "body-short")["accepted"] == accepted
    assert sum(fakes.pages.batches) == accepted
    one = await client.put(f"{PAGES}/fees", content=json.dumps(PAGE).encode(), headers={"Content-Length": "1000"})
    assert_problem(one, 400, "body-short")
