"""What a strategy looks up on the way is searched with the rights of the visitor who asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from adapters.elastic.search import Candidates, Floors
from pipelines.query.answer.strategies.finder import PageFinder
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.search.ports import Hit
from pipelines.query.search.search import Searcher
from schemas.page import FieldName
from schemas.query import Retrieved
from tests.asking import retrieved
from tests.fakes.embedder import FakeEmbedder
from wiring.settings import Settings, SiteSettings

SETTINGS = Settings(sites={"town": SiteSettings()}, hits=3, neighbours=1)
PROMPTS = SitePrompts()


def hit(ord: int, text: str, revision: int = 5, field: FieldName = "content") -> Hit:
    return Hit(
        page_key="town:en:pool",
        page_id="pool",
        lang="en",
        title="Pool",
        url="/pool",
        field=field,
        ord=ord,
        text=text,
        revision=revision,
        index="pagewire-town-000001",
        cosine=0.9,
        bm25=5.0,
    )


class FakeIndex:
    """A page of these chunks, for members of the group `staff` alone."""

    def __init__(self, *chunks: Hit) -> None:
        self._chunks = chunks
        self.questions: list[str] = []
        self.labels: list[Any] = []  # of the searches

    async def for_site(self, site: str) -> FakeEmbedder:
        return FakeEmbedder()

    async def candidates(
        self, site: str, text: str, vector: Any, *, groups: Iterable[str] = (), floors: Floors, **how: Any
    ) -> Candidates:
        assert site == "town"
        self.questions.append(text)
        self.labels.append(how.get("labels"))
        found = [self._chunks[-1]] if "staff" in groups else []
        return Candidates(list(found), list(found), [("pool", 1)], 10)

    async def chunks(self, index: str, addresses: Sequence[tuple[str, FieldName, int]]) -> list[Hit]:
        return [chunk for chunk in self._chunks if chunk.place in addresses]

    async def field(self, index: str, page_key: str, field: FieldName) -> list[Hit]:
        return [chunk for chunk in self._chunks if (chunk.page_key, chunk.field) == (page_key, field)]


def finder(index: FakeIndex) -> PageFinder:
    return PageFinder(Searcher(index, index, SETTINGS), index, SETTINGS, PROMPTS)


def asked_by(*groups: str) -> Retrieved:
    found = retrieved()
    return found.model_copy(update={"request": found.request.model_copy(update={"groups": groups})})


async def test_a_search_on_the_way_finds_what_the_visitor_may_read() -> None:
    index = FakeIndex(hit(0, "The pool is open daily."))
    [source] = await finder(index).find(asked_by("staff"), "pool hours")
    assert (source.page_id, source.text) == ("pool", "The pool is open daily.")
    assert index.questions == ["pool hours"]
    assert await finder(index).find(asked_by("board"), "pool hours") == ()


async def test_a_page_is_read_from_its_beginning_and_in_one_revision_by_those_who_may() -> None:
    index = FakeIndex(hit(0, "First. "), hit(1, "Older. ", revision=4), hit(2, "Last."))
    sources = await finder(index).page(asked_by("staff"), "Pool")
    assert [source.text.strip() for source in sources] == ["First.", "Last."]
    assert await finder(index).page(asked_by(), "Pool") == ()


class Others:
    """One index besides the live one."""

    def __init__(self, index: FakeIndex) -> None:
        self._index = index

    async def of(self, site: str, name: str) -> tuple[FakeIndex, FakeIndex]:
        assert (site, name) == ("town", "pagewire-town-000002")
        return self._index, self._index


async def test_in_a_trial_of_another_index_it_searches_that_one() -> None:
    live, other = FakeIndex(hit(0, "Open daily.")), FakeIndex(hit(0, "Closed."))
    # Chunks are read by the name of their index, so one reader has those of all.
    found = PageFinder(Searcher(live, live, SETTINGS, Others(other).of), other, SETTINGS, PROMPTS)
    tried = asked_by("staff").model_copy(update={"index": "pagewire-town-000002"})
    assert [source.text for source in await found.find(tried, "pool hours")] == ["Closed."]
    assert [source.text for source in await found.page(tried, "Pool")] == ["Closed."]
    assert (live.questions, other.questions) == ([], ["pool hours", "Pool"])


async def test_a_model_finds_on_the_way_what_the_question_is_about_alone() -> None:
    index, wanted = FakeIndex(replace(hit(0, "The pool is open daily."), labels=("kind:form",))), {"kind": ("form",)}
    asked = asked_by("staff")
    asked = asked.model_copy(update={"request": asked.request.model_copy(update={"labels": wanted})})
    assert await finder(index).find(asked, "pool")
    assert await finder(index).page(asked, "pool")
    assert index.labels == [wanted, wanted]
