"""Operators' commands as clients of the running gateway: `/v1/admin` does what they ask and notes whose key it was.

command ─▶ Gateway ─▶ HTTP ─▶ gateway/operators
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import SecretStr
from pydantic_core import to_json

from cli.wired import load
from infra.running import running_gateway
from pipelines.runtime.errors import PagewireError, Permanent, Retryable, UnknownSite, WrongUse
from pipelines.runtime.secret import read as read_secret
from schemas.audit_log import AuditLogPage
from schemas.base import Wire
from schemas.outcome import QuestionList

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

    from wiring.settings import Settings

TIMEOUT = 90.0  # seconds; a report of gaps takes the longest
OWN_HOSTS = ("localhost", "127.0.0.1", "::1")
MISUSE = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
BUSY = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)

MOST = 1_000  # items of one page

Body = TypeVar("Body", bound=Wire)
Page = TypeVar("Page", AuditLogPage, QuestionList)


class NoGateway(Retryable):
    """No gateway answers."""

    code = "no-gateway"


class Gateway:
    """The gateway's routes below `/v1/admin`.

    Args:
        url, key: in place of the settings' address, and a file with a key in place of theirs.

    Raises: NoGateway: no gateway runs here, and no setting names one. SettingsError. WrongUse: there is no key for it.
    """

    def __init__(self, url: str | None = None, key: Path | None = None) -> None:
        self.settings = load()
        self.url = address(self.settings, url)
        self.key = key_for(self.settings, self.url, key)

    def read(self, kind: type[Body], *path: str, **query: Any) -> Body:
        """The answer to a GET request. Raises: as `send`."""
        return self.send(kind, "GET", *path, query=query)

    def pages(self, kind: type[Page], *path: str, limit: int | None, **query: Any) -> Iterator[Page]:
        """A long list, page by page; at least one. Raises: as `send`.

        Args:
            limit: of items, of all pages together; None: all that fit.
        """
        while True:
            size = MOST if limit is None else min(MOST, limit)
            found = self.read(kind, *path, **query, limit=size)
            yield found
            limit = None if limit is None else limit - size
            if found.next is None or limit == 0:
                return
            query["after"] = found.next

    def send(
        self, kind: type[Body], method: str, *path: str, body: Mapping[str, Any] | None = None, query: Any = None
    ) -> Body:
        """The answer to a request.

        Args:
            path: parts of it, unquoted.
            query: parameters; those that are None are left out.

        Raises:
            NoGateway, Retryable: the gateway or what it needs is away. UnknownSite, WrongUse, Permanent: it refuses;
                with the `code` of its answer.
        """
        from adapters.http_gateway import parse

        return parse(kind, self._response(method, path, body, query))

    def act(self, method: str, *path: str, body: Mapping[str, Any] | None = None, query: Any = None) -> None:
        """A request whose answer is empty. Raises: as `send`."""
        self._response(method, path, body, query)

    def _response(self, method: str, path: tuple[str, ...], body: Mapping[str, Any] | None, query: Any) -> Response:
        import httpx

        async def request() -> Response:
            async with client(self.url, self.key) as gateway:
                where = "/v1/admin/" + "/".join(quote(part, safe=":") for part in path)
                given = {name: value for name, value in (query or {}).items() if value is not None}
                content = None if body is None else to_json(body)
                return await gateway.request(method, where, content=content, params=given)

        try:
            response = asyncio.run(request())
            while method == "GET" and response.status_code == HTTPStatus.ACCEPTED:  # a report is still being made
                response = asyncio.run(request())
        except httpx.TransportError as error:
            raise NoGateway(f"{self.url} does not answer ({type(error).__name__}): is PAGEWIRE_URL right?") from error
        if response.is_error:
            raise self._refusal(response, path)
        return response

    def _refusal(self, response: Response, path: tuple[str, ...]) -> PagewireError:
        from adapters.http_gateway import code_of, detail_of

        code, detail = code_of(response), detail_of(response) or f"{self.url} answers {response.status_code}"
        if code == UnknownSite.code:
            return UnknownSite(f"{self.url} has no site {path[1]!r}", path[1], self.settings.sites)
        kind: type[PagewireError] = Permanent
        if response.status_code in MISUSE or code == "invalid":
            kind = WrongUse
        elif response.status_code in BUSY:
            kind = Retryable
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            detail = f"{self.url} does not know this key: is PAGEWIRE_ADMIN_KEY right?"
        error = kind(detail)
        error.code = code
        return error


def address(settings: Settings, given: str | None = None) -> str:
    """The gateway's address: the given one, that of the settings, or the one of this machine. Raises: NoGateway."""
    found = given or settings.url or running_gateway(settings.home)
    if found is None:
        raise NoGateway("no gateway runs here: `pagewire up` starts one; PAGEWIRE_URL names one that runs elsewhere")
    return found.rstrip("/")


def key_for(settings: Settings, url: str, file: Path | None = None) -> SecretStr:
    """The key of a file, the configured admin key, or the one that the gateway of this machine has made.

    Raises: WrongUse: there is none, or the key of this machine would go to another one. SettingsError.
    """
    from gateway.edge.auth import known_admin_key

    if file is not None:
        return SecretStr(read_secret(file, "--key"))
    named = settings.admin_key is not None and settings.url is not None and url == settings.url.rstrip("/")
    if not named and urlsplit(url).hostname not in OWN_HOSTS and url != running_gateway(settings.home):
        raise WrongUse(
            f"{url} is another machine, which this one's admin key is not sent to: name its key by --key, or set "
            "PAGEWIRE_URL and PAGEWIRE_ADMIN_KEY"
        )
    key = known_admin_key(settings)
    if key is None:
        raise WrongUse(f"there is no key for {url}; set PAGEWIRE_ADMIN_KEY")
    return key


def client(url: str, key: SecretStr) -> AsyncClient:
    """A connection to it; tests have one to the application itself."""
    import httpx

    headers = {"Authorization": f"Bearer {key.get_secret_value()}"}
    distant = urlsplit(url).hostname not in OWN_HOSTS  # a proxy of the environment does not reach this machine
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT, trust_env=distant)
