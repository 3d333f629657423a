"""Links in a model's text lead to sources, or are none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.query.answer.links import LONGEST_LABEL, LinkFilter, absolute, with_whole_links
from schemas.query import Evidence, Source
from tests.asking import retrieved, source

SOURCE = Source(
    n=1, page_id="p", lang="en", title="Pool", url="http://site.example/pool", field="content", ord=0,
    text="Write to pool@site.example.", score=1.0, cosine=None, revision=1,
)  # fmt: skip


def filtered(*pieces: str) -> str:
    links = LinkFilter([SOURCE])
    return "".join(map(links.feed, pieces)) + links.finish()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("See [the form](https://evil.example/f).", "See the form."),
        ('See [the form](<https://evil.example/f> "Form").', "See the form."),
        ("See [the form](https://evil.example/f_(new)).", "See the form."),
        ("See https://evil.example/f.", "See evil.example/f."),
        ("See <https://evil.example/f>.", "See evil.example/f."),
        ("![chart](https://evil.example/?q=secret)", "chart"),
        ("![pool](http://site.example/pool)", "pool"),
        ("[https://evil.example](https://evil.example)", "evil.example"),
        ("[a [b]](https://evil.example)", "[a [b]] "),
        ("[![x](https://evil.example/i)](https://evil.example)", "[x] "),
        ("[" + "x" * (LONGEST_LABEL + 1) + "](https://evil.example)", "[" + "x" * (LONGEST_LABEL + 1) + "] "),
        ("[[1]](x)(https://evil.example)", "[1] (evil.example)"),
        ("Open at 9 [[1]](https://evil.example).", "Open at 9 [1] ."),
        ("Open at 9 [[1]](http://site.example/pool).", "Open at 9 [1] ."),  # the source's own: a citation as well
        ("Open at 9 [1](http://site.example/pool).", "Open at 9 [1] ."),
        ("Open at 9 [source 1](x).", "Open at 9 [source 1] ."),
        ("[x](javascript:alert(1))", "x"),
        ("[x](javascript:a(b)(c)d)", "x"),
        ('[x](/a(b)(c) "d")', "x"),
        ("[x](/admin)", "x"),
        ("[x]: https://evil.example", "[x]: evil.example"),
        ("Open at 9 [1](https://evil.example).", "Open at 9 [1] ."),
        ("[mail](mailto:someone@evil.example)", "mail"),
    ],
)
def test_a_link_to_elsewhere_becomes_its_text(said: str, shown: str) -> None:
    assert filtered(said) == shown
    assert filtered(*said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "See [the pool](http://site.example/pool#prices).",
        "See http://site.example/pool.",
        "See <http://site.example/pool/>.",
        "Take bus [5](http://site.example/pool).",  # its source is not the fifth
        "[mail](mailto:pool@site.example?subject=hello)",
        "Open [1][2], see (a) or [b] (c), 3 < 4, h! ht",
        "! [x",
    ],
)
def test_all_else_stays(said: str) -> None:
    assert filtered(said) == said
    assert filtered(*said) == said


@given(
    st.lists(st.sampled_from(["[", "]", "(", ")", "!", "<", ">", "http", "s://", "evil.example", " ", "x", "\n", "1"]))
)
def test_however_it_is_cut_no_link_leads_elsewhere(pieces: list[str]) -> None:
    shown = filtered(*pieces)
    assert shown == filtered("".join(pieces)) == filtered(*"".join(pieces))
    assert not re.search(r"https?://evil|\]\([^()\s<>]+\)", shown)


URL = "https://www.town.example/en/married"


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("See [the office](registry-office).", "See [the office](https://www.town.example/en/registry-office)."),
        ('A [form](/f.pdf "PDF")', 'A [form](https://www.town.example/f.pdf "PDF")'),
        ("[above](#fees)", f"[above]({URL}#fees)"),
        ("[mail](mailto:a@town.example) [out](https://b.example/x)", None),
        ("[odd](http://[x) and `[code](`", None),
    ],
)
def test_links_of_a_page_lead_where_they_lead_there(written: str, whole: str | None) -> None:
    assert absolute(written, URL) == (whole or written)
    assert absolute(written, "") == written


def test_what_is_quoted_has_whole_links_too() -> None:
    unit = Evidence(n=1, start=0, text="[the office](registry-office)", kind="prose", block=0, score=1.0)
    code = unit.model_copy(update={"kind": "code"})
    found = source(1, "[the office](registry-office)").model_copy(update={"url": URL})
    told = with_whole_links(retrieved(found).model_copy(update={"evidence": (unit, code)}))
    assert told.evidence[0].text == told.sources[0].text == "[the office](https://www.town.example/en/registry-office)"
    assert told.evidence[1].text == "[the office](registry-office)"
