"""Asks a gateway one question over HTTP and streams the answer (docs/reference/answer-stream.md)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from http import HTTPStatus

import httpx
from pydantic import SecretStr, TypeAdapter, ValidationError

from pipelines.runtime.errors import Permanent, Retryable
from schemas.answer import Accepted, Answered, Done, Event, Failed
from schemas.labels import Labels

TIMEOUT = httpx.Timeout(5.0, read=30.0)  # seconds; the gateway sends a keep-alive every ten
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
        timeout=TIMEOUT,
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
