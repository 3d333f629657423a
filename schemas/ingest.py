"""Messages of the ingest stages: chunks, embeddings, receipts."""

from __future__ import annotations

import base64
import re
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AwareDatetime, Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from schemas.base import Message, Revision, Wire, optional
from schemas.labels import Labels, label_tokens
from schemas.page import AttachmentPlace, ChangeRef, FieldName, PageMeta, PageStamp

Vector32 = NDArray[np.float32]
SparseVector = dict[str, float]  # weight of each token of the model that counts; > 0


class ChunkVectors(NamedTuple):
    """What a model makes of one text. `sparse` is empty where the model has no sparse vectors."""

    vector: Vector32
    sparse: SparseVector


def _vector_in(value: Any) -> Vector32:
    if isinstance(value, str):
        value = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not value.size or not np.isfinite(value).all():
        raise ValueError("a vector is finite float32 in base64")
    return value.astype(np.float32, copy=False)


def _vector_out(value: Vector32) -> str:
    return base64.b64encode(value.astype("<f4").tobytes()).decode()


Vector = Annotated[
    Vector32,
    PlainValidator(_vector_in),
    PlainSerializer(_vector_out, return_type=str),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "description": "little-endian float32"}),
]


def _bytes_in(value: Any) -> bytes:
    if isinstance(value, str):
        value = base64.b64decode(value, validate=True)
    if not isinstance(value, bytes):
        raise ValueError("bytes, in base64")
    return value


CompactVectors = Annotated[
    bytes,
    PlainValidator(_bytes_in),
    PlainSerializer(lambda value: base64.b64encode(value).decode(), return_type=str),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "description": "int8, row by row"}),
]
UnitKind = Literal["prose", "item", "row", "heading", "code"]


class Chunk(Wire):
    """A core: the cores of a field, joined, are the field; attachments follow the page's own content."""

    passed_on: ClassVar[bool] = False

    field: FieldName
    ord: int = Field(ge=0, description="Position within the field, from 0.")
    text: str
    place: AttachmentPlace | None = optional(description="Absent in the page's own text.")


class Chunker(Wire):
    """How a page was cut; two pages with the same fingerprint were cut alike."""

    mode: Literal["content", "fixed"]
    size: int = Field(gt=0, description="Longest core, in Unicode characters.")
    overlap: float = Field(ge=0, lt=1, description="Share of the neighbouring core embedded with each chunk.")
    titled: bool = Field(default=False, description="The title goes before each content chunk when embedding.")

    @property
    def fingerprint(self) -> str:
        return f"{self.mode}-{self.size}-{round(self.overlap * 100)}" + ("-titled" if self.titled else "")

    @classmethod
    def of(cls, fingerprint: str) -> Self:
        """Undo `fingerprint` (overlaps are whole percents). Raises: ValueError: it is none."""
        match = re.fullmatch(r"(content|fixed)-(\d+)-(\d+)(-titled)?", fingerprint)
        if match is None:
            raise ValueError(f"not a chunker's fingerprint: {fingerprint!r}")
        mode, size, overlap, titled = match.groups()
        return cls.model_validate(
            {"mode": mode, "size": int(size), "overlap": int(overlap) / 100, "titled": titled is not None}
        )


class WordCounts(Wire):
    """How many words of a web page are indexed."""

    visible: int = Field(ge=0, description="That its visitors see, or can open.")
    indexed: int = Field(ge=0, description="Of these.")
    left_out: dict[str, int] = Field(default_factory=dict, description="By why. Those in `hidden` are not visible.")


class Reading(Wire):
    """How a page became text."""

    reader: str = Field(description="Version of what read it; another one may read it differently.")
    words: WordCounts | None = Field(
        default=None, description="Null where nothing can be lost: its content is no HTML."
    )


class PageChunks(Message):
    """`ingest.chunks`: a page cut into chunks, or its delete."""

    change: ChangeRef
    meta: PageMeta | None = Field(description="Null for a delete.")
    chunker: Chunker
    chunks: tuple[Chunk, ...] = ()
    notes: tuple[str, ...] = Field(default=(), description="What an editor should know, for example what was left out.")
    reading: Reading | None = optional()

    @property
    def digest(self) -> str:
        """A hash of the visible content, and after a dot one of the access groups."""
        seen, groups = blake2b(digest_size=16), self.meta.groups if self.meta else None
        shown = [self.meta.title, self.meta.url, *sorted(label_tokens(self.meta.labels))] if self.meta else []
        if self.meta is not None and (stamp := self.meta.model_dump(mode="json", include=set(PageStamp.model_fields))):
            shown.append(str(stamp))
        for text in (self.chunker.fingerprint, *shown):
            seen.update(_hashed(text))
        for chunk in self.chunks:
            place = chunk.place.model_dump_json() if chunk.place else ""
            seen.update(_hashed(f"{chunk.field} {chunk.ord} {place}") + _hashed(chunk.text))
        allowed = b"".join(map(_hashed, sorted(set(groups)))) if groups is not None else b"everybody"
        return f"{seen.hexdigest()}.{blake2b(allowed, digest_size=8).hexdigest()}"


def _hashed(text: str) -> bytes:
    """The text with its length, so that different lists of texts give different bytes."""
    encoded = text.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8, "little") + encoded


class ChunkUnit(Wire):
    """A sentence, list item or table row of the content (text.units): the smallest part that can be quoted."""

    start: int = Field(ge=0, description="In the page's content, or in the text at its place in an attachment.")
    text: str = Field(description="Markdown, as it stands there; it may end in the next chunk.")
    kind: UnitKind
    headings: tuple[str, ...] = optional((), description="Above it, the outermost first; plain text.")
    intro: str = optional("", description="Markdown: the sentence that introduces its list or table.")
    header: str = optional("", description="Markdown: of a row, its table's header row; of a definition, its term.")
    block: int = Field(
        ge=0, description="Start of the list or table that it is part of; its own where it is part of none."
    )


class EmbeddedChunk(Chunk):
    """A chunk with its vector; content also with the units that start in it, and their vectors."""

    embed_hash: str = Field(description="Hash of embedded text, chunker and model: equal means reusable.")
    vector: Vector
    sparse: SparseVector = optional({}, description="Weight by token, of an embedder that has sparse vectors.")
    units: tuple[ChunkUnit, ...] = optional(())
    unit_vectors: CompactVectors = optional(b"", description="One per unit (schemas.compact).")

    @model_validator(mode="after")
    def _a_vector_per_unit(self) -> Self:
        if len(self.unit_vectors) != len(self.units) * self.vector.size:
            raise ValueError("unit_vectors: not one per unit, of as many dimensions as the chunk's")
        return self


class PageEmbeddings(Message):
    """`ingest.embeddings`: one part of a page's embedded chunks, or its delete (one part, no chunks).

    `counts` and the totals are of the whole page and the same in each part.
    """

    change: ChangeRef
    meta: PageMeta | None
    chunker: str = Field(description="The chunker's fingerprint.")
    embedder: str = Field(description="How to get the model (settings.embedder), ...")
    model: str = Field(description="... and its fingerprint; given with a delete too, which may create the index.")
    dims: int = Field(ge=1)
    part: int = Field(ge=0)
    parts: int = Field(ge=1)
    superseded: bool = Field(default=False, description="Overwrites a part that a newer revision no longer has.")
    ahead: bool = optional(
        False,
        description="What need not wait for an embedder: a delete, or who may see the page. It has a key of its own.",
    )
    counts: dict[FieldName, int] = Field(default_factory=dict, description="Chunks per field.")
    digest: str = optional(
        "", description="Of the whole page as it was cut (PageChunks.digest): two saves may have the same revision."
    )
    embedded: int = Field(default=0, description="Chunks of the page that cost a model call.")
    reused: int = Field(default=0, description="Chunks whose vector was known already.")
    notes: tuple[str, ...] = ()
    reading: Reading | None = optional()
    chunks: tuple[EmbeddedChunk, ...] = ()
    chunks_offset: int = Field(default=0, ge=0, description="Where the page's chunks stand in ingest.chunks.")
    chunks_in: int | None = optional(description="In which partition of it.")

    @property
    def making(self) -> str:
        """The same for all parts that together make a page, also if they come from different copies of the change."""
        change = self.change
        content = self.digest or sorted(self.counts.items())
        made_for = f"{change.revision}.{change.op} {self.model} {self.chunker}"
        return f"{change.page_key}@{made_for} {self.parts} {content}"


class ChunkCounts(Wire):
    """The cost of a change."""

    total: int = 0
    embedded: int = 0
    reused: int = 0
    removed: int = 0


class Failure(Wire):
    """Why a change is not searchable, for an editor to read."""

    stage: str
    reason: str


ReceiptState = Literal["queued", "searchable", "deleted", "failed"]


class ReceiptEvent(Message):
    """`ingest.receipts`: the state of one change. `superseded`: there was a newer revision already."""

    change: ChangeRef
    state: ReceiptState | Literal["superseded"]
    at: AwareDatetime
    chunks: ChunkCounts = ChunkCounts()
    error: Failure | None = None
    notes: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """Orders a page's receipts for a store that compares numbers: by revision, then by how final the event is."""
        return (self.change.revision << 2) | self._rank

    @property
    def order(self) -> tuple[int, datetime, int]:
        """Orders a page's receipts: by revision, then by when it was accepted, then by how final they are."""
        return self.change.revision, self.change.accepted_at, self._rank

    @property
    def _rank(self) -> int:
        return {"queued": 0, "superseded": 0, "failed": 1, "deleted": 2, "searchable": 2}[self.state]


class Receipt(Wire):
    """The receipt for an editor: the newest change, and the searchable revision."""

    page_key: str
    accepted_revision: Revision
    searchable_revision: Revision | None
    state: ReceiptState
    chunks: ChunkCounts
    accepted_at: AwareDatetime
    searchable_at: AwareDatetime | None
    lag_ms: int | None = Field(description="From accepted to searchable (or, for a delete, gone).")
    error: str | None = None
    notes: tuple[str, ...] = ()
    reading: Reading | None = Field(default=None, description="Of what can be found now; null before it was counted.")
    labels: Labels = Field(default_factory=dict, description="Of what can be found now.")
