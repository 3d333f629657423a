"""The mutants of our sources, by mutmut's operators; a sample of them."""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import sqrt
from pathlib import Path

import libcst
from mutmut.mutation.file_mutation import Mutation, create_mutations

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pipelines/runtime", "worker", "pipelines/ingest", "pipelines/query")


class Source:
    """A file, and the mutants that can be made of it."""

    def __init__(self, path: str) -> None:
        """`path`: from the root of the repository."""
        self.path = path
        self.text = (ROOT / path).read_text(encoding="utf-8")
        self.digest = sha256(self.text.encode()).hexdigest()[:16]
        parsed: tuple[libcst.Module, list[Mutation], set[str], set[str]] = create_mutations(path, self.text)
        self._module, self._mutations, *_ = parsed

    def __len__(self) -> int:
        return len(self._mutations)

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def mutated(self, number: int) -> str:
        """The text with one of the mutations."""
        mutation = self._mutations[number]
        changed = self._module.deep_replace(mutation.original_node, mutation.mutated_node)
        assert isinstance(changed, libcst.Module)
        return changed.code

    def imports(self, module: str) -> bool:
        """Whether this file imports that module."""
        names: set[str] = set()
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        return module in names

    @cached_property
    def statements(self) -> Mapping[int, Statement]:
        """The innermost statement of each line."""
        found: dict[int, Statement] = {}

        def visit(node: ast.AST, in_function: bool) -> None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    body = getattr(child, "body", None)
                    last = body[0].lineno - 1 if isinstance(body, list) and body else child.end_lineno or child.lineno
                    first = min([child.lineno, *(d.lineno for d in getattr(child, "decorator_list", ()))])
                    lines = range(first, max(last, child.lineno) + 1)
                    found.update(dict.fromkeys(lines, Statement(frozenset(lines), in_function)))
                visit(child, in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

        visit(ast.parse(self.text), in_function=False)
        return found


@dataclass(frozen=True)
class Statement:
    """Its lines; those of its body are statements of their own."""

    lines: frozenset[int]
    in_function: bool  # else it runs when its module is imported


@dataclass(frozen=True)
class Mutant:
    """One defect."""

    source: Source
    number: int

    @property
    def id(self) -> str:
        return f"{self.source.path}:{self.number}"

    @cached_property
    def text(self) -> str:
        return self.source.mutated(self.number)

    @cached_property
    def changed(self) -> tuple[range, list[str], list[str]]:
        """Which lines of the source, what they were, what they are."""
        before, after = self.source.text.splitlines(), self.text.splitlines()
        shortest = min(len(before), len(after))
        head = next((i for i in range(shortest) if before[i] != after[i]), shortest)
        tail = next((i for i in range(shortest - head) if before[-1 - i] != after[-1 - i]), shortest - head)
        return (
            range(head + 1, len(before) - tail + 1),
            before[head : len(before) - tail],
            after[head : len(after) - tail],
        )

    @property
    def statement(self) -> Statement:
        """The statement that is changed."""
        lines, _, _ = self.changed
        first = lines.start
        return self.source.statements.get(first) or Statement(frozenset(lines), in_function=False)


def sources(package: str) -> list[Source]:
    return [Source(str(path.relative_to(ROOT))) for path in sorted((ROOT / package).rglob("*.py"))]


def sample(counts: Mapping[str, int], size: int | None) -> dict[str, int]:
    """How many mutants of each package make a sample: by the square root of what there are.

    So the small packages get enough to say something of them, and the large ones most.
    """
    if size is None or size >= sum(counts.values()):
        return dict(counts)
    weights = {name: sqrt(count) for name, count in counts.items()}
    return {name: min(counts[name], round(size * weight / sum(weights.values()))) for name, weight in weights.items()}


def drawn(package: str, files: Sequence[Source], size: int, seed: int) -> list[Mutant]:
    """So many mutants of a package, the same for the same seed and sources, in random order."""
    every = [Mutant(source, number) for source in files for number in range(len(source))]
    return random.Random(f"{seed}/{package}").sample(every, size)
