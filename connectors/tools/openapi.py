"""OpenAPI: an operation of a web service as a tool, from the document that describes the service.

    document, id ─▶ Operation: name, schema of all arguments ─▶ request(server, arguments) ─▶ method, URL, body

The document is read as data: nothing in it is fetched or run. What its schemas demand beyond types, required arguments
and lists of values is left to the service, which refuses what does not fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from pydantic import BaseModel, Field, create_model

from pipelines.query.answer.tools.argument_schema import ArgumentSchema
from pipelines.query.answer.tools.registry import CONFIG

MOST_NODES = 2_000  # of an operation's schemas, references followed
DEEPEST = 12  # references and values inside each other
TITLE_CHARS = 80
DESCRIPTION_CHARS = 1_000

_METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace")
_TYPES: Mapping[object, Any] = {
    "integer": int,
    "number": float,
    "string": str,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}
_SLOT = re.compile(r"\{([^{}/]{1,64})\}")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_NAME = re.compile(r"[^a-z0-9]+")
_UNREAD = frozenset(("example", "examples", "xml", "externalDocs", "discriminator"))  # of a schema, by a model

IGNORED = ("accept", "authorization", "content-type")  # headers as parameters, which OpenAPI says mean nothing

Place = Literal["path", "query", "body"]


class BadDocument(ValueError):
    """The document does not describe the operation in a way that we can call."""


@dataclass(frozen=True)
class Parameter:
    """An argument of an operation. `exploded`: values of a list are given one by one."""

    name: str
    place: Place
    required: bool
    schema: Mapping[str, Any]
    exploded: bool = True

    @property
    def given(self) -> list[Any]:
        """The value that the schema gives where it is required; else the service knows its default best."""
        return ArgumentSchema({}, self.schema).given[:1] if self.required else []


@dataclass(frozen=True)
class Request:
    """What is sent."""

    method: Literal["GET", "POST"]
    url: str
    body: bytes | None = None


@dataclass(frozen=True)
class Operation:
    """One operation. `server`: as the document says, perhaps relative to its own address; empty: it names none."""

    id: str
    method: Literal["GET", "POST"]
    path: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    server: str

    @property
    def name(self) -> str:
        """As a model calls it: `getFee` is `get_fee`."""
        return _NO_NAME.sub("_", _CAPITAL.sub("_", self.id).lower()).strip("_")[:63]

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of all arguments."""
        required = [each.name for each in self.parameters if each.required and not each.given]
        properties = {each.name: dict(each.schema) for each in self.parameters}
        return {"type": "object", "properties": properties} | ({"required": required} if required else {})

    @property
    def arguments(self) -> type[BaseModel]:
        """The model that checks them."""
        fields: dict[str, Any] = {}
        for n, each in enumerate(self.parameters):
            given = each.given
            described = Field(alias=each.name, description=each.schema.get("description"), validate_default=bool(given))
            default = given[0] if given else ... if each.required else None
            fields[f"p{n}"] = (Annotated[_type(each.schema), described], default)
        return create_model(self.name, __config__=CONFIG, **fields)

    def named(self, checked: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by their own names, of those that were checked."""
        return {each.name: checked[f"p{n}"] for n, each in enumerate(self.parameters)}

    def request(self, server: str, arguments: Mapping[str, Any]) -> Request:
        """Raises: ValueError: an argument cannot be part of the path, or not beside another one."""
        given = [(each, value) for each in self.parameters if (value := arguments.get(each.name)) is not None]
        path = {each.name: _written(value) for each, value in given if each.place == "path"}
        query = [
            (each.name, _written(one))
            for each, value in given
            if each.place == "query"
            for one in (value if isinstance(value, list) and each.exploded else [value])
        ]
        body = {each.name: value for each, value in given if each.place == "body"}
        url = server.rstrip("/") + "/".join(_segment(each, path) for each in self.path.split("/"))
        sent = json.dumps(body, ensure_ascii=False).encode() if self.method == "POST" else None
        return Request(self.method, f"{url}?{urlencode(query)}" if query else url, sent)


def operations(document: object, ids: Iterable[str], header: str = "") -> list[Operation]:
    """The operations with these ids.

    Args:
        header: that is sent along whatever the document says.

    Raises: BadDocument: names the operation.
    """
    sent = {*IGNORED, header.lower()}
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith("3."):
        raise BadDocument("this is no OpenAPI 3 document")
    found: dict[str, tuple[str, str, dict[str, Any], list[Any]]] = {}
    for path, item in _mapping(document.get("paths")).items():
        for method in _METHODS:
            operation = _mapping(item).get(method)
            if isinstance(operation, dict) and isinstance(operation.get("operationId"), str):
                found[operation["operationId"]] = (method, str(path), operation, _list(item.get("parameters")))
    known = ", ".join(sorted(found)[:20]) or "none"
    made = []
    for id in ids:
        if id not in found:
            raise BadDocument(f"there is no operation {id!r}; there are: {known}")
        made.append(_operation(id, document, *found[id], sent))
    return made


def _operation(
    id: str,
    document: Mapping[str, Any],
    method: str,
    path: str,
    said: dict[str, Any],
    shared: list[Any],
    sent: Collection[str],
) -> Operation:
    if method not in ("get", "post"):
        raise BadDocument(f"operation {id}: {method.upper()} changes things, and only GET and POST are called")
    inliner = _Inliner(document, id)
    own = {}
    for written in (*shared, *_list(said.get("parameters"))):
        parameter = _parameter(id, _mapping(inliner.inlined(written)), sent)
        if parameter is not None:
            own[parameter.name] = parameter
    if method == "post":
        for parameter in _body(id, _mapping(inliner.inlined(said.get("requestBody") or {}))):
            if parameter.name in own:
                raise BadDocument(f"operation {id}: {parameter.name} is both in the body and outside of it")
            own[parameter.name] = parameter
    in_path = {each.name for each in own.values() if each.place == "path"}
    if not path.startswith("/") or set(_SLOT.findall(path)) != in_path or set("{}?#") & set(_SLOT.sub("", path)):
        raise BadDocument(f"operation {id}: its path {path[:TITLE_CHARS]!r} and its path parameters do not fit")
    if "}{" in path:
        raise BadDocument(f"operation {id}: nothing parts two parameters in its path {path[:TITLE_CHARS]!r}")
    summary, told = (_line(said.get(key)) for key in ("summary", "description"))
    description = " ".join(filter(None, dict.fromkeys((summary, told))))[:DESCRIPTION_CHARS]
    if not description:
        raise BadDocument(f"operation {id}: no summary or description to tell the model what it does")
    servers = _list(said.get("servers")) or _list(document.get("servers")) or [None]
    server = str(_mapping(servers[0]).get("url") or "")
    made: Literal["GET", "POST"] = "GET" if method == "get" else "POST"
    operation = Operation(id, made, path, (summary or id)[:TITLE_CHARS], description, tuple(own.values()), server)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", operation.name):
        raise BadDocument(f"operation {id!r} has an id that cannot be the name of a tool")
    return operation


def _parameter(id: str, said: Mapping[str, Any], sent: Collection[str]) -> Parameter | None:
    name, place, required = said.get("name"), said.get("in"), said.get("required") is True
    if not isinstance(name, str) or not name:
        raise BadDocument(f"operation {id}: a parameter has no name")
    if place not in ("path", "query"):
        if required and not (place == "header" and name.lower() in sent):
            raise BadDocument(f"operation {id}: parameter {name} goes into a {place}, which is not supported")
        return None
    schema = _described(_mapping(said.get("schema")), said.get("description"))
    return Parameter(name, place, required or place == "path", schema, said.get("explode", True) is True)


def _body(id: str, said: Mapping[str, Any]) -> list[Parameter]:
    if not said:
        return []
    schema = _mapping(_mapping(_mapping(said.get("content")).get("application/json")).get("schema"))
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        raise BadDocument(f"operation {id}: its body is no JSON object with named properties")
    required = _list(schema.get("required"))
    return [Parameter(str(name), "body", name in required, _mapping(each)) for name, each in properties.items()]


class _Inliner:
    """Puts what `$ref` names into its place, up to a size: documents may refer in circles, or grow without end."""

    def __init__(self, document: Mapping[str, Any], id: str) -> None:
        self._document = document
        self._id = id
        self._left = MOST_NODES

    def inlined(self, node: Any, deep: int = 0, *, named: bool = False) -> Any:
        """`named`: the keys are names that the service has chosen, and no words of OpenAPI."""
        self._left -= 1
        if self._left < 0 or deep > DEEPEST:
            raise BadDocument(f"operation {self._id}: its schemas are too large, or refer in a circle")
        if isinstance(node, list):
            return [self.inlined(each, deep + 1) for each in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("$ref"), str) and not named:
            return self.inlined(self._referred(node["$ref"]), deep + 1)
        found = {
            key: self.inlined(value, deep + 1, named=key == "properties" and not named)
            for key, value in node.items()
            if named or key not in _UNREAD
        }
        if not named and isinstance(text := found.get("description"), str):
            found["description"] = text[:DESCRIPTION_CHARS]  # each question carries it to the model
        return found

    def _referred(self, ref: str) -> Any:
        if not ref.startswith("#/"):
            raise BadDocument(f"operation {self._id}: {ref[:TITLE_CHARS]!r} is in another document")
        node: Any = self._document
        for part in ref[2:].split("/"):
            node = _mapping(node).get(part.replace("~1", "/").replace("~0", "~"))
        if node is None:
            raise BadDocument(f"operation {self._id}: {ref[:TITLE_CHARS]!r} is not in the document")
        return node


def _type(schema: Mapping[str, Any]) -> Any:
    values = schema.get("enum")
    if isinstance(values, list) and values and all(isinstance(each, (str, int)) for each in values):
        return Literal[tuple(values)]
    said = schema.get("type")
    kinds = [each for each in (said if isinstance(said, list) else [said]) if each != "null"]
    return _TYPES.get(kinds[0], Any) if len(kinds) == 1 and isinstance(kinds[0], str) else Any


def _described(schema: Mapping[str, Any], description: object) -> Mapping[str, Any]:
    text = _line(description)
    return {**schema, "description": text[:DESCRIPTION_CHARS]} if text else schema


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _line(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _segment(template: str, values: Mapping[str, str]) -> str:
    """A segment of a path with its values. Raises: ValueError: it would not be read as these values again."""
    pieces = _SLOT.split(template)  # text, name, text, name, ... text
    names, parting = pieces[1::2], pieces[2:-1:2]
    for name in names:
        value = values[name]
        if value in ("", ".", ".."):
            raise ValueError(f"{name}: {value!r} is no value")
        # A dot stays a dot when it is percent-encoded: no service can say what {x} of "{x}.{y}" was in "a.b.c".
        if taken := next((each for each in parting if each in value or {value[0], value[-1]} & set(each)), None):
            raise ValueError(f"{name}: {taken!r} cannot be in {value[:TITLE_CHARS]!r}: it parts {' and '.join(names)}")
    return _SLOT.sub(lambda slot: quote(values[slot[1]], safe=""), template)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(_written, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
