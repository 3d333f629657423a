"""All regular expressions of ours, and texts made of each one's own parts that may hurt it.

Patterns of settings and bodies are pydantic's, which reads them with Rust's engine: that takes linear time by itself.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]  # what `re` itself reads patterns with
from typing import Any

from tests.hostile.texts import ENDS, UNITS

ROOT = Path(__file__).parents[2]
ROOMS = (
    "adapters",
    "cli",
    "connectors",
    "gateway",
    "infra",
    "pipelines",
    "prompts",
    "schemas",
    "text",
    "wiring",
    "worker",
)
ELSEWHERE = ("connectors/cms/wagtail/app",)  # a distribution of its own, in an environment of its own

_USES = frozenset(("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"))
_ANCHORED = frozenset(("match", "fullmatch"))
_MANY = 3  # times from which on a repeated part is worth an attack
_SAMPLES = 3  # of each


@dataclass(frozen=True)
class Found:
    """A pattern, and how it is used: `search` reads a text from end to end, as `sub` and `finditer` do."""

    name: str
    pattern: re.Pattern[str]
    uses: tuple[str, ...] = ("search",)


@dataclass(frozen=True)
class Made:
    """A pattern that is made in a function, of what is not known before."""

    module: str
    function: str


def modules() -> Iterator[str]:
    """The names of all modules of ours."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            relative = file.relative_to(ROOT)
            if not relative.as_posix().startswith(ELSEWHERE):
                yield ".".join(relative.with_suffix("").parts).removesuffix(".__init__")


def written() -> list[Found]:
    """Patterns of modules, in their mappings and sequences too, and those that stand in a function as they are."""
    found = []
    for name in modules():
        module = importlib.import_module(name)
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        tree = ast.parse(source)
        own = {target.id for node in tree.body for target in ast.walk(node) if isinstance(target, ast.Name)}
        for variable, value in sorted(vars(module).items()):
            if variable in own:
                for n, pattern in enumerate(_inside(value)):
                    found.append(Found(f"{name}.{variable}[{n}]", pattern, _uses(variable, source)))
        found += [Found(f"{name}:{call.lineno}", pattern, (use,)) for call, use, pattern in _calls(tree) if pattern]
    return found


def made() -> set[Made]:
    """Where functions make patterns of what is not known before."""
    found = set()
    for name in modules():
        tree = ast.parse(Path(str(importlib.import_module(name).__file__)).read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                found |= {Made(name, function.name) for _, _, pattern in _calls(function) if pattern is None}
    return found


def attacks(pattern: re.Pattern[str]) -> list[tuple[str, str, str]]:
    """Beginning, unit that is repeated, end: of texts that hurt many patterns, and of this one's own parts."""
    chance = random.Random(1)
    tree = list(_parser.parse(pattern.pattern, pattern.flags))
    found = {("", unit, end) for unit in UNITS for end in ENDS[:2]}
    for before, body in _repeated(tree, []):
        for _ in range(_SAMPLES):
            begin, unit = _said(before, chance), _said(body, chance)
            found |= {(begin, unit, end) for end in ENDS} | {("", unit, ENDS[2])}
            found |= {("", begin + unit, end) for end in ENDS[3:]} | {("", begin, ENDS[4])}
    return sorted(each for each in found if each[1])


def _inside(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        of_bytes = isinstance(value.pattern, bytes)
        yield re.compile(value.pattern.decode("latin-1"), value.flags & ~re.UNICODE) if of_bytes else value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _inside(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _inside(each)


def _uses(variable: str, source: str) -> tuple[str, ...]:
    """How a module uses a pattern of its own; what is used elsewhere is searched."""
    used = set(re.findall(rf"(?<![\w.]){variable}(?:\[[^\]]*\])?\.(\w+)", source)) & _USES
    return tuple(sorted(used)) if used and used <= _ANCHORED else ("search",)


def _calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, re.Pattern[str] | None]]:
    """Calls of `re` in functions, with what they are, and the pattern where it stands there."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for call in {node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)}:
        match call.func:
            case ast.Attribute(value=ast.Name(id="re"), attr=use) if use in (*_USES, "compile"):
                first = call.args[0]
                text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
                yield call, use if use in _ANCHORED else "search", None if text is None else re.compile(text)


def _repeated(tree: Sequence[Any], before: list[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """What is repeated in a pattern, each with what comes before it."""
    for n, (op, what) in enumerate(tree):
        here = [*before, *tree[:n]]
        match str(op):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                if int(what[1]) >= _MANY:
                    yield here, list(what[2])
                yield from _repeated(list(what[2]), here)
            case "SUBPATTERN":
                yield from _repeated(list(what[-1]), here)
            case "ATOMIC_GROUP":
                yield from _repeated(list(what), here)
            case "ASSERT" | "ASSERT_NOT":
                yield from _repeated(list(what[1]), here)
            case "BRANCH":
                for branch in what[1][:_SAMPLES]:
                    yield from _repeated(list(branch), here)


def _said(tree: Iterable[Any], chance: random.Random) -> str:
    """A text that a part of a pattern matches, about."""
    said = []
    for op, what in tree:
        match str(op):
            case "LITERAL":
                said.append(chr(what))
            case "NOT_LITERAL":
                said.append(chance.choice([each for each in "a1 -<" if ord(each) != what]))
            case "ANY":
                said.append(chance.choice("a1 -"))
            case "IN":
                said.append(_member(what, chance))
            case "BRANCH":
                said.append(_said(chance.choice(what[1]), chance))
            case "SUBPATTERN":
                said.append(_said(what[-1], chance))
            case "ATOMIC_GROUP":
                said.append(_said(what, chance))
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, body = what
                times = min(chance.choice((least, least + 1, least + 2)), int(most), 40)
                said += [_said(body, chance) for _ in range(times)]
            case "ASSERT" if what[0] < 0:
                said.append(_said(what[1], chance))
    return "".join(said)


def _member(members: Sequence[Any], chance: random.Random) -> str:
    """A character of a class."""
    if str(members[0][0]) == "NEGATE":
        pattern = re.compile("[^" + "".join(map(_spelled, members[1:])) + "]")
        return chance.choice([each for each in "a1A -_.,\n<>[]()\"'ä漢|" if pattern.match(each)] or ["a"])
    kind, what = chance.choice(members)
    match str(kind):
        case "RANGE":
            return chr(chance.choice(what))
        case "LITERAL":
            return chr(what)
    pattern = re.compile(f"[{_spelled((kind, what))}]")
    return chance.choice([each for each in "a1A -_.\n\tä" if pattern.match(each)])


_CLASSES = {"DIGIT": r"\d", "NOT_DIGIT": r"\D", "SPACE": r"\s", "NOT_SPACE": r"\S", "WORD": r"\w", "NOT_WORD": r"\W"}


def _spelled(member: Any) -> str:
    kind, what = member
    match str(kind):
        case "RANGE":
            return f"{re.escape(chr(what[0]))}-{re.escape(chr(what[1]))}"
        case "LITERAL":
            return re.escape(chr(what))
    return _CLASSES[str(what).removeprefix("CATEGORY_")]
