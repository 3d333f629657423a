from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from pipelines.ingest.chunk import chunk_page
from pipelines.ingest.embedding_plan import PlannedChunk, embed_hash, parts, plan
from schemas.ingest import Chunker, EmbeddedChunk, PageChunks, PageEmbeddings
from schemas.page import ChangeRef, FieldName, Op, PageMeta

CHUNKER = Chunker(mode="content", size=60, overlap=0.2)
TEXT: dict[FieldName, str] = {"title": "Opening hours", "content": "One two three four five. " * 10}


def page(text: dict[FieldName, str] = TEXT, chunker: Chunker = CHUNKER, op: Op = "upsert") -> PageChunks:
    change = ChangeRef(
        op=op, site="town", lang="en", page_id="p", revision=7, accepted_at=datetime.now(UTC), partition=0, offset=5
    )
    meta = PageMeta(title="Opening hours", url="https://town.example/p") if op == "upsert" else None
    return PageChunks(change=change, meta=meta, chunker=chunker, chunks=chunk_page(text, chunker), notes=("a note",))


def embedded(planned: list[PlannedChunk], dims: int = 1024) -> list[EmbeddedChunk]:
    rng = np.random.default_rng(1)
    return [
        EmbeddedChunk(
            field=p.chunk.field,
            ord=p.chunk.ord,
            text=p.chunk.text,
            embed_hash=p.embed_hash,
            vector=rng.random(dims, dtype=np.float32),
        )
        for p in planned
    ]


def test_equal_means_text_chunker_and_model_are_equal() -> None:
    same = embed_hash("text", "content-1000-20", "m-1")
    assert same == embed_hash("text", "content-1000-20", "m-1")
    assert len(same) == 32
    others = {
        embed_hash("text.", "content-1000-20", "m-1"),
        embed_hash("text", "content-512-20", "m-1"),
        embed_hash("text", "content-1000-20", "m-2"),
        embed_hash("1text", "content-1000-20", "m-"),  # the same letters, split otherwise
    }
    assert len(others | {same}) == 5


def test_a_plan_reads_each_chunk_with_its_neighbours() -> None:
    planned = plan(page(), "model")
    cores = [p.chunk.text for p in planned if p.chunk.field == "content"]
    assert [p.chunk for p in planned] == list(page().chunks)
    assert planned[0].text == "Opening hours"
    assert (
        planned[2].text == cores[0][-round(len(cores[0]) * 0.2) :] + cores[1] + cores[2][: round(len(cores[2]) * 0.2)]
    )
    assert planned[1].embed_hash == embed_hash(planned[1].text, CHUNKER.fingerprint, "model")


def test_a_title_goes_before_content_only_and_only_when_wanted() -> None:
    titled = plan(page(chunker=CHUNKER.model_copy(update={"titled": True})), "model")
    plain = plan(page(), "model")
    assert titled[0].text == plain[0].text
    assert [t.text for t in titled[1:]] == ["Opening hours\n\n" + p.text for p in plain[1:]]
    assert not {t.embed_hash for t in titled} & {p.embed_hash for p in plain}
    nameless = page({"content": "One two."}, CHUNKER.model_copy(update={"titled": True}))
    assert [p.text for p in plan(nameless, "model")] == ["One two."]


def split(source: PageChunks, chunks: list[EmbeddedChunk], limit: int) -> list[PageEmbeddings]:
    return parts(source, chunks, embedder="bge-m3", model="bge-m3-1024", dims=1024, embedded=2, limit=limit)


def test_parts_hold_all_chunks_in_order_and_none_is_too_large() -> None:
    source = page({"title": 'Qu"otes \x01 and Ünïcödé', "content": 'Größe \u2028 \\ " 😀. ' * 400})
    chunks = embedded(plan(source, "m"))
    limit = 50_000
    messages = split(source, chunks, limit)
    assert len(messages) > 5
    assert all(len(message.encode()) <= limit for message in messages)
    assert all(len(message.encode()) > limit - 2 * 6_500 for message in messages[:-1])
    assert [c.embed_hash for m in messages for c in m.chunks] == [c.embed_hash for c in chunks]
    assert [m.part for m in messages] == list(range(len(messages)))
    assert {m.parts for m in messages} == {len(messages)}
    decoded = PageEmbeddings.decode(messages[0].encode())
    np.testing.assert_array_equal(decoded.chunks[0].vector, chunks[0].vector)


def test_each_part_says_what_the_whole_page_cost() -> None:
    source = page()
    messages = split(source, embedded(plan(source, "m")), 20_000)
    total = len(source.chunks)
    assert len(messages) > 1
    for message in messages:
        assert message.counts == {"title": 1, "content": total - 1}
        assert (message.embedded, message.reused) == (2, total - 2)
        assert message.notes == ("a note",)
        assert (message.chunker, message.embedder, message.model) == ("content-60-20", "bge-m3", "bge-m3-1024")
        assert message.meta == source.meta
        assert not message.superseded


def test_a_delete_and_an_empty_page_are_one_part() -> None:
    for source in (page({}), page({}, op="delete")):
        (message,) = parts(source, [], embedder="lite", model="m", dims=384, embedded=0)
        assert (message.part, message.parts, message.chunks, message.counts) == (0, 1, (), {})
        assert message.change == source.change


def test_a_chunk_larger_than_the_limit_gets_its_own_part() -> None:
    source = page()
    assert len(split(source, embedded(plan(source, "m")), 1_000)) == len(source.chunks)
