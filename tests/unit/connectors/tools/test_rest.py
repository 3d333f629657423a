"""Calls of a web service; the service is a stand-in for SafeFetch, whose own tests use real connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from connectors.cms.fetching import Fetched, FetchRefused, SafeFetch, ServerUnavailable
from connectors.tools.openapi import operations
from connectors.tools.site_tools import RestTool
from pipelines.query.answer.tools.registry import ToolFailed
from tests.unit.connectors.tools.test_openapi import DOCUMENT


class Service(SafeFetch):
    """Answers with what a test puts there."""

    def __init__(self, body: bytes = b"{}", media_type: str = "application/json", error: Exception | None = None):
        super().__init__()
        self._body, self._type, self._error = body, media_type, error
        self.asked: list[tuple[str, bytes, Mapping[str, str]]] = []

    async def get(self, url: str, **more: Any) -> Fetched:  # type: ignore[override]
        return await self.post(url, b"", more["headers"], limit=more["limit"], answered=more["answered"])

    async def post(  # type: ignore[override]
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        limit: int = 0,
        answered: Callable[[Fetched], None] = lambda _: None,
    ) -> Fetched:
        self.asked.append((url, body, headers))
        if self._error is not None:
            raise self._error
        head = Fetched(url, 200, b"", {"content-type": self._type})
        answered(head)
        if len(self._body) > limit:
            raise FetchRefused(f"larger than {limit}", 200)
        return Fetched(url, 200, self._body, head.headers)


def tool(service: Service, id: str = "getFee") -> Callable[..., Awaitable[str]]:
    """As a tool calls it: with arguments that were checked."""
    [operation] = operations(DOCUMENT, [id])
    rest = RestTool(operation, "https://fees.example", {"X-Key": "hush"}, service)
    return lambda **given: rest(**dict(operation.arguments.model_validate(given)))


async def test_a_reply_becomes_text() -> None:
    service = Service(b'{ "fee":  12.5, "for": "gr\xc3\xbcn" }', "application/problem+json; charset=utf-8")
    assert await tool(service)(kind="dog", year=2026) == '{"fee": 12.5, "for": "grün"}'
    [(url, body, headers)] = service.asked
    assert (url, body, headers["X-Key"]) == ("https://fees.example/fees/dog?year=2026", b"", "hush")
    assert await tool(Service(b" 12 euros\n", "text/plain"))(kind="dog") == "12 euros"
    assert await tool(Service(rb'"half a \ud83d"'))(kind="dog") == '"half a ?"'


async def test_an_argument_may_be_called_self() -> None:
    service = Service()
    await tool(service)(kind="dog", self="x")
    assert service.asked[0][0] == "https://fees.example/fees/dog"


async def test_a_body_is_posted() -> None:
    service = Service()
    await tool(service, "make-quote")(persons=2)
    [(url, body, headers)] = service.asked
    assert (url, body) == ("https://fees.example/quotes", b'{"persons": 2}')
    assert headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("service", "said"),
    [
        (Service(b"<html>Sign in</html>", "text/html"), "answers with text/html"),
        (Service(b"<!DOCTYPE html>", "text/plain"), "answers with HTML"),
        (Service(b"<html>", "application/json"), "not JSON"),
        (Service(b"[" * 60_000, "application/json"), "not JSON"),
        (Service(b"", "application/json"), "answers nothing"),
        (Service(b"%PDF", "application/pdf"), "answers with application/pdf"),
        (Service(b"x" * 5_000_000, "text/plain"), "refuses the call"),
        (Service(b"{}", ""), "something unnamed"),
        (Service(error=ServerUnavailable("https://fees.internal/x: no connection")), "does not answer"),
        (Service(error=FetchRefused("the address of fees.internal is not public")), "refuses the call"),
        (Service(error=FetchRefused("https://fees.internal: the server answered 401", 401)), "refuses the call"),
    ],
)
async def test_what_is_no_reply_is_a_failure_without_addresses(service: Service, said: str) -> None:
    with pytest.raises(ToolFailed, match=said) as caught:
        await tool(service)(kind="dog")
    assert "internal" not in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_arguments_that_the_service_refuses_are_the_models_to_mend(status: int) -> None:
    with pytest.raises(ValueError, match=f"refuses these arguments \\({status}\\)"):
        await tool(Service(error=FetchRefused("no", status)))(kind="dog")
