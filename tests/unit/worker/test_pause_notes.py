"""A stage that waits says so: to its own port, and to whoever asks for the system's status."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, cast

from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.operate.status import NOTE_TTL, StatusIndex, StatusReader
from pipelines.runtime.bus import Bus, Producer
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.topics import PAUSES, Topic
from schemas.worker import PAUSES_KEY, PauseNote
from tests import skipping_time
from worker.health import application
from worker.pause import REPEAT_EVERY, Pause, Trouble, publish_pauses

TROUBLE = Trouble(Retryable.kind, "elasticsearch-denied", "is the key right?", datetime.now(UTC))


def get(path: str, *troubles: tuple[str, Trouble], joined: bool = True) -> tuple[str, Any]:
    status: list[str] = []
    body = application(lambda: troubles, lambda: joined)(
        {"PATH_INFO": path, "REQUEST_METHOD": "GET"}, lambda said, headers: status.append(said)
    )
    return status[0], b"".join(body).decode()


def test_a_worker_is_ready_while_none_of_its_stages_waits() -> None:
    assert get("/readyz")[0] == "200 OK"
    status, body = get("/readyz", ("index", TROUBLE))
    assert status.startswith("503")
    assert json.loads(body)["paused"]["index"]["code"] == "elasticsearch-denied"
    assert get("/healthz", ("index", TROUBLE))[0] == "200 OK"  # nothing that a restart would mend
    assert "pagewire_paused" in get("/metrics")[1]


def test_a_worker_is_ready_when_its_stages_have_joined() -> None:
    status, body = get("/readyz", joined=False)
    assert status.startswith("503")
    assert json.loads(body) == {"ready": False, "joined": False, "paused": {}}
    assert get("/healthz", joined=False)[0] == "200 OK"
    assert json.loads(get("/readyz")[1]) == {"ready": True, "joined": True, "paused": {}}


class Log:
    """The topic `worker.pauses`, for its writer and its reader."""

    def __init__(self) -> None:
        self.notes: list[tuple[float, PauseNote]] = []

    async def send(self, topic: Topic, key: str, message: PauseNote) -> None:
        assert (topic, key) == (PAUSES, PAUSES_KEY)
        self.notes.append((asyncio.get_running_loop().time(), message))

    @asynccontextmanager
    async def view(self) -> AsyncIterator[Log]:
        yield self

    async def short_of_copies(self, topics: Iterable[Topic]) -> list[str]:
        return []

    async def short_of_partitions(self, topics: Iterable[Topic]) -> list[str]:
        return []

    async def partitions(self, topics: Iterable[Topic]) -> dict[Topic, set[int]]:
        return {topic: {0} for topic in topics}

    @asynccontextmanager
    async def reader(self, topic: Topic) -> AsyncIterator[Log]:
        yield self

    async def of_key(self, key: str, since_ms: int) -> list[Record]:
        since = datetime.fromtimestamp(since_ms / 1000, UTC)
        return [Record("", 0, n, b"", note.encode()) for n, (_, note) in enumerate(self.notes) if note.at >= since]


def test_a_pause_is_told_again_while_it_lasts_and_once_when_it_ends() -> None:
    async def scenario() -> list[bool]:
        log, pause = Log(), Pause("index", "", lambda failures: 10.0)
        telling = asyncio.create_task(publish_pauses({("index", None): pause}, cast(Producer, log)))
        turn = await pause.turn()
        pause.failed(turn, TROUBLE, since=None)
        await asyncio.sleep(5)
        assert log.notes == []  # a hiccup is not told
        turn = await pause.turn()
        pause.failed(turn, TROUBLE, since=None)
        turn = await pause.turn()
        for _ in range(8):
            pause.failed(turn, TROUBLE, since=None)
            turn = await pause.turn()
        pause.passed(turn)
        await asyncio.sleep(5)
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling
        await pause.aclose()
        times = [at for at, _ in log.notes]
        assert all(later - sooner <= REPEAT_EVERY + 2 < NOTE_TTL / 2 for sooner, later in pairwise(times))
        return [note.over for _, note in log.notes]

    assert skipping_time.run(scenario()) == [False, False, False, True]


async def test_status_shows_who_waits_now() -> None:
    log = Log()
    now = datetime.now(UTC)

    def note(worker: str, ago: float, over: bool = False) -> None:
        at = now - timedelta(seconds=ago)
        said = PauseNote(worker=worker, stage="index", code="c", reason="r", since=at, at=at, over=over)
        log.notes.append((0.0, said))

    note("dead", NOTE_TTL + 10)
    note("mended", 40)
    note("mended", 5, over=True)
    note("waits", 20)
    reader = StatusReader((), cast(Bus, log), cast(StatusIndex, None), OpenLetters(cast(Bus, log)))
    (line,) = await reader._paused()
    assert "stage index of waits is paused" in line
    await reader.aclose()
