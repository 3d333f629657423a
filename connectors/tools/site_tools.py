"""The tools of all sites, as pagewire.yaml says.

Python functions and documents in files are read at the start, which fails where one is wrong. A document at an address
is read when it is first wanted, since its server may be away: the site has the other tools meanwhile.

An operation of a web service is called through the fetcher that refuses internal addresses. A reply is JSON or plain
text of at most 64 KiB; anything else is an error. What went wrong in detail is in the log of the process. Models and
visitors get no address.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from time import monotonic
from typing import Any
from urllib.parse import urljoin

import structlog
import yaml

from connectors.cms.fetching import Fetched, FetchRefused, SafeFetch, ServerUnavailable, checked
from connectors.settings import OpenApiTools, PythonTool, SiteTool
from connectors.tools.openapi import BadDocument, Operation, operations
from connectors.tools.threads import InThread
from pipelines.query.answer.tools.registry import Tool, ToolFailed
from pipelines.runtime.errors import PagewireError, SettingsError, some_of

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


log = structlog.get_logger(__name__)

DOCUMENT_BYTES = 1024 * 1024
AGAIN = 60.0  # seconds until a document that could not be read is tried again
PATIENCE = 3.0  # seconds that a question waits for a document, whose server or size may be slow
OURS = frozenset(("search", "lookup", "page", "date_calculator", "opening_hours", "finish"))
GROUP = "pagewire.tools"


class ConnectedTools:
    """One per process. Raises (when made): SettingsError: names the setting.

    Args:
        fetch: close it after the last call.
    """

    def __init__(self, sites: Mapping[str, Sequence[SiteTool]], fetch: SafeFetch) -> None:
        self._ready: dict[str, list[Tool]] = {}
        self._remote: dict[str, list[_Document]] = {}
        for site, tools in sites.items():
            self._ready[site], self._remote[site] = [], []
            for n, each in enumerate(tools):
                where = f"sites.{site}.tools.{n}"
                if isinstance(each, str):
                    self._ready[site].append(python_tool(each, where))
                elif isinstance(each, PythonTool):
                    self._ready[site].append(replace(python_tool(each.function, where), groups=each.groups))
                elif each.address is not None:
                    self._remote[site].append(_Document(each, each.address, where, fetch))
                else:
                    self._ready[site] += _of_file(each, where, fetch)
            _own_names(self._ready[site], f"sites.{site}.tools")

    async def of(self, site: str) -> Sequence[Tool]:
        """The tools of a site that can be called now."""
        found = {tool.name: tool for tool in self._ready.get(site, ())}
        for tools in await asyncio.gather(*[document.tools() for document in self._remote.get(site, ())]):
            for tool in tools:
                found.setdefault(tool.name, tool)  # a document at an address takes no other tool's place
        return list(found.values())

    async def start(self) -> None:
        """Read the documents at addresses; those that cannot be read are logged."""
        await asyncio.gather(*[self.of(site) for site in self._remote])


class _Document:
    """A document at an address."""

    def __init__(self, settings: OpenApiTools, address: str, where: str, fetch: SafeFetch) -> None:
        self._settings = settings
        self._address = address
        self._where = where
        self._fetch = fetch
        self._reading: asyncio.Task[None] | None = None
        self._tools: list[Tool] | None = None
        self._next = 0.0

    async def tools(self) -> list[Tool]:
        """Its tools; none while it is read for longer than `PATIENCE`, or cannot be read."""
        if self._reading is None and self._tools is None and monotonic() >= self._next:
            self._reading = asyncio.create_task(self._read(), name=f"tools of {self._address}")
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=PATIENCE)
        return self._tools or []

    async def _read(self) -> None:
        try:
            got = await self._fetch.get(self._address, limit=DOCUMENT_BYTES)
            self._tools = await asyncio.to_thread(_tools, self._settings, got.body, got.url, self._where, self._fetch)
        except PagewireError as err:
            log.error("tools not read", setting=self._where, code=err.code, error=str(err))
        except Exception:
            log.exception("tools not read", setting=self._where)
        finally:
            self._next, self._reading = monotonic() + AGAIN, None


def _of_file(settings: OpenApiTools, where: str, fetch: SafeFetch) -> list[Tool]:
    try:
        with settings.file.open("rb") as file:
            content = file.read(DOCUMENT_BYTES + 1)
    except OSError as err:
        raise SettingsError(f"{where}: {settings.file} cannot be read: {err.strerror}") from err
    if len(content) > DOCUMENT_BYTES:
        raise SettingsError(f"{where}: {settings.file} is larger than {DOCUMENT_BYTES:,} bytes")
    return _tools(settings, content, "", where, fetch)


def _tools(settings: OpenApiTools, content: bytes, address: str, where: str, fetch: SafeFetch) -> list[Tool]:
    """Raises: SettingsError."""
    try:
        found = operations(_read(content), settings.operations, settings.header if settings.secret else "")
        tools = [_tool(each, settings, address, fetch) for each in found]
    except (yaml.YAMLError, FetchRefused, RecursionError, ValueError, TypeError) as err:
        raise SettingsError(f"{where}: {settings.openapi}: {str(err)[:500]}") from err
    _own_names(tools, where)
    return tools


class _Yaml(yaml.SafeLoader):
    """YAML that OpenAPI permits: dates are text. Merge keys are refused, since they make a short text as large as it
    likes. PyYAML's loader in C is not used: values nested deeply enough end its process."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.MarkedYAMLError(problem="merge keys (<<) cannot be used", problem_mark=key.start_mark)
        super().flatten_mapping(node)


_Yaml.yaml_implicit_resolvers = {
    first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _read(content: bytes) -> object:
    """The document."""
    try:
        return json.loads(content)
    except ValueError:
        return yaml.load(content, _Yaml)  # noqa: S506  # a safe loader


def _tool(operation: Operation, settings: OpenApiTools, address: str, fetch: SafeFetch) -> Tool:
    server = settings.server or urljoin(address, operation.server)
    if "{" in server or not server.startswith(("http://", "https://")):
        raise BadDocument(f"operation {operation.id}: the document names no whole address of a server; give `server`")
    checked(server)
    try:
        json.dumps([operation.description, operation.schema], ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError) as err:
        raise BadDocument(f"operation {operation.id}: no model can read its description as JSON: {err}") from None
    headers = {settings.header: settings.secret.get_secret_value()} if settings.secret is not None else {}
    call = RestTool(operation, server, headers, fetch)
    return Tool(
        operation.name,
        operation.description,
        operation.arguments,
        call,
        title=operation.title,
        schema=operation.schema,
        groups=settings.groups,
    )


def _own_names(tools: Sequence[Tool], where: str) -> None:
    names = [tool.name for tool in tools]
    for name in names:
        if name in OURS:
            raise SettingsError(f"{where}: {name} is the name of a tool that every site has")
        if names.count(name) > 1:
            raise SettingsError(f"{where}: two tools are called {name}")


def python_tool(name: str, where: str, installed: Iterable[EntryPoint] | None = None) -> Tool:
    """The tool of this name.

    Args:
        where: the setting that names it, for messages.
        installed: default: the entry points of this environment.

    Raises:
        SettingsError: there is none, or it cannot be loaded.
    """
    known = {each.name: each for each in (entry_points(group=GROUP) if installed is None else installed)}
    if name not in known:
        there = some_of(known) or "none"
        raise SettingsError(f"{where}: no installed package has a tool {name!r} (entry points {GROUP}: {there})")
    try:
        function = known[name].load()
        tool = Tool.of(function)
    except Exception as err:
        raise SettingsError(
            f"{where}: the tool {name!r} ({known[name].value}) cannot be loaded: {type(err).__name__}: {err}"
        ) from err
    title = name.replace("_", " ").capitalize()
    return replace(tool, name=name, title=title, function=InThread(name, function))
