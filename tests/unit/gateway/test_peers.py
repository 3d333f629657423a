"""Whom a request comes from, behind proxies and past them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from gateway.edge.peers import Peers, peer_of
from gateway.edge.rates import ADDRESS_FACTOR
from gateway.main import server_config
from pipelines.runtime.errors import SettingsError
from tests.edge import PAGE_ORIGIN
from wiring.settings import EVERYBODY, EdgeSettings
from wiring.settings_file import load

PROXY, CDN, VISITOR, FORGED = "10.0.3.7", "198.51.100.4", "203.0.113.9", "192.0.2.66"


async def seen(trusted: str, peer: str, *forwarded: str, proto: str = "") -> tuple[str, str, str | None]:
    """Address and scheme as the app sees them, and the address of the connection."""
    found: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append((scope["client"][0], scope["scheme"], peer_of(scope)))

    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    headers += [(b"x-forwarded-proto", proto.encode())] if proto else []
    settings = EdgeSettings(forwarded_allow_ips=trusted)  # type: ignore[arg-type]
    scope = {"type": "http", "client": (peer, 4180), "scheme": "http", "headers": headers}
    await Peers(app, settings.forwarded_allow_ips)(scope, None, None)  # type: ignore[arg-type]
    return found[0]


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "address"),
    [
        (PROXY, VISITOR, [FORGED], VISITOR),  # past the proxy
        (PROXY, PROXY, [], PROXY),
        (PROXY, PROXY, [VISITOR], VISITOR),  # a proxy that replaces the header
        (PROXY, PROXY, [f"{FORGED}, {VISITOR}"], VISITOR),  # one that appends to it
        (PROXY, PROXY, [FORGED, VISITOR], VISITOR),  # one that adds a header of its own
        ("10.0.0.0/8", PROXY, [f"{FORGED}, {VISITOR}, 10.0.3.8"], VISITOR),  # two proxies
        (f"10.0.0.0/8, {CDN}", PROXY, [f"{FORGED}, {VISITOR}, {CDN}"], VISITOR),
        ("10.0.0.0/8", PROXY, ["10.0.3.9, 10.0.3.8"], "10.0.3.9"),  # a program inside
        ("10.0.0.0/8", f"::ffff:{PROXY}", [VISITOR], VISITOR),  # a socket for both kinds
        (PROXY, PROXY, [f"{VISITOR}:50000"], VISITOR),
        (PROXY, PROXY, ["[2001:db8::1]:443"], "2001:db8::1"),
        (PROXY, PROXY, ["2001:db8::1"], "2001:db8::1"),
        (PROXY, PROXY, [f"{FORGED}, unknown"], PROXY),  # what the proxy itself does not know
        (PROXY, PROXY, ["", " , "], PROXY),
        ("*", PROXY, [f"{FORGED}, {VISITOR}"], VISITOR),
        ("*", PROXY, [f"{PROXY}, {FORGED}, {VISITOR}"], VISITOR),
        ("*", PROXY, [VISITOR], VISITOR),
        (f"*, {CDN}", PROXY, [f"{FORGED}, {VISITOR}, {CDN}"], VISITOR),
    ],
)
async def test_the_last_who_is_no_proxy_is_the_visitor(
    trusted: str, peer: str, forwarded: list[str], address: str
) -> None:
    assert await seen(trusted, peer, *forwarded) == (address, "http", peer)


async def test_a_proxy_says_whether_the_browser_speaks_tls() -> None:
    assert (await seen(PROXY, PROXY, proto="https"))[1] == "https"
    for trusted, peer, proto in ((PROXY, VISITOR, "https"), (PROXY, PROXY, "ftp"), (PROXY, PROXY, "")):
        assert (await seen(trusted, peer, proto=proto))[1] == "http"


@pytest.mark.parametrize("trusted", [PROXY, EVERYBODY])
async def test_forged_addresses_buy_no_tokens(app: FastAPI, trusted: str) -> None:
    """Behind a proxy that appends: five times the rate of a visitor for the address, whatever it says of itself."""
    settings = app.state.edge.settings.model_copy(
        update={"forwarded_allow_ips": EdgeSettings(forwarded_allow_ips=trusted).forwarded_allow_ips}  # type: ignore[arg-type]
    )
    app.state.edge = type(app.state.edge)(**vars(app.state.edge) | {"settings": settings})
    served = server_config(app).app
    transport = httpx.ASGITransport(served, client=(PROXY, 4180))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as proxy:
        got = [
            (
                await proxy.post(
                    "/v1/sites/town/visitor-tokens",
                    headers={"Origin": PAGE_ORIGIN, "X-Forwarded-For": f"192.0.2.{n}, {VISITOR}"},
                )
            ).status_code
            for n in range(130)
        ]
    assert (got.count(200), got.count(429)) == (20 * ADDRESS_FACTOR, 130 - 20 * ADDRESS_FACTOR)


@pytest.mark.parametrize("wrong", ["proxy", "10.0.0.5/8", "10.0.0.0/8 10.1.0.0/8", "**"])
@pytest.mark.parametrize("name", ["FORWARDED_ALLOW_IPS", "PAGEWIRE_FORWARDED_ALLOW_IPS"])
def test_what_is_no_address_is_refused_by_name(tmp_path: Path, wrong: str, name: str) -> None:
    with pytest.raises(SettingsError, match=r"forwarded_allow_ips.*172\.16\.0\.0/12") as refused:
        load({"PAGEWIRE_HOME": str(tmp_path), name: wrong})
    assert wrong in str(refused.value)
