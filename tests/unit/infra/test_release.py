"""One version everywhere, and a check of the wheel that finds what is wrong with one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.package.contents import FOLDERS, LEFT_OUT, MUST, ROOT, faults_of_source, faults_of_wheel, known_files
from tests.package.release import newest_release, project_version, release_before

METADATA = {
    f"pagewire-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
}
KNOWN = known_files()
RUNS = {name for name in KNOWN if name.startswith(tuple(f"{folder}/" for folder in FOLDERS))}
RIGHT = {name for name in RUNS if not name.startswith(LEFT_OUT)} | METADATA


def test_the_changelogs_newest_release_is_the_version() -> None:
    assert newest_release((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == project_version()


def test_the_plugins_version_is_one_wherever_it_is_said() -> None:
    plugin = ROOT / "connectors/cms/wordpress/plugin/pagewire"
    code = (plugin / "pagewire.php").read_text(encoding="utf-8")
    said = {
        *re.findall(r"^ \* Version: +(\S+)$", code, re.MULTILINE),
        *re.findall(r"^const VERSION = '(\S+)';$", code, re.MULTILINE),
        *re.findall(r"^Stable tag: (\S+)$", (plugin / "readme.txt").read_text(encoding="utf-8"), re.MULTILINE),
    }
    assert len(said) == 1


def test_the_newest_release_is_the_first() -> None:
    assert newest_release("# Changelog\n\n## 1.2.3 - 2026-01-31\n\n## 1.2.2 - 2026-01-01\n") == "1.2.3"


def test_a_change_waits_for_its_release_under_a_known_kind() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    kinds = {kind["directory"] for kind in project["tool"]["towncrier"]["type"]}
    waiting = {path.name for path in (ROOT / "docs/changes").iterdir()} - {"README"}
    assert {name.rpartition(".")[2] for name in waiting} <= kinds


def test_the_release_before_the_newest_is_the_one_to_be_upgraded_from() -> None:
    newest = "# Changelog\n\n## 1.3.0 - 2026-01-31\n"
    assert release_before(newest) is None
    assert release_before(f"{newest}## 1.2.9 - 2026-01-01\n## 1.2.8 - 2025-12-01\n") == "1.2.9"


@pytest.mark.parametrize("changelog", ["# Changelog\n", "## 1.2.3\n", "## Unreleased\n"])
def test_a_changelog_without_a_dated_release_is_refused(changelog: str) -> None:
    with pytest.raises(ValueError, match=r"CHANGELOG\.md"):
        newest_release(changelog)


def test_every_folder_is_in_the_wheel_or_not_for_a_reason() -> None:
    folders = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    assert folders - set(FOLDERS) == {"bench", "docs", "tests", "widget"}


def test_the_wheel_that_is_wanted_has_no_fault() -> None:
    assert faults_of_wheel(RIGHT, KNOWN) == []


@pytest.mark.parametrize("name", [*MUST, "pipelines/ingest/chunk.py", "sites/demo/questions.yaml"])
def test_a_file_that_is_missing_is_named(name: str) -> None:
    assert faults_of_wheel(RIGHT - {name}, KNOWN) == [f"{name} is missing"]


def test_a_wheel_of_metadata_alone_is_no_wheel() -> None:
    assert len(faults_of_wheel(METADATA, KNOWN)) == len(RIGHT - METADATA)


@pytest.mark.parametrize(
    "name",
    [
        "tests/conftest.py",
        "docs/generate.py",
        "widget/src/chat.ts",
        "infra/docker/Dockerfile",
        "connectors/cms/wagtail/app/pyproject.toml",
        "cli/secret.py",
        ".env",
    ],
)
def test_a_file_that_does_not_belong_there_is_named(name: str) -> None:
    assert f"{name} does not belong there" in faults_of_wheel(RIGHT | {name}, KNOWN | {"docs/generate.py"})


@pytest.mark.parametrize("name", ["gateway/node_modules/axe.js", "cli/.env", "cli/__pycache__/up.pyc", "infra/x.log"])
def test_what_never_belongs_there_is_named_wherever_it_lies(name: str) -> None:
    assert faults_of_wheel(RIGHT | {name}, KNOWN | {name}) == [f"{name} must not be there"]


def test_a_wheel_without_licence_or_command_is_refused() -> None:
    gone = {"pagewire-1.0.dist-info/entry_points.txt", "pagewire-1.0.dist-info/licenses/LICENSE"}
    assert [fault.split()[0] for fault in faults_of_wheel(RIGHT - gone, KNOWN)] == [
        "entry_points.txt",
        "licenses/LICENSE",
    ]


def test_the_source_holds_no_more_than_git_knows() -> None:
    names = KNOWN | {"PKG-INFO"}
    assert faults_of_source(names, KNOWN) == []
    assert faults_of_source(names | {".env"}, KNOWN) == [".env does not belong there"]
    assert faults_of_source(names - {"LICENSE"}, KNOWN) == ["LICENSE is missing"]


def test_the_licences_are_those_that_are_named() -> None:
    apache = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in apache
    assert (ROOT / "connectors/cms/wagtail/app/LICENSE").read_text(encoding="utf-8") == apache
    plugin = ROOT / "connectors/cms/wordpress/plugin/pagewire"
    assert "GNU GENERAL PUBLIC LICENSE" in (plugin / "LICENSE").read_text(encoding="utf-8")
    for file in ("readme.txt", "pagewire.php"):
        assert "GPL-2.0-or-later" in Path(plugin / file).read_text(encoding="utf-8")
