"""docs/reference/codes.md: every stable error code, read out of the code without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from gateway.edge.problems import STATUS_OF_CODE

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("pipelines", "adapters", "connectors", "gateway", "wiring")
RETRYABLE = "Retryable"
# The base and its branch: whatever is one of them says more.
UNSAID = {"error", "refused"}
INTRODUCTION = """# Codes

Every failure has a code that stays the same, for scripts and for whoever searches for it here. It stands in problem
documents (`code`), in dead letters, in the `error` event of an answer and in log lines.

*Tried again*: a stage tries a message that fails so for `retry_for` seconds before it becomes a dead letter, and the
edge answers 503 with `Retry-After`. With any other failure a stage gives up at once, and the edge answers with the
status given here, or with 422.

| code | meaning | tried again | HTTP |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Code:
    """What a code means and what is done about it. `status`: the edge's, where it has one of its own."""

    name: str
    meaning: str
    retried: bool = False
    status: int | None = None


def page() -> str:
    rows = (
        f"| `{code.name}` | {_cell(code.meaning)} | {'yes' if code.retried else ''} | {code.status or ''} |\n"
        for code in codes()
    )
    return INTRODUCTION + "".join(rows)


@cache
def codes() -> tuple[Code, ...]:
    """All codes, by name."""
    found = {code.name: code for code in _exceptions()}
    given = yaml.safe_load((ROOT / "docs" / "codes.yaml").read_text(encoding="utf-8"))
    for name, said in given.items():
        known = found.get(name, Code(name, ""))
        found[name] = Code(name, said.get("meaning", known.meaning), known.retried, said.get("status"))
    return tuple(sorted(found.values(), key=lambda code: code.name))


def _exceptions() -> Iterator[Code]:
    classes = {name: of for folder in FOLDERS for name, of in _classes(ROOT / folder)}
    for name, of in classes.items():
        code = _code(of)
        if code is not None and code not in UNSAID:
            meaning = (ast.get_docstring(of) or "").partition("\n\n")[0]
            yield Code(code, meaning, RETRYABLE in _ancestors(name, classes), STATUS_OF_CODE.get(code))


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


def _ancestors(name: str, classes: Mapping[str, ast.ClassDef]) -> Iterator[str]:
    yield name
    if name in classes:
        for base in classes[name].bases:
            yield from _ancestors(ast.unparse(base), classes)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
