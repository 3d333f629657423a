"""How large the code is, as docs/scope.md has it: of this commit, or of any other.

python -m docs.size [COMMIT]   what is in git, not what lies in the folder
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
# Outside the product: what measures it, what tests it, what documents it.
BESIDE = ("bench", "tests", "docs", "widget")
PARTS = ("core", "operators'", "lab")


class Capability(NamedTuple):
    """A line of docs/scope.yaml."""

    part: str
    name: str
    folders: list[str]  # folders and files; what is named more exactly elsewhere is not counted here
    entry: str  # "file: function"


def capabilities() -> list[Capability]:
    document = yaml.safe_load((ROOT / "docs/scope.yaml").read_text(encoding="utf-8"))
    return [Capability(part, **each) for part in PARTS for each in document[part]]


@cache
def files(commit: str) -> Mapping[str, str]:
    """Text by path, of Python and of what else is counted."""
    wanted = [
        path
        for path in _git("ls-tree", "-r", "--name-only", commit).splitlines()
        if path.endswith((".py", ".lock")) or path in ("docs/reference/commands.md", "docs/reference/settings.md")
    ]
    asked = "\n".join(f"{commit}:{path}" for path in wanted)
    command = ["git", "cat-file", "--batch"]
    told = subprocess.run(command, cwd=ROOT, input=asked.encode(), capture_output=True, check=True).stdout  # noqa: S603
    found, at = {}, 0
    for path in wanted:
        head_end = told.index(b"\n", at)
        size = int(told[at:head_end].split()[2])
        found[path] = told[head_end + 1 : head_end + 1 + size].decode("utf-8")
        at = head_end + size + 2
    return found


def totals(commit: str) -> dict[str, int]:
    """The figures by what they are of."""
    every = files(commit)
    code = {path: text for path, text in every.items() if path.endswith(".py")}
    product = {path: text for path, text in code.items() if path.partition("/")[0] not in BESIDE}
    bench = {path: text for path, text in code.items() if path.startswith("bench/")}
    classes = Counter(name for text in product.values() for name, _ in _classes(text))
    commands = every.get("docs/reference/commands.md", "")
    return {
        "lines of Python, product": sum(map(_lines, product.values())),
        "lines of Python, bench": sum(map(_lines, bench.values())),
        "lines of Python, tests": sum(_lines(text) for path, text in code.items() if path.startswith("tests/")),
        "files of Python, product and bench": len(product) + len(bench),
        "commands (`pagewire --help`)": sum("\nExample: " in part for part in commands.split("\n## `pagewire ")[1:]),
        "settings": len(re.findall(r"^\| `", every.get("docs/reference/settings.md", ""), re.M)),
        "lines of lock files": sum(_lines(text) for path, text in every.items() if path.endswith(".lock")),
        "Protocols": sum("Protocol" in bases for text in product.values() for _, bases in _classes(text)),
        "names that several classes have": sum(count > 1 for count in classes.values()),
    }


def lines_of(commit: str) -> dict[str, int]:
    """Lines of Python of each capability: a file belongs to the one that names it most exactly."""
    owners = {folder: each.name for each in capabilities() for folder in each.folders}
    found = dict.fromkeys((each.name for each in capabilities()), 0)
    for path, text in files(commit).items():
        if path.endswith(".py") and (owner := owner_of(path, owners)):
            found[owner] += _lines(text)
    return found


def owner_of(path: str, owners: Mapping[str, str]) -> str | None:
    """The name that the longest prefix of a path has."""
    places = [path, *(str(parent) for parent in Path(path).parents)]
    return next((owners[place] for place in places if place in owners), None)


def _classes(text: str) -> Iterator[tuple[str, set[str]]]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, {name.id for base in node.bases for name in ast.walk(base) if isinstance(name, ast.Name)}


def _lines(text: str) -> int:
    return text.count("\n")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own


def main() -> None:
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    for name, count in totals(commit).items():
        print(f"| {name} | {count:,} |")
    lines = lines_of(commit)
    for part in PARTS:
        own = [each for each in capabilities() if each.part == part]
        print(f"\n{part}: {sum(lines[each.name] for each in own):,} lines")
        for each in own:
            where = ", ".join(f"`{folder}`" for folder in each.folders)
            print(f"| {each.name} | {where} | `{each.entry}` | {lines[each.name]:,} |")


if __name__ == "__main__":
    main()
