"""Pages by chance, as many as wanted, put straight into the ingest topics: no model, no workers.

    number ─▶ page ─▶ cms.changes
                └─chunk─▶ ingest.chunks
                      └─plan─▶ vectors by chance ─▶ ingest.embeddings

The three agree with each other: cut by the real chunker, named by the real hashes. Only the vectors mean nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import accumulate, islice

import numpy as np
from rich.progress import track

from adapters.kafka import KafkaSender
from adapters.kafka.sender import Outgoing
from bench import report
from pipelines.ingest.embedding_plan import parts, plan, plan_units
from pipelines.ingest.handlers import chunked
from schemas.compact import compact
from schemas.ingest import EmbeddedChunk, PageChunks, PageEmbeddings
from schemas.keys import part_key
from schemas.page import PageChange, PageDocument
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS
from wiring.settings import Settings

CHUNKS_A_PAGE = 25  # its title, and paragraphs that are one chunk each
PARAGRAPH = 400  # characters at least, and a sentence more at most: one fits into a chunk of 512, two do not
SENTENCE = 8, 16  # words
VOCABULARY = 20_000  # words, used as often as 1 / their rank (Zipf, 1949)
AT_ONCE = 20  # pages sent together
LINGER_MS = 5
AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Model:
    """Whose vectors they pretend to be."""

    spec: str
    fingerprint: str
    dims: int


async def send(settings: Settings, site: str, numbers: range, model: Model) -> None:
    """Put pages into the topics. Raises: Retryable: not confirmed."""
    async with KafkaSender(settings, linger_ms=LINGER_MS) as sender:
        for start in track(numbers[::AT_ONCE], description=f"sending {len(numbers):,} pages"):
            changes = [change(site, number) for number in range(start, min(start + AT_ONCE, numbers.stop))]
            sent = await sender.send_many([Outgoing(CHANGES, c.page_key, c) for c in changes])
            pages = [chunked(c, settings.chunker, at.partition, at.offset) for c, at in zip(changes, sent, strict=True)]
            sent = await sender.send_many([Outgoing(CHUNKS, page.change.page_key, page) for page in pages])
            made = [part for page, at in zip(pages, sent, strict=True) for part in embeddings(page, model, at.offset)]
            await sender.send_many([_outgoing(part) for part in made])


def _outgoing(part: PageEmbeddings) -> Outgoing:
    key = part.change.page_key
    return Outgoing(EMBEDDINGS, part_key(key, part.part), part, partition_key=key)


def change(site: str, number: int, paragraphs: int = CHUNKS_A_PAGE - 1) -> PageChange:
    """The same for the same number, always."""
    return report.change(site, document(number, paragraphs), AT)


def document(number: int, paragraphs: int = CHUNKS_A_PAGE - 1) -> PageDocument:
    """A page of a title and so many paragraphs, each of which becomes a chunk."""
    rng = random.Random(number)
    content = "\n".join(f"<p>{_paragraph(rng)}</p>" for _ in range(paragraphs))
    url = f"https://synthetic.example/{number}"
    return PageDocument(id=f"page-{number}", lang="en", url=url, title=f"Page {number}", content=content)


def embeddings(page: PageChunks, model: Model, chunks_offset: int = 0) -> list[PageEmbeddings]:
    """The page's chunks with vectors of length 1 by chance."""
    planned = plan(page, model.fingerprint)
    rng = np.random.default_rng([ord(letter) for letter in page.change.page_id])
    vectors = rng.standard_normal((len(planned), model.dims), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    units = plan_units(page)
    rows = iter(compact(rng.standard_normal((sum(map(len, units)), model.dims), np.float32)))
    chunks = [
        EmbeddedChunk(
            **p.chunk.model_dump(),
            embed_hash=p.embed_hash,
            vector=vector,
            units=tuple(u.unit for u in own),
            unit_vectors=b"".join(islice(rows, len(own))),
        )
        for p, vector, own in zip(planned, vectors, units, strict=True)
    ]
    return parts(
        page,
        chunks,
        embedder=model.spec,
        model=model.fingerprint,
        dims=model.dims,
        embedded=len(chunks),
        chunks_offset=chunks_offset,
    )


def words(rng: random.Random, count: int) -> str:
    """So many words of the language."""
    return " ".join(rng.choices(_vocabulary(), cum_weights=_weights(), k=count))


def _paragraph(rng: random.Random) -> str:
    text = ""
    while len(text) < PARAGRAPH:
        text += words(rng, rng.randint(*SENTENCE)).capitalize() + ". "
    return text[: PARAGRAPH + 100].rstrip()


@cache
def _vocabulary() -> Sequence[str]:
    rng = random.Random(VOCABULARY)
    return ["".join(rng.choices("abcdefghijklmnoprstuvz", k=rng.randint(2, 9))) for _ in range(VOCABULARY)]


@cache
def _weights() -> Sequence[float]:
    return list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
