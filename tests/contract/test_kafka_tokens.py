"""Tokens for Kafka, from an endpoint that speaks OAuth 2.0 over HTTP."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import BasicAuth, web
from aiohttp.test_utils import TestServer

from adapters.kafka import access
from adapters.kafka.access import ClientCredentials, TokenMissing
from adapters.kafka.settings import KafkaSettings


@dataclass
class Endpoint:
    """Answers as it is told."""

    url: str = ""
    status: int = 200
    answer: Any = None
    asked: list[dict[str, str]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        form = await request.post()
        login = BasicAuth.decode(request.headers["Authorization"])
        self.asked.append({"login": f"{login.login}:{login.password}", **{k: str(v) for k, v in form.items()}})
        given = {"access_token": f"t{len(self.asked)}", "expires_in": 100} if self.answer is None else self.answer
        return web.json_response(given, status=self.status)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()
    app = web.Application()
    app.router.add_post("/token", made.take)
    async with TestServer(app) as server:
        made.url = str(server.make_url("/token"))
        yield made


def provider(endpoint: Endpoint, **more: str) -> ClientCredentials:
    return ClientCredentials(
        KafkaSettings(
            kafka_security_protocol="SASL_PLAINTEXT",
            kafka_sasl_mechanism="OAUTHBEARER",
            kafka_oauth_url=endpoint.url,
            kafka_user="us",
            kafka_password="hush",
            **more,
        )
    )


async def test_a_token_is_kept_until_most_of_its_life_is_over(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(access, "monotonic", lambda: now)
    tokens = provider(endpoint, kafka_oauth_scope="kafka")
    assert [await tokens.token(), await tokens.token()] == ["t1", "t1"]
    now += 79
    assert await tokens.token() == "t1"
    now += 2
    assert await tokens.token() == "t2"
    assert endpoint.asked[0] == {"login": "us:hush", "grant_type": "client_credentials", "scope": "kafka"}


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (
            401,
            {"error": "invalid_client", "error_description": "hush is wrong"},
            "401 invalid_client): PAGEWIRE_",
        ),
        (400, {"error": "invalid_scope"}, "PAGEWIRE_KAFKA_OAUTH_SCOPE"),
        (404, {}, "(PAGEWIRE_KAFKA_OAUTH_URL) answers 404"),
        (200, {"id": 1}, "is it the token endpoint?"),
        (200, [], "is it the token endpoint?"),
    ],
)
async def test_no_token_names_the_setting(endpoint: Endpoint, status: int, answer: Any, said: str) -> None:
    endpoint.status, endpoint.answer = status, answer
    with pytest.raises(TokenMissing) as refused:
        await provider(endpoint).token()
    assert said in str(refused.value)
    assert "hush" not in str(refused.value)


async def test_an_endpoint_that_is_away_is_named(endpoint: Endpoint) -> None:
    endpoint.url = "http://127.0.0.1:9/token"
    with pytest.raises(TokenMissing, match=r"PAGEWIRE_KAFKA_OAUTH_URL\) does not answer"):
        await provider(endpoint).token()


async def test_an_authority_of_ones_own_is_trusted_by_the_file_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/howto/deploy.md says of SSL_CERT_FILE."""
    authority, made = trustme.CA(), Endpoint()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    app = web.Application()
    app.router.add_post("/token", made.take)
    server = TestServer(app)
    await server.start_server(ssl=tls)
    made.url = str(server.make_url("/token"))
    try:
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        with pytest.raises(TokenMissing, match="CERTIFICATE_VERIFY_FAILED"):
            await provider(made).token()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert await provider(made).token() == "t1"
    finally:
        await server.close()
