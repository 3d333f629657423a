"""The invented town is consistent: both languages tell the same facts, and every question has its answer."""

import json
import re
import shutil
from collections import Counter
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from schemas.page import PageDocument
from sites.content import (
    DEMO,
    SamplePage,
    SampleSiteError,
    load_pages,
    load_questions,
    load_site,
    page_documents,
)

PAGES = load_pages(DEMO)
QUESTIONS = load_questions(DEMO)
IDS = {lang: {page.id for page in PAGES if page.lang == lang} for lang in ("de", "en")}
MONTHS = {lang: labels.months.split() for lang, labels in load_site(DEMO).labels.items()}
WEEKDAYS = {
    "de": ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"],
    "en": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
}


def visible_text(page: SamplePage) -> str:
    """What a reader of the page sees, white space collapsed, CMS noise left out."""
    soup = BeautifulSoup(page.content, "html.parser")
    for noise in soup.select("script, style, nav, .cookie-banner"):
        noise.decompose()
    for cell in soup.select("td, th"):
        cell.append(" |")  # or "12" guests in the next cell's "April" would read as a date
    return " ".join(soup.get_text(" ").split()).replace(" .", ".").replace(" ,", ",")


@cache
def readable() -> dict[tuple[str, str], str]:
    """By language and page id. Not made while tests are collected: every process collects."""
    return {(page.lang, page.id): visible_text(page) for page in PAGES}


def number(text: str, lang: str) -> float:
    return float(text.replace(".", "").replace(",", ".") if lang == "de" else text.replace(",", ""))


def money(text: str, lang: str) -> Counter[float]:
    if lang == "de":
        # "zwischen 150 und 1.500 Euro" names the unit once.
        text = re.sub(r"(\d[\d.,]*) (und|bis) (\d[\d.,]*) Euro", r"\1 Euro \2 \3 Euro", text)
        found = re.findall(r"(\d[\d.,]*) Euro\b", text)
    else:
        found = re.findall(r"€(\d[\d.,]*\d|\d)", text)
    return Counter(number(amount, lang) for amount in found)


def clock_times(text: str, lang: str) -> Counter[tuple[int, int]]:
    if lang == "de":
        return Counter((int(hour), int(minute)) for hour, minute in re.findall(r"\b(\d{1,2}):(\d\d)\b", text))
    found = re.findall(r"\b(\d{1,2}):(\d\d) (am|pm|noon)\b", text)
    assert len(found) == len(re.findall(r"\b\d{1,2}:\d\d\b", text)), "an English time without am, pm or noon"
    return Counter((int(hour) % 12 + (12 if half != "am" else 0), int(minute)) for hour, minute, half in found)


def dates(text: str, lang: str) -> Counter[tuple[int, int]]:
    dot = r"\." if lang == "de" else ""
    names = "|".join(MONTHS[lang])
    found = re.findall(rf"\b(\d{{1,2}}){dot} ({names})\b", text)
    return Counter((int(day), MONTHS[lang].index(month) + 1) for day, month in found)


def phones(text: str, _lang: str) -> Counter[str]:
    return Counter(re.findall(r"\b0\d{1,4}[ /]\d[\d-]+\d", text))


def emails(text: str, _lang: str) -> Counter[str]:
    return Counter(re.findall(r"\S+@[\w.-]+\w", text))


@pytest.mark.parametrize("facts", [money, clock_times, dates, phones, emails])
def test_german_and_english_tell_the_same_facts(facts):
    for page_id in sorted(IDS["de"] & IDS["en"]):
        assert facts(readable()["de", page_id], "de") == facts(readable()["en", page_id], "en"), page_id


def test_weekdays_fit_their_dates():
    for (lang, page_id), text in readable().items():
        days, months = "|".join(WEEKDAYS[lang]), "|".join(MONTHS[lang])
        pattern = rf"\b({days})(?:,| ?, dem) (\d{{1,2}})\.? ({months}),? (\d{{4}})"
        for weekday, day, month, year in re.findall(pattern, text):
            when = date(int(year), MONTHS[lang].index(month) + 1, int(day))
            assert WEEKDAYS[lang][when.weekday()] == weekday, (lang, page_id, when)


def test_the_town_cannot_be_called_or_written_to():
    everything = " ".join(readable().values())
    # 030 23125-xxx is set aside by the German regulator for films and books, .example by RFC 2606.
    assert all(re.fullmatch(r"030 23125-\d{3}", phone) for phone in phones(everything, ""))
    assert all(email.endswith("@kranichmuende.example") for email in emails(everything, ""))
    assert sum(phones(everything, "").values()) > 50


def test_the_site_has_long_and_short_pages_in_both_languages():
    for lang in ("de", "en"):
        lengths = [len(text) for (page_lang, _), text in readable().items() if page_lang == lang]
        assert len(lengths) >= 20
        assert sum(length > 6_000 for length in lengths) >= 4
        assert sum(length < 1_500 for length in lengths) >= 8


def test_some_pages_hold_noise_that_must_not_reach_the_index():
    for noise in ("script", "style", "nav", ".cookie-banner"):
        noisy = [page for page in PAGES if BeautifulSoup(page.content, "html.parser").select(noise)]
        assert {page.lang for page in noisy} == {"de", "en"}, noise
    assert any("999 Euro" in page.content for page in PAGES)
    assert not any("999 Euro" in text for text in readable().values())


def test_answer_stands_in_its_page():
    for question in QUESTIONS:
        if question.answerable:
            # Digits on either side would make "4 Euro" an answer found in "84 Euro".
            found = rf"(?<![\w.,]){re.escape(question.answer)}(?!\w|[.,]\d)"
            assert re.search(found, readable()[question.page_lang, question.page]), question
        else:
            assert question.page is question.page_lang is question.answer is None, question


def test_questions_cover_every_kind():
    answerable = [question for question in QUESTIONS if question.answerable]
    across = [question for question in answerable if question.lang != question.page_lang]
    assert len(QUESTIONS) >= 60
    assert len(across) >= 10
    assert len(QUESTIONS) - len(answerable) >= 8
    assert {question.page for question in answerable} == IDS["de"] | IDS["en"]
    assert len({question.question for question in QUESTIONS}) == len(QUESTIONS)
    for question in across:
        assert question.page not in IDS[question.lang], "the visitor's own language would answer it"


def test_documents_follow_the_contract_and_a_second_import_is_the_same():
    documents = list(page_documents(DEMO, "http://127.0.0.1:8000/site"))
    assert documents == list(page_documents(DEMO, "http://127.0.0.1:8000/site"))
    assert len(documents) == len(PAGES)
    for document in documents:
        parsed = PageDocument.model_validate_json(json.dumps(document))
        assert parsed.url == f"http://127.0.0.1:8000/site/{parsed.lang}/{parsed.id}"
        assert parsed.changed_at is not None
        assert parsed.revision == parsed.changed_at.timestamp() * 1000


PAGE = """\
---
id: pool
name: Pool
title: The pool
description: About the pool.
keywords: [swim]
path: /en/pool
changed_at: 2026-01-02
---
<p>Open.</p>
"""


@pytest.fixture
def one_page(tmp_path: Path) -> Path:
    path = tmp_path / "pages" / "en" / "pool.html"
    path.parent.mkdir(parents=True)
    path.write_text(PAGE)
    return path


def test_a_page_is_read_as_written(one_page, tmp_path):
    (page,) = load_pages(tmp_path)
    assert (page.lang, page.id, page.keywords, page.content) == ("en", "pool", ("swim",), "<p>Open.</p>\n")
    assert page.revision == 1_767_312_000_000  # 2026-01-02 00:00 UTC


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("name: Pool", "name: Pool\nauthor: me", "author: "),
        ("name: Pool\n", "", "name: Field required"),
        ("name: Pool", "name: 7", "name: "),
        ("name: Pool", "name: ''", "name: "),
        ("[swim]", "[swim, 1]", "keywords.1: "),
        ("[swim]", "swim", "keywords: "),
        ("2026-01-02", "soon", "changed_at: "),
        ("id: pool", "id: bath", "id: is 'bath', the file's place says 'pool'"),
        ("/en/pool", "/de/pool", "path: is '/de/pool', the file's place says '/en/pool'"),
        ("name: Pool", "name: [", "not YAML"),
        ("---\nid", "id", "must open with YAML front matter"),
    ],
)
def test_a_wrong_page_is_refused_by_file_and_key(one_page, tmp_path, before, after, says):
    one_page.write_text(PAGE.replace(before, after))
    with pytest.raises(SampleSiteError, match=re.escape(says)) as caught:
        load_pages(tmp_path)
    assert str(one_page) in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("town: Kranichmünde", "city: Kranichmünde", "city: "),
        ("council]", "council, library]", "every page belongs to exactly one group"),
        (", council]", "]", "every page belongs to exactly one group, see ['council']"),
        ("popular: [town-hall", "popular: [townhall", "popular: no page 'townhall'"),
        ("languages: [de, en]", "languages: [de, en, fr]", "languages: ['fr']"),
        ("  en: Town of Kranichmünde\n", "", "name: must have exactly the languages de, en"),
        ("    skip: Skip to content\n", "", "labels.en.skip: Field required"),
    ],
)
def test_a_wrong_site_file_is_refused(tmp_path, before, after, says):
    root = tmp_path / "demo"
    shutil.copytree(DEMO, root)
    text = (root / "site.yaml").read_text("utf-8")
    assert before in text
    (root / "site.yaml").write_text(text.replace(before, after, 1), "utf-8")
    with pytest.raises(SampleSiteError, match=re.escape(says)):
        load_site(root)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{lang: en, question: 'Why?', answerable: true, page: null, page_lang: en, answer: x}", "page: must be"),
        (
            "{lang: en, question: 'Why?', answerable: false, page: pool, page_lang: null, answer: null}",
            "page: must be null",
        ),
        ("{lang: en, question: 'Why?', answerable: false, page: null, page_lang: null}", "answer"),
        ("{lang: en, question: 'Why?', answerable: 1, page: a, page_lang: en, answer: x}", "answerable: "),
    ],
)
def test_a_wrong_question_is_refused(tmp_path, entry, says):
    (tmp_path / "questions.yaml").write_text(f"- {entry}\n")
    with pytest.raises(SampleSiteError, match=rf"entry 1: .*{re.escape(says)}"):
        load_questions(tmp_path)
