"""One question to a gateway over HTTP, and its answer as it comes (docs/reference/answer-stream.md)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from http import HTTPStatus

import httpx
from pydantic import SecretStr, TypeAdapter, ValidationError

from pipelines.runtime.errors import Retryable
from schemas.answer import Accepted, Answered, Done, Event, Failed

TIMEOUT = httpx.Timeout(5.0, read=30.0)  # seconds; in silence the gateway says every ten that it is there
STOP_TIMEOUT = 3.0  # seconds
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


class NotAsked(Exception):
    """The gateway has not taken the question: it is away, or refuses it or us."""


class BrokenOff(Retryable):
    """A gateway went away in the middle of an answer."""

    code = "broken-off"


async def answered(
    url: str, site: str, key: SecretStr, question: str, lang: str, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncGenerator[Event, None]:
    """Ask what is kept in no conversation and no log, and yield the events of the answer. Who leaves early stops it.

    Raises:
        NotAsked: before the first event. BrokenOff: after it, before the answer was whole.
    """
    client = httpx.AsyncClient(
        base_url=f"{url}/v1/sites/{site}",
        headers={"Authorization": f"Bearer {key.get_secret_value()}"},
        timeout=TIMEOUT,
        transport=transport,
        trust_env=False,  # no proxy of the environment stands between a machine and itself
    )
    body = {"question": question, "lang": lang, "keep": False}
    begun, under_way = False, ""  # the answer that somebody writes
    async with client:
        try:
            async with client.stream("POST", "/chat", json=body, headers={"Accept": "text/event-stream"}) as response:
                if response.status_code != HTTPStatus.OK:
                    raise NotAsked(f"{url}: {response.status_code}")
                async for event in _events(response):
                    begun = True
                    if isinstance(event, Accepted):
                        under_way = event.request_id
                    if isinstance(event, Answered | Failed | Done):
                        under_way = ""
                    yield event
        except httpx.HTTPError as err:
            if under_way or not begun:
                raise (BrokenOff if begun else NotAsked)(f"{url}: {type(err).__name__}") from err
        finally:
            if under_way:
                with suppress(httpx.HTTPError):
                    await client.delete(f"/answers/{under_way}", timeout=STOP_TIMEOUT)


async def _events(response: httpx.Response) -> AsyncIterator[Event]:
    """As the gateway writes them: the name, then the data, each on one line."""
    name = ""
    async for line in response.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            with suppress(ValidationError):  # of a later version, which has more of them
                yield EVENT.validate_python({"type": name, **json.loads(value)})
