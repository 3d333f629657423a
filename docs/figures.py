"""The figures of docs/reference: prints them again, and says which are older than the code they speak of.

python -m docs.figures                      which command prints which section, and when it was taken
python -m docs.figures PART [--data PATH]   runs the commands of a part; what they print goes into the pages by hand
python -m docs.figures PART --stamp         then: writes date and commit below the headings of the part
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from string import Template

import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs/reference"
# `Written down`: by a commit from before there were stamps; what it was taken of is at most as new.
STAMP = re.compile(r"^(?:Taken|Written down) (?P<date>\d{4}-\d\d-\d\d) (?:at|in) (?P<commit>[0-9a-f]{7,40})\.$", re.M)


@dataclass(frozen=True)
class Figure:
    """A section of a page, and what prints its figures."""

    part: str
    page: str
    section: str
    minutes: int
    command: str
    code: list[str]

    def heading(self, text: str) -> re.Match[str]:
        """Raises: ValueError: the page has no such heading."""
        found = re.search(rf"^(#{{2,3}}) {re.escape(self.section)}(?:: [^\n]*)?\n", text, re.M)
        if found is None:
            raise ValueError(f"{self.page} has no section {self.section!r}")
        return found

    def stamp(self, text: str) -> re.Match[str] | None:
        """When it was taken, as the line below the heading says."""
        return STAMP.match(text, self.heading(text).end() + 1)

    def stamped(self, text: str, date: str, commit: str) -> str:
        """The page with another stamp."""
        end = self.heading(text).end()
        rest = text[end:].lstrip("\n")
        if (old := STAMP.match(rest)) is not None:
            rest = rest[old.end() :].lstrip("\n")
        return f"{text[:end]}\nTaken {date} at {commit}.\n\n{rest}"


def figures() -> list[Figure]:
    return [Figure(**entry) for entry in yaml.safe_load((ROOT / "docs/figures.yaml").read_text(encoding="utf-8"))]


def outdated() -> Iterator[tuple[Figure, str]]:
    """The sections that are older than their code, or do not say how old they are; and how that is known."""
    for figure in figures():
        stamp = figure.stamp((PAGES / figure.page).read_text(encoding="utf-8"))
        if stamp is None:
            yield figure, "does not say when it was taken"
            continue
        since = _git("rev-list", "--count", f"{stamp['commit']}..HEAD", "--", *figure.code)
        if since is None:
            yield figure, f"of {stamp['date']}; its commit {stamp['commit']} is not in this clone"
        elif since != "0":
            yield figure, f"of {stamp['date']}; {since} commits since have changed {', '.join(figure.code)}"


def notes() -> list[str]:
    """A line for each page with such sections."""
    old: dict[str, list[str]] = {}
    for figure, _ in outdated():
        old.setdefault(figure.page, []).append(figure.section)
    return [
        f"docs/reference/{page} is older than the code it speaks of, or does not say how old it is: "
        f"{', '.join(sections)} (`make figures`)"
        for page, sections in old.items()
    ]


def run(part: list[Figure], data: str) -> int:
    """The commands of a part, one after the other; the number of those that failed."""
    commit, changed = _git("rev-parse", "--short", "HEAD"), _git("status", "--porcelain")
    failed = 0
    for figure in part:
        print(f"\n# {figure.page}: {figure.section}\n$ {figure.command}", flush=True)
        command = shlex.split(Template(figure.command).substitute(DATA=data))
        begun = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=_environment(), check=False)  # noqa: S603 - from our own table
        failed += done.returncode != 0
        took = (time.monotonic() - begun) / 60
        state = f"exit code {done.returncode}, " if done.returncode else ""
        tree = ", with changes that are not committed" if changed else ""
        print(f"-- {state}{took:.1f} min; taken {datetime.now(UTC):%Y-%m-%d} at {commit}{tree}", flush=True)
    return failed


def write_stamps(part: list[Figure]) -> None:
    """Below the headings. Raises: ValueError: there is something that no commit names."""
    if _git("status", "--porcelain", "--", ".", ":!docs"):
        raise ValueError("commit first: what was measured must have a name")
    commit = _git("rev-parse", "--short", "HEAD")
    for figure in part:
        page = PAGES / figure.page
        text = figure.stamped(page.read_text(encoding="utf-8"), f"{datetime.now(UTC):%Y-%m-%d}", str(commit))
        page.write_text(text, encoding="utf-8")


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))}


def _git(*arguments: str) -> str | None:
    """None: git does not know, for example in a shallow clone."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    return done.stdout.strip() if done.returncode == 0 else None


def _list() -> None:
    for figure in figures():
        stamp = figure.stamp((PAGES / figure.page).read_text(encoding="utf-8"))
        taken = f"{stamp['date']} {stamp['commit']}" if stamp else "?"
        print(f"{figure.part:10} {figure.minutes:3} min  {taken:20} {figure.page}: {figure.section}")
        print(f"{'':41}{figure.command}")
    for figure, why in outdated():
        print(f"{figure.page}, {figure.section}: {why}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.figures", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", nargs="?", choices=sorted({figure.part for figure in figures()}))
    parser.add_argument("--data", default="xquad", help="folder with xquad.LANG.json")
    parser.add_argument("--stamp", action="store_true", help="write date and commit into the pages instead")
    given = parser.parse_args()
    if given.part is None:
        _list()
        return 0
    part = [figure for figure in figures() if figure.part == given.part]
    if given.stamp:
        try:
            write_stamps(part)
        except ValueError as err:
            print(err, file=sys.stderr)
            return 1
        return 0
    return 1 if run(part, given.data) else 0


if __name__ == "__main__":
    sys.exit(main())
