"""What code that a document has smuggled into the real child may do: nothing that leaves it.

The parser is replaced by one that runs the document as Python, and through `ctypes` the calls that machine code would
make, which no hook of Python sees.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.extraction import reader as reading
from adapters.extraction.reader import DocumentReader

pytestmark = pytest.mark.attachments

# Instead of `-m adapters.extraction.child`; its one argument stays.
HOLE = """
import json
from adapters.extraction import child, documents
from pipelines.ingest.documents.attachments import Section, Sections

def run(kind, data, limit, charset):
    exec(data.decode(), found := {})
    return Sections((Section(json.dumps(found["outcomes"])),))

documents.read = run
child.main()
"""

HOSTILE = """
import ctypes, os, socket, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()

def native(name, *args):
    result = getattr(libc, name)(*args)
    if result == 0 and name in ("fork", "vfork"):
        os._exit(0)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)

def started():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()

def udp(family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as sending:
        sending.sendto(b"secret", ("127.0.0.1", PORT))

ATTEMPTS = {
    "python: udp": udp,
    "python: tcp": lambda: socket.create_connection(("127.0.0.1", PORT)),
    "python: name": lambda: socket.getaddrinfo("localhost", 80),
    "python: program": lambda: subprocess.run(["true"]),
    "python: fork": lambda: os.fork() or os._exit(0),
    "python: write": lambda: open(WRITTEN, "w").write("x"),
    "kernel: udp": lambda: native("socket", 2, 2, 0),
    "kernel: tcp": lambda: native("socket", 2, 1, 0),
    "kernel: unix": lambda: native("socket", 1, 1, 0),
    "kernel: fork": lambda: native("fork"),
    "kernel: program": lambda: native("execv", b"/bin/true", (ctypes.c_char_p * 2)(b"true", None)),
    "kernel: signal": lambda: native("kill", parent, 0),
    "kernel: rights": lambda: native("chmod", SECRET.encode(), 0o777),
    "kernel: io_uring": lambda: native("syscall", 425, 1, (ctypes.c_char * 120)()),
    "kernel: parent's environment": lambda: open(f"/proc/{parent}/environ").read(),
    "kernel: parent's memory": lambda: open(f"/proc/{parent}/mem", "rb"),
    "kernel: a file": lambda: open(SECRET).read(),
    "kernel: users": lambda: open("/etc/passwd").read(),
    "kernel: in our folder": lambda: open(OURS + "/pyproject.toml").read(),
    "a thread": started,
    "our code": lambda: open(OURS + "/adapters/extraction/child.py").read(),
}
outcomes = {"environment": dict(os.environ)}
for name, attempt in ATTEMPTS.items():
    try:
        attempt()
        outcomes[name] = "done"
    except BaseException as err:
        outcomes[name] = type(err).__name__
"""
HARMLESS = {"a thread", "our code"}
REFUSED = {"PermissionError", "FileNotFoundError"}


@pytest.fixture
async def hole(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DocumentReader]:
    """The reader as it is, whose child has a hole."""
    start = asyncio.create_subprocess_exec

    async def starting(program: str, *args: str, **more: Any) -> asyncio.subprocess.Process:
        assert args[:3] == ("-P", "-m", "adapters.extraction.child")
        return await start(program, "-P", "-c", HOLE, *args[3:], **more)

    monkeypatch.setattr(reading.asyncio, "create_subprocess_exec", starting)
    monkeypatch.setenv("PAGEWIRE_ADMIN_KEY", "hush")
    reader = DocumentReader(memory=2_048, seconds=60)
    yield reader
    await reader.aclose()


async def test_code_in_the_child_gets_nowhere(hole: DocumentReader, tmp_path: Path) -> None:
    secret = tmp_path / "admin.key"
    secret.write_text("hush")
    ours = str(Path(reading.__file__).parents[2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        named = {
            "PORT": listening.getsockname()[1],
            "SECRET": str(secret),
            "WRITTEN": str(tmp_path / "w"),
            "OURS": ours,
        }
        said = "\n".join(f"{name} = {value!r}" for name, value in named.items())
        document = await hole.read((said + HOSTILE).encode(), "text/plain", "txt", 1_000_000)
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.recv(10)
    outcomes = json.loads(document.sections[0].text)
    assert "hush" not in str(outcomes.pop("environment"))
    assert {name for name in HARMLESS if outcomes.pop(name) == "done"} == HARMLESS
    kept = {name for name in outcomes if sys.platform == "linux" or name.startswith("python")}
    assert {name: outcomes[name] for name in kept if outcomes[name] not in REFUSED} == {}
    assert not (tmp_path / "w").exists()
    assert os.environ["PAGEWIRE_ADMIN_KEY"] == "hush"
