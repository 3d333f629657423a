"""Fetches URLs of pages or settings, and refuses addresses of the internal network (SSRF).

An editor may write any URL into a page, and Pagewire fetches it from inside the operator's network. So:

    url ─▶ http(s)? no user in it? ─▶ look the name up ─▶ public address? ─▶ connect to that very address
     ▲                                                                               │
     └────────── at most five redirects, each checked again, never https ─▶ http ◀───┴─▶ body, counted as it unpacks

The check and the connection use the same lookup, so a second answer of the name server cannot get around the check.
Proxies of the environment are not used, since they would connect. See OWASP's SSRF prevention cheat sheet.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from types import TracebackType
from typing import Self

import httpcore
import httpx

from connectors.cms.addresses import AddressFilter
from connectors.cms.gzipped import Gunzip
from pipelines.ingest.documents.kinds import charset_of, essence
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.retry import http_date, retry_after

LIMIT = 20 * 1024 * 1024  # bytes of a body, decompressed
TIMEOUT = 60.0  # seconds in total: redirects, one wait, the last byte
CONNECT_TIMEOUT = 10.0  # seconds for each address of a name
SILENCE_TIMEOUT = 20.0  # seconds between two pieces of an answer
REDIRECTS = 5
AGENT = "Pagewire"
PATIENCE = 30.0  # seconds; a longer Retry-After is an error
KEEPALIVE = 15.0  # seconds a connection stays open without use
CONNECTIONS = 8  # at once, to all hosts together

_REDIRECT = frozenset({301, 302, 303, 307, 308})
_BUSY = frozenset({429, 503})
_LATER = frozenset({408, 425, 500, 502, 504})


class FetchRefused(Permanent):
    """The URL must not be fetched, or a retry would not help. `status` is the server's, if there is one."""

    code = "fetch-refused"

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServerUnavailable(Retryable):
    """The server is down or busy. `retry_after`: the seconds that it asks for, if it does."""

    code = "fetch-away"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True)
class Fetched:
    """An answer: 200 with its body, or 304 (to `etag` or `modified`) without one."""

    url: str  # where it was found, after redirects
    status: int
    body: bytes  # decompressed
    headers: Mapping[str, str]  # names in lower case

    @property
    def unchanged(self) -> bool:
        return self.status == 304

    @property
    def content_type(self) -> str:
        """`text/html; charset=utf-8`; empty when the server says nothing."""
        return self.headers.get("content-type", "")

    @property
    def media_type(self) -> str:
        """`text/html`, without parameters."""
        return essence(self.content_type)

    @property
    def charset(self) -> str | None:
        return charset_of(self.content_type)

    @property
    def length(self) -> int | None:
        """The body's length by its header; None: unknown, or compressed."""
        said = self.headers.get("content-length", "")
        return int(said) if said.isdecimal() and _packing(self.headers) == "identity" else None

    @property
    def etag(self) -> str | None:
        return self.headers.get("etag")

    @property
    def modified(self) -> str | None:
        """`Last-Modified` as the server sent it, for `get(modified=...)`."""
        return self.headers.get("last-modified")

    @property
    def date(self) -> datetime | None:
        """The server's clock."""
        return http_date(self.headers.get("date", ""))


class SafeFetch:
    """One per process and event loop; keeps connections open. Close it, or use it in `async with`."""

    def __init__(
        self,
        allow: Iterable[str] = (),
        *,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        """
        Args:
            allow: the setting `fetch_allow`, see `AddressFilter`.
            timeout: seconds for a whole `get`.
            patience: seconds to wait for a busy server, once, if it sends Retry-After.
        """
        self._timeout = timeout
        self._patience = patience
        self._backend = _Checked(AddressFilter(allow))
        self._connections: httpcore.AsyncConnectionPool | None = None

    @property
    def _pool(self) -> httpcore.AsyncConnectionPool:
        """Made at the first use, since reading all certificates takes a while."""
        if self._connections is None:
            self._connections = httpcore.AsyncConnectionPool(
                ssl_context=httpx.create_ssl_context(),
                max_connections=CONNECTIONS,
                keepalive_expiry=KEEPALIVE,
                network_backend=self._backend,
            )
        return self._connections

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._connections is not None:
            await self._connections.aclose()

    async def get(
        self,
        url: str,
        *,
        etag: str | None = None,
        modified: str | None = None,
        limit: int = LIMIT,
        headers: Mapping[str, str] | None = None,
        answered: Callable[[Fetched], None] = lambda _: None,
    ) -> Fetched:
        """The body of a URL, or the answer that it is unchanged.

        Args:
            etag, modified: from the last `Fetched`; an unchanged body is answered with 304 and without a body.
            limit: most bytes of the decompressed body.
            headers: additional ones, such as `Authorization`; never sent to another origin after a redirect.
            answered: called with the status and headers before the body is read. If it raises, `get` raises the same
                error, and the body is not read.

        Raises:
            FetchRefused: not http(s), an internal address, too large, a bad certificate, 4xx.
            ServerUnavailable: no connection, too slow, 5xx, 429.
        """
        own = {"etag": ("If-None-Match", etag), "modified": ("If-Modified-Since", modified)}
        asked = dict(headers or {}) | {name: value for name, value in own.values() if value}
        try:
            async with asyncio.timeout(self._timeout):
                return await self._follow(url, asked, limit, answered)
        except TimeoutError:
            raise ServerUnavailable(f"{shown(url)}: no whole answer within {self._timeout:g} s") from None

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        limit: int = 0,
        answered: Callable[[Fetched], None] = lambda _: None,
    ) -> Fetched:
        """Send a body. Redirects are not followed: they would show it to somebody else.

        Args:
            limit: most bytes of the answer; 0: it is not read.
            answered: as in `get`.

        Raises:
            FetchRefused: as `get`, or a redirect.
            ServerUnavailable: no connection, too slow, 5xx, 429.
        """
        here = checked(url)
        try:
            async with asyncio.timeout(self._timeout), self._ask(here, headers, body) as (status, said, read):
                if 200 <= status < 300:
                    answered(Fetched(str(here), status, b"", said))
                    got = await _read(read, said, limit, here) if limit else b""
                    return Fetched(str(here), status, got, said)
                pause = retry_after(said)
        except TimeoutError:
            raise ServerUnavailable(f"{shown(url)}: no answer within {self._timeout:g} s") from None
        if status in _BUSY or status in _LATER or status > 504:
            raise ServerUnavailable(f"{shown(here)}: the server answered {status}", pause)
        raise FetchRefused(f"{shown(here)}: the server answered {status}", status)

    async def _follow(
        self, url: str, headers: Mapping[str, str], limit: int, answered: Callable[[Fetched], None]
    ) -> Fetched:
        start = here = checked(url)
        waited = False
        redirects = 0
        while True:
            own = headers if _origin(here) == _origin(start) else {}
            async with self._ask(here, own) as (status, said, body):
                if status == 200:
                    answered(Fetched(str(here), status, b"", said))
                    return Fetched(str(here), status, await _read(body, said, limit, here), said)
                if status == 304 and own:
                    return Fetched(str(here), status, b"", said)
                pause = retry_after(said)
            if status in _REDIRECT and "location" in said:
                redirects += 1
                if redirects > REDIRECTS:
                    raise FetchRefused(f"{shown(url)}: more than {REDIRECTS} redirects", status)
                here = _next(here, said["location"])
            elif status in _BUSY and pause is not None and pause <= self._patience and not waited:
                waited = True
                await asyncio.sleep(pause)
            elif status in _BUSY or status in _LATER or status > 504:
                raise ServerUnavailable(f"{shown(here)}: the server answered {status}", pause)
            else:
                raise FetchRefused(f"{shown(here)}: the server answered {status}", status)

    @asynccontextmanager
    async def _ask(
        self, url: httpx.URL, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncGenerator[tuple[int, dict[str, str], AsyncIterator[bytes]], None]:
        sent = [("User-Agent", AGENT), ("Accept-Encoding", "gzip"), *headers.items()]
        timeouts = {"connect": CONNECT_TIMEOUT, "read": SILENCE_TIMEOUT, "write": SILENCE_TIMEOUT, "pool": None}
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        method, length = ("GET", []) if content is None else ("POST", [("Content-Length", str(len(content)))])
        more = {"timeout": timeouts}
        try:
            async with self._pool.stream(
                method, target, headers=[*sent, *length], content=content, extensions=more
            ) as answer:
                said: dict[str, str] = {}
                for name, value in answer.headers:
                    key, text = name.decode("latin-1").lower(), value.decode("latin-1")
                    between = "\n" if key == "x-robots-tag" else ", "  # each line may be for another robot
                    said[key] = f"{said[key]}{between}{text}" if key in said else text
                yield answer.status, said, answer.aiter_stream()
        except httpcore.ConnectError as err:
            if isinstance(err.__cause__, ssl.SSLCertVerificationError):
                raise FetchRefused(
                    f"{shown(url)}: its certificate is not good: {err.__cause__.verify_message}"
                ) from err
            raise ServerUnavailable(f"{shown(url)}: no connection: {err}") from err
        except httpcore.LocalProtocolError:
            # The library's message quotes the header, which may be a secret.
            raise FetchRefused(f"{shown(url)}: a header of the request has a character that HTTP forbids") from None
        except httpcore.UnsupportedProtocol as err:
            raise FetchRefused(f"{shown(url)}: {err}") from err
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as err:
            raise ServerUnavailable(f"{shown(url)}: {type(err).__name__}: {err}") from err


class _Checked(httpcore.AsyncNetworkBackend):
    """Opens connections to checked addresses only."""

    def __init__(self, addresses: AddressFilter) -> None:
        self._addresses = addresses
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        found = await _addresses(host, port)
        # Internal addresses are left out, not only tried last: a name may have addresses of both kinds.
        permitted = [address for address in found if self._addresses.permit(host, address)]
        if not permitted:
            # The message has no address: editors read it, and could map the internal network with it.
            raise FetchRefused(f"the address of {host} is not public; setting fetch_allow may permit it")
        for address in permitted[:-1]:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(permitted[-1], port, timeout, local_address, socket_options)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise FetchRefused(f"{path}: a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def _addresses(host: str, port: int) -> list[str]:
    """All addresses of a name, in the resolver's order. The resolver also parses `0x7f.1` and `2130706433`."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as err:
        if isinstance(err, socket.gaierror) and err.errno not in (socket.EAI_NONAME, socket.EAI_NODATA):
            raise ServerUnavailable(f"{host}: cannot be looked up: {err.strerror}") from err
        raise FetchRefused(f"{host}: there is no such host") from err
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def checked(url: str) -> httpx.URL:
    """The parsed URL. Raises: FetchRefused: it must not be fetched."""
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError) as err:
        raise FetchRefused(f"{url[:200]!r} is not a URL: {err}") from err
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise FetchRefused(f"{shown(parsed)}: only http:// and https:// are fetched")
    if parsed.userinfo:
        raise FetchRefused(f"{shown(parsed)}: a URL with user and password is not fetched")
    if parsed.port is not None and not 0 < parsed.port < 2**16:
        raise FetchRefused(f"{shown(parsed)}: there is no such port")
    return parsed.copy_with(fragment=None)


def _next(here: httpx.URL, location: str) -> httpx.URL:
    try:
        there = checked(str(here.join(location)))
    except httpx.InvalidURL as err:
        raise FetchRefused(f"{shown(here)} redirects to {location[:200]!r}, which is not a URL") from err
    if here.scheme == "https" and there.scheme == "http":
        raise FetchRefused(f"{shown(here)} redirects from https to http")
    return there


async def _read(body: AsyncIterator[bytes], said: Mapping[str, str], limit: int, url: httpx.URL) -> bytes:
    """The decompressed body, within the limit even for a small compressed one."""
    too_large = f"{shown(url)}: larger than {limit:,} bytes"
    length = said.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise FetchRefused(too_large, 200)
    packing = _packing(said)
    if packing not in ("identity", "gzip", "x-gzip"):
        raise FetchRefused(f"{shown(url)}: packed as {packing!r}, which was not asked for", 200)
    unpack = Gunzip(limit) if packing != "identity" else None
    read = BytesIO()  # returns its content without a copy
    async for piece in body:
        try:
            read.write(unpack.feed(piece) if unpack else piece)
        except zlib.error as err:
            raise FetchRefused(f"{shown(url)}: not what gzip packs: {err}", 200) from err
        if read.tell() > limit:
            raise FetchRefused(too_large, 200)
    if unpack and not unpack.ended:
        raise ServerUnavailable(f"{shown(url)}: the packed answer ends too early")
    return read.getvalue()


def _packing(said: Mapping[str, str]) -> str:
    return said.get("content-encoding", "identity").strip().lower()


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def shown(url: httpx.URL | str) -> str:
    """A URL for logs and receipts: without user, password and query, which may contain keys."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return str(url)[:200]
    return str(parsed.copy_with(username=None, password=None, query=None, fragment=None))[:500]
