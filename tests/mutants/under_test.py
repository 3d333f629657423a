"""A pytest plugin: one module is what MUTANT says instead of what is on disk, and only the tests named there run."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Sequence
from importlib.abc import SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

MEMORY = 8 * 2**30  # bytes of address space: a loop that fills memory ends by itself
_order = json.loads(Path(os.environ["MUTANT"]).read_text(encoding="utf-8"))
_tests = frozenset(_order["tests"])


class _Mutated(SourceLoader):
    """Finds and loads the one module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(fullname, self, origin=_order["file"]) if fullname == _order["module"] else None

    def get_filename(self, fullname: str) -> str:
        return str(_order["file"])

    def get_data(self, path: str | bytes) -> bytes:
        return str(_order["text"]).encode()


resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
assert _order["module"] not in sys.modules, "imported before it could be changed"
sys.meta_path.insert(0, _Mutated())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if item.nodeid in _tests]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in _tests])
    # The quickest first: most mutants are killed by many.
    seconds = dict(zip(_order["tests"], _order["seconds"], strict=True))
    items[:] = sorted(kept, key=lambda item: seconds[item.nodeid])
