"""Signed webhooks: who may hand over changes, and what becomes of each line."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from gateway.app import create_app
from gateway.edge.bodies import BODY_TIMEOUT, STALL_TIMEOUT
from pipelines.runtime.errors import Retryable, TooLarge
from schemas.topics import MAX_MESSAGE_BYTES
from tests import skipping_time
from tests.edge import assert_problem, edge_settings
from tests.fakes.ports import FakeIntake, FakePorts
from tests.signing import OLD_SECRET, SECRET, signature, signed
from wiring.settings import Settings

HOOK = "/v1/sites/town/webhooks/blog"
CONNECTORS: dict[str, dict[str, Any]] = {
    "town": {
        "blog": {"kind": "push", "secret": SECRET},
        "files": {"kind": "folder", "path": "pages"},
        "reader": {"kind": "wordpress", "url": "https://www.town.example"},
    },
    "other": {"blog": {"kind": "push", "secret": OLD_SECRET}},
}


@pytest.fixture
def settings_(tmp_path: Path) -> Settings:
    sites = {name: {"languages": ["en"], "connectors": CONNECTORS[name]} for name in CONNECTORS}
    return edge_settings(tmp_path, sites=sites)


@pytest.fixture
async def sender(settings_: Settings, fakes: FakePorts) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(settings_, fakes.ports))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as client:
        yield client


def ndjson(*lines: Any) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def upsert(id: str = "fees", revision: int | None = 7, **more: Any) -> dict[str, Any]:
    page = {"id": id, **more} | ({} if revision is None else {"revision": revision})
    return {"op": "upsert", "page": page}


BODY = ndjson(upsert(title="Fees"))


async def test_a_signed_change_is_accepted_in_the_save_lane_as_the_connectors(
    sender: httpx.AsyncClient, fakes: FakePorts
) -> None:
    response = await sender.post(HOOK, content=BODY, headers=signed(BODY))
    assert response.status_code == 200
    assert response.json() == {"accepted": 1, "rejected": 0, "superseded": 0, "errors": []}
    [change] = fakes.pages.changes["town:en:fees"]
    assert (change.op, change.page.title) == ("upsert", "Fees")
    assert (fakes.pages.lanes, fakes.pages.sources) == (["save"], ["blog"])


async def test_upserts_and_deletes_in_order(sender: httpx.AsyncClient, fakes: FakePorts) -> None:
    body = ndjson(upsert(revision=1), {"op": "delete", "page": {"id": "fees", "lang": "en", "revision": 2}})
    assert (await sender.post(HOOK, content=body, headers=signed(body))).json()["accepted"] == 2
    assert [change.op for change in fakes.pages.changes["town:en:fees"]] == ["upsert", "delete"]


async def test_a_first_sync_goes_in_the_bulk_lane(sender: httpx.AsyncClient, fakes: FakePorts) -> None:
    await sender.post(HOOK, content=BODY, headers=signed(BODY) | {"Pagewire-Lane": "bulk"})
    assert fakes.pages.lanes == ["bulk"]
    wrong = await sender.post(HOOK, content=BODY, headers=signed(BODY) | {"Pagewire-Lane": "fast"})
    assert_problem(wrong, 422, "invalid")


async def test_an_empty_body_is_a_test_of_the_connection(sender: httpx.AsyncClient, fakes: FakePorts) -> None:
    response = await sender.post(HOOK, content=b"", headers=signed(b""))
    assert (response.status_code, response.json()["accepted"]) == (200, 0)
    assert fakes.pages.changes == {}
    assert_problem(await sender.post(HOOK, content=b"", headers=signed(b"x")), 401, "bad-signature")


async def test_one_of_several_signatures_is_enough(sender: httpx.AsyncClient) -> None:
    headers = signed(BODY)
    old = signature(OLD_SECRET, headers["webhook-id"], headers["webhook-timestamp"], BODY)
    for value in (f"{old} {headers['webhook-signature']}", f"{headers['webhook-signature']} {old} v2,other"):
        response = await sender.post(HOOK, content=BODY, headers=headers | {"webhook-signature": value})
        assert response.status_code == 200


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"webhook-signature": None}, "missing: no webhook-signature"),
        ({"webhook-id": None}, "missing: no webhook-id"),
        ({"webhook-timestamp": None}, "missing: no webhook-timestamp"),
        ({"webhook-id": "msg_2"}, "wrong"),
        ({"webhook-timestamp": "{earlier}"}, "wrong"),
        ({"webhook-timestamp": "soon"}, "wrong: webhook-timestamp is not"),
        ({"webhook-timestamp": "-1"}, "wrong: webhook-timestamp is not"),
        ({"webhook-timestamp": "9" * 500}, "wrong: webhook-timestamp is not"),
        ({"webhook-timestamp": "٣"}, "wrong"),
        ({"webhook-signature": "v1,"}, "wrong"),
        ({"webhook-signature": "v1,bm90IG91cnM="}, "wrong"),
        ({"webhook-signature": "x" * 2_000}, "wrong: webhook-signature is too long"),
    ],
)
async def test_a_bad_signature_is_refused_and_says_which(
    sender: httpx.AsyncClient, fakes: FakePorts, change: dict[str, str | None], said: str
) -> None:
    earlier = int(time.time()) - 5
    headers = {n: value.format(earlier=earlier) for n, value in {**signed(BODY), **change}.items() if value is not None}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    problem = assert_problem(await sender.post(HOOK, content=BODY, headers=raw), 401, "bad-signature")
    assert problem["detail"].startswith(said)
    assert fakes.pages.changes == {}


@pytest.mark.parametrize(("age", "status"), [(290, 200), (310, 401), (-290, 200), (-310, 401)])
async def test_the_window_is_five_minutes_either_way(sender: httpx.AsyncClient, age: float, status: int) -> None:
    response = await sender.post(HOOK, content=BODY, headers=signed(BODY, age=age))
    assert response.status_code == status
    if status == 401:
        assert "too old" in assert_problem(response, 401, "bad-signature")["detail"]


async def test_a_signature_of_another_sites_secret_is_wrong(sender: httpx.AsyncClient, fakes: FakePorts) -> None:
    assert_problem(await sender.post(HOOK, content=BODY, headers=signed(BODY, OLD_SECRET)), 401, "bad-signature")
    other = await sender.post("/v1/sites/other/webhooks/blog", content=BODY, headers=signed(BODY))
    assert_problem(other, 401, "bad-signature")
    assert fakes.pages.changes == {}


@pytest.mark.parametrize("at", range(0, len(BODY), 5))
async def test_a_body_that_differs_in_one_byte_is_refused(sender: httpx.AsyncClient, fakes: FakePorts, at: int) -> None:
    body = BODY[:at] + bytes([BODY[at] ^ 1]) + BODY[at + 1 :]
    assert_problem(await sender.post(HOOK, content=body, headers=signed(BODY)), 401, "bad-signature")
    assert fakes.pages.changes == {}


@pytest.mark.parametrize(
    "path",
    [
        "/v1/sites/town/webhooks/none",
        "/v1/sites/nowhere/webhooks/blog",
        "/v1/sites/town/webhooks/files",  # a folder sends nothing
        "/v1/sites/town/webhooks/reader",  # read only: it has no secret
        "/v1/sites/town/webhooks/%00",
    ],
)
async def test_what_is_not_there_looks_all_the_same(sender: httpx.AsyncClient, path: str) -> None:
    problem = assert_problem(await sender.post(path, content=BODY, headers=signed(BODY)), 404, "unknown-connector")
    assert problem["detail"] == "no connector of this name takes webhooks for this site"


async def test_a_replay_inside_the_window_changes_nothing(sender: httpx.AsyncClient, fakes: FakePorts) -> None:
    old, headers = BODY, signed(BODY)
    await sender.post(HOOK, content=old, headers=headers)
    newer = ndjson(upsert(title="New fees", revision=8))
    await sender.post(HOOK, content=newer, headers=signed(newer, id="msg_2"))
    replayed = await sender.post(HOOK, content=old, headers=headers)
    assert (replayed.status_code, replayed.json()["superseded"]) == (200, 1)
    assert fakes.pages.changes["town:en:fees"][-1].page.title == "New fees"


async def test_a_line_without_revision_is_rejected_the_others_are_not(
    sender: httpx.AsyncClient, fakes: FakePorts
) -> None:
    body = ndjson(upsert("a"), upsert("b", None), {"op": "delete", "page": {"id": "c"}}, "nonsense", upsert("d"))
    result = (await sender.post(HOOK, content=body, headers=signed(body))).json()
    assert (result["accepted"], result["rejected"]) == (2, 3)
    assert [(e["line"], e["code"]) for e in result["errors"]] == [
        (2, "no-revision"), (3, "no-revision"), (4, "invalid"),
    ]  # fmt: skip
    assert set(fakes.pages.changes) == {"town:en:a", "town:en:d"}


async def test_a_page_that_the_log_refuses_is_named_and_stops_no_other(
    sender: httpx.AsyncClient, fakes: FakePorts
) -> None:
    fakes.pages.refuses = lambda change: TooLarge("too large") if change.page.id == "b" else None
    body = ndjson(upsert("a"), upsert("b"), upsert("c"))
    result = (await sender.post(HOOK, content=body, headers=signed(body))).json()
    assert (result["accepted"], result["errors"]) == (2, [{"line": 2, "code": "too-large", "message": "too large"}])


async def test_without_a_broker_the_sender_is_told_when_to_come_again(
    sender: httpx.AsyncClient, fakes: FakePorts
) -> None:
    fakes.pages.error = Retryable("no broker")
    response = await sender.post(HOOK, content=BODY, headers=signed(BODY))
    assert_problem(response, 503, "unavailable")
    assert int(response.headers["retry-after"]) > 0


async def test_more_than_five_hundred_lines_are_too_many(sender: httpx.AsyncClient, fakes: FakePorts) -> None:
    body = ndjson(*(upsert(f"p{n}") for n in range(500)))
    assert (await sender.post(HOOK, content=body, headers=signed(body))).json()["accepted"] == 500
    body += ndjson(upsert("p500"))
    assert_problem(await sender.post(HOOK, content=body, headers=signed(body)), 413, "too-large")
    assert_problem(await sender.post(HOOK, content=body[:-1], headers=signed(body[:-1])), 413, "too-large")
    assert "town:en:p500" not in fakes.pages.changes


async def test_empty_lines_are_no_lines(sender: httpx.AsyncClient) -> None:
    body = b"\n\r\n".join(ndjson(upsert(f"p{n}")) for n in range(500))
    assert (await sender.post(HOOK, content=body, headers=signed(body))).json()["accepted"] == 500


async def test_a_body_over_the_limit_is_not_read_to_its_end(sender: httpx.AsyncClient) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 100_000
            await asyncio.sleep(0)

    response = await sender.post(HOOK, content=endless(), headers=signed(b""))
    assert_problem(response, 413, "too-large")
    assert read < 100


@pytest.mark.parametrize(
    ("path", "change", "status", "code"),
    [
        (HOOK, {"webhook-signature": ""}, 401, "bad-signature"),
        (HOOK, {"webhook-signature": "v1,bm90IGFuIEhNQUM="}, 401, "bad-signature"),
        (HOOK, {"webhook-signature": "v1," + "!" * 44}, 401, "bad-signature"),
        (HOOK, {"webhook-signature": "v2," + "A" * 43 + "="}, 401, "bad-signature"),
        (HOOK, {"webhook-timestamp": "1"}, 401, "bad-signature"),
        ("/v1/sites/nowhere/webhooks/blog", {}, 404, "unknown-connector"),
        ("/v1/sites/town/webhooks/none", {}, 404, "unknown-connector"),
        (HOOK, {"content-length": "1000000000"}, 413, "too-large"),
    ],
)
async def test_what_the_headers_refuse_is_refused_unread(
    sender: httpx.AsyncClient, path: str, change: dict[str, str], status: int, code: str
) -> None:
    async def body() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    assert_problem(await sender.post(path, content=body(), headers=signed(BODY) | change), status, code)


async def test_a_signature_is_checked_however_the_body_comes(sender: httpx.AsyncClient, fakes: FakePorts) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(len(BODY)):
            yield BODY[at : at + 1]

    assert (await sender.post(HOOK, content=pieces(), headers=signed(BODY))).json()["accepted"] == 1
    assert_problem(await sender.post(HOOK, content=pieces(), headers=signed(BODY[:-1])), 401, "bad-signature")
    assert len(fakes.pages.changes["town:en:fees"]) == 1


async def test_a_delivery_is_no_larger_than_a_page_in_the_log(fakes: FakePorts, tmp_path: Path) -> None:
    sites = {"town": {"languages": ["en"], "connectors": CONNECTORS["town"]}}
    roomy = edge_settings(tmp_path, sites=sites, content_limit=50 * 1024 * 1024)
    fits, over = b" " * MAX_MESSAGE_BYTES, b" " * (MAX_MESSAGE_BYTES + 1)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(roomy, fakes.ports)), base_url="http://gateway.test"
    ) as client:
        assert (await client.post(HOOK, content=fits, headers=signed(fits))).status_code == 200
        assert_problem(await client.post(HOOK, content=over, headers=signed(over)), 413, "too-large")


@pytest.mark.parametrize(
    ("pause", "after", "why"),
    [(29.0, BODY_TIMEOUT, "not complete after 120 s"), (3600.0, STALL_TIMEOUT, "no data for 30 s")],
)
def test_a_body_that_drips_is_let_go(
    settings_: Settings, fakes: FakePorts, pause: float, after: float, why: str
) -> None:
    async def dripping() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(pause)

    async def post() -> tuple[httpx.Response, float]:
        transport = httpx.ASGITransport(create_app(settings_, fakes.ports))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as client:
            begin = asyncio.get_running_loop().time()
            response = await client.post(HOOK, content=dripping(), headers=signed(b""))
            return response, asyncio.get_running_loop().time() - begin

    response, seconds = skipping_time.run(post())
    assert why in assert_problem(response, 408, "body-stalled")["detail"]
    assert response.headers["connection"] == "close"
    assert seconds == pytest.approx(after, abs=5)


async def test_neither_secret_nor_signature_nor_content_is_logged(sender: httpx.AsyncClient) -> None:
    headers = signed(BODY)
    with capture_logs(processors=[merge_contextvars]) as logs:
        good = await sender.post(HOOK, content=BODY, headers=headers)
        bad = await sender.post(HOOK, content=BODY + b" ", headers=headers)
    said = str(logs) + good.text + bad.text
    for secret in (SECRET, headers["webhook-signature"], "Fees"):
        assert secret not in said


LINE = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    ).map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["upsert", "delete", "move"]),
            "page": st.fixed_dictionaries(
                {"id": st.text(max_size=5)},
                optional={
                    "revision": st.integers(-1, 2**61) | st.text(max_size=3),
                    "lang": st.sampled_from(["de", "DE", "", "x"]),
                    "content": st.text(max_size=30),
                    "attachments": st.just([{"path": "a", "url": "b"}]),
                },
            ),
        }
    ).map(lambda value: json.dumps(value).encode()),
)


@given(lines=st.lists(LINE, max_size=6), end=st.sampled_from([b"", b"\n", b"\r\n"]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_is_signed_every_line_is_accounted_for(
    settings_: Settings, lines: list[bytes], end: bytes
) -> None:
    fakes = FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}))
    body = b"\n".join(lines) + end
    transport = httpx.ASGITransport(create_app(settings_, fakes.ports))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as client:
        response = await client.post(HOOK, content=body, headers=signed(body))
    assert response.status_code == 200
    result = response.json()
    written = [number for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    assert result["accepted"] + result["rejected"] + result["superseded"] == len(written)
    assert {error["line"] for error in result["errors"]} <= set(written)
    accepted = sum(len(history) for history in fakes.pages.changes.values())
    assert accepted == result["accepted"]
    assert all(change.page.revision is not None for changes in fakes.pages.changes.values() for change in changes)
