"""Pages put straight into a live index, through the pure stages: what the benchmarks ask is what visitors search.

pages ─chunked─▶ Embedding ─kept vectors─▶ parts ─index_part─▶ Elasticsearch

Vectors are kept between runs: the models are the same every time, and so are the texts.

text ─▶ in PAGEWIRE_HOME/bench/vectors-FINGERPRINT.sqlite? ─ yes ─▶ vector
                                                           └ no ─▶ model ─▶ kept ─▶ vector
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Literal, Self, cast

import numpy as np
from more_itertools import chunked as sliced
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.embedders.base import Embedder, Vectors
from bench.report import change
from pipelines.ingest.embed import Embedding
from pipelines.ingest.embedding_plan import plan, plan_units
from pipelines.ingest.handlers import chunked
from pipelines.ingest.index import index_part
from pipelines.query.search.ports import EmbedderProfile
from pipelines.runtime.embedder import Embedders, is_sparse
from pipelines.runtime.errors import SettingsError
from schemas.page import PageDocument
from wiring.settings import Settings

SLICE = 32  # texts embedded between two looks at the progress bar
SEVERAL = 200  # texts that take long enough for a bar

Kind = Literal["passage", "query"]


class KeptVectors:
    """An embedder that embeds each text once in its life. `async with` it; closes the model, too."""

    def __init__(self, model: Embedder, folder: Path) -> None:
        """Raises: SettingsError: the model has sparse vectors, too, which are not kept."""
        if is_sparse(model.fingerprint):
            raise SettingsError(f"benchmarks keep no sparse vectors; compare {model.spec} in an experiment")
        self._model = model
        folder.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(folder / f"vectors-{model.fingerprint}.sqlite")
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    async def __aenter__(self) -> Self:
        await self._model.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._kept.close()
        await self._model.aclose()

    @property
    def spec(self) -> str:
        return self._model.spec

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    @property
    def dims(self) -> int:
        return self._model.dims

    @property
    def profile(self) -> EmbedderProfile:
        return self._model.profile

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        """As the model embeds them: shape (len(texts), dims)."""
        missing = [text for text in dict.fromkeys(texts) if self._find("passage", text) is None]
        slices = [*sliced(missing, SLICE)]
        for some in track(slices, description="embedding") if len(missing) > SEVERAL else slices:
            self._keep("passage", some, await self._model.passages(some, urgent=urgent))
        found = [self._find("passage", text) for text in texts]
        return np.stack([vector for vector in found if vector is not None])

    async def query(self, text: str) -> Vectors:
        """Shape (dims,)."""
        found = self._find("query", text)
        if found is None:
            found = await self._model.query(text)
            self._keep("query", [text], [found])
        return found

    def _find(self, kind: Kind, text: str) -> Vectors | None:
        row = self._kept.execute("SELECT vector FROM vectors WHERE text = ?", (_name(kind, text),)).fetchone()
        return np.frombuffer(row[0], np.float32) if row else None

    def _keep(self, kind: Kind, texts: Sequence[str], vectors: Sequence[Vectors] | Vectors) -> None:
        rows = [
            (_name(kind, text), np.asarray(vector, np.float32).tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        with self._kept:
            self._kept.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _name(kind: Kind, text: str) -> bytes:
    return blake2b(f"{kind}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


class OneModel:
    """The same model for every site."""

    def __init__(self, model: KeptVectors) -> None:
        self._model = model

    async def for_site(self, site: str) -> KeptVectors:
        return self._model

    async def for_new(self, site: str) -> KeptVectors:
        return self._model


async def publish(
    elastic: Elastic, site: str, pages: Sequence[PageDocument], model: KeptVectors, settings: Settings
) -> None:
    """Return when all of it is searchable. Raises: Retryable."""
    now = datetime.now(UTC)
    made = [chunked(change(site, page, now), settings.chunker, 0, number) for number, page in enumerate(pages)]
    read = [each.text for page in made for each in plan(page, model.fingerprint)]
    read += [each.sense for page in made for own in plan_units(page) for each in own]
    await model.passages(read)  # all at once: one bar, one look
    embedding = Embedding(cast(Embedders, OneModel(model)), elastic.pages)
    for page in made:
        for part in await embedding.embed_with(model, page):
            await index_part(part, elastic.pages, lambda: datetime.now(UTC))
