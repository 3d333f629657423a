"""What the wheel and the source distribution must hold, and what they must not."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]

# Top-level folders that run. Not here: bench, docs, tests, and widget, whose bundle lies in gateway/site/static.
FOLDERS = (
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
LEFT_OUT = ("connectors/cms/wagtail/app/", "infra/docker/", "infra/grafana/", "infra/helm/", "infra/prometheus/")

# One of each kind, named, so that a rule above that is wrong is seen.
MUST = (
    "cli/entry.py",
    "connectors/cms/drupal/module/pagewire/pagewire.module",
    "connectors/cms/typo3/extension/pagewire/ext_localconf.php",
    "connectors/cms/wordpress/plugin/pagewire/LICENSE",
    "connectors/cms/wordpress/plugin/pagewire/assets/progress.js",
    "connectors/cms/wordpress/plugin/pagewire/pagewire.php",
    "gateway/console/static/console.css",
    "gateway/console/templates/base.html",
    "gateway/console/words.yaml",
    "gateway/site/static/example.html",
    "gateway/site/static/favicon.svg",
    "gateway/site/static/page.css",
    "gateway/site/search_words.json",
    "gateway/site/static/search.js",
    "gateway/site/static/widget.js",
    "gateway/site/templates/results.html",
    "infra/elasticsearch/001_site.json",
    "infra/engine/jars.json",
    "infra/engine/server_process.py",
    "prompts/answer.yaml",
    "prompts/examples/rephrase.en.yaml",
    "prompts/stopwords.yaml",
    "wiring/example.yaml",
    "sites/demo/assets/site.css",
    "sites/demo/pages/en/library.html",
    "sites/templates/frame.html",
)
MUST_NOT = (
    "bench/",
    "tests/",
    "docs/",
    "widget/",
    ".ci/",
    "node_modules/",
    ".env",
    ".git",
    ".pagewire/",
    "__pycache__/",
    ".venv",
)


def known_files() -> set[str]:
    """Files of the checkout that git does not ignore, those not added yet among them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}


def names_of(distribution: Path) -> set[str]:
    """Files of a wheel, or of a source distribution below its one folder."""
    if distribution.suffix == ".whl":
        with ZipFile(distribution) as packed:
            return set(packed.namelist())
    with tarfile.open(distribution) as packed:
        return {member.name.partition("/")[2] for member in packed.getmembers() if member.isfile()}


def faults_of_wheel(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """What is wrong with a wheel of these names, made from a checkout of these files; a sentence each."""
    names = set(names)
    ours = {name for name in names if ".dist-info/" not in name}
    runs = {
        name for name in known if name.partition("/")[0] in FOLDERS and "/" in name and not name.startswith(LEFT_OUT)
    }
    metadata = {name.partition(".dist-info/")[2] for name in names - ours}
    wanted = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    return [
        *(f"{name} is missing" for name in sorted((runs | set(MUST)) - ours)),
        *(f"{name} does not belong there" for name in sorted(ours - runs)),
        *(f"{name} must not be there" for name in sorted(ours) if forbidden(name)),
        *(f"{name} is missing from the metadata" for name in sorted(wanted - metadata)),
    ]


def faults_of_source(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """The same of a source distribution: what the wheel is built from, and nothing that git does not know."""
    names, known = set(names), set(known)
    needed = {*MUST, "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "requirements.lock"}
    return [
        *(f"{name} is missing" for name in sorted(needed - names)),
        *(f"{name} does not belong there" for name in sorted(names - known - {"PKG-INFO"})),
    ]


def forbidden(name: str) -> bool:
    """Whether a file of the wheel is of a kind that is never there, wherever it lies."""
    if name.endswith((".pyc", ".log", ".lock")):
        return True
    return any(f"/{name}".find(f"/{part}") >= 0 for part in MUST_NOT)
