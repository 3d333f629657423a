"""The tutorial, run as it stands: each command of docs/first-hour.md, and what it says they print."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from infra.engine.state import any_free
from tests.acceptance.system import PAGEWIRE, START_TIMEOUT, Started, eventually
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

PAGE = Path(__file__).parents[2] / "docs" / "first-hour.md"
NOT_RUN = "<!-- not run -->"
# Commands of the other two terminals, which go on until they are stopped.
SERVES = ("python3 -m http.server", "pagewire up")


def blocks() -> list[tuple[str, str]]:
    """Commands and what they print, in the order of the page: ("sh" or "", text)."""
    text = re.sub(rf"^{NOT_RUN}\n```sh\n.*?^```\n", "", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)


def like(shown: str) -> re.Pattern[str]:
    """What is shown, with `...` for anything and any amount of space."""
    words = [re.escape(piece) for piece in re.split(r"\s*\.\.\.\s*", shown.strip())]
    return re.compile(r".*?".join(re.sub(r"(\\\s|\\\n|\s)+", r"\\s+", word) for word in words), re.S)


@contextmanager
def served(command: str, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """The command of another terminal; what it has printed when it was ready."""
    if not command.startswith("pagewire"):
        process = subprocess.Popen(command.split(), cwd=folder, env=environment, stderr=subprocess.DEVNULL)
        try:
            yield ""
        finally:
            process.terminate()
            process.wait()
        return
    log = (folder / "up.log").open("w+b")
    up = subprocess.Popen(
        command.split(), cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, start_new_session=True
    )
    started = Started(up, Path(log.name))
    try:
        started.wait_ready()
        yield f"ready {started.url}\n"
    finally:
        assert started.stop() == 0
        log.close()


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euc", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=START_TIMEOUT
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def prints(shown: str, command: str, folder: Path, environment: dict[str, str]) -> bool:
    return like(shown).search(run(command, folder, environment)) is not None


def test_every_command_of_the_tutorial_prints_what_it_says(engine: Servers, tmp_path: Path) -> None:
    gateway, website = (str(port) for port in (any_free(set()), any_free({8000, 8080})))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PAGEWIRE_", "OPENAI_"))},
        "PATH": f"{PAGEWIRE.parent}:{os.environ['PATH']}",
        "PAGEWIRE_KAFKA": engine.kafka,
        "PAGEWIRE_ELASTICSEARCH": engine.elasticsearch,
        "PAGEWIRE_TOPIC_PREFIX": f"t{uuid4().hex[:10]}-",
        "PAGEWIRE_PORT": gateway,
    }
    site = f"town{uuid4().hex[:8]}"  # indexes are everybody's
    folder, said, command = tmp_path, "", ""
    with ExitStack() as terminals:
        for language, text in blocks():
            own = text.replace(":8000", f":{gateway}").replace("8080", website)
            own = re.sub(r"(?<![:\w])town(?=[:\s\"/])", site, own)
            if language == "sh" and own.startswith(SERVES):
                said = terminals.enter_context(served(own.strip(), folder, environment))
            elif language == "sh":
                command = own
                said = run(command, folder, environment)
                folder = tmp_path / "first-hour"
            elif own.startswith("...\nready"):
                assert said.startswith("ready ")
            elif not like(own).search(said):
                # What was sent is searchable a moment later, and the next command comes at once.
                assert command.startswith("pagewire ask"), f"the page says:\n{own}\nit printed:\n{said}"
                eventually(partial(prints, own, command, folder, environment))


def test_the_page_shows_what_it_promises() -> None:
    kinds = [language for language, _ in blocks()]
    assert kinds.count("sh") >= 10
    assert kinds.count("") >= 8
