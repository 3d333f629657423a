"""What an editor wrote is what is read, compared and quoted: no word, no figure and no sign of it is lost or joined."""

from __future__ import annotations

import re
from html import escape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from text.html import one_line, read, to_markdown
from text.markdown import escaped, inline, plain
from text.units import units

WORDS = st.sampled_from(
    [
        *(
            "3. Oktober",
            "1. FC",
            "10) x",
            "- 5 °C",
            "+ 49 30 1234",
            "-30,3 %",
            "7.50 €",
            "1.234,50",
            "2026-05-01",
            "9:30",
        ),
        *(
            "A*A*A",
            "A*AA",
            "5*3=15",
            "*",
            "**",
            "_",
            "__",
            "_x_",
            "a_b",
            "__init__.py",
            "Foo_(bar)",
            "~~",
            "~5",
            "~~a~~",
        ),
        *(
            "#",
            "# 5",
            "## x",
            ">",
            "> 3",
            "`",
            "``",
            "\\",
            "\\*",
            "C:\\dir\\",
            "[a]",
            "[a](b)",
            "(b)",
            "&amp;",
            "<br>",
            "---",
        ),
        *("https://t.example/a_b_c?x=*", "a@t.example", ": c", "groß_klein", "图_书*馆", "word", "Ende."),
    ]
)
INLINE = st.sampled_from(["{}", "{}", "{}", "<b>{}</b>", "<i>{}</i>", '<a href="/x">{}</a>', "<u>{}</u>", "<q>{}</q>"])
PIECES = st.lists(st.tuples(INLINE, WORDS), min_size=1, max_size=4)
BLOCKS = st.sampled_from(
    [
        *(
            "<p>{}</p>",
            "<h2>{}</h2>",
            "<ul><li>{}</ul>",
            "<ul><li>x<ul><li>{}</ul></ul>",
            "<blockquote>{}</blockquote>",
        ),
        *(
            "<dl><dt>{}<dd>y</dl>",
            "<dl><dt>y<dd>{}</dl>",
            "<p>x<br>{}</p>",
            "<div>{}<p>x</p></div>",
            "<details>{}</details>",
        ),
        *("<table><tr><th>{}<th>b<tr><td>c<td>d</table>", "<table><tr><td>{}<td>b<tr><td>c<td>d</table>"),
    ]
)
_TAG = re.compile(r"<[^<>]*>")


def letters(text: str) -> str:
    """All characters but white space, and the bars and quotation marks that conversion adds."""
    return re.sub(r'[\s|"]', "", text)


@given(st.lists(st.tuples(BLOCKS, PIECES), min_size=1, max_size=3))
@example([("<p>{}</p>", [("{}", "3. Oktober"), ("<b>{}</b>", "*")])])
@example([("<p>{}</p>", [('<a href="/x">{}</a>', "[a]"), ("{}", "(b)")])])
def test_what_is_written_is_read_back(page: list[tuple[str, list[tuple[str, str]]]]) -> None:
    html, seen = "", ""
    for block, pieces in page:
        inside = " ".join(tag.format(escape(word)) for tag, word in pieces)
        html += block.format(inside)
        before, _, after = block.partition("{}")
        seen += f"{_TAG.sub(' ', before)} {' '.join(word for _, word in pieces)} {_TAG.sub(' ', after)}"
    assert letters(plain(to_markdown(html))) == letters(seen)


@given(st.text("aA1. \\*_~`[]()#>+-|:!\n5€", max_size=40))
@example("__:_")
def test_any_text_is_read_back_within_a_line(text: str) -> None:
    line = " ".join(text.split())
    assert letters(inline(escaped(line))) == letters(line)


SCRIPTS = {
    # mdn/content issues 4578 and 5012, microsoft/markitdown PR 1322
    "Adults 7<sup>50</sup> €, children 5<sup>99</sup>": "Adults 7.50 €, children 5^99",
    "€ 3<sup>50</sup> or CHF 9<sup>95</sup>, 7<sub>90</sub> zł": "€ 3.50 or CHF 9.95, 7.90 zł",
    "7,<sup>50</sup> € and <b>8</b><sup>50 €</sup>": "7,50 € and 8.50 €",
    "In 2023<sup><a href='#fn2'>2</a></sup> it was 12 euros<sup>1</sup>.": "In 2023 it was 12 euros.",
    "£150,000<sup id=r><a href='#fn:1' class='footnote'>[footnote 1]</a></sup> a year": "£150,000 a year",
    "£150,000<sup>62</sup> in 2015<sup>23</sup>": "£150,000 in 2015^23",
    "<a href='#n' role=doc-noteref>3</a> days<sup class=reference>[4]</sup>": "days",
    "10<sup>6</sup>, 10<sup>-6</sup>, x<sup>2</sup>, (a+b)<sup>2</sup>": "10^6, 10^-6, x^2, (a+b)^2",
    "20 €<sup>²</sup>, £150,000<sup>²</sup>, 4 m<sup>²</sup>, 5<sup>³</sup>": "20 €, £150,000, 4 m², 5³",
    "20 m<sup>2</sup>, 5 cm<sup>3</sup>, CO<sub>2</sub>, H<sub>2</sub>O": "20 m2, 5 cm3, CO2, H2O",
    "1<sup>st</sup>, 2<sup>e</sup>, n<sup>o</sup> 5, 9<sup>h</sup>30": "1st, 2e, no 5, 9h30",
    "1<sup>1</sup>/<sub>2</sub> hours, 5<sub>2</sub>": "1 1/2 hours, 5_2",
    "<sup>1</sup>12 euros": "(1) 12 euros",
    "day.<sup>19</sup> Fee 12 €<sup>1)</sup>": "day. Fee 12 €",
    "20 m<sup>2</sup>50 persons": "20 m2 50 persons",
}


@pytest.mark.parametrize(
    ("lang", "price"),
    [("de", "7,50 €"), ("de-CH", "7.50 €"), ("fr", "7,50 €"), ("en", "7.50 €"), ("", "7.50 €"), ("de-XX", "7.50 €")],
)
def test_raised_cents_get_the_decimal_sign_of_the_page(lang: str, price: str) -> None:
    assert read("<p>Adults 7<sup>50</sup> €", lang).markdown == f"Adults {price}"
    assert one_line("Adults 7<sup>50</sup> €", lang) == f"Adults {price}"


@pytest.mark.parametrize("html", SCRIPTS)
def test_what_is_raised_or_lowered_joins_no_figure(html: str) -> None:
    assert plain(to_markdown(f"<p>{html}</p>")) == SCRIPTS[html]
    table = f"<table><tr><th>a<th>b<tr><td>c<td>{html}</table>"
    assert [unit.said for unit in units(to_markdown(table), "en")] == [f"a: c; b: {SCRIPTS[html]}"]


def test_titles_are_read_alike() -> None:
    assert one_line("Only 7<sup>50</sup> € * <s>9 €</s> <b>3. Oktober</b>") == "Only 7.50 € * 3. Oktober"


READ = {
    # NousResearch/hermes-agent issue 48150, alphagov/notifications-utils PR 436, zuchka/remove-markdown PR 38
    "<p>Entry: A*A*A or A*AA. 5*3=15</p>": "Entry: A*A*A or A*AA. 5*3=15",
    "<p>Put it in <code>__init__.py</code> and <code>*.txt</code> or <code>a`b</code></p>": (
        "Put it in __init__.py and *.txt or a`b"
    ),
    "<p>+ 49 30 1234</p><p>- 5 °C at night</p><p>1. FC Köln</p>": "+ 49 30 1234 - 5 °C at night 1. FC Köln",
    "<h2>3. Oktober</h2><p>Oktober<br>3. geschlossen</p>": "3. Oktober Oktober 3. geschlossen",
    '<p><a href="/f">Form [PDF, 2 MB]</a> and <a href="/g">f(x)[1]</a></p>': "Form [PDF, 2 MB] and f(x)[1]",
    "<p><ruby>図書館<rp>(</rp><rt>としょかん</rt><rp>)</rp></ruby>の時間</p>": "図書館の時間",
    "<p>About <math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> and <math><semantics><msup><mi>a</mi><mn>2</mn></msup>"
    "<annotation encoding='application/x-tex'>a^2</annotation></semantics></math></p>": "About 1/2 and a^2",
    "<math><msqrt><mn>16</mn></msqrt><mo>=</mo><mroot><mn>64</mn><mn>3</mn></mroot></math>": "√16=64^(1/3)",
    "<math><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup></math>": "x_1^2",
    "<math><mfrac><mrow><mn>10</mn><mo>+</mo><mi>x</mi></mrow><msup><mn>10</mn><mn>6</mn></msup></mfrac></math>": (
        "(10+x)/(10^6)"
    ),
    "<ol start=0><li>a<li>b</ol>": "a b",
    "7<p></p>50 €": "7 50 €",
    "7<form><label>Name</label></form>50 €": "7 50 €",
    "7<nav>Menu</nav>50 €": "7 50 €",
    "7<iframe></iframe>50 €": "7 50 €",
    "7<span hidden>x</span>50 €": "750 €",
    "<p>Unclosed <b>bold <table><tr><td>cell</div></p> kestrel": "Unclosed bold cell kestrel",
}


# As pages of councils, universities and shops are built
BUILT = {
    "<span>Sep - 2019</span><span>18</span><span>Wed</span>": ["Sep - 2019 18 Wed"],
    "<a href=/p>Prev</a><a href=/n>Next</a> <b>W</b>elcome <code><b>a1</b><b>B</b></code>": ["Prev Next Welcome a1B"],
    "<a href=/x><h3>Board Meeting</h3></a><p>Room 1</p><ul><a href=/y><li>Agenda</a></ul>": ["Room 1", "Agenda"],
    "<p><img alt='4 of 5'><img alt='4 of 5'>stars <img alt=pool.JPG>and <img alt=more>.": [
        "4 of 5 4 of 5 stars and more."
    ],
    "<p><a href='/add?x=1|2'>Add both</a>": ["Add both"],
    "<div><div class=field__label>Start</div><div class=field__item>10 am</div></div>"
    "<div class='field-label'>Rooms</div><div class=field-items><div class=field-item>1</div><div class=field-item>2"
    "</div></div>": ["Start: 10 am", "Rooms: 1", "Rooms: 2"],
    "<div class=field__item>Closed</div>": ["Closed"],
}


@pytest.mark.parametrize("html", BUILT)
def test_what_a_style_sheet_sets_apart_is_said_apart(html: str) -> None:
    assert [unit.said for unit in units(to_markdown(html), "en")] == BUILT[html]


@pytest.mark.parametrize("html", READ)
def test_what_stands_there_is_read(html: str) -> None:
    assert plain(to_markdown(html)) == READ[html]


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<ol start=0><li>a<li>b</ol>", "0. a\n1. b"),
        ("<ol reversed><li>a<li>b<li value=9>c<li>d</ol>", "4. a\n3. b\n9. c\n8. d"),
        ("<ol type=a start=2><li>a<li>b</ol>", "- b. a\n- c. b"),
        ("<ol type=I><li>a<li>b</ol>", "- I. a\n- II. b"),
        ("<ol start=-1><li>a<li>b</ol>", "- -1. a\n\n0. b"),
    ],
)
def test_lists_count_as_on_the_page(html: str, markdown: str) -> None:
    assert to_markdown(html).replace("\n\n", "\n") == markdown.replace("\n\n", "\n")


@pytest.mark.parametrize(
    ("html", "markdown", "said"),
    [
        ("<p>Card: <del>20 €</del> <ins>15 €</ins></p>", "Card: ~~20 €~~ 15 €", ["Card: 15 €"]),
        (
            "<ul><li><s>Pool 9 €</s><li>Hall <strike>8 €</strike>6 €</ul>",
            "- ~~Pool 9 €~~\n- Hall ~~8 €~~6 €",
            ["Hall 6 €"],
        ),
        ("<p>a</p><del><p>Open on Monday.</p><p>9 €</p></del><p>b</p>", "a\n\nb", ["a", "b"]),
        (
            "<table><tr><th>a<th>b<tr><td>c<td><s>5</s> 4</table>",
            "| a | b |\n| --- | --- |\n| c | ~~5~~ 4 |",
            ["a: c; b: 4"],
        ),
    ],
)
def test_what_was_deleted_is_marked_and_never_said(html: str, markdown: str, said: list[str]) -> None:
    assert to_markdown(html) == markdown
    assert [unit.said for unit in units(markdown, "en")] == said


def test_dates_and_signs_are_said_whole() -> None:
    html = "<p>3. Oktober: geschlossen</p><ul><li>- 5 °C<li>3. Oktober</ul><table><tr><td>- 30,3 %<td>1. Mai</table>"
    assert [unit.said for unit in units(to_markdown(html), "de")] == [
        "3. Oktober: geschlossen",
        "- 5 °C",
        "3. Oktober",
        "- 30,3 %; 1. Mai",
    ]


def test_code_is_said_as_it_is() -> None:
    assert [unit.said for unit in units(to_markdown("<pre>a * b\n# __c__</pre>"), "en")] == ["a * b # __c__"]


@pytest.mark.parametrize(
    ("html", "said"),
    [
        # a price that only a style strikes through
        ('<p>Abo: <span style="text-decoration: line-through">49 €</span> 39 €</p>', ["Abo: 39 €"]),
        ("<p>Abo: <span style='color:red;text-decoration-line:line-through'>49 €</span> 39 €</p>", ["Abo: 39 €"]),
        ('<p><span style="text-decoration:underline">Abo</span>: 39 €</p>', ["Abo: 39 €"]),
        ('<p style="text-decoration:line-through">Abo 49 €.</p><p>Abo 39 €.</p>', ["Abo 39 €."]),
        ('<ul><li style="text-decoration: line-through">a <b>5 €</b><ul><li>6 €</ul><li>7 €</ul>', ["7 €"]),
        (
            '<table><tr><th>Karte<th>Preis<tr><td>Tag<td><p style="text-decoration:line-through">4 €</p><p>5 €</p>'
            '<tr style="text-decoration-line:line-through"><td>Jahr<td>40 €<tr><td>Monat<td>30 €</table>',
            ["Karte: Tag; Preis: 5 €", "Karte: Monat; Preis: 30 €"],
        ),
        ('<h2 style="text-decoration:line-through">Markt am 5. 12.</h2><p>Entfällt.', ["Entfällt."]),
        ('<p><a href="/a" style="text-decoration:line-through">7 €</a> 6 €</p><p>9 €</p>', ["6 €", "9 €"]),
        # cents that a style raises
        ('<p>Preis: 7<span class="cent">50</span> €</p>', ["Preis: 7,50 €"]),
        ('<p><span class="price-integer">24</span><span class="price-decimals">90</span> €</p>', ["24,90 €"]),
        ("<p>Nur 19<small>95</small> €, 20<small>m</small>, 5<small> cm</small></p>", ["Nur 19,95 €, 20m, 5 cm"]),
        ("<p>Saal 5<small>10 Plätze</small></p><small>12</small>", ["Saal 5 10 Plätze", "12"]),
        # cents in bold
        ("<p><strong>7</strong><sup><strong>50</strong></sup> €</p>", ["7,50 €"]),
        # no cents
        ("<p>Kinder 4<sup>–</sup> €</p>", ["Kinder 4,– €"]),
        # the number of a note behind money
        ("<p>Das kostet €150.000<sup>2</sup>.</p>", ["Das kostet €150.000."]),
        ("<p>Von $10<sup>9</sup> an.</p>", ["Von $10^9 an."]),
        # a shop's prices, said once more for screen readers
        (
            '<p><del aria-hidden="true">25 €</del> <span class="screen-reader-text">Zuvor: 25 €.</span>'
            '<ins aria-hidden="true">19 €</ins><span class="screen-reader-text">Jetzt: 19 €.</span></p>',
            ["19 € Jetzt: 19 €."],
        ),
        (
            '<p><del>25 €</del> <span class="screen-reader-text">Zuvor: 25 €.</span>'
            '<ins>19 €</ins> <span class="screen-reader-text">Jetzt: 19 €.</span></p>',
            ["19 € Jetzt: 19 €."],
        ),
        ('<p>Bad<span class="sr-only">: </span>4 €</p>', ["Bad: 4 €"]),
        # a table of ARIA
        (
            '<div role="table"><div role="row"><span role="cell">Klein</span><span role="cell">€4</span></div></div>',
            ["Klein €4"],
        ),
        # accordions and tabs without ids
        (
            '<h3><button aria-expanded="false">Wann?</button></h3><div hidden><p>Um 8 Uhr.</p></div>',
            ["Um 8 Uhr."],
        ),
        ("<h3>Wann?</h3><div hidden><p>Um 8 Uhr.</p></div><p>Nie.", ["Nie."]),
        (
            '<ul><li><a href="#a">Eins</a><li><a href="#b">Zwei</a></ul><div class="tab-content" id="a">1 €</div>'
            '<div class="tab-content" id="b" style="display:none">2 €</div>',
            ["1 €", "2 €"],
        ),
        ('<p>Mo<span class="visually-hidden">ntag</span>: zu</p>', ["Montag: zu"]),
        # the icon of WordPress's accordion
        (
            '<h3><button class="wp-block-accordion-heading__toggle" aria-expanded="false" aria-controls="a">'
            '<span>Wann?</span><span class="wp-block-accordion-heading__toggle-icon" aria-hidden="true">+</span>'
            '</button></h3><div id="a" hidden><p>Um 8 Uhr.</p></div>',
            ["Um 8 Uhr."],
        ),
        # tabs as Webflow writes them, and what it hides
        (
            '<div><a data-w-tab="Tab 1" class="w-tab-link"><div>Monthly</div></a><a data-w-tab="Tab 2" '
            'class="w-tab-link"><div>Yearly</div></a></div><div><div data-w-tab="Tab 1" class="w-tab-pane">12 €</div>'
            '<div data-w-tab="Tab 2" class="w-tab-pane">120 €</div></div><p class="w-condition-invisible">Sold out</p>',
            ["12 €", "120 €"],
        ),
        # what the page's own style sheet strikes through, as Google Docs writes it
        ("<style>.c1{x:y}.c3{text-decoration:line-through}</style><p><span class=c3>5 €</span> 6 €", ["6 €"]),
        ("<style>.c1 .c3, .c3:hover{text-decoration:line-through}</style><p><span class=c3>5 €</span>", ["5 €"]),
        # several words for screen readers behind a letter, as Shopify's sizes have them
        ('<p>S<span class="visually-hidden">Variant sold out</span></p>', ["S Variant sold out"]),
        # line numbers
        (
            '<table class="highlighttable"><tr><td class="linenos"><pre>1</pre><td><pre>port: 80</pre></table>',
            ["port: 80"],
        ),
        # an author's name is no heading of what follows
        ('<h1>Fees</h1><h4 class="author-name">Ann Lee</h4><p>From 5 €.', ["Ann Lee", "From 5 €."]),
        # a term with a colon
        ("<dl><dt>Open:<dd>9–12</dl>", ["Open: 9–12"]),
        # two lines of hours in a cell
        ("<table><tr><td>Mo<td>9–12 Uhr<br>14–18 Uhr</table>", ["Mo; 9–12 Uhr; 14–18 Uhr"]),
        ("<table><tr><td>Ada<td>Haus 3<br>oben</table>", ["Ada; Haus 3 oben"]),
        # back to a note, and to a heading
        ('<ol><li>Ohne Porto. <a href="#a1">↩︎</a></ol>', ["Ohne Porto."]),
    ],
)
def test_what_only_styles_and_scripts_say_is_said_as_seen(html: str, said: list[str]) -> None:
    markdown = read(html, "de").markdown
    assert [unit.said for unit in units(markdown, "de")] == said
    assert "+" not in markdown
