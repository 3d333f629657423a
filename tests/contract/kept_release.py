"""A release that is kept: its code for messages, and the messages that it wrote, in one zip (releases/README.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from schemas.base import Message, Wire
from tests.contract.messages import FORMER_NAMES

RELEASES = Path(__file__).with_name("releases")
SPEAK = Path(__file__).with_name("speak.py")
TIMEOUT = 60.0  # seconds; it takes one
FACTS, WRITTEN = "release.json", "messages.json"


@dataclass(frozen=True)
class Said:
    """What a release does with one message."""

    written: Any = None  # how it would have written it
    read: Any = None  # what it passes on of it
    refused: str | None = None


@dataclass(frozen=True)
class KeptRelease:
    file: Path

    def __str__(self) -> str:
        return self.file.stem

    @cached_property
    def facts(self) -> dict[str, str]:
        """version, commit, date"""
        return dict(json.loads(self._text(FACTS)))

    @cached_property
    def messages(self) -> dict[str, Any]:
        """What it wrote, by name."""
        return dict(json.loads(self._text(WRITTEN)))

    def asked(self, samples: Mapping[str, Wire]) -> dict[str, Said]:
        """What it says to messages that are written now; those of a kind that it does not have are left out."""
        return speak(
            self.file,
            [
                {"name": name, "kinds": kinds(type(sample)), "value": json.loads(_written(sample))}
                for name, sample in samples.items()
            ],
        )

    def _text(self, name: str) -> bytes:
        with ZipFile(self.file) as kept:
            return kept.read(name)


def kinds(kind: type[Wire]) -> list[str]:
    """A class's name and the one it had before."""
    name = f"{kind.__module__}:{kind.__name__}"
    return [name, FORMER_NAMES[name]] if name in FORMER_NAMES else [name]


def speak(code: Path, samples: list[dict[str, Any]]) -> dict[str, Said]:
    """In a process of its own, which finds `schemas` in the zip alone."""
    done = subprocess.run(
        [sys.executable, str(SPEAK)],
        input=json.dumps(samples),
        env={**os.environ, "PYTHONPATH": str(code)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    answer = json.loads(done.stdout)
    if not answer["code"].startswith(str(code)):
        raise RuntimeError(f"{code} was asked, and {answer['code']} answered")
    return {name: Said(**said) for name, said in answer["said"].items()}


def kept_releases() -> Iterable[KeptRelease]:
    return [KeptRelease(file) for file in sorted(RELEASES.glob("*.zip"))]


def _written(sample: Wire) -> bytes:
    return sample.encode() if isinstance(sample, Message) else json.dumps(sample.dumped()).encode()
