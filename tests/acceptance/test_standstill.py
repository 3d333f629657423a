"""One question costs one question: while a hostile one is worked on, nobody else's answer is late, and no worker ends.

One worker process runs all stages, so whatever keeps its event loop holds up everybody.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from time import monotonic

import httpx
import pytest

from schemas.page import PageDocument
from tests.acceptance.spinning import SPINS
from tests.acceptance.system import Instance, Started, save
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

VISITORS = 20
PAUSE = 2.0  # seconds between two questions of a visitor
LATE = 5.0  # seconds that a question may cost the others
TRIES = 3  # of a measurement: what holds up others does so each time, another process on the machine does not
QUESTIONS = ("When is the library open?", "What does a library card cost?", "library hours", "thanks!")
UNITS = (
    "👍",
    "ok ",
    "!",
    "1",
    "1/",
    "a",
    "- ",
    "| ",
    "?",
    "é",
    "e\u0301",
    "(",
    "1.",
    "@",
    "图",
    "ا\u064b",
    "'",
    "a@",
    "&",
)
HOSTILE = [unit * (4_000 // len(unit)) for unit in UNITS] + ["1" * 60 + "x", "1 " * 1_999 + "xx"]


@dataclass
class World:
    url: str
    site: str
    worker: Started

    def client(self) -> httpx.AsyncClient:
        headers = {"Authorization": "Bearer key-of-the-acceptance-ring"}
        return httpx.AsyncClient(base_url=f"{self.url}/v1/sites/{self.site}", headers=headers, timeout=120)


@pytest.fixture(scope="module")
def world(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    instance = Instance(tmp_path_factory.mktemp("standstill"), engine)
    page = PageDocument(
        id="library",
        title="Library",
        content="<p>The library is open from 9 to 18.</p><p>A library card costs 12 euros.</p>",
    )
    spinning = [sys.executable, "-m", "tests.acceptance.spinning"]
    with (
        instance.started("worker", "all", program=spinning) as worker,
        instance.started("gateway") as gateway,
        instance.client(gateway.url) as site,
    ):
        save(site, page)
        yield World(gateway.url, instance.site, worker)


async def asked(client: httpx.AsyncClient, question: str) -> tuple[float, httpx.Response]:
    """Seconds until the whole answer, and the answer."""
    began = monotonic()
    answer = await client.post("/chat", json={"question": question})
    return monotonic() - began, answer


@asynccontextmanager
async def visitors(world: World) -> AsyncIterator[asyncio.Queue[float]]:
    """Visitors who ask all the time; in the queue the seconds of each answer."""
    took: asyncio.Queue[float] = asyncio.Queue()
    leave = asyncio.Event()

    async def visit(number: int) -> None:
        async with world.client() as client:
            for question in cycle(QUESTIONS[number % len(QUESTIONS) :] + QUESTIONS):
                seconds, answer = await asked(client, question)
                assert answer.status_code == 200, answer.text
                took.put_nowait(seconds)
                if leave.is_set():
                    return
                await asyncio.sleep(PAUSE)

    visits = [asyncio.create_task(visit(number)) for number in range(VISITORS)]
    try:
        yield took
    finally:
        leave.set()
        await asyncio.gather(*visits)


async def slowest(world: World, questions: Sequence[str]) -> tuple[float, list[httpx.Response]]:
    """The slowest answer of the others while these questions are asked, one after the other; and their answers."""
    async with visitors(world) as took, world.client() as client:
        seconds = [await took.get() for _ in range(2 * VISITORS)]
        answers = [(await asked(client, question))[1] for question in questions]
    while not took.empty():
        seconds.append(took.get_nowait())
    return max(seconds), answers


def assert_nobody_waits(
    world: World, usual: float, questions: Sequence[str], expected: Callable[[httpx.Response], bool]
) -> None:
    for _ in range(TRIES):
        took, answers = asyncio.run(slowest(world, questions))
        assert all(expected(answer) for answer in answers), [answer.text for answer in answers]
        print(f"slowest answer {took:.1f} s, usually {usual:.1f} s")
        if took < usual + LATE:
            break
    assert took < usual + LATE
    assert world.worker.process.poll() is None


@pytest.fixture(scope="module")
def usual(world: World) -> float:
    """The slowest answer when nobody is hostile, on this machine as busy as it is."""
    return asyncio.run(slowest(world, QUESTIONS))[0]


def test_a_question_that_spins_is_ended_and_holds_up_nobody_for_long(world: World, usual: float) -> None:
    assert_nobody_waits(world, usual, SPINS, lambda answer: answer.json()["code"] == "step-too-long")


def test_hostile_questions_are_answered_and_hold_up_nobody(world: World, usual: float) -> None:
    assert_nobody_waits(world, usual, HOSTILE, lambda answer: answer.status_code == 200)
