"""docs/reference/http.md and http-schemas.md, from the gateway's own OpenAPI document and tried examples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from gateway.app import create_app
from tests.fakes.ports import FakePorts
from wiring.settings import Settings

EXAMPLES = Path(__file__).parent / "http_examples.yaml"
WIDE = 100  # characters of a command on one line
METHODS = ("get", "put", "post", "patch", "delete")
TITLES = {
    "content": ("Pages", "What a CMS, or a program in its place, hands over."),
    "chat": ("Chat", "Questions and answers. How a streamed answer is read: [answer-stream.md](answer-stream.md)."),
    "conversations": (
        "Conversations",
        "A caller sees their own: a visitor by their token, a program by its key. Anybody else's is a 404.",
    ),
    "search": ("Search", "Passages without an answer."),
    "agents": (
        "Assistants",
        "Pages as Markdown, lists of them, and MCP, where the site opens them: [agents.md](../howto/agents.md). "
        "Without a key the caller is a visitor, counted by address.",
    ),
    "openai": (
        "OpenAI's routes",
        "A site is a model, so OpenAI's clients work unchanged; refusals have OpenAI's shape, `error.code` instead of "
        "`code`, also on paths of OpenAI's that are not here. How to use them: "
        "[conversations.md](../howto/conversations.md#openais-clients).",
    ),
    "operations": ("Operations", "For those who run it: state, dead letters, rebuilds, audit."),
}
INTRODUCTION = """# HTTP

The gateway's routes, from its own [OpenAPI](https://www.openapis.org) document, which a running gateway serves at
`/openapi.json`. Types of bodies and answers are in [http-schemas.md](http-schemas.md).

```sh
U=http://127.0.0.1:8000
S=$U/v1/sites/town
KEY="Authorization: Bearer $(cat .pagewire/admin.key)"
```

**Who may.** `Authorization: Bearer KEY`. A key has scopes (`ingest`, `chat`, `view`, `edit`, `admin`) and may be for
one site ([keys](../howto/keys.md#scopes)); the admin key may everything. Where the scope is `chat`, a
[visitor token](#post-visitor-tokens) does as well. Every route of a site answers 404 `unknown-site` to
callers who might use it, if there is no such site.

**Bodies** are JSON, whatever `Content-Type` says, so that `curl -d` works. Fields that we do not know are refused.

**Refusals** are [problem documents](http-schemas.md#problemdocument) (RFC 9457) with a stable `code`:

```json
{"type": "urn:pagewire:problem:unknown-site", "title": "Not Found", "status": 404, "code": "unknown-site",
 "detail": "no such site", "instance": "97f50fcfe9cddc8f1c53df3871d4faed"}
```

`instance` is the request's trace id: it is in the header `X-Trace-Id`, in every log line and in every message that came
of the request; send `traceparent` (W3C Trace Context) to choose it. Any route may answer 401 `unauthorized`, 403
`forbidden`, 400 `bad-json` and `body-short`, 408 `body-stalled`, 413 `too-large`, 422 `invalid` (with `errors`, field
by field), 500 `internal`, and 503 with `Retry-After` while Kafka or Elasticsearch is away. What else a route refuses
with is said there; all codes are in [codes.md](codes.md).

**Limits.** Visitors are counted by token and by address (`visitor_rate`), keys are not: 429 `too-many-requests` with
`Retry-After`. Visitors' routes may be called by pages of the origins that a site names, no others; on OpenAI's routes
the site is the caller's. What bounds each route: [routes.md](routes.md). `HEAD` is answered wherever there is `GET`.
"""
SCHEMAS = """# Bodies and answers

What [http.md](http.md) speaks of, from the same OpenAPI document. A field without a default is required in a body and
always there in an answer.
"""


def routes_page() -> str:
    lines = [INTRODUCTION]
    for tag, (title, about) in TITLES.items():
        lines.append(f"## {title}\n\n{about}\n")
        for name, operation in operations().items():
            if operation["tags"] == [tag]:
                lines.append(_operation(name, operation))
    return "\n".join(lines)


def schemas_page() -> str:
    return "\n".join([SCHEMAS, *(_schema(name, schema) for name, schema in sorted(schemas().items()))])


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document of a gateway over fakes; nothing is started."""
    with TemporaryDirectory() as home:
        settings = Settings.model_validate(
            {"home": home, "admin_key": "unused" * 8, "token_secret": "unused" * 8, "sites": {"town": {}}}
        )
        return create_app(settings, FakePorts().ports).openapi()


def operations() -> dict[str, dict[str, Any]]:
    """By `METHOD path`, in the order of the routes."""
    return {
        f"{method.upper()} {path}": item[method]
        for path, item in document()["paths"].items()
        for method in METHODS
        if method in item
    }


def schemas() -> dict[str, dict[str, Any]]:
    """By name; those that may be anything are not described."""
    return {name: schema for name, schema in document()["components"]["schemas"].items() if schema}


@cache
def examples() -> Mapping[str, Any]:
    """What the page has besides the document: how routes refuse, and a call with its answer. By `METHOD path`."""
    found: Mapping[str, Any] = yaml.load(EXAMPLES.read_bytes(), yaml.CSafeLoader)
    return found


def _operation(name: str, operation: Mapping[str, Any]) -> str:
    told = examples().get(name, {})
    parts = [f"### {_title(name)}\n", f"`{name}`\n", operation["description"] + "\n", f"{_who(operation)}\n"]
    if parameters := operation.get("parameters"):
        parts += ["| parameter | in | type | |", "| --- | --- | --- | --- |"]
        parts += [_parameter(p) for p in parameters]
        parts.append("")
    if body := operation.get("requestBody"):
        kinds = " or ".join(f"{_link(c['schema'])} (`{media}`)" for media, c in body["content"].items())
        optional = "" if body.get("required") else ", may be left out"
        parts.append(f"Body: {kinds}{optional}.\n")
    parts += ["| answer | | |", "| --- | --- | --- |", *_answers(operation), ""]
    if problems := told.get("problems"):
        parts.append(f"Refuses with {', '.join(f'`{code}`' for code in problems)}.\n")
    if "call" in told:
        parts.append(_example(told))
    return "\n".join(parts)


def _title(name: str) -> str:
    """Short enough for a table of contents: without what the routes have in common."""
    method, _, path = name.partition(" ")
    return f"{method} {path.removeprefix('/v1').removeprefix('/sites/{site}').lstrip('/')}"


def _who(operation: Mapping[str, Any]) -> str:
    match operation.get("security"):
        case [{"HTTPBearer": [scope]}]:
            return f"Scope: `{scope}`."
        case [{"WebhookSignature": _}]:
            return "Signed with the connector's secret ([how](../howto/connect.md#push-a-signed-webhook)); no key."
    return "Open."


def _parameter(parameter: Mapping[str, Any]) -> str:
    schema = parameter["schema"]
    known = {"site": "As in pagewire.yaml."} if parameter["in"] == "path" else {}
    about = parameter.get("description") or known.get(parameter["name"], "")
    if schema.get("default") not in (None, ""):
        about = f"{about} Default: `{json.dumps(schema['default'])}`.".strip()
    return f"| `{parameter['name']}` | {parameter['in']} | {_type(schema)} | {_cell(about)} |"


def _answers(operation: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in sorted(operation["responses"].items()):
        if status == "default":
            continue
        kinds = [f"{_link(c['schema'])} (`{media}`)" for media, c in answer.get("content", {}).items() if "schema" in c]
        about = answer["description"]
        yield f"| {status} | {' or '.join(kinds)} | {'' if about == 'Successful Response' else _cell(about)} |"


def _example(told: Mapping[str, Any]) -> str:
    method, _, where = told["call"].partition(" ")
    call = ["curl"] + ([] if method in ("GET", "POST") else [f"-X {method}"])
    if method == "POST" and "body" not in told and "lines" not in told:
        call.append("-X POST")
    call.append(f'"{where}"')
    if not told.get("open"):
        call.append('-H "$KEY"')
    call += [f'-H "{header}"' for header in told.get("headers", ())]
    if "body" in told:
        call.append(f"-d '{json.dumps(told['body'], ensure_ascii=False)}'")
    if "lines" in told:
        text = "\n".join(json.dumps(line, ensure_ascii=False) for line in told["lines"])
        call.append(f"--data-binary @- <<'END'\n{text}\nEND")
    apart = " " if sum(map(len, call)) < WIDE else " \\\n  "
    shown = f"```sh\n{apart.join(call)}\n```\n"
    if "file" in told:
        return f"{shown}\n```\n{told['file']}```\n"
    if "answer" not in told:
        return shown + (f"\n```http\n{told['status']}\n```\n" if "status" in told else "")
    return f"{shown}\n```json\n{json.dumps(told['answer'], ensure_ascii=False, indent=2)}\n```\n"


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    parts = [f"## {name}\n"]
    if about := schema.get("description"):
        parts.append(about + "\n")
    if "properties" not in schema:
        return "\n".join([*parts, _type(schema) + "\n"])
    required = schema.get("required", ())
    if schema["properties"]:
        parts += ["| field | type | default | |", "| --- | --- | --- | --- |"]
    for field, of in schema["properties"].items():
        default = "" if field in required or "default" not in of else f"`{json.dumps(of['default'])}`"
        parts.append(f"| `{field}` | {_type(of)} | {default} | {_cell(of.get('description', ''))} |")
    return "\n".join([*parts, ""])


def _link(schema: Mapping[str, Any]) -> str:
    if "$ref" not in schema:
        return _type(schema)
    name = schema["$ref"].rpartition("/")[2]
    return f"[{name}](http-schemas.md#{name.lower()})" if name in schemas() else "any JSON"


def _type(schema: Mapping[str, Any]) -> str:
    """A type in a few words; what a string's pattern says stands in its description."""
    match schema:
        case {"$ref": _}:
            return _link(schema)
        case {"const": value}:
            return f"`{json.dumps(value)}`"
        case {"enum": values}:
            return ", ".join(f"`{json.dumps(value)}`" for value in values)
        case {"anyOf": kinds} | {"oneOf": kinds}:
            return " or ".join(_type(kind) for kind in kinds)
        case {"type": "array", "prefixItems": [one]}:
            return f"array of one {_type(one)}"
        case {"type": "array", "items": items}:
            return f"array of {_type(items)}"
        case {"type": "object", "additionalProperties": {"type": _} as values}:
            return f"object of {_type(values)} by name"
        case {"type": "string", "format": "date-time"}:
            return "time (ISO 8601)"
        case {"type": str(kind), **limits}:
            return kind + _range(limits)
    return "any JSON"


def _range(limits: Mapping[str, Any]) -> str:
    said = []
    if "minimum" in limits and "maximum" in limits and limits["maximum"] < 2**31:
        said.append(f"{limits['minimum']:g} to {limits['maximum']:g}")
    elif limits.get("minimum", 0) > 0:
        said.append(f"at least {limits['minimum']:g}")
    if "maxLength" in limits:
        said.append(f"at most {limits['maxLength']:,} characters")
    return f" ({', '.join(said)})" if said else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
