"""Every error tells its reader what to do, and none where our packages come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.engine import EngineError
from infra.engine import errors as module
from infra.platforms import refusal
from pipelines.runtime.errors import PagewireError

ERRORS = [
    module.RegistryUnreachable("g:a:1"),
    module.CorruptDownload("g:a:1"),
    module.DiskFull(Path("/home/me/.pagewire"), 512 * 2**20),
    module.PortTaken("Kafka", 19092),
    module.UnsupportedPlatform(str(refusal("Windows", "AMD64"))),
    module.EngineNotInstalled(["jgo", "jpype1"]),
    module.NoJava(21, ["17 (PATH: /usr/lib/jvm/java-17)"], "apt-get install openjdk-21-jre-headless"),
    module.ServerDied("Kafka", Path("kafka.log"), "java.lang.OutOfMemoryError"),
    module.ServerNotReady("Kafka", 120, Path("kafka.log"), "waiting"),
    module.EngineRunning(Path("/home/me/.pagewire/engine")),
]
ADVICE = (
    "start again",
    "Start again",
    "starts afresh",
    "Set PAGEWIRE",
    "Free some",
    "stop it",
    "write a size",
    "install WSL",
    "Install one",
)


def test_every_error_is_here() -> None:
    classes = {c for c in vars(module).values() if isinstance(c, type) and issubclass(c, EngineError)}
    assert {type(error) for error in ERRORS} == classes - {EngineError}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_says_what_to_do(error: PagewireError) -> None:
    assert any(advice in str(error) for advice in ADVICE)
    assert "://" not in str(error)


def test_the_sizes_and_the_evidence_are_shown() -> None:
    assert "512 MiB" in str(ERRORS[2])
    assert "OutOfMemoryError" in str(ERRORS[7])
