"""Search on the real Elasticsearch: one request over five fields, floors in cosine, filters inside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from unittest.mock import patch
from uuid import uuid4

import numpy as np
import pytest

from adapters.elastic import indexes, page_view
from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import added_mapping, mapping
from adapters.elastic.page_view import ElasticPageView, PageChanging
from adapters.elastic.typeahead import ElasticTypeahead
from pipelines.query.search.ports import Candidate, Floors, HitUnit
from pipelines.runtime.indexes import alias
from schemas.compact import compact
from schemas.head import Head
from schemas.http import IndexedPage
from schemas.ingest import ChunkUnit, EmbeddedChunk, PageEmbeddings, Reading, Vector32
from schemas.keys import chunk_id, page_key
from schemas.page import FieldName, PageMeta
from tests.engine_fixture import Servers
from tests.making import NOON, change
from tests.site_indexes import KINDS, forget
from text.reader import READER
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

ALL = Floors(-1.0, -1.0)


# As real ones are: quantising to int8 distorts vectors of few or mostly empty dimensions.
DIMS = 256
AXES, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(DIMS, 2)))


def at(cosine: float) -> Vector32:
    """A vector with this cosine to `QUESTION`."""
    return np.asarray(AXES @ [cosine, (1 - cosine**2) ** 0.5], dtype=np.float32)


QUESTION = at(1.0)


class Bench:
    """A site of its own."""

    def __init__(self, elastic: Elastic) -> None:
        self.site = f"t{uuid4().hex[:12]}"
        self.elastic = elastic
        self.search = elastic.search
        self.index = ""

    async def save(
        self,
        page_id: str,
        texts: Mapping[FieldName, Sequence[tuple[str, float]]],
        groups: tuple[str, ...] | None = None,
        title: str = "",
        units: tuple[ChunkUnit, ...] = (),
        lang: str = "en",
        reading: Reading | None = None,
        labels: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Chunks with their text and cosine to the question, by field; the `units` of each of the content's."""
        ref = change(1, page_id=page_id, site=self.site).model_copy(update={"lang": lang})
        vectors = b"".join(compact([at(1 - n / 10) for n in range(len(units))]))
        chunks = [
            EmbeddedChunk(
                field=field,
                ord=ord,
                text=text,
                embed_hash=f"{page_id}/{field}/{ord}",
                vector=at(cosine),
                units=units if field == "content" else (),
                unit_vectors=vectors if field == "content" else b"",
            )
            for field, cores in texts.items()
            for ord, (text, cosine) in enumerate(cores)
        ]
        part = PageEmbeddings(
            change=ref,
            meta=PageMeta(title=title, url=f"/{page_id}", groups=groups, labels=dict(labels or {})),
            chunker="c",
            embedder="fake",
            model="fake",
            dims=DIMS,
            part=0,
            parts=1,
            chunks=chunks,
        )
        index = await self.elastic.pages.live(self.site, embedder="fake", model="fake", dims=DIMS, chunker="c")
        self.index = index.info.concrete
        counts = {field: len(cores) for field, cores in texts.items()}
        assert await index.write(part, Head(change=ref, state="live", counts=counts, settled_at=NOON, reading=reading))
        await index.refresh()


@pytest.fixture(params=KINDS)
async def bench(request: pytest.FixtureRequest, engine: Servers) -> AsyncIterator[Bench]:
    async with Elastic(engine.elasticsearch, Settings(site_index=request.param)) as elastic:
        made = Bench(elastic)
        yield made
        await forget(elastic, made.site)


def page_of(found: Candidate) -> str:
    return found.page_key.rpartition(":")[2]


async def test_titles_and_headings_are_found_by_prefix_once_a_page_and_by_those_who_may(bench: Bench) -> None:
    def heading(text: str) -> tuple[ChunkUnit, ...]:
        return (ChunkUnit(start=0, text="Daily.", kind="prose", headings=("Pool", text), block=0),)

    typeahead = ElasticTypeahead(bench.elastic.es, bench.elastic.indexes)
    assert await typeahead.titles(bench.site, "poo", lang=None, groups=()) == ([], [])
    texts: Mapping[FieldName, Sequence[tuple[str, float]]] = {
        "title": [("Indoor pool", 0.7)],
        "content": [("## **Opening** hours\n\nOpen daily.", 0.9), ("More.", 0.8)],
    }
    await bench.save("pool", texts, title="Indoor pool", units=heading("Opening hours"))
    await bench.save("becken", texts, title="Pool im Haus", units=heading("Öffnungszeiten"), lang="de")
    await bench.save("staff", texts, title="Pool keys", units=heading("Opening codes"), groups=("staff",))

    async def found(typed: str, lang: str | None = "en", groups: tuple[str, ...] = ()) -> tuple[list[str], list[str]]:
        titles, headings = await typeahead.titles(bench.site, typed, lang=lang, groups=groups)
        return [page.title for page in titles], sorted({each for page in headings for each in page.headings})

    assert await found("indoor poo") == (["Indoor pool"], [])
    assert await found("poo indoor") == ([], [])
    assert await found("OPENING h") == ([], ["Opening hours"])
    for typed in ("öff", "Off", "OFFNUNGS"):
        assert await found(typed, lang="de") == ([], ["Öffnungszeiten"])
    assert sorted((await found("poo", lang=None))[0]) == ["Indoor pool", "Pool im Haus"]
    assert sorted((await found("poo", groups=("staff",)))[0]) == ["Indoor pool", "Pool keys"]
    assert (await found("open", groups=("staff",)))[1] == ["Opening codes", "Opening hours"]


async def test_the_best_hit_of_each_short_field_and_several_of_the_content(bench: Bench) -> None:
    await bench.save(
        "pool",
        {
            "name": [("pool", 0.6)],
            "title": [("Indoor pool", 0.7), ("second best", 0.65)],
            "description": [("Swim", 0.5)],
            "keywords": [("water", 0.4)],
            "content": [("Open daily.", 0.9), ("Closed on Monday.", 0.8), ("Bring a towel.", 0.3)],
        },
    )
    found = await bench.search.candidates(
        bench.site, "nothing", QUESTION, model="fake", floors=ALL, content_hits=2, keyword_hits=0
    )
    assert [(h.field, h.ord) for h in found.dense] == [
        ("content", 0),
        ("content", 1),
        ("title", 0),
        ("name", 0),
        ("description", 0),
        ("keywords", 0),
    ]
    assert [h.cosine for h in found.dense] == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], abs=0.02)
    first = found.dense[0]
    key = page_key(bench.site, "en", "pool")
    assert (first.page_key, first.index, first.bm25) == (key, bench.index, None)
    [read] = await bench.search.chunks(bench.index, [first.place])
    assert (read.page_key, read.page_id, read.text, read.revision, read.url, read.cosine) == (
        key,
        "pool",
        "Open daily.",
        1,
        "/pool",
        None,
    )
    assert (found.keyword, found.terms, found.total) == ([], [], 0)


async def test_floors_are_cosines_and_differ_by_field(bench: Bench) -> None:
    await bench.save(
        "pool",
        {"title": [("kept", 0.53)], "name": [("dropped", 0.47)], "content": [("kept", 0.23), ("dropped", 0.17)]},
    )
    found = await bench.search.candidates(
        bench.site, "", QUESTION, model="fake", floors=Floors(0.5, 0.2), content_hits=10, keyword_hits=0
    )
    assert {h.text for h in await bench.search.chunks(bench.index, [h.place for h in found.dense])} == {"kept"}
    assert len(found.dense) == 2


async def test_similar_words_are_looked_up_for_words_that_no_chunk_has(bench: Bench) -> None:
    await bench.save("library", {"content": [("The library lends guitars.", 0.9), ("Libraries are quiet.", 0.8)]})
    await bench.save("café", {"content": [("The café opens at nine.", 0.7)]})

    async def similar(question: str) -> Mapping[str, Sequence[str]]:
        found = await bench.search.candidates(
            bench.site, question, None, floors=ALL, content_hits=1, keyword_hits=1, short_hits=0
        )
        return found.similar

    assert await similar("LIBARY guitar?") == {"libary": ["library"], "guitar": ["guitars"]}
    assert await similar("library guitars") == {}
    assert await similar("cafe") == {"cafe": ["café"]}
    assert await similar("len xyzzy 12345 iets") == {}  # short, or near to nothing
    assert len(await similar(f"{'xyzzy plugh ' * 5}{' '.join('abcdefghijk'[n] * 6 for n in range(11))} libary")) == 0


async def test_groups_filter_inside_the_search_so_that_hidden_pages_take_no_places(bench: Bench) -> None:
    await bench.save("secret", {"content": [("dogs", 0.95), ("dogs", 0.94)]}, groups=("staff",))
    await bench.save("nobody", {"content": [("dogs", 0.93)]}, groups=())
    await bench.save("open", {"content": [("dogs", 0.5)]})

    async def seen(*groups: str) -> tuple[set[str], set[str]]:
        found = await bench.search.candidates(
            bench.site, "dogs", QUESTION, model="fake", floors=ALL, content_hits=1, keyword_hits=1, groups=groups
        )
        return {page_of(h) for h in found.dense}, {page_of(h) for h in found.keyword}

    assert await seen() == ({"open"}, {"open"})
    assert await seen("guests") == ({"open"}, {"open"})
    assert (await seen("guests", "staff"))[0] == {"secret"}


async def test_keywords_find_other_forms_of_a_word_and_other_accents(bench: Bench) -> None:
    await bench.save("dog", {"content": [("Die Hundesteuer für Hunde beträgt 60 Euro.", 0.0)]})
    await bench.save("cat", {"content": [("Katzen sind frei.", 0.0)]})  # tagged as English, as pages of others may be

    async def pages(query: str) -> list[str]:
        found = await bench.search.candidates(bench.site, query, None, floors=ALL, content_hits=5, keyword_hits=5)
        assert found.dense == []
        assert all(h.cosine is None and (h.bm25 or 0) > 0 for h in found.keyword)
        return [page_of(h) for h in found.keyword]

    assert await pages("Hunden") == ["dog"]
    assert await pages("KATZE?") == ["cat"]
    assert await pages("betragt") == ["dog"]
    assert await pages("Fahrrad") == []
    assert await pages("???") == []


async def test_the_index_says_how_well_it_knows_the_words(bench: Bench) -> None:
    """By their stems, as they are searched: a question in other forms of the words is no stranger."""
    texts = {"title": [("Hund", 0.0)], "content": [("Die Hunde bellen.", 0.0), ("Katzen nicht.", 0.0)]}
    await bench.save("dog", texts, lang="de")
    found = await bench.search.candidates(
        bench.site, "Hunden Katze Krokodil", None, floors=ALL, content_hits=5, keyword_hits=5
    )
    assert dict(found.terms) == {"hund": 2, "katz": 1, "krokodil": 0}
    assert found.total == 3


@pytest.mark.parametrize("words", ["", "???", " "])
async def test_a_question_without_words_is_known_by_none(bench: Bench, words: str) -> None:
    await bench.save("dog", {"content": [("Hund", 0.5)]})
    found = await bench.search.candidates(
        bench.site, words, QUESTION, model="fake", floors=ALL, content_hits=5, keyword_hits=5
    )
    assert (len(found.dense), found.keyword, found.terms) == (1, [], [])


async def test_a_site_without_an_index_has_nothing(bench: Bench) -> None:
    for vector, words in ((QUESTION, 5), (QUESTION, 0), (None, 5)):
        found = await bench.search.candidates(
            bench.site, "dogs", vector, model="fake", floors=ALL, content_hits=5, keyword_hits=words
        )
        assert (found.dense, found.keyword, found.terms, found.total) == ([], [], [], 0)


async def test_chunks_are_read_by_their_place_at_once(bench: Bench) -> None:
    await bench.save("pool", {"title": [("Pool", 0.5)], "content": [("a", 0.5), ("b", 0.5), ("c", 0.5)]})
    key = page_key(bench.site, "en", "pool")
    around = await bench.search.chunks(bench.index, [(key, "content", 2), (key, "content", 0), (key, "content", 9)])
    assert [(h.text, h.cosine, h.bm25) for h in around] == [("c", None, None), ("a", None, None)]
    assert await bench.search.chunks(bench.index, []) == []


async def test_a_field_is_read_whole_and_in_order(bench: Bench) -> None:
    texts = [(f"part {n}", 0.5) for n in range(12)]
    await bench.save("pool", {"title": [("Pool", 0.5)], "content": texts})
    await bench.save("other", {"content": [("other", 0.5)]})
    whole = await bench.search.field(bench.index, page_key(bench.site, "en", "pool"), "content")
    assert [h.text for h in whole] == [text for text, _ in texts]


ROW = ChunkUnit(start=7, text="| 5 | 6 |", kind="row", headings=("Fees", "Cards"), header="| a | b |", block=2)
ITEM = ChunkUnit(start=40, text="- Adults", kind="item", intro="It costs:", block=40)


async def test_hits_bring_the_units_of_their_chunk_with_their_vectors(bench: Bench) -> None:
    await bench.save("fees", {"title": [("Fees", 0.5)], "content": [("It costs:", 0.9)]}, units=(ROW, ITEM))
    key = f"{bench.site}:en:fees"
    places: list[tuple[str, FieldName, int]] = [(key, "title", 0), (key, "content", 0)]
    title, content = await bench.search.chunks(bench.index, places)
    assert title.units == ()
    for hit in (content, *await bench.search.field(bench.index, key, "content")):
        assert hit.units == (
            HitUnit(**{**dict(ROW), "vector": QUESTION}),
            HitUnit(**{**dict(ITEM), "vector": QUESTION}),
        )
        assert [float(unit.vector @ QUESTION) for unit in hit.units] == pytest.approx([1.0, 0.9], abs=0.01)


async def test_a_filter_by_labels_holds_for_both_kinds_of_search(bench: Bench) -> None:
    for page, labels in (
        ("form", {"kind": ("form",), "department": ("tax", "pool")}),
        ("notice", {"kind": ("notice",), "department": ("tax",)}),
        ("plain", {}),
    ):
        await bench.save(page, {"title": [("Pool", 0.8)], "content": [("pool", 0.9)]}, labels=labels)

    async def found(**labels: tuple[str, ...]) -> tuple[set[str], set[str]]:
        asked = {"model": "fake", "floors": ALL, "content_hits": 5, "short_hits": 5, "keyword_hits": 5}
        both = await bench.search.candidates(bench.site, "pool", QUESTION, **asked, labels=labels)  # type: ignore[arg-type]
        return set(map(page_of, both.dense)), set(map(page_of, both.keyword))

    assert await found() == ({"form", "notice", "plain"},) * 2
    assert await found(kind=("form",)) == ({"form"},) * 2
    assert await found(kind=("form", "notice")) == ({"form", "notice"},) * 2
    assert await found(kind=("form", "notice"), department=("pool",)) == ({"form"},) * 2
    assert await found(kind=("Form",)) == (set(),) * 2
    [chunk] = await bench.search.field(bench.index, page_key(bench.site, "en", "form"), "content")
    assert chunk.labels == ("kind:form", "department:tax", "department:pool")


async def test_labels_are_counted_by_page_for_groups_that_may_read_it(bench: Bench) -> None:
    texts: dict[FieldName, list[tuple[str, float]]] = {"title": [("Pool", 0.8)], "content": [("a", 0.9), ("b", 0.9)]}
    await bench.save("one", texts, labels={"kind": ("form",)})
    await bench.save("two", texts, labels={"kind": ("form", "notice: urgent")})
    await bench.save("wages", texts, ("staff",), labels={"kind": ("form",), "board": ("secret",)})
    view = ElasticPageView(bench.elastic.es)

    async def counted(*groups: str) -> list[tuple[str, str, int]]:
        found = await view.labels(bench.site, groups)
        assert not found.more
        return [(label.key, label.value, label.pages) for label in found.labels]

    assert await counted() == [("kind", "form", 2), ("kind", "notice: urgent", 1)]
    assert await counted("staff") == [("board", "secret", 1), ("kind", "form", 3), ("kind", "notice: urgent", 1)]
    [two] = (await view.pages(bench.site, labels={"kind": ("notice: urgent",)})).pages
    assert (two.page_id, two.labels) == ("two", {"kind": ("form", "notice: urgent")})
    assert (await view.labels("t-nowhere")).labels == ()
    live = await view.live(bench.site, page_key(bench.site, "en", "two"))
    assert live is not None
    assert live.labels == two.labels


async def test_what_units_say_is_not_searched(bench: Bench) -> None:
    await bench.save("fees", {"content": [("Nothing of the kind.", 0.9)]}, units=(ITEM,))
    found = await bench.search.candidates(bench.site, "adults", None, floors=ALL, content_hits=1, keyword_hits=5)
    assert found.keyword == []


FORMS = {"kind": ("form",)}


async def forms(bench: Bench) -> set[str]:
    """Pages of this kind, by vector and by keywords."""
    found = await bench.search.candidates(
        bench.site, "costs", QUESTION, model="fake", floors=ALL, content_hits=5, keyword_hits=5, labels=FORMS
    )
    assert set(map(page_of, found.dense)) == set(map(page_of, found.keyword))
    return set(map(page_of, found.dense))


@pytest.mark.parametrize("bench", ["own"], indirect=True)  # shared ones came after units
async def test_an_index_made_before_there_were_units_gives_none_and_takes_them(bench: Bench) -> None:
    before = {
        name: how for name, how in added_mapping().items() if name not in ("path", "folded_title")
    }  # which every page brings
    site_mapping = mapping("001_site.json")["mappings"]["properties"]
    for name in before:
        del site_mapping[name]  # as an older version had it
    try:
        with patch.object(indexes, "ADDED", ()):
            await bench.save("old", {"content": [("It costs:", 0.9)]})
    finally:
        site_mapping |= before
    [old] = await bench.search.field(bench.index, f"{bench.site}:en:old", "content")
    assert old.units == ()
    assert await forms(bench) == set()
    assert (await ElasticPageView(bench.elastic.es).labels(bench.site)).labels == ()
    assert not (await bench.elastic.indexes.now(bench.site)).mapped  # type: ignore[union-attr]
    texts: dict[FieldName, list[tuple[str, float]]] = {"content": [("It costs:", 0.9)]}
    await bench.save("new", texts, units=(ROW,), reading=Reading(reader=READER), labels=FORMS)
    assert await forms(bench) == {"new"}
    [status] = await bench.elastic.site_statuses([bench.site])
    assert (status.pages, status.outdated) == (2, 1)
    [new] = await bench.search.field(bench.index, f"{bench.site}:en:new", "content")
    assert [unit.text for unit in new.units] == [ROW.text]
    assert (await bench.elastic.indexes.now(bench.site)).mapped  # type: ignore[union-attr]


async def test_pages_that_another_version_has_read_are_counted(bench: Bench) -> None:
    for page, reader in (("now", READER), ("once", "0"), ("soon", "next"), ("unknown", None)):
        await bench.save(page, {}, reading=Reading(reader=reader) if reader else None)
    [status] = await bench.elastic.site_statuses([bench.site])
    assert (status.pages, status.outdated) == (4, 3)


@pytest.fixture
async def sharded(engine: Servers) -> AsyncIterator[Bench]:
    """A site whose index has several shards."""
    async with Elastic(engine.elasticsearch, Settings(sites={"town": SiteSettings()}, shards=5)) as elastic:
        made = Bench(elastic)
        yield made
        await elastic.es.indices.delete(index=f"{alias(made.site)}-000001", ignore_unavailable=True)


async def test_words_count_by_the_whole_index_however_many_shards_it_has(sharded: Bench) -> None:
    """A shard asked alone knows its own pages: its counts are others than its neighbours'."""
    for number in range(12):
        text = "A crocodile in the pool." if number < 3 else "The pool is open."
        await sharded.save(f"page{number}", {"content": [(text, 0.5)]})
    gone = chunk_id(page_key(sharded.site, "en", "page0"), "content", 0)  # what was deleted does not count
    await sharded.elastic.es.delete(index=sharded.index, id=gone, refresh=True)
    for _ in range(8):
        found = await sharded.search.candidates(
            sharded.site, "pool crocodile zebra", None, floors=ALL, content_hits=1, keyword_hits=20
        )
        assert dict(found.terms) == {"pool": 11, "crocodil": 2, "zebra": 0}
        assert found.total == 11
        best = {page_of(hit): hit.bm25 for hit in found.keyword}
        assert set(list(best)[:2]) == {"page1", "page2"}
        assert best["page1"] == best["page2"]


async def test_a_page_is_read_as_it_stands_in_the_index_by_those_who_may(bench: Bench) -> None:
    view = ElasticPageView(bench.elastic.es)
    pool, secret, nobody = (page_key(bench.site, "en", each) for each in ("pool", "secret", "nobody"))
    assert await view.page(bench.site, pool) == IndexedPage(chunks=(), total=0)  # before there is an index
    await bench.save("pool", {"content": [("Open daily.", 0.9), ("Closed on Monday.", 0.8)], "name": [("pool", 0.6)]})
    await bench.save("secret", {"content": [("dogs", 0.95)]}, groups=("staff",))
    await bench.save("nobody", {"content": [("cats", 0.95)]}, groups=())
    found = await view.page(bench.site, pool)
    assert [(chunk.field, chunk.ord, chunk.text) for chunk in found.chunks] == [
        ("name", 0, "pool"),
        ("content", 0, "Open daily."),
        ("content", 1, "Closed on Monday."),
    ]
    assert (found.chunks[0].url, found.total, found.hidden) == ("/pool", 3, 0)
    assert [chunk.text for chunk in (await view.page(bench.site, secret, ("staff",))).chunks] == ["dogs"]
    for key in (secret, nobody):
        assert await view.page(bench.site, key, ("board",)) == IndexedPage(chunks=(), total=1, hidden=1)


async def test_a_whole_page_is_read_of_one_change_or_not_at_all(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_view, "BATCH", 2)
    monkeypatch.setattr(page_view, "PAUSE", 0)
    view = ElasticPageView(bench.elastic.es)
    pool, secret = (page_key(bench.site, "en", each) for each in ("pool", "secret"))
    assert await view.live(bench.site, pool) is None  # before there is an index
    cores = [(f"{n} ", 0.5) for n in range(12)]
    await bench.save(
        "pool", {"content": cores, "description": [("Swim.", 0.5)], "title": [("Pool", 0.5)]}, title="Pool"
    )
    await bench.save("secret", {"content": [("dogs", 0.95)]}, groups=("staff",))
    found = await view.live(bench.site, pool)
    assert found is not None
    assert (found.title, found.url, found.revision, found.indexed_at) == ("Pool", "/pool", 1, NOON)
    assert found.fields == {"title": "Pool", "description": "Swim."}
    assert [section.text for section in found.sections] == ["".join(text for text, _ in cores)]
    assert await view.live(bench.site, secret) is None
    assert await view.live(bench.site, secret, ("staff",)) is not None
    lost = {"index": bench.index, "id": chunk_id(pool, "content", 11)}
    await bench.elastic.es.update(**lost, doc={"revision": 2}, refresh=True)  # a refresh shows half of a write
    with pytest.raises(PageChanging):
        await view.live(bench.site, pool)
    await bench.elastic.es.delete(**lost, refresh=True)
    with pytest.raises(PageChanging):
        await view.live(bench.site, pool)


async def test_pages_are_listed_and_found_by_their_address_by_those_who_may(bench: Bench) -> None:
    view = ElasticPageView(bench.elastic.es)
    assert (await view.pages(bench.site)).pages == ()  # before there is an index
    await bench.save("pool", {"content": [("Open daily.", 0.9), ("Closed on Monday.", 0.8)], "name": [("pool", 0.6)]})
    await bench.save("sauna", {"content": [("Hot.", 0.9)]})
    await bench.save("secret", {"content": [("dogs", 0.95)]}, groups=("staff",))
    first = await view.pages(bench.site, limit=1)
    rest = await view.pages(bench.site, after=first.next or "", limit=1)
    assert [page.page_id for page in (*first.pages, *rest.pages)] == ["pool", "sauna"]
    assert rest.next is None
    assert [page.page_id for page in (await view.pages(bench.site, groups=["staff"])).pages][-1] == "secret"
    assert [page.page_id for page in await view.at(bench.site, "https://www.town.example/pool/")] == ["pool"]
    assert await view.at(bench.site, "/secret") == []
    assert [page.page_id for page in await view.at(bench.site, "/secret", groups=None)] == ["secret"]
    old = {"index": bench.index, "id": chunk_id(page_key(bench.site, "en", "sauna"), "content", 0)}
    await bench.elastic.es.update(**old, doc={"path": None}, refresh=True)  # as an earlier version wrote it
    assert [page.page_id for page in await view.at(bench.site, "/sauna")] == ["sauna"]
    asked = ("pool", "secret", "gone")
    assert await view.readable(bench.site, asked, ("board",)) == {("pool", "en")}
    assert await view.readable(bench.site, asked, ("staff",)) == {("pool", "en"), ("secret", "en")}


async def test_one_page_is_read_in_all_its_languages_by_those_who_may(bench: Bench) -> None:
    assert await bench.search.page(bench.site, "pool") == []  # there is no index yet
    await bench.save("pool", {"title": [("Pool", 0.5)], "content": [("Open ", 0.95), ("daily.", 0.9)]})
    await bench.save("pool", {"content": [("Täglich.", 0.9)]}, lang="de")
    await bench.save("secret", {"content": [("dogs", 0.95)]}, groups=("staff",))
    await bench.save("nobody", {"content": [("cats", 0.95)]}, groups=())
    read = [(hit.lang, hit.field, hit.text) for hit in await bench.search.page(bench.site, "pool")]
    assert read == [
        ("de", "content", "Täglich."),
        ("en", "content", "Open "),
        ("en", "content", "daily."),
        ("en", "title", "Pool"),
    ]
    for page, groups, found in (("secret", (), 0), ("secret", ("staff",), 1), ("nobody", ("staff",), 0)):
        assert len(await bench.search.page(bench.site, page, groups=groups)) == found
