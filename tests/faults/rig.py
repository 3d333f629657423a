"""Orders in, worker processes at work, effects and dead letters counted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from adapters.kafka import KafkaSender, broker, ensure_topics, group_id, partition_of, prefixed
from pipelines.runtime.dead_letters import DeadLetter, from_headers, original_headers
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Headers
from schemas.topics import CHANGES, MAX_MESSAGE_BYTES, RECORD_OVERHEAD_BYTES, Topic, dead_letter_topic
from wiring.settings import Settings

ROOT = Path(__file__).parents[2]
LIMIT = 120.0  # seconds an effect may take on a busy machine
LOOK = 0.05  # seconds
STAGE = "faulty"

Effect = dict[str, Any]


async def until(what: str, reached: Callable[[], bool | Awaitable[bool]], limit: float = LIMIT) -> None:
    """Wait for an effect."""
    end = time.monotonic() + limit
    while True:
        seen = reached()
        if seen if isinstance(seen, bool) else await seen:
            return
        assert time.monotonic() < end, f"not within {limit:.0f} s: {what}"
        await asyncio.sleep(LOOK)


def key_in(partition: int, number: int) -> str:
    """The key no. `number` of those that fall into a partition (of two)."""
    fitting = (key for key in map("key-{}".format, count()) if partition_of(key.encode(), 2) == partition)
    return next(islice(fitting, number, None))


@dataclass(frozen=True)
class Buried:
    """A message of a dead letter topic."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    letter: DeadLetter


@dataclass
class Rig:
    """One test's topics and workers."""

    settings: Settings
    folder: Path
    sender: KafkaSender
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    sent: set[int] = field(default_factory=set)

    @property
    def effects_file(self) -> Path:
        return self.folder / "effects"

    def open_gate(self) -> None:
        """Let the handlers of `gate` orders go on."""
        self.effects_file.with_suffix(".gate").touch()

    async def start(self) -> None:
        assert self.settings.kafka is not None
        await ensure_topics(self.settings.kafka, self.settings)
        await self.sender.start()

    async def close(self) -> None:
        await self.sender.stop()
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
                worker.wait()

    async def order(self, *orders: tuple[int, str] | tuple[int, str, str]) -> None:
        """Send `(id, do)` or `(id, do, key)`, in order."""
        for number, do, *key in orders:
            value = json.dumps({"id": number, "do": do}).encode()
            await self.sender.send_bytes(CHANGES, (key[0] if key else f"key-{number}").encode(), value, ())
            self.sent.add(number)

    def worker(
        self,
        program: str = "worker",
        *,
        tries: int = 3,
        retry_for: float = 900.0,
        metrics_port: int | None = None,
        **limits: float,
    ) -> subprocess.Popen[bytes]:
        """Start a worker process; its log goes to `log-N` in the test's folder.

        Args:
            limits: of worker.settings.WorkerLimits, by name.
        """
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PAGEWIRE_")}
        own = {
            "kafka": self.settings.kafka,
            "topic_prefix": self.settings.topic_prefix,
            "partitions": self.settings.partitions,
            "home": self.folder,
            **({} if metrics_port is None else {"metrics_port": metrics_port}),
        }
        environment |= {f"PAGEWIRE_{name.upper()}": str(value) for name, value in own.items()}
        given = json.dumps({"retry": {"tries": tries, "retry_for": retry_for}} | limits)
        with (self.folder / f"log-{len(self.workers)}").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"tests.faults.{program}", str(self.effects_file), given],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.workers.append(process)
        return process

    async def ready(self, *workers: subprocess.Popen[bytes]) -> None:
        """Wait until these have joined their group."""
        for worker in workers:
            await until("worker ready", lambda pid=worker.pid: any(e["pid"] == pid for e in self.lines("ready")))  # type: ignore[misc]

    async def ended(self, worker: subprocess.Popen[bytes], limit: float = LIMIT) -> int:
        """Its exit code."""
        await until("worker ended", lambda: worker.poll() is not None, limit)
        assert worker.returncode is not None
        return worker.returncode

    def log(self, worker: subprocess.Popen[bytes]) -> str:
        return (self.folder / f"log-{self.workers.index(worker)}").read_text(errors="replace")

    def lines(self, what: str) -> list[Effect]:
        """The effects of a kind, in the order they happened. A line cut off by a kill is none."""
        if not self.effects_file.exists():
            return []
        whole = self.effects_file.read_text().rpartition("\n")[0]
        return [line for line in map(json.loads, whole.splitlines()) if line["what"] == what]

    def done(self) -> Counter[int]:
        """How often each order took effect."""
        return Counter(line["id"] for line in self.lines("effect"))

    def lost(self, but: Iterable[int] = ()) -> set[int]:
        """Orders without an effect, less those that are to have none."""
        return self.sent - set(self.done()) - set(but)

    async def began(self, number: int, times: int = 1) -> None:
        await until(f"order {number} begun", lambda: sum(line["id"] == number for line in self.lines("begin")) >= times)

    async def settled(self, limit: float = LIMIT) -> None:
        """Wait until the broker says that everything is committed."""
        async with broker(self.settings) as client:

            async def nothing_behind() -> bool:
                with suppress(Retryable):  # a broker that has just come back knows nobody for a moment
                    return not any((await client.behind(self.group, self.partitions(CHANGES))).values())
                return False

            await until("everything committed", nothing_behind, limit)

    async def committed(self) -> dict[int, int]:
        """The group's offsets per partition of the orders."""
        async with broker(self.settings) as client:
            found = await client.committed(self.group)
        return {tp.partition: at for tp, at in found.items() if tp.topic == prefixed(self.settings, CHANGES)}

    async def delete_topic(self) -> None:
        """The orders' topic, with all that is in it."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.settings.kafka)
        await admin.start()
        try:
            await admin.delete_topics([prefixed(self.settings, CHANGES)])
        finally:
            await admin.close()

    async def topic_is_there(self) -> None:
        async with broker(self.settings) as client:

            async def there() -> bool:
                return prefixed(self.settings, CHANGES) in await client.topics()

            await until("the topic is there", there)

    async def members(self) -> int:
        async with broker(self.settings) as client:
            return await client.members(self.group)

    @property
    def group(self) -> str:
        return group_id(self.settings, STAGE)

    def partitions(self, topic: Topic) -> list[TopicPartition]:
        return [TopicPartition(prefixed(self.settings, topic), p) for p in range(self.settings.partitions)]

    async def messages(self, topic: Topic) -> list[Any]:
        """All there are in a topic now."""
        partitions = self.partitions(topic)
        reader = AIOKafkaConsumer(
            bootstrap_servers=self.settings.kafka,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES,
        )
        await reader.start()
        try:
            reader.assign(partitions)
            ends = await reader.end_offsets(partitions)
            found: list[Any] = []
            while any([await reader.position(tp) < end for tp, end in ends.items()]):
                for records in (await reader.getmany(timeout_ms=500)).values():
                    found += records
            return found
        finally:
            await reader.stop()

    async def buried(self) -> list[Buried]:
        return [
            Buried(m.key, m.value, original_headers(tuple(m.headers)), from_headers(tuple(m.headers)))
            for m in await self.messages(dead_letter_topic(CHANGES))
        ]
