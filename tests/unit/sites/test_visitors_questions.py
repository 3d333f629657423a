"""The everyday questions are fair: their facts stand on the pages that they name, and the second site is as sound."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from bench.visitors import LANGUAGES, ROOTS, cases
from pipelines.evaluate.wording import says
from sites.content import load_site
from tests.unit.sites.test_sample_site_content import dates, emails, phones, visible_text

SITES = {site: load_site(root) for site, root in ROOTS.items()}
ASKED = [(site, case) for site in ROOTS for case in cases(site)]
RADHAUS = "radhaus"


@cache
def readable() -> dict[tuple[str, str, str], str]:
    """By site, language and page id. Not made while tests are collected: every process collects."""
    return {(site, page.lang, page.id): visible_text(page) for site, read in SITES.items() for page in read.pages}


def texts(site: str, page_id: str, lang: str | None) -> list[str]:
    """The page in the question's language; where the site does not have it so, in those that it is in."""
    found = {lang: readable()[site, lang, page_id] for lang in LANGUAGES if (site, lang, page_id) in readable()}
    return [found[lang]] if lang in found else list(found.values())


def test_what_must_be_said_stands_on_a_page_that_is_right() -> None:
    for site, case in ASKED:
        assert (case.expect == "answer") == bool(case.pages and case.facts), case.id
        right = [text for page_id in case.pages for text in texts(site, page_id, case.lang)]
        for fact in case.facts:
            assert any(says(text, fact) for text in right), (case.id, fact)


def test_nothing_must_be_said_and_not_said() -> None:
    assert not [
        (case.id, wrong)
        for _, case in ASKED
        for wrong in case.never
        if any(all(says(each, [wrong]) for each in fact) for fact in case.facts)
    ]


@pytest.mark.parametrize("facts", [dates, emails, phones])
def test_the_shop_tells_the_same_in_both_languages(facts: Callable[[str, str], Counter[object]]) -> None:
    for page_id in {page.id for page in SITES[RADHAUS].pages}:
        german, english = (readable()[RADHAUS, lang, page_id] for lang in ("de", "en"))
        assert facts(german, "de") == facts(english, "en"), page_id


def test_the_shop_cannot_be_called_or_written_to() -> None:
    everything = " ".join(text for (site, _, _), text in readable().items() if site == RADHAUS)
    # 030 23125-xxx is set aside by the German regulator for films and books, .example by RFC 2606.
    assert all(re.fullmatch(r"030 23125-\d{3}", phone) for phone in phones(everything, ""))
    assert all(email.endswith(".example") for email in emails(everything, ""))
    assert sum(phones(everything, "").values()) > 20


def test_the_shop_is_asked_as_many_questions_in_either_language() -> None:
    asked = Counter((case.lang, case.kind) for case in cases(RADHAUS))
    assert sum(asked.values()) >= 340
    assert {kind for lang, kind in asked if lang == "de"} == {kind for lang, kind in asked if lang == "en"}
    assert not {case.id for case in cases(RADHAUS)} & {case.id for case in cases()}
