"""Whatever a page or a file holds, it is read in seconds, and in time that grows with it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from tests.hostile.clock import quiet_seconds, seconds
from tests.hostile.functions import Call, calls
from tests.hostile.texts import UNITS, long
from text.diff import page_diff

LIMIT = 2.0  # seconds
LARGEST = 4 * 1024 * 1024  # characters
SIZE, LONGER = 4_000, 8  # characters; times as many, for how the time grows
LOOKED_AT = 0.02  # seconds: what takes the square of a page takes more
GROWTH = 2.5  # times what it would be if it grew with the text

HTML = (
    *("<b>", "<b>a</b> ", "<p>", "<p>a", "<p>a</p>", "<div>", "<br>", "<h1>a</h1>", "<li>a", "<ul><li>a", "<dt>a"),
    *(
        "<ul><li>a</ul>",
        "<table><tr><td>a",
        "<tr><td>a</td></tr>",
        "<td>a",
        "<dl><dt>a<dd>b",
        "<blockquote>a",
        "<pre>a",
    ),
    *("<pre>`", "<form>a</form>", "<form><h1>a</h1><p>a</p>", "<a href=x>a</a>", "<a href='", "<a b=c ", "<img alt=a>"),
    *("<main>a", "<style>a</style>", "<style><script>", "<script", "</b>", "<?", "<![CDATA[", "&amp", "&#1;"),
    *("<span>a</span>", "<div class='cookie bar'>a", "<p style='display:none'>a", "<meta name=a content=b>"),
    "<link hreflang=en href=x>",
    "<input type=radio id=a><label for=a>b</label>",
    "<div><input type=radio id=a><label for=a>b</label>",
    *("<p itemscope itemtype=Product itemprop=offers>a", "<b itemprop=name>a ", "<meta property=a content=b>"),
    *('{"@graph":[{"@type":"Event"},', '{"@type":"FAQPage","mainEntity":{"name":"a?","acceptedAnswer":{"text":"b"}}},'),
    *('"a\\', "/*", "// ", "1 €, ", "9:00 "),
)
CALLS = calls()
READ = {
    name: CALLS[name]
    for name in (
        "connectors.cms.front_matter.split",
        "connectors.cms.sitemap.page.read_page",
        "connectors.cms.page_fields.title_in",
        "connectors.cms.wordpress.client.document",
        "pipelines.ingest.chunk.chunk_field",
        "pipelines.ingest.documents.convert.convert",
        "pipelines.ingest.documents.facts.facts_of",
        "pipelines.ingest.embedding_plan.plan_units",
        "text.encodings.decoded",
        "text.html.one_line",
        "text.html.stripped",
        "text.html.tidy",
        "text.markdown.plain",
        "pipelines.ingest.documents.structured_data.structured_data_in",
    )
} | {"text.diff.page_diff": lambda text: page_diff({"content": text}, {"content": text[::-1]}, "a", "b")}


def test_pages_take_time_that_grows_with_them() -> None:
    slow = [
        f"{name}: {complaint} for {unit!r}"
        for name in READ
        for unit in (*UNITS, *HTML)
        if (complaint := _complaint(READ[name], unit))
    ]
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("connectors.cms.sitemap.page.read_page", ("<p>a", "<ul><li>a</ul>", "<a href=x>a</a>")),
        ("connectors.cms.wordpress.client.document", ("<script>", "<a")),
        ("pipelines.ingest.chunk.chunk_field", ("a. ", "- a\n")),
        (
            "pipelines.ingest.documents.convert.convert",
            (
                "<p>a",
                "<b>a</b> ",
                "<dl><dt>a<dd>b",
                "<td>a",
                "<form>a</form>",
                "<a href=x>a</a>",
                "<div>",
                "&amp;",
                "\n",
            ),
        ),
        (
            "pipelines.ingest.documents.structured_data.structured_data_in",
            ("<meta name=a>", "<p itemscope itemtype=Product itemprop=b>a"),
        ),
        ("pipelines.ingest.embedding_plan.plan_units", ("- a\n", "? ")),
    ],
)
def test_the_largest_page_is_read_in_two_seconds(name: str, units: tuple[str, ...]) -> None:
    slow = {
        unit: taken
        for unit in units
        if (taken := quiet_seconds(partial(_quietly, READ[name], long(unit, LARGEST)), LIMIT)) > LIMIT
    }
    assert not slow, name


def test_nested_properties_around_many_elements_are_read_in_two_seconds() -> None:
    page = f"<div itemscope itemtype=Product>{'<div itemprop=a>' * 200}{'<i></i>' * 40_000}"
    read = READ["pipelines.ingest.documents.structured_data.structured_data_in"]
    assert quiet_seconds(partial(read, page), LIMIT) < LIMIT


def test_what_takes_the_square_fails() -> None:
    assert _complaint(lambda text: [text[:at].count("!") for at in range(len(text))], "!")


def _complaint(call: Call, unit: str) -> str | None:
    """How the time grows with the text, where it does so too fast."""
    text, longer = long(unit, SIZE), long(unit, LONGER * SIZE)
    for _ in range(4):
        taken = seconds(partial(_quietly, call, longer))
        if taken < LOOKED_AT:
            return None
        growth = taken / min(seconds(partial(_quietly, call, text)) for _ in range(2))
        if growth <= GROWTH * LONGER:
            return None
    return f"{taken:.2f} s, {growth:.0f} times as long for {LONGER} times the characters"


def _quietly(call: Call, text: str) -> None:
    with suppress(ValueError):  # it is no page
        call(text)
