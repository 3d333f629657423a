"""Turns of phrase that docs/style.md names, found in comments, docstrings and pages. Part of `make check`.

A room stands in `READ` once somebody has read all of its sentences against docs/style.md.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READ: tuple[str, ...] = (  # files and folders, perhaps with wildcards
    "adapters",
    "bench",
    "cli",
    "connectors",
    "docs/[!s]*.md",  # docs/style.md has the turns as examples
    "docs/[!w]*.py",
    "docs/howto",
    "docs/reference/[!h]*.md",  # http.md is written from docstrings of rooms, and is not committed
    "docs/wording.py",
    "gateway/*.py",
    "gateway/agents",
    "gateway/chat",
    "gateway/console",
    "gateway/content",
    "gateway/edge",
    "gateway/mcp",
    "gateway/openai",
    "gateway/operators",
    "gateway/site",
    "infra",
    "pipelines/conversations",
    "pipelines/evaluate",
    "pipelines/ingest",
    "pipelines/operate",
    "pipelines/query/*.py",
    "pipelines/query/answer",
    "pipelines/query/extractive",
    "pipelines/query/live",
    "pipelines/query/log",
    "pipelines/query/rephrase",
    "pipelines/query/retrieve",
    "pipelines/query/search",
    "pipelines/runtime",
    "prompts",
    "schemas",
    "sites",
    "tests/conftest.py",
    "tests/fakes",
    "tests/unit/conftest.py",
    "text",
    "wiring",
    "worker",
)
TURNS = {
    r"who(?:m|so)?ever": "name them: the caller, an operator, a worker",
    r"nobody|whom": "name who or what does it",
    r"what (?:became|becomes) of": "the state of, the outcome of",
    r"(?:is|are|was|were|be|been) told": "receives, is shown, is given",
    r"(?:hears?|heard) of": "receives, learns",
    r"by the clock": "on a schedule",
}
_TURN = re.compile("|".join(rf"\b(?:{turn})\b" for turn in TURNS), re.IGNORECASE)
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


def found(path: Path) -> Iterator[str]:
    """A line for each turn in a file."""
    text = path.read_text(encoding="utf-8")
    for line, sentence in _python(text) if path.suffix == ".py" else _page(text):
        for turn in _TURN.finditer(_CODE.sub("", sentence)):
            better = next(better for pattern, better in TURNS.items() if re.fullmatch(pattern, turn[0], re.IGNORECASE))
            yield f"{path.relative_to(ROOT)}:{line}: {turn[0]!r}: {better}"


def _python(text: str) -> Iterator[tuple[int, str]]:
    """Comments and docstrings with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            docstring := ast.get_docstring(node)
        ):
            yield node.body[0].lineno, docstring


def _page(text: str) -> Iterator[tuple[int, str]]:
    yield from enumerate(text.split("\n"), 1)


def files() -> Iterator[Path]:
    """All that has been read."""
    for path in sorted(path for each in READ for path in ROOT.glob(each)):
        if path.is_file():
            yield path
        else:
            yield from sorted(file for file in path.rglob("*") if file.suffix in (".py", ".md"))


def main() -> int:
    """Print each turn; 1 where there is one."""
    lines = [line for path in files() for line in found(path)]
    print(*lines, sep="\n", file=sys.stderr, end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
