"""Request bodies: read under a limit, parsed once, explained by field when they do not fit; parameters of several
routes.

FastAPI's own body parameters read everything first, refuse `curl -d` for its content type, and know no limit.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Annotated, ClassVar, TypeVar

from fastapi import Depends, Query, Request
from pydantic import BaseModel, ValidationError
from starlette.convertors import Convertor, register_url_convertor

from gateway.edge.problems import FieldProblem, Problem, invalid
from schemas.labels import Labels, parse_labels

STALL_TIMEOUT = 30.0  # seconds between two pieces of a body
BODY_TIMEOUT = 120.0  # seconds for a whole one: 16 MiB at 1.1 Mbit/s; who sends a byte now and then is let go
Model = TypeVar("Model", bound=BaseModel)


async def read_body(request: Request, limit: int, seen: Callable[[bytes], object] | None = None) -> bytes:
    """The whole body.

    Args:
        seen: is given each piece as it comes.

    Raises:
        Problem: 413 as soon as it is known to be over `limit` bytes; 408 when it stalls, or takes too long; 400
            `body-short`.
    """
    if announced(request) > limit:
        raise too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            async for piece in _pieces(request):
                body += piece
                if len(body) > limit:
                    raise too_large(limit)
                if seen is not None:
                    seen(piece)
    except TimeoutError:
        raise _too_slow(f"the body was not complete after {BODY_TIMEOUT:.0f} s") from None
    return bytes(body)


async def lines(request: Request, limit: int) -> AsyncIterator[tuple[int, bytes | None]]:
    """The body's lines with their numbers from 1, blank ones left out; None for a line over `limit` bytes.

    Holds one line at most, however long the body is.

    Raises:
        Problem: 408 when it stalls; 400 `body-short`.
    """
    number = 1
    line = bytearray()
    overlong = False
    async for piece in _pieces(request):
        *ended, rest = piece.split(b"\n")
        for part in ended:
            if overlong or len(line) + len(part) > limit:
                yield number, None
            elif (line + part).strip():
                yield number, bytes(line + part)
            number += 1
            line.clear()
            overlong = False
        if overlong or len(line) + len(rest) > limit:
            overlong = True
            line.clear()
        else:
            line += rest
    if overlong:
        yield number, None
    elif line.strip():
        yield number, bytes(line)


def parse(model: type[Model], body: bytes, strings: int | None = None) -> Model:
    """The body as `model`.

    Args:
        strings: that a body may have, keys among them. They are counted before, since a million of them hold the event
            loop for a second, and one of the same size for a few milliseconds.

    Raises:
        Problem: 400 `bad-json`; 413 `too-large`: too many strings; 422 `invalid`, naming the fields.
    """
    if strings is not None and body.count(b'"') - body.count(rb"\"") > 2 * strings:
        raise Problem(413, "too-large", f"the limit is {strings:,} names and texts in one page, its labels among them")
    try:
        return model.model_validate_json(body)
    except ValidationError as err:
        if err.errors(include_input=False, include_context=False)[0]["type"] != "json_invalid":
            raise invalid(err.errors(include_input=False, include_url=False)) from None
        reason = err.errors(include_input=False)[0]["msg"].removeprefix("Invalid JSON: ")
    # pydantic's parser is strict about lone surrogates but cannot say in which field; json lets them pass, and
    # the field's own check then names it.
    with suppress(ValueError, RecursionError):
        validated(model, json.loads(body))
    raise Problem(400, "bad-json", f"not JSON: {reason}")


def validated(model: type[Model], given: object) -> Model:
    """The values as `model`. Raises: Problem: 422 `invalid`, naming the fields."""
    try:
        return model.model_validate(given)
    except ValidationError as err:
        raise invalid(err.errors(include_input=False, include_url=False)) from None


def announced(request: Request) -> int:
    """`Content-Length`; 0 where there is none."""
    said = request.headers.get("content-length", "")
    return int(said) if said.isdecimal() else 0


def too_large(limit: int) -> Problem:
    """413."""
    return Problem(413, "too-large", f"the limit is {limit:,} bytes")


def _too_slow(detail: str) -> Problem:
    """408, after which nothing of the rest is read (RFC 9110, 15.5.9)."""
    return Problem(408, "body-stalled", detail, headers={"Connection": "close"})


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """Until the server says that this is all, which is believed only where it is all that was announced."""
    stream = request.stream()
    missing = announced(request)
    while True:
        try:
            async with asyncio.timeout(STALL_TIMEOUT):
                piece = await anext(stream, None)
        except TimeoutError:
            raise _too_slow(f"no data for {STALL_TIMEOUT:.0f} s") from None
        if piece is None:
            break
        missing -= len(piece)
        yield piece
    if missing > 0:
        raise Problem(400, "body-short", f"{missing:,} bytes of the announced length are missing")


Written = Annotated[
    list[str],
    Query(
        description="`KEY:VALUE`, repeatable: only pages with this label. Of one key any of the values is enough, of "
        "several keys each is wanted."
    ),
]


def _given(label: Written = []) -> Labels:  # noqa: B006  a default of FastAPI, which copies it
    """Raises: Problem: 422."""
    try:
        return parse_labels(label)
    except ValueError as err:
        field = FieldProblem(field="label", code="value-error", message=str(err))
        raise Problem(422, "invalid", f"label: {err}", errors=[field]) from None


GivenLabels = Annotated[Labels, Depends(_given)]
# Slashes (`news%2F12`) belong to page ids in paths, and so does whatever PageId will refuse.
PAGE_ID = "{page_id:page_id}"


class PageIdConvertor(Convertor[str]):
    """All that is left of the path."""

    regex: ClassVar[str] = r"(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("page_id", PageIdConvertor())
