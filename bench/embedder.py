"""bge-m3 as Pagewire asks it, against FlagEmbedding's own `encode` of the same texts on the same device, same run.

texts ─▶ FlagEmbedding, batches of 8, 32…   ─▶ texts/s; the best is what ours are compared with
      ├▶ our passages                       ─▶ texts/s
      └▶ our passages, and questions beside ─▶ texts/s, how long a question takes

Their `encode` runs its first batch twice, to see whether memory is enough: take enough texts for that to weigh little.
"""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import partial
from io import StringIO
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from rich.progress import track

from adapters.embedders.base import Embedder, Vectors
from adapters.embedders.bge_m3 import MAX_TOKENS, BgeM3Embedder
from bench import checkpoint, synthetic, xquad
from bench.ingest import chunk_texts
from bench.report import percentile, report
from pipelines.ingest.embedding_plan import plan
from pipelines.ingest.handlers import chunked
from wiring.settings import Settings

INTERVAL = 0.1  # seconds between two questions
ROUNDS = 3  # of which the median counts; the first one's buffers are still to be made
COMPARED = 64  # texts whose vectors are compared; the odd ones in tests/bge
COLUMNS = ("way", "texts/s", "ratio", "question p50 ms", "p95 ms")

Line = tuple[object, ...]


def main(
    model: Path | None, data: Path | None, texts: int, batches: Sequence[int], slice_tokens: Sequence[int], asked: int
) -> None:
    """Texts a second and milliseconds a question.

    Args:
        model: A checkpoint's folder; None: one with weights by chance.
        data: XQuAD's; None: generated pages.
        texts: How many, at most.
        batches: Of FlagEmbedding, in texts.
        slice_tokens: Of ours, in tokens a call; none: as set for the device.
        asked: Questions for each figure.
    """
    read, questions = _xquad(data) if data else _generated(texts)
    read = read[:texts]
    with _folder(model, read) as folder:
        asyncio.run(_run(folder, read, questions[:asked], batches, slice_tokens))


async def _run(
    folder: Path, texts: Sequence[str], questions: Sequence[str], batches: Sequence[int], sizes: Sequence[int]
) -> None:
    bare = _Bare(folder)
    rates = {batch: await _rates(partial(bare.embed, texts, batch)) for batch in track(batches, "FlagEmbedding")}
    medians = {batch: statistics.median(rate) * len(texts) for batch, rate in rates.items()}
    best = max(medians, key=medians.__getitem__)
    lines: list[Line] = [
        (f"FlagEmbedding, batches of {batch}", rate, rate / medians[best], "", "") for batch, rate in medians.items()
    ]
    lines.append(("FlagEmbedding, a question", "", "", *await _idle(bare.question, questions)))
    alike = 1.0
    for size in track(sizes or [None], "ours"):
        embedder = BgeM3Embedder(str(folder), slice_tokens=size)
        await embedder.start()
        try:
            name = f"{size} tokens a call" if size else "as set"
            lines += await _ours(name, embedder, partial(bare.embed, texts, best), texts, questions)
            some = texts[:COMPARED]
            cosines = np.sum(await embedder.passages(some) * await bare.embed(some, best), axis=1)
            alike = min(alike, float(cosines.min()))
        finally:
            await embedder.aclose()
    tokens = sum(map(len, bare.model.tokenizer(list(texts))["input_ids"]))
    chars = sum(map(len, texts))
    about = (
        f"{len(texts)} texts of {chars // len(texts)} characters, {chars / tokens:.1f} characters a token; "
        f"{bare.device}; lowest cosine of theirs and ours {alike:.4f}"
    )
    report("embedder", about, COLUMNS, lines, tokens=tokens, questions=len(questions), interval_s=INTERVAL)


async def _ours(
    name: str,
    embedder: Embedder,
    bare: Callable[[], Awaitable[object]],
    texts: Sequence[str],
    questions: Sequence[str],
) -> list[Line]:
    """The lines of one setting. Ratios are of rounds that alternate with the bare model's."""
    rates: dict[str, list[float]] = {"bare": [], "ours": []}
    for _ in range(ROUNDS):
        rates["bare"] += await _rates(bare, rounds=1)
        rates["ours"] += await _rates(partial(embedder.passages, texts, urgent=False), rounds=1)
    alone, compared = (statistics.median(rates[way]) * len(texts) for way in ("ours", "bare"))
    idle = await _idle(embedder.query, questions)
    busy, waits = await beside(embedder, texts, questions, INTERVAL)
    return [
        (f"passages, {name}", alone, alone / compared, "", ""),
        (f"a question, {name}", "", "", *idle),
        (f"both at once, {name}", busy, busy / compared, *_milliseconds(waits)),
    ]


async def ask(
    answer: Callable[[str], Awaitable[object]], questions: Iterable[str], interval: float, waits: list[float]
) -> None:
    """Put questions, one every `interval` seconds, or as soon as the one before is answered if that takes longer.

    Args:
        answer: Returns when a question is answered.
        questions: Which, in turn.
        interval: Seconds.
        waits: Gets the seconds each took, from when it was due: what the caller's own loop adds is in it.
    """
    due = perf_counter()
    for question in questions:
        await asyncio.sleep(due - perf_counter())
        await answer(question)
        now = perf_counter()
        waits.append(now - due)
        due = max(due + interval, now)


async def beside(
    embedder: Embedder, texts: Sequence[str], questions: Sequence[str], interval: float
) -> tuple[float, list[float]]:
    """Embed the texts again and again, until as many questions as given are answered: texts/s, and their seconds."""
    waits: list[float] = []
    done = 0
    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(ask(embedder.query, cycle(questions), interval, waits))
        while len(waits) < len(questions):
            await embedder.passages(texts, urgent=False)
            done += len(texts)
        took = perf_counter() - began
        asking.cancel()
    return done / took, waits


async def _idle(answer: Callable[[str], Awaitable[object]], questions: Sequence[str]) -> tuple[float, float]:
    await answer(questions[0])
    waits: list[float] = []
    await ask(answer, questions, INTERVAL, waits)
    return _milliseconds(waits)


async def _rates(work: Callable[[], Awaitable[object]], rounds: int = ROUNDS) -> list[float]:
    """Times a second, of each round."""
    rates = []
    for _ in range(rounds):
        began = perf_counter()
        await work()
        rates.append(1 / (perf_counter() - began))
    return rates


def _milliseconds(waits: Sequence[float]) -> tuple[float, float]:
    return percentile(waits, 50) * 1000, percentile(waits, 95) * 1000


class _Bare:
    """FlagEmbedding as its manual uses it, in a thread as whoever serves visitors must."""

    def __init__(self, folder: Path) -> None:
        import torch
        from FlagEmbedding import BGEM3FlagModel

        on = _device()
        self.device = f"CPU, {torch.get_num_threads()} threads" if on == "cpu" else torch.cuda.get_device_name(on)
        self.model = BGEM3FlagModel(str(folder), use_fp16=on != "cpu", devices=on, normalize_embeddings=True)

    async def embed(self, texts: Sequence[str], batch: int) -> Vectors:
        def encode() -> Any:
            with redirect_stderr(StringIO()):  # its progress bars, one a call, would drown ours
                return self.model.encode(list(texts), batch_size=batch, max_length=MAX_TOKENS)["dense_vecs"]

        vectors: Vectors = (await asyncio.to_thread(encode)).astype(np.float32)
        return vectors

    async def question(self, text: str) -> Vectors:
        return await self.embed([text], 1)


def _device() -> str:
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu"


@contextmanager
def _folder(model: Path | None, texts: Sequence[str]) -> Iterator[Path]:
    if model:
        yield model
        return
    with TemporaryDirectory(prefix="pagewire-bench-") as folder:
        device = _device()
        shape = checkpoint.SMALL if device == "cpu" else checkpoint.TRUE
        checkpoint.make(Path(folder), shape, texts, device)
        yield Path(folder)


def _generated(least: int) -> tuple[list[str], list[str]]:
    """So many texts at least, and questions."""
    rng = random.Random(1)
    changes = [synthetic.change("bench", number) for number in range(-(-least // synthetic.CHUNKS_A_PAGE))]
    chunker = Settings().chunker
    texts = [planned.text for change in changes for planned in plan(chunked(change, chunker, 0, 0), "bench")]
    return texts, [synthetic.words(rng, rng.randint(5, 15)) + "?" for _ in range(1_000)]


def _xquad(folder: Path) -> tuple[list[str], list[str]]:
    corpus = xquad.load(folder, "en")
    return chunk_texts(corpus.pages, Settings().chunker), [asked.question for asked in corpus.questions]
