"""Corrections in the retrieve stage: what an editor has said comes first, for whom it is meant, while it is true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from time import perf_counter
from typing import Any

import pytest

from pipelines.query.extractive.follow_ups import signs
from pipelines.query.live.corrections import SiteCorrections, page_content, written_correction
from pipelines.query.retrieve.alike import LEAST, AskedQuestion, alike
from pipelines.query.retrieve.corrected import Corrector
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.ports import Candidates, Hit, HitUnit
from pipelines.query.search.search import Searcher
from schemas.correction import Correction
from schemas.page import FieldName
from schemas.query import Earlier, Rephrased, Retrieved, Turn
from schemas.text_version import TextVersion
from tests.asking import NOON, question
from tests.fakes.embedder import FakeEmbedder
from wiring.settings import Settings, SiteSettings

SETTINGS = Settings(sites={"town": SiteSettings(languages=("en", "de"))}, hits=4, neighbours=1)
LIVE = "pagewire-town-000001"
CARD = "What does a library card cost?"
FEES = "A library card costs 12 euros a year."


class Models:
    model = FakeEmbedder()

    async def for_site(self, site: str) -> FakeEmbedder:
        return self.model


def hit(page: str, text: str, lang: str = "en", ord: int = 0, **scores: Any) -> Hit:
    unit = HitUnit(start=0, text=text, kind="prose", vector=Models.model._vector(text))
    return Hit(
        page_key=f"town:{lang}:{page}",
        page_id=page,
        lang=lang,
        title=page,
        url=f"/{lang}/{page}",
        field="content",
        ord=ord,
        text=text,
        revision=1,
        index=LIVE,
        units=(unit,),
        **scores,
    )


class Index:
    """Finds the pool for everything. `hidden`: pages that only members may read."""

    def __init__(self, *pages: Hit, hidden: Sequence[str] = ()) -> None:
        self.pages = pages
        self.hidden = hidden
        self.searches = 0

    async def candidates(self, site: str, text: str, vector: Any, **how: Any) -> Candidates:
        self.searches += 1
        found = [replace(each, cosine=0.9, score=0.9) for each in self.pages if each.page_id == "pool"]
        return Candidates(list(found), [], [("pool", 1)], 10)

    async def chunks(self, index: str, addresses: Sequence[tuple[str, FieldName, int]]) -> list[Hit]:
        return [each for each in self.pages if each.place in addresses]

    async def field(self, index: str, page_key: str, field: FieldName) -> list[Hit]:
        return []

    async def page(self, site: str, page_id: str, *, groups: Iterable[str] = ()) -> list[Hit]:
        visible = page_id not in self.hidden or "members" in groups
        return [each for each in self.pages if each.page_id == page_id and visible]


PAGES = (hit("pool", "The pool opens at 9."), hit("library", FEES), hit("fees", "All fees of the town."))


def page(id: str = "library", lang: str = "en", content: str = FEES) -> dict[str, Any]:
    return {"page_id": id, "lang": lang, "content": page_content([content])}


def live(*given: dict[str, Any]) -> SiteCorrections:
    """In the order in which they were made."""
    corrections = SiteCorrections()
    corrections.take(
        TextVersion(
            site="town",
            kind="corrections",
            name=f"c{n}",
            version=1,
            text=written_correction(Correction.model_validate({"lang": "en", **one})),
            by="ada",
            at=NOON + timedelta(minutes=n),
        )
        for n, one in enumerate(given)
    )
    return corrections


async def found(corrections: SiteCorrections, text: str = CARD, index: Index | None = None, **more: Any) -> Retrieved:
    lang, groups, earlier = more.get("lang", "en"), more.get("groups", ()), more.get("earlier")
    request = question(text, lang).model_copy(update={"groups": groups})
    asked = Rephrased(request=request, question=text, mode="semantic", earlier=earlier)
    index = index or Index(*PAGES)
    searcher = Searcher(index, Models(), SETTINGS)  # type: ignore[arg-type]
    return await retrieve(asked, searcher, index, SETTINGS, corrector=Corrector(corrections))


PINNED = {"kind": "page", "questions": [CARD], "page": page()}
FIXED = {"kind": "answer", "questions": [CARD], "text": "12 euros.", "page": page()}
REFUSED = {"kind": "refusal", "questions": [CARD], "text": "Please ask the library."}


async def test_a_pinned_page_comes_first_and_what_is_shown_is_on_it() -> None:
    retrieved = await found(live(PINNED))
    assert [source.page_id for source in retrieved.sources] == ["library", "pool"]
    assert {retrieved.sources[0].n} == {each.n for each in retrieved.evidence}
    assert (retrieved.grade, retrieved.corrected and retrieved.corrected.kind) == (0, "page")
    assert (await found(live())).sources[0].page_id == "pool"


async def test_a_fixed_answer_is_handed_on_with_its_page_and_nothing_is_searched() -> None:
    for given, text, pages in ((FIXED, "12 euros.", ["library"]), (REFUSED, "Please ask the library.", [])):
        index = Index(*PAGES)
        retrieved = await found(live(given), index=index)
        assert retrieved.corrected is not None
        assert (retrieved.corrected.text, index.searches) == (text, 0)
        assert [source.page_id for source in retrieved.sources] == pages


@pytest.mark.parametrize(
    ("given", "text", "more"),
    [
        (PINNED, "When is the pool open?", {}),  # another question
        (PINNED, "What does a parking card cost?", {}),
        (PINNED | {"reach": "same"}, "What does a library card cost today?", {}),
        (PINNED, CARD, {"index": Index(PAGES[0])}),  # its page is deleted
        (FIXED, CARD, {"index": Index(PAGES[0])}),
        (FIXED, CARD, {"index": Index(PAGES[0], hit("library", "A library card is free."))}),  # its page has changed
        (PINNED, CARD, {"index": Index(*PAGES, hidden=["library"])}),  # the visitor may not read its page
        (FIXED, CARD, {"index": Index(*PAGES, hidden=["library"])}),
        (FIXED, "A library card costs what?", {"lang": "de"}),  # the answer is in English
        (REFUSED, "And the card?", {"earlier": Earlier(question="x", signs=signs("And the card?"))}),
    ],
)
async def test_whoever_it_is_not_for_is_answered_as_if_there_were_none(
    given: dict[str, Any], text: str, more: dict[str, Any]
) -> None:
    retrieved = await found(live(given), text, **more)
    assert retrieved.corrected is None
    assert retrieved.sources[0].page_id == "pool"


async def test_what_is_asked_in_other_words_is_answered_by_its_reach() -> None:
    for reach, other in (("alike", "How much does the library card cost?"), ("wide", "Where is the library card?")):
        assert (await found(live(REFUSED | {"reach": reach}), other)).corrected is not None
        assert (await found(live(REFUSED | {"reach": "same"}), other)).corrected is None
    # By every reach in the same words, whatever their marks.
    assert (await found(live(REFUSED | {"reach": "same"}), "what does a LIBRARY card cost")).corrected is not None


async def test_words_that_a_model_has_put_into_others_count_as_they_were() -> None:
    for history, said, text, used in (
        ((), CARD, "library card price list", True),
        ((Turn(question="x", answer="y"),), CARD, "library card price list", True),
        ((Turn(question="x", answer="y"),), "And on Sundays?", "Is the pool open on Sundays?", False),
    ):
        request = question(said).model_copy(update={"history": history})
        asked = Rephrased(request=request, question=text, mode="semantic")
        corrector = Corrector(live(REFUSED | {"questions": [said]}))
        assert (await corrector.of(asked, Searcher(Index(), Models(), SETTINGS)) is not None) == used  # type: ignore[arg-type]


async def test_for_whom_its_page_is_it_is_answered() -> None:
    retrieved = await found(live(FIXED), index=Index(*PAGES, hidden=["library"]), groups=("members",))
    assert retrieved.corrected is not None


async def test_of_two_the_nearer_one_is_used_and_of_equally_near_ones_the_newer() -> None:
    other = REFUSED | {"questions": ["How much is a library card for children?"]}
    pinned = PINNED | {"page": page("fees")}
    for given, used in (((PINNED, other), "c0"), ((other, PINNED), "c1"), ((PINNED, pinned), "c1")):
        retrieved = await found(live(*given))
        assert retrieved.corrected is not None
        assert retrieved.corrected.ids == (used,)
    # One whose page is gone is no rival.
    retrieved = await found(live(PINNED, PINNED | {"page": page("gone")}))
    assert retrieved.corrected is not None
    assert retrieved.corrected.ids == ("c0",)


async def test_a_text_for_all_languages_answers_a_question_in_another_one() -> None:
    retrieved = await found(live(FIXED | {"all_languages": True}), "A library card costs what?", lang="de")
    assert retrieved.corrected is not None
    assert retrieved.corrected.text == "12 euros."


async def test_a_text_is_for_visitors_of_its_language_even_in_the_same_words() -> None:
    assert (await found(live(FIXED), CARD)).corrected is not None
    assert (await found(live(FIXED), CARD, lang="de")).corrected is None
    assert (await found(live(PINNED), CARD, lang="de")).corrected is not None


async def test_a_page_is_shown_in_the_visitors_language_if_it_is_there() -> None:
    german = hit("library", "Ein Ausweis kostet 12 Euro.", "de")
    for pages, lang in (((*PAGES, german), "de"), (PAGES, "en")):
        retrieved = await found(live(PINNED), CARD, Index(*pages), lang="de")
        assert retrieved.sources[0].lang == lang


def test_alike_is_what_wants_the_same_of_the_same_thing() -> None:
    def like(one: str, other: str, reach: Any = "alike") -> float:
        return alike(AskedQuestion(one, "en"), AskedQuestion(other, "en"), 0.9, reach)

    assert like(CARD, "what does a library card cost") == 1.0
    assert like(CARD, "How much is a library card?") > 0.9
    assert like(CARD, "Where do I get a library card?") == 0.0  # no price
    assert like(CARD, "Where do I get a library card?", "wide") > 0.9
    assert like("When does bus 12 go?", "When does bus 21 go?") == 0.0
    assert like("How do I register my car?", "How do I register my dog?") < 0.75  # "car" is a word, if not in French


@pytest.mark.parametrize(
    ("asked", "corrected", "lang", "expected"),
    [
        ("when does the cafe close on friday", "When does the cafe close on Fridays?", "en", True),
        ("when does the cafe close on sunday", "When does the cafe close on Fridays?", "en", False),
        ("when does the cafe close today", "When does the cafe close on Fridays?", "en", False),
        ("when does the cafe close", "When does the cafe close on Fridays?", "en", False),
        ("when does the cafe close on fridays", "When does the cafe close?", "en", True),  # every day
        ("when does the cafe open on fridays", "When does the cafe close on Fridays?", "en", False),
        ("what does a coffee in the café cost", "price of a coffee in the cafe", "en", True),
        ("wann schließt das café", "Wann öffnet das Café?", "de", False),
        ("when is the museum open", "When is the museum open at Christmas?", "en", False),
        ("what is a yearly card for adults", "What is a monthly card for adults?", "en", False),
    ],
)
def test_a_correction_is_for_its_days_and_for_no_wider_question(
    asked: str, corrected: str, lang: str, expected: bool
) -> None:
    like = alike(AskedQuestion(asked, lang), AskedQuestion(corrected, lang), 0.95)
    assert (like >= LEAST["alike"]) is expected


async def test_500_corrections_cost_no_more_than_a_product_of_matrices() -> None:
    """Where nothing is near, and where all are about the same thing: a loop over all costs 50 times as much as one."""
    about = [f"What does the library card of house {n} cost?" for n in range(500)]
    far = [f"Thing {n}?" for n in range(500)]
    made = ([REFUSED | {"questions": [text]} for text in texts] for texts in (about[:1], about, far))
    one, *many = (Corrector(live(*each)) for each in made)
    searcher = Searcher(Index(*PAGES), Models(), SETTINGS)  # type: ignore[arg-type]
    asked = Rephrased(request=question(CARD), question=CARD, mode="semantic")

    async def best(corrector: Corrector) -> float:
        await corrector.of(asked, searcher)  # embeds them
        times = []
        for _ in range(30):
            began = perf_counter()
            await corrector.of(asked, searcher)
            times.append(perf_counter() - began)
        return min(times)

    least = await best(one)
    for corrector in many:
        assert await best(corrector) < 20 * least
