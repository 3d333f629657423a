"""What is asked of Elasticsearch, where only a larger server would refuse it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from elasticsearch import AsyncElasticsearch

from adapters.elastic.search import Pinned, SiteSearch
from pipelines.query.search.ports import Floors
from pipelines.runtime.indexes import IndexInfo

CLAUSES = 1_024  # that every Elasticsearch takes in a query
LATIN = [f"{a}{b}" for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz"]
HAN = [chr(0x4E00 + number) for number in range(4_000)]


class Asked:
    """Elasticsearch that finds nothing; `matches`: the texts of the last keyword search."""

    def __init__(self, having: Mapping[str, int] | None = None) -> None:
        """`having`: how many of nine chunks have a stem."""
        self.matches: list[str] = []
        self.languages = ["de-AT", "en", "th"]
        self.having = having or {}

    async def msearch(self, *, searches: Sequence[dict[str, Any]]) -> dict[str, Any]:
        for clause in searches[1]["query"]["bool"]["should"]:
            [asked] = clause["match"].values()
            self.matches.append(asked if isinstance(asked, str) else asked["query"])
        [_, *stems] = [kind["term"] for kind in searches[3]["aggs"]["having"]["filters"]["filters"]]
        buckets = [{"doc_count": count} for count in (9, *(self.having.get(stem["stems"], 0) for stem in stems))]
        return {"responses": [{"hits": {"hits": []}}, {"aggregations": {"having": {"buckets": buckets}}}]}

    async def search(self, **options: Any) -> dict[str, Any]:
        return {"aggregations": {"languages": {"buckets": [{"key": lang} for lang in self.languages]}}}


async def matches(question: str, by_language: bool = True) -> list[str]:
    asked = Asked()
    info = cast(IndexInfo, SimpleNamespace(name="town-1", by_language=by_language))
    search = SiteSearch(cast(AsyncElasticsearch, asked), Pinned(info))
    await search.candidates("town", question, None, floors=Floors(0, 0), content_hits=1, keyword_hits=5)
    return asked.matches


def terms(text: str) -> int:
    """What the standard analyser makes of it: words, and every sign of Chinese by itself."""
    return sum(len(word) if word[0] >= HAN[0] else 1 for word in text.split())


@pytest.mark.parametrize(
    "question",
    [" ".join(LATIN * 2), "no " * 1_300, "".join(HAN), " ".join(HAN[:2_000])],
    ids=["latin", "repeated", "han", "han in words"],
)
async def test_the_longest_questions_stay_within_what_every_server_takes(question: str) -> None:
    stems, *asked = await matches(question[:4_000])
    assert 0 < len(stems.split()) + sum(map(terms, asked)) <= CLAUSES


async def test_a_question_of_usual_length_is_asked_as_it_stands() -> None:
    assert await matches("When does Anna's pool opened?", by_language=False) == [
        "when does anna s pool opene",
        *(word for word in ("When", "does", "Anna's", "pool", "opened?") for _ in ("text", "title")),
    ]


async def test_a_question_is_read_in_its_language_and_in_those_of_the_pages() -> None:
    [stems, *_] = await matches("What are your opening hours?")
    assert {"open", "hour", "opening"} <= set(stems.split())
    [stems, *_] = await matches("Meldebestätigung")
    assert {"meld", "bestat"} <= set(stems.split())


async def test_a_question_in_a_language_that_no_page_is_in_is_asked_by_first_letters() -> None:
    [stems, *_] = await matches("Mikor nyit ki a könyvtár vasárnap?")
    assert stems == "mikor- nyit- ki- a- konyv- vasar-"


async def test_the_first_page_in_a_language_is_read_in_it_at_once() -> None:
    asked = Asked()
    info = cast(IndexInfo, SimpleNamespace(name="town-1", by_language=True))
    search = SiteSearch(cast(AsyncElasticsearch, asked), Pinned(info))
    for languages, stem in [(["en"], "mikor-"), (["en", "hu"], "mikor")]:
        asked.languages, asked.matches = languages, []
        await search.candidates(
            "town", "Mikor nyit ki a könyvtár?", None, floors=Floors(0, 0), content_hits=1, keyword_hits=5
        )
        assert stem in asked.matches[0].split()


async def test_of_a_words_readings_the_one_counts_that_the_index_knows() -> None:
    """And of a compound that it does not have, the parts."""

    info = cast(IndexInfo, SimpleNamespace(name="town-1", by_language=True))
    search = SiteSearch(cast(AsyncElasticsearch, Asked({"hour": 3, "freibad": 2, "gebuhr": 5})), Pinned(info))
    asked = "Freibadgebühr hours xyzzy"
    found = await search.candidates("town", asked, None, floors=Floors(0, 0), content_hits=1, keyword_hits=5)
    assert dict(found.terms) == {"freibad": 2, "gebuhr": 5, "hour": 3, "xyzzy": 0}
    assert (found.total, found.by_language) == (9, True)


async def test_similar_words_are_looked_up_for_some_words_of_letters_that_are_neither_short_nor_endless() -> None:
    class Suggesting(Asked):
        looked_up = ""

        async def msearch(self, *, searches: Sequence[dict[str, Any]]) -> dict[str, Any]:
            made = await super().msearch(searches=searches)
            asked = searches[3].get("suggest", {"similar": {"text": ""}})["similar"]
            self.looked_up = asked["text"]
            entries = [
                {"text": "libary", "options": [{"text": "library"}, {"text": "binary"}]},
                {"text": "x", "options": []},
            ]
            made["responses"][1]["suggest"] = {"similar": entries}
            return made

    info = cast(IndexInfo, SimpleNamespace(name="town-1", by_language=True))
    for question, looked_up in (
        ("Libary, libary or bib: 12345 or b2b2b2?", "libary"),
        ("Where?", "where"),
        ("bib?", ""),
        ("y" * 61, ""),
        (" ".join(f"plugh{'abcdefghijkl'[n]}" for n in range(12)), " ".join(f"plugh{each}" for each in "abcdefghij")),
    ):
        asked = Suggesting()
        search = SiteSearch(cast(AsyncElasticsearch, asked), Pinned(info))
        found = await search.candidates("town", question, None, floors=Floors(0, 0), content_hits=1, keyword_hits=5)
        assert asked.looked_up == looked_up
        assert found.similar == {"libary": ["library", "binary"]}
