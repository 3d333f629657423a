"""The worker under test: a real process on the real runtime, whose every effect is a synced line in a file.

A message's value says what its handling does, as JSON `{"id": 7, "do": "..."}`:
  ok              takes effect
  retryable N     fails N times as a service that is away, then takes effect; `crash N` as a defect,
  cancelled N     `cancelled N` by a CancelledError of its own, `hang N` by not ending
  permanent       is refused
  gate            takes effect once the file `EFFECTS.gate` exists
  swallow         waits for ever, and eats its cancellation
  spins           never lets go of the event loop
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path

from pipelines.runtime import logs
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.indexes import IndexGone
from pipelines.runtime.record import Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Sender, Stage
from schemas.base import Message, WireError
from schemas.topics import CHANGES, CHUNKS, REQUESTS
from wiring.settings_file import load
from worker.runner import run_stages
from worker.settings import WorkerLimits


class Echo(Message):
    """What the worker sends on."""

    id: int


class EffectLog:
    """Appends one line per effect; a line is on disk before the handler goes on."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, what: str, **fields: object) -> None:
        self._file.write(json.dumps({"what": what, "pid": os.getpid(), **fields}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


async def main(path: Path, limits: WorkerLimits) -> int:
    log = EffectLog(path)
    gate = path.with_suffix(".gate")

    async def handle(record: Record, sender: Sender) -> None:
        try:
            order = json.loads(record.value or b"")
        except ValueError as err:
            raise WireError("not an order") from err
        number, (do, *rest) = order["id"], order["do"].split()
        amount = float(rest[0]) if rest else 0.0
        where = {"id": number, "partition": record.partition, "offset": record.offset, "fresh": record.fresh}
        log.write("begin", attempt=record.attempt, **where)
        try:
            if do == "retryable" and record.attempt <= amount:
                raise Retryable("not yet")
            if do == "crash" and record.attempt <= amount:
                raise ZeroDivisionError("a defect")
            if do == "broken" and not gate.exists():
                raise IndexGone("the site's index is gone")
            if do == "kills":
                os.kill(os.getpid(), signal.SIGKILL)
            if do == "spins":
                re.match(r"(a+)+$", "a" * 60 + "b")
            if do == "permanent":
                raise Permanent("never")
            if do == "gate":
                while not gate.exists():  # noqa: ASYNC110 - the gate is opened by another process
                    await asyncio.sleep(0.02)
            if do == "hang" and record.attempt <= amount:
                await asyncio.Event().wait()
            if do == "swallow":
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    log.write("swallowed", **where)
                    return
            if do == "cancelled" and record.attempt <= amount:
                raise asyncio.CancelledError
        except asyncio.CancelledError:
            log.write("cancelled", **where)
            raise
        await sender.send(CHUNKS, (record.key or b"").decode(), Echo(id=number))
        log.write("effect", trace=record.trace_id, **where)

    async def arrive(record: Record, sender: Sender) -> None:
        log.write("arrived", id=Echo.decode(record.value).id, topic=record.topic, trace=record.trace_id)

    async def tell(what: str) -> None:
        log.write(what)

    stages = [
        Stage(
            "faulty", {CHANGES: handle}, step_limit=1.0, setup=lambda: tell("setup"), teardown=lambda: tell("teardown")
        ),
        Stage("downstream", {CHUNKS: arrive, REQUESTS: arrive}),
    ]
    return await run_stages(stages, load(), limits=limits, on_ready=lambda: log.write("ready"))


def run() -> None:
    logs.configure(load())
    given = json.loads(sys.argv[2])
    limits = WorkerLimits(**given | {"retry": RetryPolicy(**given["retry"])})
    sys.exit(asyncio.run(main(Path(sys.argv[1]), limits)))


if __name__ == "__main__":
    run()
