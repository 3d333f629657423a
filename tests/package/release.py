"""`make release-check`: whether this commit can be tagged. Names everything that is wrong, and ends with 1 then.

python -m tests.package.release DIST        after `make dist`
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.contract.kept_release import RELEASES
from tests.package.contents import ROOT, faults_of_source, faults_of_wheel, known_files, names_of
from tests.package.outside import BIN, PYTHON, Outside

INSTALL_TIMEOUT = 300.0  # seconds; from the registry, where nothing is in uv's cache
COMMAND_TIMEOUT = 60.0  # seconds

RELEASE = re.compile(r"^## (?P<version>\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", re.MULTILINE)
FRAGMENTS = ROOT / "docs/changes"


def project_version() -> str:
    """The version in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def newest_release(changelog: str) -> str:
    """The version of a changelog's newest release."""
    release = RELEASE.search(changelog)
    if release is None:
        raise ValueError("CHANGELOG.md has no release: `## 1.2.3 - 2026-01-31`")
    return release["version"]


def release_before(changelog: str) -> str | None:
    """The version of the release before the newest."""
    versions = RELEASE.findall(changelog)
    return versions[1] if len(versions) > 1 else None


def faults(dist: Path) -> Iterator[str]:
    """A sentence for everything that is wrong."""
    version = project_version()
    if changed := _git("status", "--porcelain"):
        yield f"the tree is not clean:\n{changed}"
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = newest_release(changelog)
    if released != version:
        yield f"pyproject.toml says {version}, CHANGELOG.md's newest release is {released}"
    if pending := sorted(path.name for path in FRAGMENTS.iterdir() if path.name != "README"):
        yield f"docs/changes belongs to a release: {', '.join(pending)} (make changelog VERSION=...)"
    before = release_before(changelog)
    if before and not any(RELEASES.glob(f"{before}-*.zip")):
        yield f"nothing is kept of {before}: python -m tests.contract.keep_release v{before}"
    tagged = (
        _git("rev-list", "--max-count=1", f"refs/tags/v{version}", "--") if _git("tag", "-l", f"v{version}") else ""
    )
    if tagged not in ("", _git("rev-parse", "HEAD")):
        yield f"v{version} is the tag of another commit"
    wheel, source = dist / f"pagewire-{version}-py3-none-any.whl", dist / f"pagewire-{version}.tar.gz"
    for built in (wheel, source):
        if not built.is_file():
            yield f"{built} is missing: run `make dist`"
            return
    known = known_files()
    yield from (f"{wheel.name}: {fault}" for fault in faults_of_wheel(names_of(wheel), known))
    yield from (f"{source.name}: {fault}" for fault in faults_of_source(names_of(source), known))
    yield from faults_when_installed(wheel, version)


def faults_when_installed(wheel: Path, version: str) -> Iterator[str]:
    """In a fresh environment outside the checkout."""
    with tempfile.TemporaryDirectory(prefix="pagewire-release-") as folder:
        outside = Outside(Path(folder) / "outside", Path(folder) / "packages")
        environment = outside.folder / "venv"
        uv, pagewire = BIN / "uv", environment / "bin" / "pagewire"
        wheel = wheel.resolve()
        for command, expected in (
            ([uv, "venv", "--quiet", "--python", PYTHON, environment], ""),
            ([uv, "pip", "install", "--quiet", "--python", environment / "bin/python", wheel], ""),
            ([pagewire, "--version"], f"pagewire {version}\n"),
            ([pagewire, "--help"], "pagewire [OPTIONS] COMMAND"),
        ):
            done = outside.run(*command, timeout=INSTALL_TIMEOUT if command[0] == uv else COMMAND_TIMEOUT)
            if done.returncode != 0 or expected not in done.stdout:
                yield f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
                return


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.rstrip()


def main() -> int:
    found = list(faults(Path(sys.argv[1]).resolve()))
    if found:
        print(*(f"- {fault}" for fault in found), sep="\n", file=sys.stderr)
        return 1
    print(f"{project_version()} can be tagged: git tag v{project_version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
