"""How every Kafka client connects: address, TLS, login. And why a connection fails, with the setting to check.

aiokafka logs why a connection failed and then raises "Unable to bootstrap" or "not ready". So when a client does not
start, `refusal` connects once more without a client, and gets the original error.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable
from time import monotonic
from typing import Any

import httpx
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnsupportedSaslMechanismError,
    for_code,
)
from aiokafka.protocol.metadata import MetadataRequest

from adapters.kafka.settings import KafkaSettings
from adapters.tls import causes, handshake_failure
from pipelines.runtime.errors import READ_AT_START, Retryable, SettingsError

PROBE_TIMEOUT = 3.0  # seconds for one connection that finds out why a broker refuses us
TOKEN_TIMEOUT = 10.0  # seconds for the answer of a token endpoint
TOKEN_SPENT = 0.8  # share of a token's life, after which it is renewed: clocks differ, and a login takes time
# The errors of a missing ACL.
FORBIDDEN: tuple[type[KafkaError], ...] = (
    TopicAuthorizationFailedError,
    GroupAuthorizationFailedError,
    ClusterAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
_USER = "our user or its password: PAGEWIRE_KAFKA_USER, PAGEWIRE_KAFKA_PASSWORD"
MISSING_RIGHT = "`pagewire topics --acls` lists the rights that PAGEWIRE_KAFKA_USER, or our certificate, needs"


class KafkaDenied(Retryable):
    """Kafka refuses our certificate, user or password, or a right is missing, or we do not trust Kafka."""

    code = "kafka-denied"


class KafkaDown(Retryable):
    """The broker does not answer."""

    code = "kafka-unavailable"


class TokenMissing(KafkaError):  # type: ignore[misc]
    """A token endpoint gave no token. A KafkaError, since aiokafka's tasks survive no other."""

    retriable = True


def bootstrap_servers(settings: KafkaSettings) -> str:
    """The configured brokers, `host:port,...`. Raises: SettingsError: none is named."""
    if settings.kafka is None:
        raise SettingsError("kafka (PAGEWIRE_KAFKA): no broker is named, and no local engine's address was filled in")
    return settings.kafka


def connection(settings: KafkaSettings, bootstrap: str | None = None) -> dict[str, Any]:
    """The connection arguments of aiokafka's clients.

    Args:
        bootstrap: Brokers other than the configured ones.

    Raises:
        SettingsError: no broker is named, or a TLS file is missing now.
    """
    return {"bootstrap_servers": bootstrap or bootstrap_servers(settings), **security(settings)}


def security(settings: KafkaSettings) -> dict[str, Any]:
    """The same without the address. Each call makes a new token provider, since Faust's client has its own loop."""
    found: dict[str, Any] = {"security_protocol": settings.kafka_security_protocol}
    if (tls := settings.kafka_tls) is not None:
        try:
            found["ssl_context"] = tls.context()
        except ValueError as err:  # the file was readable at the start
            raise SettingsError(str(err)) from None
    mechanism = settings.kafka_sasl_mechanism
    if mechanism is None:
        return found
    found["sasl_mechanism"] = mechanism
    if mechanism == "OAUTHBEARER":
        return found | {"sasl_oauth_token_provider": ClientCredentials(settings)}
    assert settings.kafka_password, "checked with the settings"
    return found | {
        "sasl_plain_username": settings.kafka_user,
        "sasl_plain_password": settings.kafka_password.get_secret_value(),
    }


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens by OAuth 2.0 client credentials, https://datatracker.ietf.org/doc/html/rfc6749#section-4.4."""

    def __init__(self, settings: KafkaSettings) -> None:
        assert settings.kafka_oauth_url, "checked with the settings"
        assert settings.kafka_user
        assert settings.kafka_password
        self._url = settings.kafka_oauth_url
        self._login = (settings.kafka_user, settings.kafka_password)
        self._scope = settings.kafka_oauth_scope
        self._token = ""
        self._until = 0.0

    async def token(self) -> str:
        """Raises: TokenMissing: with the setting to check."""
        if monotonic() >= self._until:
            asked = monotonic()
            self._token, seconds = await self._fetch()
            self._until = asked + seconds * TOKEN_SPENT
        return self._token

    async def _fetch(self) -> tuple[str, float]:
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        client, secret = self._login
        try:
            async with httpx.AsyncClient(timeout=TOKEN_TIMEOUT) as http:
                answer = await http.post(self._url, data=form, auth=(client, secret.get_secret_value()))
        except httpx.HTTPError as err:
            raise TokenMissing(f"{self._url} (PAGEWIRE_KAFKA_OAUTH_URL) does not answer: {err!r}") from err
        if answer.status_code in (400, 401, 403):
            raise TokenMissing(
                f"{self._url} gives no token ({answer.status_code} {_error(answer)}): PAGEWIRE_KAFKA_USER, "
                "PAGEWIRE_KAFKA_PASSWORD, PAGEWIRE_KAFKA_OAUTH_SCOPE"
            )
        try:
            answer.raise_for_status()
            given = answer.json()
            return str(given["access_token"]), float(given.get("expires_in", 0))
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as err:
            raise TokenMissing(
                f"{self._url} (PAGEWIRE_KAFKA_OAUTH_URL) answers {answer.status_code} and no token: is it the token "
                "endpoint?"
            ) from err


def _error(answer: httpx.Response) -> str:
    """OAuth's error code; the rest of the answer may hold secrets."""
    try:
        return str(answer.json()["error"])[:80]
    except (ValueError, KeyError, TypeError):
        return ""


def forbidden(err: BaseException) -> str | None:
    """The message for a missing right; None: the error is another one."""
    for one in causes(err):
        if isinstance(one, FORBIDDEN):
            of = ", ".join(str(arg) for arg in one.args if arg)
            return f"{type(one).__name__}{f' ({of})' if of else ''}: {MISSING_RIGHT}"
    return None


def denied(code: int, what: str) -> KafkaDenied | None:
    """The error for a code in a broker's answer; None: it is about no right. `what` begins the message."""
    error = for_code(code)
    return KafkaDenied(f"{what}: {error.__name__}: {MISSING_RIGHT}") if error in FORBIDDEN else None


async def refusal(settings: KafkaSettings, bootstrap: str | None = None) -> KafkaDenied | None:
    """Why brokers refuse clients of these settings; None: the cause is neither TLS nor the login."""
    hosts = collect_hosts(bootstrap or bootstrap_servers(settings), randomize=False)
    looks = await asyncio.gather(*(_probe(host, port, settings) for host, port, _ in hosts))
    for (host, port, _), said in zip(hosts, looks, strict=True):
        if said is not None:
            return KafkaDenied(f"Kafka at {host}:{port} {said}; {READ_AT_START}")
    return None


async def _probe(host: str, port: int, settings: KafkaSettings) -> str | None:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            probe = await create_conn(host, port, request_timeout_ms=int(PROBE_TIMEOUT * 1000), **security(settings))
    except (KafkaError, OSError, TimeoutError, ValueError) as err:
        return connection_problem(err, settings)
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            await probe.send(MetadataRequest([]))  # without a login, a broker answers requests for its versions only
    except (KafkaError, OSError, TimeoutError) as err:
        return connection_problem(err, settings)
    finally:
        probe.close()
    return None


def connection_problem(err: BaseException, settings: KafkaSettings) -> str | None:
    """The problem and the setting to check; None: the broker may just be unreachable."""
    protocol, mechanism = settings.kafka_security_protocol, settings.kafka_sasl_mechanism
    for one in causes(err):
        if isinstance(one, TokenMissing):
            return f"gets no token from us: {one}"
        if isinstance(one, SaslAuthenticationFailed):
            # Without the user's name, since `/readyz` is public.
            who = "the token of PAGEWIRE_KAFKA_USER" if mechanism == "OAUTHBEARER" else _USER
            return f"refuses {who} ({', '.join(map(str, one.args)) or 'no reason given'})"
        if isinstance(one, UnsupportedSaslMechanismError):
            return f"does not know {mechanism}: PAGEWIRE_KAFKA_SASL_MECHANISM"
        if isinstance(one, IllegalSaslStateError):
            return f"wants no login at this port: PAGEWIRE_KAFKA_SECURITY_PROTOCOL is {protocol}"
        if isinstance(one, ValueError) and not isinstance(one, OSError | ssl.SSLError) and mechanism is not None:
            return f"does not prove that it knows our password ({one}): is it the right server, PAGEWIRE_KAFKA?"
    if (said := handshake_failure(err, "kafka", "the broker", "PAGEWIRE_KAFKA")) is not None:
        return f"cannot be talked to by TLS: {said}"
    if isinstance(err, KafkaConnectionError | ConnectionResetError):
        return _hung_up(settings)
    return None


def _hung_up(settings: KafkaSettings) -> str:
    """The broker accepted the connection and closed it after our first bytes: the protocol is probably wrong."""
    protocol = settings.kafka_security_protocol
    if protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
        return f"hangs up; if it goes on so, does it want TLS? PAGEWIRE_KAFKA_SECURITY_PROTOCOL is {protocol}"
    if protocol == "SSL":
        return (
            "hangs up after the handshake: does it want a login (PAGEWIRE_KAFKA_SECURITY_PROTOCOL is SSL) or a "
            "certificate (PAGEWIRE_KAFKA_CERTIFICATE)?"
        )
    return (
        "hangs up: does it speak TLS at this port (PAGEWIRE_KAFKA), and want a login "
        "(PAGEWIRE_KAFKA_SECURITY_PROTOCOL is SASL_SSL)?"
    )


async def started(start: Awaitable[object], settings: KafkaSettings, bootstrap: str | None = None) -> None:
    """Await a client's start.

    Raises:
        KafkaDenied: all brokers refuse the client; says why. KafkaDown: no broker answers. Other errors of the start.
    """
    try:
        await start
    except (KafkaError, TimeoutError, OSError, Retryable) as err:
        if any(isinstance(one, TimeoutError) for one in causes(err)):
            raise
        if (refused := await refusal(settings, bootstrap)) is not None:
            raise refused from err
        if any(isinstance(one, KafkaConnectionError) for one in causes(err)):
            where = bootstrap or bootstrap_servers(settings)
            raise KafkaDown(
                f"Kafka: nothing answers at {where} (PAGEWIRE_KAFKA); is it started, and the address right?"
            ) from err
        raise
