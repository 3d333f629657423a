"""A gateway over HTTP. Requests are retried while it restarts or is overloaded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from itertools import count
from typing import Any, Self, TypeVar

import httpx
from pydantic import SecretStr, ValidationError

from pipelines.runtime.errors import Permanent, Retryable, WrongUse
from pipelines.runtime.retry import doubled
from schemas.base import Wire, problems

TIMEOUT = 120.0  # seconds for an answer; the system itself gives up earlier (PAGEWIRE_QUESTION_TIMEOUT)
RETRY_FOR = 60.0  # seconds that a system may be unreachable, as during a restart
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds between two tries
RETRIED = frozenset((HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE))
# Statuses of failed questions, which are results. Any other status above 399 means that the request is wrong.
RESULTS = frozenset((HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT))

Body = TypeVar("Body", bound=Wire)


class HttpGateway:
    """The routes below one base URL of a gateway. Use it as a context manager."""

    def __init__(
        self,
        url: str,
        key: SecretStr,
        transport: httpx.AsyncBaseTransport | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"},
            timeout=TIMEOUT,
            transport=transport,
        )
        self._pause = pause

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """The response: a success, or one of `RESULTS`.

        Raises:
            Retryable: the gateway is unreachable for a minute. WrongUse: it refuses the request.
        """
        waited = 0.0
        for failures in count(1):
            try:
                response = await self._client.request(method, path, **more)
            except httpx.TransportError as err:
                why = f"{type(err).__name__} {err}".rstrip()
            else:
                why = f"{response.status_code} {code_of(response) if response.is_error else ''}".rstrip()
                if not response.is_error or response.status_code in RESULTS:
                    return response
                if response.status_code not in RETRIED:
                    said = detail_of(response)
                    raise WrongUse(f"{self._client.base_url}: {why}" + (f": {said}" if said else ""))
            if waited >= RETRY_FOR:
                raise Retryable(f"{self._client.base_url}: {why}; the same command goes on where it stopped")
            pause = doubled(failures, FIRST_PAUSE, LONGEST_PAUSE)
            await self._pause(pause)
            waited += pause
        raise AssertionError("a loop without end")

    async def send_once(self, method: str, path: str) -> None:
        """Send without retries, and ignore failures: for requests that may be lost."""
        try:
            await self._client.request(method, path)
        except httpx.HTTPError:
            return


def parse(kind: type[Body], response: httpx.Response) -> Body:
    """Raises: Permanent."""
    try:
        return kind.model_validate_json(response.content)
    except ValidationError as err:
        raise Permanent(f"{response.url.copy_with(query=None)}: no answer that we know: {problems(err)}") from err


def code_of(response: httpx.Response) -> str:
    """The problem document's code, or the status."""
    return str(_problem(response).get("code") or response.status_code)


def detail_of(response: httpx.Response) -> str:
    """The problem document's sentence for people; empty without one."""
    return str(_problem(response).get("detail") or "")


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
