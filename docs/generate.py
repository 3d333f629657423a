"""Writes docs/reference from the code: settings, topics, commands, message schemas, HTTP, codes, metrics.

python -m docs.generate            writes
python -m docs.generate --check    exit code 1 when a page is stale; writes those that are not committed
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cli.main import app
from connectors.cms.settings import KINDS
from connectors.settings import OpenApiTools, PythonTool
from docs import codes_page, http_page, metrics_page, routes_page
from pipelines.runtime.settings import RetentionSettings, SamplingSettings, StepName, StepSettings
from schemas.flow import FlowParts
from schemas.topics import TOPICS, dead_letter_topic
from wiring.proxy_sign_in import ProxyRole, ProxySignInSettings
from wiring.secret_files import SECRETS
from wiring.setting_problems import FILE_ONLY
from wiring.settings import ChatSettings, KeySettings, Settings, SiteSettings

REFERENCE = Path(__file__).parent / "reference"
# Written for the site alone: 12,000 lines that change with every field. routes.md lists the routes in the repository.
NOT_COMMITTED = ("http.md", "http-schemas.md", "schemas/")
FIRST = (
    "sites",
    "kafka",
    "elasticsearch",
    "elasticsearch_password",
    "admin_key",
    "token_secret",
    "hosts",
    "llm_model",
    "replication",
    "replicas",
)
NOTE = "<!-- Written by `make docs`; do not edit. -->\n\n"
OF_A_SITE = """A site has the same settings, by the same names in small letters, which go before these:
`sites: {town: {flow: original, hits: 6}}`. What is not set is as the flow has it: [flows](../howto/flows.md).
"""
NOTE_COMMANDS = """# Commands

Every listing command takes `--json`. Exit codes: 0 fine, 1 the thing asked for is not so, 2 wrong use, 3 a needed
service is not there.

"""


def pages() -> Iterator[tuple[str, str]]:
    """File name and content of every generated page."""
    yield "settings.md", NOTE + _settings()
    yield "topics.md", NOTE + _topics()
    yield "commands.md", NOTE + _commands()
    yield "http.md", NOTE + http_page.routes_page()
    yield "http-schemas.md", NOTE + http_page.schemas_page()
    yield "routes.md", NOTE + routes_page.page()
    yield "codes.md", NOTE + codes_page.page()
    yield "metrics.md", NOTE + metrics_page.page()
    for topic in TOPICS:
        if topic.value:
            yield f"schemas/{topic.name}.json", json.dumps(topic.value.model_json_schema(), indent=2) + "\n"


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for name, content in pages():
        path = REFERENCE / name
        if path.exists() and path.read_text(encoding="utf-8") == content:
            continue
        committed = not name.startswith(NOT_COMMITTED)
        if committed:
            stale.append(name)
        if not (check and committed):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    if check and stale:
        print("stale, run `make docs`:", *stale, file=sys.stderr)
        return 1
    print(*(f"wrote {name}" for name in stale), sep="\n")
    return 0


def _settings() -> str:
    lines = [
        "# Settings\n",
        "`pagewire.yaml` (another file: `PAGEWIRE_CONFIG`) holds any of these by its lower-case name; the environment",
        "variable wins. `OPENAI_API_KEY` and `OPENAI_BASE_URL` are read too. A wrong setting ends a command before it",
        "starts anything (exit code 2); it is named with the value seen, unless it is secret, and one that works.\n",
        "A setting marked *secret* may stand in a file: `PAGEWIRE_ADMIN_KEY_FILE=/run/secrets/admin_key` in place of",
        "`PAGEWIRE_ADMIN_KEY`, and `admin_key_file` in `pagewire.yaml`. The file holds the secret alone, on one line;",
        "it is read at start.\n",
        f"Most instances set some of these ten and no other: {', '.join(map(_variable, FIRST))}.\n",
    ]
    for group, names in _groups():
        lines += [f"## {group}\n", *([OF_A_SITE] if "flow" in names else [])]
        lines += ["| environment | default | |", "| --- | --- | --- |"]
        for name in names:
            field = Settings.model_fields[name]
            mark = "*Secret.* " if name in SECRETS else ""
            lines.append(f"| {_variable(name)} | {_default(field)} | {mark}{_cell(field.description)} |")
        lines.append("")
    for title, model in (
        ("A site", SiteSettings),
        ("The chat of a site", ChatSettings),
        ("The retention of a site", RetentionSettings),
        ("The judging of a site", SamplingSettings),
        ("A step", StepSettings),
        ("A key", KeySettings),
        ("Signing in by a proxy", ProxySignInSettings),
        ("A role of a proxy's users", ProxyRole),
    ):
        lines += [f"## {title}\n"]
        if model is StepSettings:
            lines += [f"Steps: {', '.join(f'`{step}`' for step in get_args(StepName))}.\n"]
        lines += ["| name | default | |", "| --- | --- | --- |"]
        # A site's flow is set by the names that it has for all sites, which stand there.
        shared = FlowParts.model_fields if model is SiteSettings else {}
        own = {n: f for n, f in model.model_fields.items() if n not in shared}
        lines += [f"| `{n}` | {_default(f)} | {_cell(f.description)} |" for n, f in own.items()]
        lines.append("")
    lines += [
        "## A tool of a site\n",
        "A Python function has `function`, a web service `openapi`: [tools](../howto/tools.md).\n",
        *_of_kinds({"function": PythonTool.model_fields, "openapi": OpenApiTools.model_fields}),
        "\n## A connector\n",
        "`kind` says which; how they are used: [connect.md](../howto/connect.md). A `secret` or `password` may be",
        "`${NAME}`: then it is read from the environment variable NAME, or from the file that NAME_FILE names.\n",
        *_of_kinds({get_args(kind.model_fields["kind"].annotation)[0]: kind.model_fields for kind in KINDS}),
    ]
    return "\n".join(lines) + "\n"


def _of_kinds(kinds: Mapping[str, Mapping[str, FieldInfo]]) -> Iterator[str]:
    """A table; what several kinds have alike stands once."""
    rows: dict[str, list[str]] = {}
    for kind, fields in kinds.items():
        for name, field in fields.items():
            if name != "kind":
                rows.setdefault(f"| `{name}` | {_default(field)} | {_cell(field.description)} |", []).append(
                    f"`{kind}`"
                )
    yield "| kind | name | default | |"
    yield "| --- | --- | --- | --- |"
    yield from (f"| {', '.join(kinds_with)} {row}" for row, kinds_with in rows.items())


def _groups() -> Iterator[tuple[str, list[str]]]:
    """Each group of settings by what its docstring calls it, with the settings it adds; a setting stands once."""
    told: set[str] = set()
    for group in Settings.__mro__:
        names = [name for name in inspect.get_annotations(group) if name in Settings.model_fields]
        if new := [name for name in names if name not in told]:
            told.update(new)
            about = "Websites." if group is Settings else inspect.cleandoc(group.__doc__ or "")
            yield about.split("\n")[0].rstrip("."), new


def _variable(name: str) -> str:
    return f"`{name}` (file only)" if name in FILE_ONLY else f"`PAGEWIRE_{name.upper()}`"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value == () or value == "" or isinstance(value, BaseModel):
        return ""
    if isinstance(value, dict):
        return ", ".join(f"`{key}`" for key in value)
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{value}`"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


def _topics() -> str:
    lines = [
        "# Topics\n",
        "From `schemas/topics.py`. All values are JSON (schemas beside this page); `PAGEWIRE_TOPIC_PREFIX` goes before",
        "every name. Messages up to 8 MiB.\n",
        "| topic | key | value | kept | |",
        "| --- | --- | --- | --- | --- |",
    ]
    for topic in chain.from_iterable((t, dead_letter_topic(t)) if t.dead_letters else (t,) for t in TOPICS):
        value = f"[{topic.value.__name__}](schemas/{topic.name}.json)" if topic.value else "original bytes"
        kept = "compacted, for ever" if topic.compacted else f"{(topic.retention_ms or 0) // 3_600_000} h"
        lines.append(f"| `{topic.name}` | {topic.key} | {value} | {kept} | {topic.about} |")
    return "\n".join(lines) + "\n"


def _commands() -> str:
    return NOTE_COMMANDS + "\n".join(_command(typer.main.get_command(app), "pagewire"))


def _command(command: Any, name: str) -> Iterator[str]:
    # Typer brings its own copy of click, so its classes are known by their attributes.
    children = getattr(command, "commands", None)
    if children is not None:
        if name != "pagewire":
            yield f"## `{name}`\n\n{inspect.cleandoc(command.help or '')}\n"
        for child in children.values():
            yield from _command(child, f"{name} {child.name}")
        return
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    shown = "".join(f" {p.name.upper()}{'...' if p.nargs == -1 else ''}" for p in arguments)
    told = inspect.cleandoc(command.help or "").replace("[", "\\[")  # brackets in an example are no links
    yield f"## `{name}{shown}`\n\n{told}\n"
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden and p.name != "help"]
    if options:
        yield "| option | |\n| --- | --- |"
        for option in options:
            flags = ", ".join(f"`{flag}`" for flag in [*option.opts, *option.secondary_opts])
            yield f"| {flags} | {_cell(option.help)} |"
        yield ""


if __name__ == "__main__":
    sys.exit(main())
