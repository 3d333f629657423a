"""Builders of messages for tests: what a test does not care about has a default."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from pipelines.ingest.documents.attachments import Attached
from schemas.ingest import EmbeddedChunk, PageEmbeddings
from schemas.letters import DeadLetterDetail, DeadLetterSummary
from schemas.page import ChangeRef, FieldName, Op, PageDocument, PageMeta


async def no_attachments(page: PageDocument) -> Attached:
    """Reads the attachments of a page that has none."""
    raise AssertionError("there are none")


async def newest(change: ChangeRef) -> bool:
    """No change is superseded."""
    return False


NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
DIMS = 4


def change(
    revision: int = 1, op: Op = "upsert", page_id: str = "fees", site: str = "town", offset: int = 0
) -> ChangeRef:
    return ChangeRef(
        op=op, site=site, lang="en", page_id=page_id, revision=revision, accepted_at=NOON, partition=0, offset=offset
    )


def parts_of(
    ref: ChangeRef, texts: Mapping[FieldName, list[str]] | None = None, per_part: int = 100, model: str = "fake-4"
) -> list[PageEmbeddings]:
    """A page's embedded chunks, cut into parts of `per_part` chunks."""
    texts = {} if ref.op == "delete" else texts if texts is not None else {"title": ["Fees"], "content": ["One."]}
    rng = np.random.default_rng(ref.revision)
    chunks = [
        EmbeddedChunk(field=field, ord=ord, text=text, embed_hash=f"{text}/{model}", vector=rng.normal(size=DIMS))
        for field, cores in texts.items()
        for ord, text in enumerate(cores)
    ]
    cut = [tuple(chunks[i : i + per_part]) for i in range(0, len(chunks), per_part)] or [()]
    return [
        PageEmbeddings(
            change=ref,
            meta=None if ref.op == "delete" else PageMeta(title="Fees", url="/fees"),
            chunker="content-1000-20",
            embedder="fake",
            model=model,
            dims=DIMS,
            part=i,
            parts=len(cut),
            counts={field: len(cores) for field, cores in texts.items()},
            embedded=len(chunks),
            chunks=piece,
        )
        for i, piece in enumerate(cut)
    ]


def letter(offset: int, page_id: str = "fees", site: str = "town", **more: object) -> DeadLetterDetail:
    """A dead letter as an operator sees it; `more` are fields of its summary."""
    summary: dict[str, object] = {
        "topic": "cms.changes",
        "state": "open",
        "stage": "chunk",
        "code": "bad-message",
        "message": "not a PageChange v1",
        "key": f"{site}:en:{page_id}",
        "site": site,
        "lang": "en",
        "page_id": page_id,
        "attempts": 1,
        "first_failed_at": NOON,
        "last_failed_at": NOON,
        "size": 7,
        **more,
    }
    return DeadLetterDetail(
        letter=DeadLetterSummary.model_validate({"id": f"{summary['topic']}/0/{offset}", **summary}),
        error_class="schemas.base.WireError",
        source_partition=0,
        source_offset=offset,
        headers=(),
        value=None,
        text="tampered",
        problem="not a PageChange v1",
        diff=None,
    )
