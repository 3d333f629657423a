"""Names by which the gateway may be called: a page elsewhere whose name leads here is none of ours."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from gateway.app import create_app
from gateway.edge.peers import Hosts, Peers
from pipelines.runtime.errors import SettingsError
from tests.edge import assert_problem, edge_settings
from tests.fakes.ports import FakePorts
from wiring.settings_file import load

HOSTS = Hosts(["chat.town.example"], ["https://www.town.example:8443"])
TOKENS = "/v1/sites/town/visitor-tokens"


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("chat.town.example", True),
        ("CHAT.town.example.:8000", True),
        ("www.town.example", True),  # the host of an origin
        ("localhost:8000", True),
        ("town.localhost", True),
        ("127.0.0.1:8000", True),
        ("10.1.2.3", True),  # a pod, as a probe calls it
        ("[::1]:8000", True),
        ("gateway:8000", True),  # a container, a machine of the intranet
        ("evil.example:8000", False),
        ("chat.town.example.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.1", False),
        ("", False),
        (":8000", False),
        ("[::1", False),
        ("x" * 300 + ".example", False),
    ],
)
def test_addresses_and_what_is_named_are_known(host: str, known: bool) -> None:
    assert HOSTS.knows(host) is known
    assert HOSTS.is_own_page(f"http://{host}", host) is known


async def test_a_page_whose_name_leads_here_gets_no_token(stranger: httpx.AsyncClient) -> None:
    rebound = {"Host": "evil.example:8000", "Origin": "http://evil.example:8000"}
    with capture_logs() as logs:
        refused = await stranger.post(TOKENS, headers=rebound)
    said = assert_problem(refused, 403, "origin-not-allowed")["detail"]
    assert "gateway.test" not in said
    assert [each["host"] for each in logs if "PAGEWIRE_HOSTS" in each["event"]] == ["evil.example"]
    for host in ("gateway.test", "localhost:8000", "10.1.2.3:8000", "www.town.example"):
        own = {"Host": host, "Origin": f"http://{host}"}
        assert (await stranger.post(TOKENS, headers=own)).status_code == 200
    # A page that the site names may call us by any name: it is known by its origin.
    named = rebound | {"Origin": "https://www.town.example"}
    assert (await stranger.post(TOKENS, headers=named)).status_code == 200


async def test_whom_a_proxy_signs_in_is_nobody_under_a_strange_name(tmp_path: Path, fakes: FakePorts) -> None:
    proxy = {"proxies": ["10.0.3.7"], "roles": [{"group": "it", "scope": "admin"}]}
    app: FastAPI = create_app(edge_settings(tmp_path, proxy_sign_in=proxy), fakes.ports)
    anna = {"X-Forwarded-Email": "anna@town.example", "X-Forwarded-Groups": "it"}
    transport = httpx.ASGITransport(Peers(app, ()), client=("10.0.3.7", 4180))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as browser:
        assert (await browser.get("/console/keys", headers=anna)).status_code == 200
        refused = await browser.get("/console/keys", headers=anna | {"Host": "evil.example"})
        assert (refused.status_code, "anna" in refused.text) == (421, False)
        # A key signs in under any name: its cookie is sent to that name alone.
        assert (await browser.get("/console/sign-in", headers={"Host": "evil.example"})).status_code == 200


@pytest.mark.parametrize("wrong", ["https://chat.town.example", "chat.town.example:443", "*.town.example", "a/b"])
def test_what_is_no_name_is_refused_by_name(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(
        SettingsError, match=r"hosts \(PAGEWIRE_HOSTS\): .*; for example chat\.example\.org$"
    ) as refused:
        load({"PAGEWIRE_HOME": str(tmp_path), "PAGEWIRE_HOSTS": f"ok.example, {wrong}"})
    assert wrong in str(refused.value)
