"""docs/reference/codes.md: every stable error code, read out of the code without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gateway.edge.problems import STATUS_OF_CODE
from pipelines.runtime.errors import WAYS, FailureAction, Kind
from prompts.strict_yaml import load_safe

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("pipelines", "adapters", "connectors", "gateway", "wiring", "worker")
# The base and its branch: whatever is one of them says more.
UNSAID = {"error", "refused"}
INTRODUCTION = """# Codes

Every failure has a code that stays the same, for scripts and for searching this page. It stands in problem
documents (`code`), in dead letters, in the `error` event of an answer and in log lines.

*Kind*: whose trouble it is, and from that alone follows what a stage for which no visitor waits (those of ingest,
`judge` and `log`) does with the message:

{ways}
Where a visitor waits (`rephrase`, `retrieve` and `answer`), nothing pauses and nothing is parked: the question is
tried again for as long as its visitor waits, then they read why.

*HTTP*: the edge's status, where it answers so. Without a number: 503 with `Retry-After` for what may pass, else 422.

| code | meaning | kind | HTTP |
| --- | --- | --- | --- |
"""
_WHOSE = {
    Kind.RECORD: "the message itself",
    Kind.SERVICE: "Kafka, Elasticsearch, a model: away, overloaded, full, refusing our credentials",
    Kind.SETTING: "something that somebody has to configure; the message names it",
    Kind.SITE: "one site's index, model or limit",
    Kind.MOMENT: "over in a moment, and this message's alone: another writer, a promotion",
    Kind.UNKNOWN: "not foreseen: it may be the service's or the message's",
}
_DONE = {
    FailureAction.BURY: "a dead letter at once",
    FailureAction.PAUSE: "the stage pauses, for days if need be, and looks with one message at a time; one that fails "
    "so alone, while others go through, is parked",
    FailureAction.PARK: "the site's messages are parked, the other sites' go on; they come back by themselves",
    FailureAction.AGAIN: "this message is tried again for 15 minutes, then parked",
    FailureAction.PAUSE_THEN_BURY: "the stage pauses as for a service; a dead letter once the message has failed "
    "`tries` times alone, while others went through",
}


@dataclass(frozen=True)
class Code:
    """What a code means and what is done about it. `status`: the edge's, where it has one of its own."""

    name: str
    meaning: str
    kind: str = ""
    status: int | None = None


def page() -> str:
    rows = (f"| `{code.name}` | {_cell(code.meaning)} | {code.kind} | {code.status or ''} |\n" for code in codes())
    return INTRODUCTION.format(ways=_ways()) + "".join(rows)


def _ways() -> str:
    rows = "".join(f"| {kind} | {_WHOSE[kind]} | {_DONE[way]} |\n" for kind, way in WAYS.items())
    return "| kind | whose trouble | the message then |\n| --- | --- | --- |\n" + rows


@cache
def codes() -> tuple[Code, ...]:
    """All codes, by name."""
    found = {code.name: code for code in _exceptions()}
    given = load_safe((ROOT / "docs" / "codes.yaml").read_text(encoding="utf-8"))
    for name, said in given.items():
        known = found.get(name, Code(name, ""))
        found[name] = Code(name, said.get("meaning", known.meaning), said.get("kind", known.kind), said.get("status"))
    return tuple(sorted(found.values(), key=lambda code: code.name))


def _exceptions() -> Iterator[Code]:
    classes = {name: of for folder in FOLDERS for name, of in _classes(ROOT / folder)}
    for name, of in classes.items():
        code = _code(of)
        if code is not None and code not in UNSAID:
            meaning = (ast.get_docstring(of) or "").partition("\n\n")[0]
            yield Code(code, meaning, _kind(name, classes), STATUS_OF_CODE.get(code))


def _classes(folder: Path) -> Iterator[tuple[str, ast.ClassDef]]:
    for path in sorted(folder.rglob("*.py")):
        if "app" not in path.relative_to(folder).parts:  # the Wagtail app lives in another environment
            nodes = ast.parse(path.read_text(encoding="utf-8")).body
            yield from ((node.name, node) for node in nodes if isinstance(node, ast.ClassDef))


def _code(of: ast.ClassDef) -> str | None:
    for node in of.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "code":
            return str(ast.literal_eval(node.value))
    return None


def _kind(name: str, classes: Mapping[str, ast.ClassDef]) -> str:
    """As the class says, or the nearest that it is one of."""
    # Python asks a base that is shared after all that share it.
    order = reversed(dict.fromkeys(reversed(list(_ancestors(name, classes)))))
    for ancestor in order:
        for node in classes[ancestor].body if ancestor in classes else ():
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "kind":
                return Kind[ast.unparse(node.value).rpartition(".")[2]]
    return ""


def _ancestors(name: str, classes: Mapping[str, ast.ClassDef]) -> Iterator[str]:
    yield name
    if name in classes:
        for base in classes[name].bases:
            yield from _ancestors(ast.unparse(base), classes)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
