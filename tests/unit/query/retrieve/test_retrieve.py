"""Retrieve and search: the right searches are made, and revisions are never mixed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipelines.query.extractive.confidence import FINE, NOTHING, UNCLEAR
from pipelines.query.extractive.follow_ups import signs
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.ports import (
    Calibration,
    Candidates,
    Floors,
    Hit,
    HitUnit,
    LabelledIndex,
    QueryModelOutdated,
    SurenessProfile,
)
from pipelines.query.search.search import DEPTH, Searcher, in_language, language_by_words, preferred
from pipelines.query.search.widen import passages
from pipelines.runtime.errors import UnknownSite
from schemas.flow import Retriever
from schemas.page import FieldName
from schemas.query import Earlier, Rephrased, Retrieved, Signs, Trial, Tuned
from tests.asking import question
from tests.fakes.embedder import FakeEmbedder
from text.words import stems
from wiring.settings import Settings, SiteSettings

SETTINGS = Settings(sites={"town": SiteSettings()}, hits=3, neighbours=1)
PAGE = "town:en:pool"


LIVE = "pagewire-town-000002"


def hit(ord: int, text: str, field: FieldName = "content", revision: int = 5, page: str = "pool", **scores: Any) -> Hit:
    return Hit(
        page_key=f"town:en:{page}",
        page_id=page,
        lang="en",
        title="Pool",
        url="/pool",
        field=field,
        ord=ord,
        text=text,
        revision=revision,
        index=LIVE,
        **scores,
    )


class FakeIndex:
    """Finds what it is told to; remembers how it was asked."""

    def __init__(self, dense: Sequence[Hit] = (), keyword: Sequence[Hit] = (), around: Sequence[Hit] = ()) -> None:
        self._found = Candidates(list(dense), list(keyword), [("pool", 1)], 10)
        self.there = {h.place: h for h in (*around, *dense, *keyword)}
        self.searches: list[dict[str, Any]] = []
        self.wanted: list[Sequence[tuple[str, FieldName, int]]] = []
        self.fields: list[tuple[str, FieldName]] = []
        self.moves = 0  # promotions between a look at the index and the search
        self.gone = 0  # promotions between the search and the reading of what it found

    async def candidates(self, site: str, text: str, vector: Any, **how: Any) -> Candidates:
        if self.moves:
            self.moves -= 1
            raise QueryModelOutdated("another index is live")
        self.searches.append({"site": site, "text": text, "vector": vector, **how})
        dense = self._found.dense if vector is not None else []
        keyword = self._found.keyword if how["keyword_hits"] else []
        return Candidates(dense, keyword, self._found.terms, self._found.total)

    async def chunks(self, index: str, addresses: Sequence[tuple[str, FieldName, int]]) -> list[Hit]:
        assert index == LIVE
        if self.gone:
            self.gone -= 1
            raise QueryModelOutdated("the index is gone")
        self.wanted.append(addresses)
        return [self.there[address] for address in addresses if address in self.there]

    async def field(self, index: str, page_key: str, field: FieldName) -> list[Hit]:
        assert index == LIVE
        self.fields.append((page_key, field))
        return [h for key, h in sorted(self.there.items()) if key[:2] == (page_key, field)]


class Models:
    model = FakeEmbedder()

    async def for_site(self, site: str) -> FakeEmbedder:
        return self.model


def searcher(index: FakeIndex) -> Searcher:
    return Searcher(index, Models(), SETTINGS)  # type: ignore[arg-type]


def asked(mode: Any = "semantic", groups: tuple[str, ...] = ()) -> Rephrased:
    request = question().model_copy(update={"groups": groups})
    return Rephrased(request=request, question="Is the pool open?", mode=mode, timings_ms={"rephrase": 2.0})


async def found(index: FakeIndex, mode: Any = "semantic", groups: Iterable[str] = ()) -> Retrieved:
    return await retrieve(asked(mode, tuple(groups)), searcher(index), index, SETTINGS)


async def test_a_question_with_labels_reads_pages_that_have_them_alone() -> None:
    form, notice = (
        hit(0, "Open daily.", page=page, cosine=0.8, labels=(f"kind:{page}",)) for page in ("form", "notice")
    )
    index = FakeIndex([form], [form], [notice])
    request = question().model_copy(update={"labels": {"kind": ("form",)}})
    signs = Signs(leans=True, opens=True, refers=True, named=0)
    earlier = Earlier(question="When is it open?", pages=(notice.page_key,), signs=signs)
    further = Rephrased(request=request, question="And then?", mode="semantic", earlier=earlier)
    retrieved = await retrieve(further, searcher(index), index, SETTINGS)
    assert {source.page_id for source in retrieved.sources} == {"form"}
    assert {repr(search["labels"]) for search in index.searches} == {repr({"kind": ("form",)})}
    assert len(index.searches) == 2
    within = LabelledIndex(index, request.labels)  # type: ignore[arg-type]
    assert await within.chunks(LIVE, [form.place, notice.place]) == [form]
    assert await within.field(LIVE, form.page_key, "content") == [form]
    assert await within.field(LIVE, notice.page_key, "content") == []


async def test_a_hit_is_widened_by_its_neighbours() -> None:
    index = FakeIndex([hit(1, "Open daily. ", cosine=0.8)], [], [hit(0, "The pool. "), hit(2, "Closed on Monday.")])
    retrieved = await found(index)
    [source] = retrieved.sources
    assert source.text == "The pool. Open daily. Closed on Monday."
    assert (retrieved.grade, retrieved.mode, retrieved.question) == (FINE, "semantic", "Is the pool open?")
    assert retrieved.request == question()
    assert list(retrieved.timings_ms) == ["rephrase", "search", "evidence", "gate", "widen"]


@pytest.mark.parametrize(("guessed", "lang"), [(True, "en"), (False, "de")])
async def test_our_words_follow_what_is_found_where_the_language_was_guessed(guessed: bool, lang: str) -> None:
    index = FakeIndex([hit(1, "Open daily. ", cosine=0.8)])
    request = question().model_copy(update={"lang": "de", "guessed": guessed})
    rephrased = asked().model_copy(update={"request": request})
    retrieved = await retrieve(rephrased, searcher(index), index, SETTINGS)
    assert retrieved.request.lang == lang


async def test_a_guess_stays_where_nothing_is_found() -> None:
    request = question().model_copy(update={"lang": "de", "guessed": True})
    index = FakeIndex()
    retrieved = await retrieve(asked().model_copy(update={"request": request}), searcher(index), index, SETTINGS)
    assert retrieved.request.lang == "de"


async def tried(index: FakeIndex, **trial: Any) -> Retrieved:
    rephrased = asked()
    request = rephrased.request.model_copy(update={"trial": Trial.model_validate(trial)})
    return await retrieve(rephrased.model_copy(update={"request": request}), searcher(index), index, SETTINGS)


async def test_a_trial_says_of_how_many_hits_sources_are_made_and_sees_all_pages_that_were_found() -> None:
    pages = ("pool", "bath", "lake", "spa", "pond")
    hits = [hit(0, "Open daily.", page=page, cosine=0.9 - n / 10, score=0.9 - n / 10) for n, page in enumerate(pages)]
    for trial, sources in (({}, 3), ({"hits": 1}, 1), ({"hits": 4}, 4)):
        found_so = await tried(FakeIndex(hits), **trial)
        assert [source.page_id for source in found_so.sources] == list(pages[:sources])
        assert [page.page_id for page in found_so.found] == list(pages)
    assert (await found(FakeIndex(hits))).found == ()  # nobody wants to know


async def test_what_was_made_live_counts_where_nobody_tries_out() -> None:
    hits = [hit(0, "Open daily.", page=f"p{n}", cosine=0.9 - n / 10, score=0.9 - n / 10) for n in range(5)]
    request = question().model_copy(update={"tuned": Tuned(hits=1)})
    index = FakeIndex(hits)
    told = await retrieve(asked().model_copy(update={"request": request}), searcher(index), index, SETTINGS)
    assert ([source.page_id for source in told.sources], told.found) == (["p0"], ())


async def test_a_trial_says_how_sure_is_sure_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    half = Calibration(0.0, {})  # a chance of .5, whatever was found
    profile = replace(Models.model.profile, sureness=SurenessProfile(half, half, least_unit=0.4, least_page=0.4))
    monkeypatch.setattr(FakeEmbedder, "profile", profile)
    unit = HitUnit(start=0, text="Open daily.", kind="prose", vector=await Models.model.query("Is the pool open?"))
    index = FakeIndex([hit(0, "Open daily.", cosine=0.9, score=0.9, units=(unit,))])
    for trial, of, answered in (({}, "unit", True), ({"sure_threshold": 0.6}, "nothing", False)):
        told = await tried(index, **trial)
        assert told.sure is not None
        assert (told.sure.of, told.grade < UNCLEAR) == (of, answered)
        live = question().model_copy(update={"tuned": Tuned.model_validate(trial)})
        told = await retrieve(asked().model_copy(update={"request": live}), searcher(index), index, SETTINGS)
        assert told.sure is not None
        assert (told.sure.of, told.grade < UNCLEAR) == (of, answered)


async def test_what_was_searched_by_is_handed_on_for_the_log_alone() -> None:
    index = FakeIndex([hit(1, "Open daily. ", cosine=0.8)], [], [])
    rephrased = asked()
    logged = rephrased.model_copy(update={"request": question().model_copy(update={"logged_as": "hash"})})
    kept = (await retrieve(logged, searcher(index), index, SETTINGS)).vector
    assert kept is not None
    assert kept.model == Models.model.fingerprint
    assert float(kept.vector @ await Models.model.query(rephrased.question)) > 0.999
    assert (await retrieve(rephrased, searcher(index), index, SETTINGS)).vector is None


TWO = "What does a ticket cost, and where do I get a towel?"
SEATS = "| Ticket | Euros |\n| --- | --- |\n| Day | 4 |\n| Year | 90 |"


async def in_parts(*, writes: bool = False, question_asked: str = TWO) -> Retrieved:
    """Of a page that has a table and a sentence."""
    model = Models.model
    rows = [("| Year | 90 |", "a ticket cost: Year 90"), ("A towel is at the desk.", "get a towel at the desk")]
    units = [
        HitUnit(start=n, text=text, kind="row" if n == 0 else "prose", block=n, vector=await model.query(sense))
        for n, (text, sense) in enumerate(rows)
    ]
    index = FakeIndex([hit(0, f"{SEATS}\n\n{rows[1][0]}", cosine=0.8, score=0.5, units=tuple(units))])
    request = question().model_copy(update={"question": question_asked})
    rephrased = Rephrased(request=request, question=TWO, mode="semantic")
    return await retrieve(rephrased, searcher(index), index, SETTINGS, writes=writes)


async def test_a_question_that_asks_two_things_is_handed_on_by_part_and_rows_with_their_table() -> None:
    retrieved = await in_parts()
    assert [(part.question, part.evidence[0].text) for part in retrieved.parts] == [
        ("What does a ticket cost", "| Year | 90 |"),
        ("where do I get a towel", "A towel is at the desk."),
    ]
    assert [(table.sources, table.text) for table in retrieved.tables] == [((1,), SEATS)]


async def test_a_price_that_no_unit_of_the_page_has_is_not_found_without_a_model() -> None:
    unit = HitUnit(start=0, text="Open daily.", kind="prose", vector=await Models.model.query("Open daily."))
    index = FakeIndex([hit(0, "Open daily.", cosine=0.9, score=0.9, units=(unit,))])
    for text, writes, answered in (("Cost?", False, False), ("Cost?", True, True), ("Open?", False, True)):
        request = question().model_copy(update={"question": text})
        told = await retrieve(
            asked().model_copy(update={"request": request}), searcher(index), index, SETTINGS, writes=writes
        )
        assert (told.grade < UNCLEAR) is answered


async def test_a_question_together_with_those_before_it_and_one_that_a_model_answers_have_no_parts() -> None:
    assert (await in_parts(question_asked="and where do I get a towel?")).parts == ()
    retrieved = await in_parts(writes=True)
    assert (retrieved.parts, retrieved.tables) == ((), ())


async def test_a_question_is_searched_by_the_sites_words_for_what_it_names_too() -> None:
    town = SiteSettings(glossary={"Lido": {"en": ("lido", "pool")}})
    settings = SETTINGS.model_copy(update={"sites": {"town": town}})
    index = FakeIndex([hit(0, "The lido.", cosine=0.8)])
    retrieved = await retrieve(asked(), Searcher(index, Models(), settings), index, settings)  # type: ignore[arg-type]
    assert index.searches[0]["text"] == "Is the pool open? Lido"
    assert retrieved.question == "Is the pool open?"


@pytest.mark.parametrize(
    ("there", "searched"),
    [
        ("wifi", ["Is wifi open?"]),
        ("wifi", ["Is bib open?", "Is bib open? Bibliothek Bücherei"]),
        ("wlan", ["Is wifi open?", "Is wifi open? WLAN"]),
        ("bücherei", ["Is bib open?", "Is bib open? Bibliothek Bücherei", "Is bib open? Bücherei"]),
    ],
)
async def test_a_short_name_that_no_page_has_is_searched_by_its_whole_name(there: str, searched: list[str]) -> None:
    class Index(FakeIndex):
        async def candidates(self, site: str, text: str, vector: Any, **how: Any) -> Candidates:
            made = await super().candidates(site, text, vector, **how)
            return replace(made, terms=[(stem, 1) for stem in stems(there, "en") if there in text.lower()])

    index = Index([hit(0, "Open daily.", cosine=0.8)])
    wanted = asked().model_copy(update={"question": searched[0].replace(" open", " actually open")})
    await retrieve(wanted, searcher(index), index, SETTINGS)
    assert [search["text"] for search in index.searches] == searched


@pytest.mark.parametrize(
    ("page", "searched"),
    [
        ("The library.", ["A libary towwel?", "A library towel?", "A library towwel?"]),
        ("The pool.", ["Is the libary open?", "Is the library open?"]),  # the library is for others
        ("The library.", ["Ist die libary offen?"]),  # no page is in German
    ],
)
async def test_a_misspelled_word_is_searched_as_pages_that_the_visitor_may_see_spell_it(
    page: str, searched: list[str]
) -> None:
    class Index(FakeIndex):
        async def candidates(self, site: str, text: str, vector: Any, **how: Any) -> Candidates:
            made = await super().candidates(site, text, vector, **how)
            similar = {"libary": ["library"], "towwel": ["towel"]}
            return replace(made, similar={word: near for word, near in similar.items() if word in text})

    index = Index([hit(0, page, cosine=0.8)])
    retrieved = await retrieve(asked().model_copy(update={"question": searched[0]}), searcher(index), index, SETTINGS)
    assert [search["text"] for search in index.searches] == searched
    assert retrieved.question == searched[0]


async def test_a_glossary_that_was_changed_goes_before_the_setting() -> None:
    town = SiteSettings(glossary={"Lido": {"en": ("lido", "pool")}})
    settings = SETTINGS.model_copy(update={"sites": {"town": town}})
    index = FakeIndex([hit(0, "The lido.", cosine=0.8)])
    for glossary, searched in (({"Baths": {"en": "pool"}}, "Is the pool open? Baths"), ({}, "Is the pool open?")):
        searcher = Searcher(index, Models(), settings)  # type: ignore[arg-type]
        await retrieve(asked(), searcher, index, settings, glossary=glossary)
        assert index.searches[-1]["text"] == searched


async def test_only_what_fits_is_read_and_the_rest_when_there_is_room_for_it() -> None:
    long = [hit(n, f"Part {n}. " + "x" * 480) for n in range(5)]
    for budget, reads in ((1_200, 1), (6_000, 2)):
        # What a site may read goes before what all sites may.
        sites = {"town": SiteSettings(context_chars=budget)}
        settings = SETTINGS.model_copy(update={"sites": sites, "neighbours": 2, "chunk_size": 500})
        index = FakeIndex([replace(long[2], cosine=0.8)], [], long)
        retrieved = await retrieve(asked(), Searcher(index, Models(), settings), index, settings)  # type: ignore[arg-type]
        every = passages([replace(long[2], score=retrieved.sources[0].score)], long, budget)
        assert [source.text for source in retrieved.sources] == [source.text for source in every]
        assert len(index.wanted) == reads


async def test_no_neighbour_is_read_twice_whether_it_exists_or_not() -> None:
    index = FakeIndex([hit(0, "Open daily.", cosine=0.8), hit(7, "Closed.", cosine=0.7)], [], [hit(6, "Winter.")])
    settings = SETTINGS.model_copy(update={"neighbours": 2})
    sources = (await retrieve(asked(), Searcher(index, Models(), settings), index, settings)).sources  # type: ignore[arg-type]
    places = [place for read in index.wanted for place in read]
    assert sorted(places) == [(PAGE, "content", ord_) for ord_ in (0, 1, 2, 5, 6, 7, 8, 9)]
    assert "Winter." in sources[1].text


async def test_a_hit_that_is_gone_when_it_is_read_is_left_out() -> None:
    index = FakeIndex([hit(0, "Open daily.", cosine=0.8), hit(7, "Gone.", cosine=0.7)])
    del index.there[(PAGE, "content", 7)]
    [source] = (await found(index)).sources
    assert source.text == "Open daily."


async def test_neighbours_of_another_revision_are_left_out() -> None:
    """They are read in real time, hits are not: a save in between must not be mixed in."""
    around = [hit(0, "Newer. ", revision=6), hit(2, "Older.", revision=4)]
    [source] = (await found(FakeIndex([hit(1, "Open daily.", cosine=0.8)], [], around))).sources
    assert (source.text, source.revision) == ("Open daily.", 5)


async def test_a_question_is_searched_both_ways_with_the_floors_of_its_model_and_the_visitors_groups() -> None:
    index = FakeIndex([hit(0, "Open.", cosine=0.8)])
    await found(index, groups=["staff"])
    [how] = index.searches
    assert (how["site"], how["text"], list(how["groups"])) == ("town", "Is the pool open?", ["staff"])
    assert (how["floors"], how["model"]) == (Floors(0.3, 0.1), "fake-1-64")
    assert (how["content_hits"], how["keyword_hits"]) == (DEPTH, DEPTH)
    assert Models.model.asked[-1] == "Is the pool open?"


async def test_a_short_question_is_looked_up_by_its_words_and_reads_whole_fields() -> None:
    text = [hit(n, f"Part {n}. ") for n in range(5)]
    index = FakeIndex([hit(9, "never", cosine=0.9)], [hit(3, "Part 3. ", bm25=7.0)], text)
    retrieved = await found(index, "keyword")
    assert [s.text for s in retrieved.sources] == ["Part 0. Part 1. Part 2. Part 3. Part 4."]
    assert index.fields == [(PAGE, "content")]
    [how] = index.searches
    assert how["vector"] is not None  # for its evidence, and for words that the index has not got
    assert how["keyword_hits"] == DEPTH


async def test_a_short_question_whose_words_no_page_has_is_looked_up_by_its_meaning() -> None:
    [source] = (await found(FakeIndex([hit(9, "Swimming.", cosine=0.9)]), "keyword")).sources
    assert source.text == "Swimming."


async def test_a_field_with_several_hits_is_read_once() -> None:
    text = [hit(n, f"Part {n}. ", bm25=5.0 - n) for n in range(2)]
    index = FakeIndex([], [*text, hit(0, "Pool", "title", bm25=1.0)], text)
    await found(index, "keyword")
    assert index.fields == [(PAGE, "content"), (PAGE, "title")]


async def test_nothing_is_searched_for_a_courtesy() -> None:
    index = FakeIndex(dense=[hit(1, "Open daily.")])
    said = asked("courtesy").model_copy(update={"courtesy": "greeting"})
    made = await retrieve(said, None, index, SETTINGS)  # type: ignore[arg-type]
    assert (made.grade, made.sources, made.courtesy, made.mode) == (FINE, (), "greeting", "courtesy")


async def test_nothing_found_is_graded_so() -> None:
    retrieved = await found(FakeIndex())
    assert (retrieved.sources, retrieved.grade) == ((), NOTHING)


@pytest.mark.parametrize(("kind", "embeds", "words"), [("hybrid", 1, DEPTH), ("vector", 1, 0), ("keyword", 0, DEPTH)])
async def test_a_search_asks_for_what_its_kind_needs(kind: Any, embeds: int, words: int) -> None:
    index = FakeIndex([hit(0, "a", cosine=0.8)], [hit(1, "b", bm25=3.0)])
    before = len(Models.model.asked)
    hits = await searcher(index).search("town", "pool", kind=kind, size=10)
    assert len(Models.model.asked) - before == embeds
    assert index.searches[0]["keyword_hits"] == words
    assert {h.text for h in hits} == {"hybrid": {"a", "b"}, "vector": {"a"}, "keyword": {"b"}}[kind]


async def test_a_search_gives_at_most_its_size_best_first() -> None:
    index = FakeIndex([hit(n, str(n), cosine=0.9 - n / 10) for n in range(5)])
    hits = await searcher(index).search("town", "pool", kind="vector", size=3)
    assert [h.text for h in hits] == ["0", "1", "2"]
    assert hits[0].cosine == 0.9
    assert hits[0].score > hits[1].score > hits[2].score


async def test_more_hits_than_the_usual_depth_are_searched_for() -> None:
    index = FakeIndex()
    await searcher(index).search("town", "pool", kind="hybrid", size=DEPTH + 20)
    assert (index.searches[0]["content_hits"], index.searches[0]["keyword_hits"]) == (DEPTH + 20, DEPTH + 20)


async def test_a_promotion_in_between_costs_a_second_look_with_the_right_model() -> None:
    index = FakeIndex([hit(0, "a", cosine=0.8)])
    index.moves = 1
    models = [FakeEmbedder(version="1"), FakeEmbedder(version="2")]

    class Promoted:
        async def for_site(self, site: str) -> FakeEmbedder:
            return models[1 - index.moves]

    assert await Searcher(index, Promoted(), SETTINGS).search("town", "pool", kind="hybrid", size=3)  # type: ignore[arg-type]
    assert [each.asked for each in models] == [["pool"], ["pool"]]


async def test_an_index_that_goes_before_its_hits_are_read_costs_a_second_look() -> None:
    index = FakeIndex([hit(0, "a", cosine=0.8)])
    index.gone = 1
    assert await searcher(index).search("town", "pool", kind="hybrid", size=3)
    index.gone = 1
    found = await searcher(index).nearest("town", "pool", SETTINGS.flow_of("town"))
    assert [each.text for each in found.hits] == ["a"]


async def test_promotions_without_end_are_told() -> None:
    index = FakeIndex([hit(0, "a", cosine=0.8)])
    index.moves = 9
    with pytest.raises(QueryModelOutdated):
        await searcher(index).search("town", "pool", kind="hybrid", size=3)
    assert index.moves == 7


async def test_an_unknown_site_is_not_searched() -> None:
    index = FakeIndex()
    with pytest.raises(UnknownSite):
        await searcher(index).search("village", "pool", kind="hybrid", size=3)
    assert index.searches == []


def in_languages(*found: tuple[str, str, float], raises: bool = False) -> list[tuple[str, str]]:
    """Page and language of hits, best first, for a visitor who reads English."""
    hits = [replace(hit(0, "x", page=page, score=score), page_key=f"town:{lang}:{page}") for page, lang, score in found]
    kept = [each.page_key.split(":") for each in in_language(hits, "en", raises=raises)]
    return [(page, lang) for _, lang, page in kept]


def test_translations_of_a_page_that_was_found_in_the_visitors_language_are_left_out() -> None:
    assert in_languages(("pool", "de", 0.9), ("pool", "en", 0.5)) == [("pool", "en")]


@pytest.mark.parametrize(("by_words", "kept"), [(True, ["de", "en"]), (False, ["en"])])
def test_words_are_looked_for_in_the_translation_that_has_them(by_words: bool, kept: list[str]) -> None:
    # The German page says "pool"; the English one, which says "swimming", is found by its meaning.
    german = replace(hit(0, "x", score=0.5, bm25=3.0), page_key="town:de:pool")
    found = in_language([hit(0, "y", score=0.4), german], "en", by_words=by_words)
    assert sorted(each.page_key.split(":")[1] for each in found) == kept


def test_a_page_in_another_language_must_fit_much_better() -> None:
    assert in_languages(("a", "de", 0.6), ("b", "en", 0.55)) == [("b", "en"), ("a", "de")]
    assert in_languages(("a", "de", 0.9), ("b", "en", 0.55)) == [("a", "de"), ("b", "en")]


def test_a_page_without_a_translation_is_raised_for_a_question_that_could_not_be_nearer_to_it() -> None:
    council, pool = ("council", "de", 0.5), ("pool", "en", 0.6)
    assert in_languages(council, pool, raises=True) == [("council", "de"), ("pool", "en")]
    assert in_languages(council, pool, raises=False) == [("pool", "en"), ("council", "de")]
    # A page is not raised over its own translation, and one that fits badly not over one that fits well.
    assert in_languages(("pool", "de", 0.9), pool, raises=True) == [("pool", "en")]
    assert in_languages(("council", "de", 0.2), pool, raises=True) == [("pool", "en"), ("council", "de")]


async def test_an_untranslated_page_is_known_as_such_by_the_units_ranking() -> None:
    settings = Settings(sites={"town": SiteSettings(languages=("en", "de"))})
    german = replace(hit(0, "Sitzung", page="council", cosine=0.8), page_key="town:de:council", lang="de")
    index = FakeIndex([hit(0, "Swimming", cosine=0.8), german])
    asked = {"When is the next meeting of the council?": True, "council": False, "Où est la mairie ?": False}
    for text, untranslated in asked.items():
        found = await Searcher(index, Models(), settings).find("town", text, kind="hybrid", size=5, lang="en")  # type: ignore[arg-type]
        assert {each.page_id: each.untranslated for each in found.hits} == {"pool": False, "council": untranslated}


@pytest.mark.parametrize(
    ("text", "german", "lang"),
    [
        ("guitar rental", 0.0, "en"),  # nobody can tell the language of two words, but whose pages have them
        ("guitar rental", 3.0, "en"),
        ("sauna", 8.0, "de"),  # words of both: the visitor's own
        ("Was ist das für eine Gebühr, guitar rental?", 0.0, "de"),  # asked in German
    ],
)
def test_a_question_of_no_language_is_in_the_one_whose_pages_know_its_words(
    text: str, german: float, lang: str
) -> None:
    pages = (("de", german), ("en", 9.0), ("en", 2.0))
    found = [replace(hit(n, "x", bm25=bm25), page_key=f"town:{own}:{n}") for n, (own, bm25) in enumerate(pages)]
    assert language_by_words(text, "de", found) == lang
    assert language_by_words(text, "de", ()) == "de"


def test_a_guessed_language_gives_way_to_the_one_whose_pages_know_the_words_better() -> None:
    for german, lang in ((7.0, "en"), (8.5, "de")):
        found = [replace(hit(n, "x", bm25=bm25), page_key=f"town:{own}:{n}") for n, own, bm25 in (
            (0, "de", german), (1, "en", 10.0))]  # fmt: skip
        # "bin" is a German stop word: where the language is known, it decides.
        assert language_by_words("bin day", "de", found, guessed=True) == lang
        assert language_by_words("bin day", "de", found) == "de"


async def test_a_word_of_another_language_finds_the_page_that_has_it_and_not_its_translation() -> None:
    settings = Settings(sites={"town": SiteSettings(languages=("en", "de"))})
    german = replace(hit(0, "Becken", cosine=0.8, bm25=3.0), page_key="town:de:pool", lang="de")
    other = hit(0, "Becken", page="washbasins", bm25=2.0)
    index = FakeIndex([hit(0, "Swimming", cosine=0.8)], [german, other])
    request = question().model_copy(update={"lang": "en"})
    rephrased = Rephrased(request=request, question="Becken", mode="keyword", timings_ms={})
    retrieved = await retrieve(rephrased, Searcher(index, Models(), settings), index, settings)  # type: ignore[arg-type]
    assert {(source.page_id, source.lang) for source in retrieved.sources} == {("pool", "de"), ("washbasins", "en")}


@pytest.mark.parametrize("stray", [0, 2])
async def test_what_a_slower_writer_left_of_an_older_revision_is_not_found(stray: int) -> None:
    """A bulk import and a save at one moment: chunks of the one that loses stand beside the other's for a moment."""
    hits = [hit(n, f"Part {n}.", cosine=0.8, revision=4 if n == stray else 5) for n in range(3)]
    chosen = await searcher(FakeIndex(hits)).hits("town", "pool", kind="vector", size=3)
    assert sorted(each.ord for each in chosen) == [n for n in range(3) if n != stray]


@pytest.mark.parametrize(
    ("lang", "own"), [("en", "en"), ("en-US", "en-GB"), ("de", "de-AT"), ("de-AT", "de-AT"), ("uk", "de-AT")]
)
def test_a_language_that_the_site_has_not_is_its_first(lang: str, own: str) -> None:
    assert preferred(lang, ("de-AT", "en-GB", "en") if lang == "en" else ("de-AT", "en-GB")) == own


@pytest.mark.parametrize(
    ("text", "own"),
    [("What does a library card cost for adults?", "en"), ("Що коштує квиток?", "de"), ("wifi", "de"), ("", "de")],
)
def test_nor_is_it_where_the_question_is_in_another_of_the_site(text: str, own: str) -> None:
    assert preferred("uk", ("de", "en"), text) == own


async def test_translations_are_no_rivals_where_the_site_has_not_the_visitors_language() -> None:
    settings = Settings(sites={"town": SiteSettings(languages=("en", "de"))})
    german = replace(hit(0, "Offen.", cosine=0.81), page_key="town:de:pool", lang="de", url="/de/pool")
    index = FakeIndex([german, hit(0, "Open.", cosine=0.8)])
    request = question().model_copy(update={"lang": "uk"})
    rephrased = asked().model_copy(update={"request": request})
    retrieved = await retrieve(rephrased, Searcher(index, Models(), settings), index, settings)  # type: ignore[arg-type]
    assert [(source.page_id, source.lang) for source in retrieved.sources] == [("pool", "en")]


@pytest.mark.parametrize(("text", "first"), [("Is the pool open on Sundays?", "a"), ("Hat das Bad offen?", "b")])
async def test_a_page_takes_the_place_of_a_translation_that_is_in_the_questions_language(text: str, first: str) -> None:
    settings = Settings(sites={"town": SiteSettings(languages=("de", "en"))})
    english = hit(0, "Open.", page="a", cosine=0.9)
    german = [
        replace(hit(0, "Offen.", page=page, cosine=cosine), page_key=f"town:de:{page}", lang="de")
        for page, cosine in (("a", 0.78), ("b", 0.8))
    ]
    index = FakeIndex([english, *german])
    chosen = await Searcher(index, Models(), settings).find("town", text, kind="hybrid", size=9, lang="de")  # type: ignore[arg-type]
    assert (chosen.hits[0].page_id, chosen.hits[0].lang) == (first, "de")
    assert len(chosen.hits) == 2


async def test_what_the_visitor_reads_comes_first_on_a_site_of_several_languages() -> None:
    settings = Settings(sites={"town": SiteSettings(languages=("en", "de"))})
    german = replace(hit(0, "Offen.", page="a", cosine=0.802), page_key="town:de:a", lang="de")
    index = FakeIndex([german, hit(0, "Open.", page="b", cosine=0.8)])
    chosen = await Searcher(index, Models(), settings).find("town", "Open?", kind="hybrid", size=9, lang="en")  # type: ignore[arg-type]
    assert [each.page_id for each in chosen.hits] == ["b", "a"]
    [how] = index.searches
    assert how["content_hits"] == 2 * DEPTH  # each page may be there twice


@pytest.mark.parametrize(("mode", "kind"), [("semantic", "hybrid"), ("keyword", "keyword"), ("courtesy", "hybrid")])
async def test_the_pages_of_the_search_alone_are_those_that_a_search_shows(mode: Any, kind: Any) -> None:
    dense = [hit(0, "Open.", page="a", cosine=0.9), hit(1, "Closed.", page="b", cosine=0.8)]
    index = FakeIndex([*dense, hit(2, "Open, too.", page="a", cosine=0.7)], [hit(3, "Pool.", page="c", bm25=4.0)])
    rephrased = asked(mode).model_copy(update={"request": question().model_copy(update={"ranked": 50})})
    if mode == "courtesy":
        rephrased = rephrased.model_copy(update={"courtesy": "thanks"})
    retrieved = await retrieve(rephrased, searcher(index), index, SETTINGS)
    shown = await searcher(index).hits("town", rephrased.question, kind=kind, size=50)
    assert [(each.page_id, each.lang) for each in retrieved.found] == list(
        dict.fromkeys((each.page_id, each.lang) for each in shown)
    )
    assert len(retrieved.found) == (1 if mode == "keyword" else 3)
    assert "ranking" in retrieved.timings_ms


async def test_for_the_pages_of_the_search_alone_a_question_is_embedded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Models, "model", FakeEmbedder())
    index = FakeIndex([hit(0, "Open.", cosine=0.9)])
    rephrased = asked().model_copy(update={"request": question().model_copy(update={"ranked": 50})})
    await retrieve(rephrased, searcher(index), index, SETTINGS)
    assert Models.model.asked == ["Is the pool open?"]
    first, second = index.searches
    assert (first["vector"] == second["vector"]).all()
    assert (first["content_hits"], second["content_hits"]) == (DEPTH, 50)


class Wants:
    """A reranker that wants a word."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        return [0.9 if self.word in passage else 0.1 for passage in passages]


async def test_a_reranker_orders_the_pages_and_chooses_the_sentence() -> None:
    model = Models.model

    async def unit(text: str, start: int = 0) -> HitUnit:
        return HitUnit(start=start, text=text, kind="prose", vector=(await model.passages([text]))[0])

    pool = [await unit("Is the pool open? Ask us."), await unit("From nine on.", 26)]
    bath = [await unit("Nine lanes.")]
    index = FakeIndex(
        [
            hit(0, "Is the pool open? Ask us. From nine on.", cosine=0.8, units=tuple(pool)),
            hit(0, "Nine lanes.", page="bath", cosine=0.7, units=tuple(bath)),
        ]
    )
    plain = await found(index)
    assert [source.page_id for source in plain.sources] == ["pool", "bath"]
    assert plain.evidence[0].text == "Is the pool open? Ask us."
    wanted = await retrieve(asked(), searcher(index), index, SETTINGS, Wants("nine"))
    assert [source.page_id for source in wanted.sources] == ["pool", "bath"]
    assert wanted.evidence[0].text == "From nine on."
    assert "rerank" in wanted.timings_ms
    assert wanted.sure == plain.sure  # fitted to the search's own order
    other = await retrieve(asked(), searcher(index), index, SETTINGS, Wants("lanes"))
    assert (other.sources[0].page_id, other.evidence[0].text) == ("bath", "Nine lanes.")


def unit_of(text: str) -> HitUnit:
    return HitUnit(start=0, text=text, kind="item", vector=Models.model._vector(text))


def topical(ord: int, text: str, page: str = "pool") -> Hit:
    """A chunk of a page, found by both kinds of search."""
    return replace(hit(ord, text, page=page, cosine=0.8 - ord / 100, bm25=3.0), units=(unit_of(text),))


def after(text: str, *pages: str, mode: Any = "keyword", groups: tuple[str, ...] = ()) -> Rephrased:
    earlier = Earlier(question="What does the pool cost?", pages=pages, signs=signs(text))
    request = question(text).model_copy(update={"groups": groups})
    return Rephrased(request=request, question=text, earlier=earlier, mode=mode)


async def test_a_question_that_leans_is_searched_with_what_it_leans_on_and_that_page_is_read_further() -> None:
    index = FakeIndex([topical(0, "Adults pay 5."), topical(0, "A dog costs 84.", "dogs")], [])
    index.there[(PAGE, "content", 9)] = rest = topical(9, "Children pay 2.")
    index.there["town:en:dogs", "content", 9] = topical(9, "Children need no dog.", "dogs")
    made = await retrieve(after("And children?", PAGE), searcher(index), index, SETTINGS)
    assert [how["text"] for how in index.searches] == ["And children?", "What does the pool cost? And children?"]
    assert (made.question, made.mode) == ("What does the pool cost? And children?", "semantic")
    assert made.evidence[0].text == rest.text
    assert {source.page_id for source in made.sources if source.n == made.evidence[0].n} == {"pool"}
    assert all("no dog" not in source.text for source in made.sources)


async def test_a_new_topic_leaves_the_old_one_behind() -> None:
    index = FakeIndex([topical(0, "Adults pay 5."), topical(0, "A dog costs 84 euros of tax.", "dogs")], [])
    asked = after("What dog tax costs 84 euros?", PAGE, mode="semantic")
    alone = await retrieve(asked.model_copy(update={"earlier": None}), searcher(index), index, SETTINGS)
    made = await retrieve(asked, searcher(index), index, SETTINGS)
    assert made.question == "What dog tax costs 84 euros?"
    assert made.model_copy(update={"timings_ms": {}}) == alone.model_copy(update={"timings_ms": {}})
    assert made.evidence[0].text == "A dog costs 84 euros of tax."


async def test_a_page_that_no_search_finds_any_more_is_not_read_though_it_was_shown() -> None:
    """The visitor may have lost the right to."""
    index = FakeIndex([topical(0, "Adults pay 5.")], [])
    secret = "town:en:staff"
    index.there[(secret, "content", 0)] = topical(0, "And children: nothing.", "staff")
    made = await retrieve(after("And children?", secret), searcher(index), index, SETTINGS)
    assert secret not in {place[0] for places in index.wanted for place in places}
    assert [source.page_id for source in made.sources] == ["pool"]


async def test_revisions_are_not_mixed_where_a_page_is_read_further() -> None:
    index = FakeIndex([topical(0, "Adults pay 5.")], [])
    index.there[(PAGE, "content", 9)] = replace(topical(9, "Children pay 2."), revision=6)
    made = await retrieve(after("And children?", PAGE), searcher(index), index, SETTINGS)
    assert [source.text for source in made.sources] == ["Adults pay 5."]


async def test_a_reranker_reads_a_question_that_leans_with_what_it_leans_on() -> None:
    class Reading:
        async def scores(self, text: str, passages: Sequence[str]) -> list[float]:
            assert text == "What does the pool cost? And children?"
            return [0.9 for _ in passages]

    index = FakeIndex([topical(0, "Adults pay 5.")], [])
    made = await retrieve(after("And children?", PAGE), searcher(index), index, SETTINGS, Reading())
    assert made.question == "What does the pool cost? And children?"
    assert [each.text for each in made.evidence] == ["Adults pay 5."]


@pytest.mark.parametrize(
    ("retriever", "vector", "keyword_hits", "texts"),
    [
        ("hybrid", True, DEPTH, {"By meaning.", "By words."}),
        ("vectors", True, 0, {"By meaning."}),
        ("keywords", False, DEPTH, {"By words."}),
        ("original", True, 0, {"By meaning."}),
    ],
)
async def test_a_retriever_makes_its_own_search(
    retriever: Retriever, vector: bool, keyword_hits: int, texts: set[str]
) -> None:
    index = FakeIndex([hit(0, "By meaning.", cosine=0.8)], [hit(5, "By words.", bm25=3.0)])
    request = question().model_copy(update={"trial": Trial(retriever=retriever, neighbours=0, content_floor=0.6)})
    rephrased = asked().model_copy(update={"request": request})
    retrieved = await retrieve(rephrased, searcher(index), index, SETTINGS, writes=True)
    [how] = index.searches
    assert (how["vector"] is not None, how["keyword_hits"]) == (vector, keyword_hits)
    assert {source.text for source in retrieved.sources} == texts
    if vector:
        assert how["floors"] == Floors(0.3, 0.6)


async def test_nothing_is_searched_where_the_flow_has_no_retriever() -> None:
    request = question().model_copy(update={"trial": Trial(retriever="none")})
    rephrased = asked().model_copy(update={"request": request})
    made = await retrieve(rephrased, None, FakeIndex(), SETTINGS)  # type: ignore[arg-type]
    assert (made.grade, made.sources) == (FINE, ())


async def test_the_original_gate_grades_by_figures() -> None:
    far = FakeIndex([hit(0, "Far.", cosine=0.2)])
    request = question().model_copy(update={"trial": Trial(flow="original", gate=True)})
    made = await retrieve(asked().model_copy(update={"request": request}), searcher(far), far, SETTINGS)
    assert made.gate is not None
    assert made.grade == made.gate.by_figures >= UNCLEAR
