"""Calls an operation of a web service, through the fetcher that refuses internal addresses.

A reply is JSON or plain text of at most 64 KiB; anything else is an error. What went wrong in detail is in the log of
the process. Models and visitors get no address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import structlog

from connectors.cms.fetching import Fetched, FetchRefused, SafeFetch, ServerUnavailable
from connectors.tools.openapi import Operation
from pipelines.query.answer.tools.registry import ToolFailed

log = structlog.get_logger(__name__)

REPLY_BYTES = 64 * 1024
TIMEOUT = 5.0  # seconds of a call

_WRONG_ARGUMENTS = frozenset({400, 404, 409, 422})


class RestTool:
    """An operation as a coroutine that returns text.

    Args:
        headers: sent along, secrets among them.

    Raises (when called):
        ToolFailed. ValueError: the service refuses the arguments.
    """

    def __init__(self, operation: Operation, server: str, headers: Mapping[str, str], fetch: SafeFetch) -> None:
        self._operation = operation
        self._server = server
        self._headers = {"Accept": "application/json, text/plain", **headers}
        self._fetch = fetch

    async def __call__(self, /, **arguments: Any) -> str:
        request = self._operation.request(self._server, self._operation.named(arguments))
        try:
            if request.body is None:
                got = await self._fetch.get(request.url, limit=REPLY_BYTES, headers=self._headers, answered=_readable)
            else:
                headers = {**self._headers, "Content-Type": "application/json"}
                got = await self._fetch.post(request.url, request.body, headers, limit=REPLY_BYTES, answered=_readable)
            return text_of(got)
        except FetchRefused as err:
            if err.status in _WRONG_ARGUMENTS:
                raise ValueError(f"the service refuses these arguments ({err.status})") from err
            raise self._failed(err, "the service refuses the call") from err
        except ServerUnavailable as err:
            raise self._failed(err, "the service does not answer") from err
        except ToolFailed as err:
            raise self._failed(err, str(err)) from err

    def _failed(self, err: Exception, said: str) -> ToolFailed:
        log.error("tool failed", tool=self._operation.name, code="tool-failed", error=str(err))
        return ToolFailed(said)


def _readable(answer: Fetched) -> None:
    """Raises: ToolFailed: neither JSON nor plain text."""
    kind = answer.media_type
    if not (kind in ("application/json", "text/plain") or (kind.startswith("application/") and kind.endswith("+json"))):
        raise ToolFailed(f"the service answers with {kind[:60] or 'something unnamed'}, and not with JSON or text")


def text_of(answer: Fetched) -> str:
    """The reply as a model reads it. Raises: ToolFailed: empty, or not what its type says."""
    text = answer.body.decode("utf-8", "replace").strip()
    if not text:
        raise ToolFailed("the service answers nothing")
    if answer.media_type != "text/plain":
        try:
            return json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
        except (ValueError, RecursionError):
            raise ToolFailed("the service answers with something that is not JSON") from None
    if text[:20].lower().startswith(("<!doctype", "<html")):
        raise ToolFailed("the service answers with HTML, and not with JSON or text")
    return text
