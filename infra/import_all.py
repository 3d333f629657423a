"""Import everything of ours, and with it what it needs: Python writes the bytecode of that, and of nothing else.

More than half of all bytecode is of modules that nobody imports, and the image's Python comes without that of its own
library. Processes that start side by side would each compile the same. Prints the packages that are missing: those of
extras that are not installed.
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
    """Names of packages."""
    found = set()
    for ours in OURS:
        for module in pkgutil.walk_packages(importlib.import_module(ours).__path__, f"{ours}."):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as err:
                found.add(str(err.name))
    # Imports what it is asked for, when it is.
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none")
    assert client.chat.completions
    assert client.embeddings
    return found


if __name__ == "__main__":
    sys.dont_write_bytecode = False  # whatever PYTHONDONTWRITEBYTECODE says
    if found := missing():
        print(*sorted(found))  # noqa: T201
