"""From the built wheel, with an empty home: `uvx ... pagewire demo --once`, and `pipx install`."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from zipfile import ZipFile

import pytest

from infra.engine.state import any_free
from tests.package.contents import FOLDERS, ROOT, faults_of_source, faults_of_wheel, known_files, names_of
from tests.package.outside import PYTHON, UVX, Outside
from tests.package.release import project_version

pytestmark = pytest.mark.package

WATCH = Path(__file__).with_name("watch.py")
DEMO_TIMEOUT = 900.0  # seconds; 250 MB come from the registries, and 45 pages are embedded beside other tests
INSTALL_TIMEOUT = 300.0  # seconds
PIPX = "pipx@1.18.4"  # in an environment of its own: it cannot share ours (filelock)

# Imports every module of ours that is installed; prints those that cannot be, and whose our top-level names are.
LOOK = """
import importlib, json, pkgutil, sys
from importlib.metadata import files, packages_distributions
folders = sys.argv[1:]
broken = {}
for file in files("pagewire"):
    if file.suffix == ".py" and file.parts[0] in folders:
        name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        try:
            importlib.import_module(name)
        except ImportError as error:
            broken[name] = error.name
owners = {folder: packages_distributions().get(folder) for folder in folders}
print(json.dumps({"broken": broken, "owners": owners}))
"""
# Modules that want an extra, or a checkout, and what they lack without.
LACKING = {
    "connectors.cms.sitemap.discover": "protego",
    "connectors.cms.sitemap.feeds": "protego",
    "connectors.cms.sitemap.follow": "protego",
    "connectors.cms.sitemap.source": "protego",
    "gateway.mcp.admin_server": "mcp_types",
    "gateway.mcp.protocol": "mcp_types",
    "gateway.mcp.server": "mcp_types",
}


def test_the_wheel_holds_what_runs_and_nothing_else(wheel: Path) -> None:
    assert faults_of_wheel(names_of(wheel), known_files()) == []


def test_the_source_holds_what_it_is_built_from(dist: Path) -> None:
    (source,) = dist.glob("pagewire-*.tar.gz")
    assert faults_of_source(names_of(source), known_files()) == []


def test_the_demo_answers_from_an_empty_home(wheel: Path, outside: Outside, tmp_path: Path) -> None:
    watched = tmp_path / "watch"
    watched.mkdir()
    shutil.copy(WATCH, watched / "sitecustomize.py")
    for folder in FOLDERS:  # a user's folders may be called as our packages are
        (outside.here / folder).mkdir()
        (outside.here / folder / "__init__.py").write_text("raise ImportError('this is not ours')\n")
    kafka = any_free(set())

    done = outside.run(
        UVX,
        "--from",
        wheel,
        "pagewire",
        "demo",
        "--once",
        timeout=DEMO_TIMEOUT,
        PYTHONPATH=str(watched),
        WATCH_LOG=str(watched / "opened"),
        PAGEWIRE_PORT="0",
        PAGEWIRE_NICE="0",  # else bulk work waits for the other tests
        PAGEWIRE_ENGINE_KAFKA_PORT=str(kafka),
        PAGEWIRE_ENGINE_ES_PORT=str(any_free({kafka})),
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "€18" in done.stdout
    assert "[1] The library in the old convent" in done.stdout
    assert outside.left_over() == []
    assert list(outside.temporary.iterdir()) == []

    opened = read_log(watched / "opened")
    everything = set[str]().union(*opened.values())
    assert [path for path in everything if Path(path).is_relative_to(ROOT)] == []
    # The log has seen them all: the demo, the process that its parts are forks of, three workers, the gateway; the one
    # that writes run.json, and the two that read it.
    assert len([paths for paths in opened.values() if of("cli", paths)]) == 6
    assert len([paths for paths in opened.values() if any(path.endswith("/run.json") for path in paths)]) == 3
    for data in ("prompts/canned.yaml", "infra/elasticsearch/001_site.json", "infra/engine/jars.json"):
        assert any(path.endswith(f"/site-packages/{data}") for path in everything), data


def test_pipx_installs_it(wheel: Path, outside: Outside) -> None:
    done = outside.run(UVX, PIPX, "install", "--python", PYTHON, wheel, timeout=INSTALL_TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    command = outside.home / ".local/bin/pagewire"
    shown = outside.run(command, "--version", timeout=60)
    assert (shown.returncode, shown.stdout) == (0, f"pagewire {project_version()}\n")

    python = command.resolve().with_name("python")
    looked = outside.run(python, "-P", "-c", LOOK, *FOLDERS, timeout=120)
    assert looked.returncode == 0, looked.stderr
    found = json.loads(looked.stdout)
    assert found["broken"] == LACKING
    assert found["owners"] == {folder: ["pagewire"] for folder in FOLDERS}

    packed = outside.run(python, "-P", "-m", "connectors.cms.package", "wordpress", "plugin", timeout=60)
    assert packed.returncode == 0, packed.stderr
    with ZipFile(outside.here / "plugin" / "pagewire.zip") as plugin:
        assert {"pagewire/pagewire.php", "pagewire/LICENSE", "pagewire/readme.txt"} <= set(plugin.namelist())

    removed = outside.run(UVX, PIPX, "uninstall", "pagewire", timeout=60)
    assert removed.returncode == 0, removed.stderr
    assert not command.exists()


def of(package: str, paths: set[str]) -> bool:
    """Whether modules of an installed package are among the files."""
    return any(f"/site-packages/{package}/" in path for path in paths)


def read_log(log: Path) -> dict[str, set[str]]:
    """Process id -> the files it opened."""
    opened: dict[str, set[str]] = defaultdict(set)
    for line in log.read_text(encoding="utf-8").splitlines():
        pid, _, path = line.partition("\t")
        opened[pid].add(path)
    return opened
