"""Imports all our modules, so that Python writes their bytecode and that of their dependencies only.

More than half of all installed modules are never imported, and the image's Python has no bytecode of its standard
library. Without this, processes that start in parallel would compile the same modules. Prints missing packages, which
belong to extras that are not installed.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

OURS = (
    "adapters",
    "cli",
    "connectors",
    "gateway",
    "infra",
    "pipelines",
    "prompts",
    "schemas",
    "sites",
    "text",
    "wiring",
    "worker",
)


def missing() -> set[str]:
    """The names of missing packages."""
    found = set()
    for ours in OURS:
        for module in pkgutil.walk_packages(importlib.import_module(ours).__path__, f"{ours}."):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as err:
                found.add(str(err.name))
    # openai imports its modules lazily.
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none")
    assert client.chat.completions
    assert client.embeddings
    return found


if __name__ == "__main__":
    sys.dont_write_bytecode = False  # overrides PYTHONDONTWRITEBYTECODE
    if found := missing():
        print(*sorted(found))  # noqa: T201
