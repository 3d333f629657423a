"""Writes the engine's state file, which infra.running reads, and locks starts and stops."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

from infra.engine.progress import EngineProgress
from infra.running import STATE, State, read_state

LOCK_POLL_INTERVAL = 0.2  # seconds
LOCK = "engine.lock"


def write_atomically(path: Path, text: str) -> None:
    """Write `path` so that readers see the old or the new text, never a part, even after a crash."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with scratch.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def write_state(root: Path, state: State) -> None:
    """Replace `engine.json`; delete it for an empty state."""
    if not state:
        (root / STATE).unlink(missing_ok=True)
        return
    servers = {key: asdict(record) for key, record in state.items()}
    write_atomically(root / STATE, json.dumps({"servers": servers}, indent=1) + "\n")


def living(root: Path) -> State:
    """The records of running processes."""
    return {key: record for key, record in read_state(root).items() if record.alive}


@asynccontextmanager
async def starter_lock(root: Path, progress: EngineProgress) -> AsyncIterator[None]:
    """Lock the engine for one start or stop at a time. The kernel releases the lock of a dead process."""
    with _open_lock(root) as lock:
        if not _try_lock(lock):
            progress.note(f"another process is starting or stopping the engine in {root}: waiting for it")
            while not _try_lock(lock):  # noqa: ASYNC110 (another process sets no event)
                await asyncio.sleep(LOCK_POLL_INTERVAL)
        yield


def delete_files(root: Path) -> bool:
    """Delete all files of the engine. False: it runs or is starting, and nothing is deleted."""
    if not root.exists():
        return True
    with _open_lock(root) as lock:
        if not _try_lock(lock) or living(root):
            return False
        for path in root.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:  # waiting and new processes must lock the same file
                path.unlink()
    return True


def _open_lock(root: Path) -> IO[str]:
    root.mkdir(parents=True, exist_ok=True)
    return (root / LOCK).open("w")


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
