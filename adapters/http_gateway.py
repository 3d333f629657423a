"""A gateway over HTTP: requests, retried while it restarts or is overloaded, and the stream of an answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from itertools import count
from typing import Any, Self, TypeVar

import httpx
from pydantic import SecretStr, TypeAdapter, ValidationError

from pipelines.runtime.errors import Permanent, Retryable, WrongUse
from pipelines.runtime.retry import doubled
from schemas.answer import Accepted, Answered, Done, Event, Failed
from schemas.base import Wire, problems
from schemas.labels import Labels

# Seconds. The gateway gives up an answer itself, after three times its PAGEWIRE_LLM_TIMEOUT, which is not known here.
TIMEOUT = httpx.Timeout(30.0, read=3_600.0)
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


STREAM_TIMEOUT = httpx.Timeout(5.0, read=30.0)  # seconds; the gateway sends a keep-alive every ten
STOP_TIMEOUT = 3.0  # seconds
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


class NotAccepted(Permanent):
    """The gateway has not accepted the question: it is unreachable, or refuses the question or the key."""

    code = "not-accepted"


class Interrupted(Retryable):
    """The connection broke in the middle of an answer."""

    code = "broken-off"


async def stream_answer(
    url: str,
    site: str,
    key: SecretStr,
    question: str,
    lang: str,
    labels: Labels | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncGenerator[Event, None]:
    """Ask a question that no conversation and no log keeps, and yield the answer's events.

    Closing the generator early stops the answer.

    Raises:
        NotAccepted: before the first event. Interrupted: after it, before the answer is complete.
    """
    client = httpx.AsyncClient(
        base_url=f"{url}/v1/sites/{site}",
        headers={"Authorization": f"Bearer {key.get_secret_value()}"},
        timeout=STREAM_TIMEOUT,
        transport=transport,
        trust_env=False,  # a proxy of the environment does not reach this machine
    )
    body = {"question": question, "lang": lang, "keep": False} | ({"labels": labels} if labels else {})
    begun, under_way = False, ""  # the request id of an unfinished answer
    async with client:
        try:
            async with client.stream("POST", "/chat", json=body, headers={"Accept": "text/event-stream"}) as response:
                if response.status_code != HTTPStatus.OK:
                    raise NotAccepted(f"{url}: {response.status_code}")
                async for event in _events(response):
                    begun = True
                    if isinstance(event, Accepted):
                        under_way = event.request_id
                    if isinstance(event, Answered | Failed | Done):
                        under_way = ""
                    yield event
        except httpx.HTTPError as err:
            if under_way or not begun:
                raise (Interrupted if begun else NotAccepted)(f"{url}: {type(err).__name__}") from err
        finally:
            if under_way:
                with suppress(httpx.HTTPError):
                    await client.delete(f"/answers/{under_way}", timeout=STOP_TIMEOUT)


async def _events(response: httpx.Response) -> AsyncIterator[Event]:
    """The gateway writes an event's name and its data on one line each."""
    name = ""
    async for line in response.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            with suppress(ValidationError):  # an event that only a later version knows
                yield EVENT.validate_python({"type": name, **json.loads(value)})
