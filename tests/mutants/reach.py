"""A pytest plugin that notes which test runs which lines of the pipelines, and how long it takes.

`python -m pytest -p tests.mutants.reach tests/unit` with REACH set to the file to write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from time import perf_counter

import pytest
from coverage import Coverage

from tests.mutants.mutations import PACKAGES, ROOT

_coverage = Coverage(
    data_file=None, source=[str(ROOT / package) for package in PACKAGES], config_file=False, messages=False
)
_coverage.start()  # before any of ours is imported
_seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _coverage.switch_context(item.nodeid)
    begun = perf_counter()
    try:
        return (yield)
    finally:
        _seconds[item.nodeid] = perf_counter() - begun
        _coverage.switch_context("")


def pytest_sessionfinish() -> None:
    _coverage.stop()
    data = _coverage.get_data()
    names = {name: number for number, name in enumerate(_seconds)}
    lines = {
        str(Path(file).relative_to(ROOT)): {
            line: sorted(names[test] for test in tests if test) for line, tests in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    written = {"tests": list(names), "seconds": list(_seconds.values()), "lines": lines}
    Path(os.environ["REACH"]).write_text(json.dumps(written), encoding="utf-8")
