"""Reuse: the model is asked for what nobody has embedded before, and for nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest

from pipelines.ingest import embed as module
from pipelines.ingest.embed import Embedding, VectorCache
from pipelines.ingest.embedding_plan import KnownUnits
from pipelines.ingest.index import index_part
from pipelines.ingest.receipts import receipt
from pipelines.runtime.errors import Retryable
from schemas.compact import expand
from schemas.head import Head
from schemas.ingest import Chunk, Chunker, ChunkVectors, PageChunks, PageEmbeddings, Vector32
from schemas.page import FieldName, Op, PageMeta
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.pages import FakePages
from tests.fakes.sparse_embedder import FakeSparseEmbedder, token
from tests.making import NOON, change

CHUNKER = Chunker(mode="content", size=1000, overlap=0.0)


class Bench:
    """The embed stage of a fresh process over an index that others fill."""

    def __init__(self, pages: FakePages | None = None, model: FakeEmbedder | None = None) -> None:
        self.pages = pages or FakePages()
        self.model = model or FakeEmbedder()
        self.pages.index.model, self.pages.index.chunker = self.model.fingerprint, CHUNKER.fingerprint
        self.embedding = Embedding(self, self.pages)

    async def for_new(self, site: str) -> FakeEmbedder:
        return self.model

    async def embed(self, page: PageChunks) -> list[PageEmbeddings]:
        self.model.embedded.clear()
        return await self.embedding.embed(page)

    async def index(self, page: PageChunks) -> None:
        for part in await self.embed(page):
            await index_part(part, self.pages, lambda: NOON)


def page(
    *texts: str,
    revision: int = 1,
    op: Op = "upsert",
    field: FieldName = "description",
    labels: dict[str, tuple[str, ...]] | None = None,
) -> PageChunks:
    """Without units, unless it is content."""
    chunks = [Chunk(field=field, ord=ord, text=text) for ord, text in enumerate(texts)]
    meta = None if op == "delete" else PageMeta(title="Fees", url="/fees", labels=labels or {})
    return PageChunks(change=change(revision, op), meta=meta, chunker=CHUNKER, chunks=chunks)


async def test_what_is_known_is_looked_up_side_by_side() -> None:
    """An editor waits for both."""
    both = asyncio.Barrier(2)

    class Slow(FakePages):
        async def vectors(self, site: str, hashes: Sequence[str]) -> dict[str, ChunkVectors]:
            await both.wait()
            return {}

        async def units(self, site: str, page_key: str, model: str) -> list[KnownUnits]:
            await both.wait()
            return []

    async with asyncio.timeout(10):
        await Bench(Slow()).embed(page("The pool opens at nine.", field="content"))


async def test_other_labels_embed_nothing_and_reach_every_chunk() -> None:
    bench = Bench()
    await bench.index(page("one", "two", field="content", labels={"kind": ("form",)}))
    await bench.index(page("one", "two", field="content", labels={"kind": ("notice",)}, revision=2))
    assert bench.model.embedded == []
    assert bench.pages.index.labels("town:en:fees") == {("kind:notice",)}
    told = receipt(None, (await bench.pages.index.heads(["town:en:fees"]))["town:en:fees"])
    assert told is not None
    assert told.labels == {"kind": ("notice",)}
    await bench.index(page("one", "two", field="content", revision=3))
    assert bench.model.embedded == []
    assert bench.pages.index.labels("town:en:fees") == {()}


def test_two_saves_of_one_revision_with_other_labels_are_told_apart() -> None:
    form, notice = (page("one", labels={"kind": (kind,)}) for kind in ("form", "notice"))
    assert form.digest != notice.digest != page("one").digest


async def test_a_new_page_is_embedded_chunk_by_chunk() -> None:
    bench = Bench()
    [part] = await bench.embed(page("one", "two"))
    assert bench.model.embedded == ["one", "two"]
    assert (part.embedded, part.reused, part.counts) == (2, 0, {"description": 2})
    assert (part.embedder, part.model, part.dims) == ("fake", "fake-1-64", 64)
    assert [c.text for c in part.chunks] == ["one", "two"]
    np.testing.assert_array_equal(part.chunks[1].vector, (await bench.model.passages(["two"]))[0])


async def test_a_save_without_a_change_of_text_costs_no_model_call_even_for_another_process() -> None:
    first = Bench()
    await first.index(page("one", "two"))
    second = Bench(first.pages)
    [part] = await second.embed(page("one", "two", revision=2))
    assert second.model.embedded == []
    assert (part.embedded, part.reused) == (0, 2)
    np.testing.assert_array_equal(part.chunks[0].vector, (await second.model.passages(["one"]))[0])


async def test_sparse_vectors_come_from_the_same_call_and_are_known_again() -> None:
    bench = Bench(model=FakeSparseEmbedder())
    [part] = await bench.embed(page("pool", "fees"))
    assert bench.model.embedded == ["pool", "fees"]
    assert [chunk.sparse for chunk in part.chunks] == [{token("pool"): 0.4}, {token("fees"): 0.4}]
    await bench.index(page("pool", "pool", revision=2))  # kept in the process
    other = Bench(bench.pages, FakeSparseEmbedder())  # known by the index
    [part] = await other.embed(page("pool", revision=3))
    assert (other.model.embedded, part.chunks[0].sparse) == ([], {token("pool"): 0.4})


async def test_without_sparse_vectors_the_message_does_not_speak_of_them() -> None:
    [part] = await Bench().embed(page("pool"))
    assert b"sparse" not in part.encode()


async def test_two_saves_quicker_than_the_index_cost_one_embedding() -> None:
    bench = Bench()
    await bench.embed(page("one", "two"))
    [part] = await bench.embed(page("one", "two", "three", revision=2))
    assert bench.model.embedded == ["three"]
    assert (part.embedded, part.reused) == (1, 2)


async def test_another_model_knows_nothing_of_the_old_vectors() -> None:
    bench = Bench()
    await bench.index(page("one"))
    bench.model = FakeEmbedder(version="2")
    await bench.embed(page("one", revision=2))
    assert bench.model.embedded == ["one"]


async def test_after_a_promotion_back_to_a_model_its_vectors_are_known_again() -> None:
    bench = Bench()
    await bench.index(page("one"))
    first, bench.model = bench.model, FakeEmbedder(version="2")
    await bench.embed(page("one", revision=2))
    bench.model = first
    [part] = await bench.embed(page("one", revision=3))
    assert (bench.model.embedded, part.model) == ([], "fake-1-64")


async def test_a_rebuild_embeds_with_the_model_it_is_given_and_overwrites_no_parts() -> None:
    bench = Bench()
    await bench.index(page("one"))
    other = FakeEmbedder(dims=8, version="2")
    [part] = await bench.embedding.embed_with(other, page("one", revision=2))
    assert (part.model, part.dims, part.chunks[0].vector.shape) == ("fake-2-8", 8, (8,))


async def test_every_part_says_where_its_chunks_stand() -> None:
    class Shown(FakePages):
        async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
            return {key: Head(change=change(1), state="live", parts=2, settled_at=NOON) for key in page_keys}

    parts = await Bench(Shown()).embedding.embed(page("one"), 17)
    assert [p.chunks_offset for p in parts] == [17, 17]


async def test_equal_texts_of_a_page_are_embedded_once() -> None:
    bench = Bench()
    [part] = await bench.embed(page("Opening hours", "Fees", "Opening hours"))
    assert bench.model.embedded == ["Opening hours", "Fees"]
    assert (part.embedded, part.reused) == (2, 1)
    np.testing.assert_array_equal(part.chunks[0].vector, part.chunks[2].vector)


async def test_the_model_is_asked_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slices(FakeEmbedder):
        sizes: list[int] = []  # noqa: RUF012 - one test, one use

        async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vector32:
            self.sizes.append(len(texts))
            return await super().passages(texts, urgent=urgent)

    monkeypatch.setattr(module, "SLICE", 2)
    bench = Bench(model=Slices())
    await bench.embed(page("a", "b", "c", "d", "e"))
    assert Slices.sizes == [2, 2, 1]


async def test_a_page_is_one_call_of_its_chunks_and_its_units() -> None:
    """Else pages that come together are done together, at the end, and none before."""

    class Counting(FakeEmbedder):
        calls = 0

        async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vector32:
            self.calls += 1
            return await super().passages(texts, urgent=urgent)

    bench = Bench(model=(model := Counting()))
    await bench.embed(content(*SAID))
    assert model.calls == 1


async def test_what_was_paid_for_before_a_failure_is_not_paid_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Flaky(FakeEmbedder):
        calls = 0

        async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vector32:
            self.calls += 1
            if self.calls == 2:
                raise Retryable("endpoint away")
            return await super().passages(texts, urgent=urgent)

    monkeypatch.setattr(module, "SLICE", 1)
    bench = Bench(model=Flaky())
    with pytest.raises(Retryable):
        await bench.embed(page("a", "b"))
    await bench.embed(page("a", "b"))
    assert bench.model.embedded == ["b"]


async def test_a_delete_costs_nothing_and_names_the_model() -> None:
    bench = Bench()
    [part] = await bench.embed(page(op="delete"))
    assert bench.model.embedded == []
    assert (part.change.op, part.chunks, part.parts, part.model) == ("delete", (), 1, "fake-1-64")


@pytest.mark.parametrize("op", ["upsert", "delete"])
async def test_parts_the_last_revision_had_and_this_one_has_not_are_overwritten(op: Op) -> None:
    class Shown(FakePages):
        async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
            return {key: Head(change=change(1), state="live", parts=4, settled_at=NOON) for key in page_keys}

    parts = await Bench(Shown()).embed(page(revision=2, op=op))
    assert [(p.part, p.superseded, p.chunks) for p in parts] == [
        (0, False, ()),
        (1, True, ()),
        (2, True, ()),
        (3, True, ()),
    ]
    assert all(p.change == change(2, op) for p in parts)


async def test_no_part_is_superseded_when_this_revision_has_as_many() -> None:
    bench = Bench()
    await bench.index(page("one"))
    assert len(await bench.embed(page("two", revision=2))) == 1


SAID = "The pool opens at nine. Water is heated.\n\n", "Dogs stay outside."
SENSES = ["Fees. The pool opens at nine.", "Fees. Water is heated.", "Fees. Dogs stay outside."]


def content(*texts: str, revision: int = 1) -> PageChunks:
    return page(*texts, revision=revision, field="content")


async def test_units_are_embedded_by_what_they_say_where_they_stand() -> None:
    bench = Bench()
    [part] = await bench.embed(content(*SAID))
    assert bench.model.embedded == [*SAID, *SENSES]
    assert [[unit.text for unit in chunk.units] for chunk in part.chunks] == [
        ["The pool opens at nine.", "Water is heated."],
        ["Dogs stay outside."],
    ]
    for chunk, senses in zip(part.chunks, (SENSES[:2], SENSES[2:]), strict=True):
        vectors = expand(chunk.unit_vectors, len(chunk.units))
        np.testing.assert_allclose((vectors * await bench.model.passages(senses)).sum(axis=1), 1, atol=1e-3)
    assert (part.embedded, part.reused) == (2, 0)  # of chunks


@pytest.mark.parametrize("restarted", [False, True], ids=["in this process", "by the index alone"])
async def test_one_changed_sentence_costs_one_unit(restarted: bool) -> None:
    first = Bench()
    await first.index(content(*SAID))
    bench = Bench(first.pages) if restarted else first
    changed = SAID[0].replace("nine", "ten")
    [part] = await bench.embed(content(changed, SAID[1], revision=2))
    assert bench.model.embedded == [changed, "Fees. The pool opens at ten."]
    again = expand(part.chunks[1].unit_vectors, 1)
    np.testing.assert_allclose((again * await bench.model.passages(SENSES[2:])).sum(), 1, atol=1e-3)


async def test_a_save_without_a_change_of_text_costs_no_unit_and_keeps_the_vectors_byte_for_byte() -> None:
    first = Bench()
    await first.index(content(*SAID))
    kept = [doc.chunk.unit_vectors for doc in first.pages.index.docs.values() if doc.chunk]
    second = Bench(first.pages)
    [part] = await second.embed(content(*SAID, revision=2))
    assert second.model.embedded == []
    assert [chunk.unit_vectors for chunk in part.chunks] == kept


async def test_vectors_of_units_by_another_model_are_not_taken() -> None:
    bench = Bench()
    await bench.index(content(*SAID))
    bench.model = FakeEmbedder(version="2")
    await bench.embed(content(*SAID, revision=2))
    assert bench.model.embedded == [*SAID, *SENSES]


async def test_an_index_from_before_units_gets_them_with_the_next_save_for_no_new_vector_of_a_chunk() -> None:
    first = Bench()
    for part in await first.embed(content(*SAID)):
        bare = [chunk.model_copy(update={"units": (), "unit_vectors": b""}) for chunk in part.chunks]
        await index_part(part.model_copy(update={"chunks": tuple(bare)}), first.pages, lambda: NOON)
    second = Bench(first.pages)
    await second.embed(content(*SAID, revision=2))
    assert second.model.embedded == SENSES


async def test_units_paid_for_before_a_failure_are_not_paid_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Flaky(FakeEmbedder):
        calls = 0

        async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vector32:
            self.calls += 1
            if self.calls == 5:  # of two chunks and three units
                raise Retryable("endpoint away")
            return await super().passages(texts, urgent=urgent)

    monkeypatch.setattr(module, "SLICE", 1)
    bench = Bench(model=Flaky())
    with pytest.raises(Retryable):
        await bench.embed(content(*SAID))
    await bench.embed(content(*SAID))
    assert bench.model.embedded == SENSES[2:]


async def test_the_units_of_a_long_page_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    [short] = await Bench().embed(content(*SAID))
    monkeypatch.setattr(module, "AT_ONCE", 0)
    [long] = await Bench().embed(content(*SAID))
    assert short.chunks[0].units == long.chunks[0].units


def vector(*values: float, tokens: int = 0) -> ChunkVectors:
    return ChunkVectors(np.array(values, dtype=np.float32), {str(token): 0.5 for token in range(tokens)})


def test_the_cache_keeps_what_was_used_last() -> None:
    cache = VectorCache(limit=2 * 8)  # two vectors of two dimensions
    cache.put("a", vector(1, 1))
    cache.put("b", vector(2, 2))
    assert cache.get("a") is not None
    cache.put("c", vector(3, 3))
    assert [name for name in "abc" if cache.get(name) is not None] == ["a", "c"]


def test_the_cache_counts_a_vector_put_again_once() -> None:
    cache = VectorCache(limit=2 * 8)
    for name in "aaab":
        cache.put(name, vector(1, 1))
    assert cache.get("a") is not None
    assert cache.get("b") is not None


def test_the_cache_holds_no_batch_in_memory_for_one_of_its_rows() -> None:
    cache = VectorCache()
    batch = np.zeros((64, 1024), np.float32)
    cache.put("a", ChunkVectors(batch[5], {}))
    kept = cache.get("a")
    assert kept is not None
    assert kept.vector.base is None


def test_a_vector_larger_than_the_cache_is_not_kept() -> None:
    cache = VectorCache(limit=100)
    cache.put("a", vector(*range(26)))
    cache.put("b", vector(1, 1, tokens=1))
    cache.put("c", vector(1, 1))
    assert [name for name in "abc" if cache.get(name) is not None] == ["c"]
