from __future__ import annotations

import random
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from text import html_tree
from text.html import one_line, stripped, tidy, to_markdown

KEPT = [
    ("<h1>A</h1><p>b</p><h3>C</h3>", "# A\n\nb\n\n### C"),
    ("<h6>A</h6><h2> </h2>", "###### A"),
    ("<p>a <b>b</b> <em>c</em> <code>d_e*f</code></p>", "a **b** *c* `d_e*f`"),
    ("<p>one<br>two</p>", "one\ntwo"),
    ("<p>soft\n   wrapped\ttext</p>", "soft wrapped text"),
    ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
    ("<ol start=3><li>a<li>b<li value=9>c</ol>", "3. a\n4. b\n9. c"),
    ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
    ('<p><a href="/a b?x=(1)">text</a></p>', "[text](/a%20b?x=%281%29)"),
    ('<a href="#top">top</a> <a href="javascript:x()">js</a> <a>none</a>', "top js none"),
    ('<a href="/x"><img src="i.png" alt="A cat"></a> <img src="j.png">', "[A cat](/x)"),
    (
        "<table><tr><th>a<th>b</tr><tr><td>1|2<td><p>3</p><p>4</p></tr></table>",
        "| a | b |\n| --- | --- |\n| 1\\|2 | 3; 4 |",
    ),
    ("<dl><dt>a<dd>b<dd>c<dt>d<dd><p>e</p><p>f</p></dl>g", "a\n:   b\n:   c\n\nd\n:   e\n\n    f\n\ng"),
    ("<dl><div><dt>a</dt> <dt>b</dt><dd>c</dd></div><div><dt>d<dd>e</div></dl>", "a\nb\n:   c\n\nd\n:   e"),
    ("<table><tr><th><dl><dt>a<dd>b</dl><tr><td>c</table>", "| a b |\n| --- |\n| c |"),
    ("<table><tbody><tr><td>a<td>b</tbody></table>", "|  |  |\n| --- | --- |\n| a | b |"),
    ("<table><tr><td>a<tr><td><b>c</b></table>", "a\n\n**c**"),
    ("<table role=presentation><tr><td><h2>A</h2><p>b</p></table>", "## A\n\nb"),
    ('<pre><code class="language-py">if x:\n    y()\n</code></pre>', "```py\nif x:\n    y()\n```"),
    ('<pre class="lang-sh">a\n\nb</pre>', "```sh\na\n\nb\n```"),
    ("<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"),
    ("<main>a<aside>b</aside></main>", "a\n\nb"),
    ("<details><summary>Question?</summary>Answer.</details>", "###### Question?\n\nAnswer."),
    ("<details><summary><h3>Question?</h3></summary>Answer.</details>", "#### Question?\n\nAnswer."),
    ("<h2>A</h2><details><summary>b?</summary>c</details><h2>D</h2>", "## A\n\n### b?\n\nc\n\n## D"),
    # What stands behind it would stand below its heading.
    ("<details><summary>Question?</summary><p>Answer.</p></details><p>b</p>", "Question?\nAnswer.\n\nb"),
    ("<h2><button>Question?</button></h2><p>Answer.</p>", "## Question?\n\nAnswer."),
    ("<article><header><h1>A</h1></header>b<footer>c</footer></article>", "# A\n\nb\n\nc"),
    ("<x-card>a</x-card><x-card>b</x-card>", "a b"),
    ('<body class="cookie-bar-shown"><p>a</p></body>', "a"),
    ('<div class="cookie-recipes">Cookies with chocolate</div>', "Cookies with chocolate"),
    ('<div class="has-cookie-banner">page</div>', "page"),
    ('<h2 id="cookie-notice">Cookie notice</h2>', "## Cookie notice"),
    ('<div class="menu">Soup of the day</div>', "Soup of the day"),
    ("<form id=aspnetForm><h1>A</h1><p>b</p><input></form>", "# A\n\nb"),
    ('<div hidden="until-found">a</div>', "a"),
    ("<p>a&nbsp;b &amp; c&shy;d \u200be\ufefff</p>", "a b & cd ef"),
    ("<p>می\u200cخواهم</p>", "می\u200cخواهم"),
    ("<p>e\u0301</p>", "é"),
    ('<?xml version="1.0" encoding="utf-8"?><p>a</p>', "a"),
]
# A page's HTML as browsers read it.
KEPT += [
    ("<header><div>Logo</header><main><p>A dog costs 84 euros.</p></main>", "A dog costs 84 euros."),
    ("<main><header><p>From 2027: 90 euros.</p></header><p>a</p></main>", "From 2027: 90 euros.\n\na"),
    ("<head><noscript><img src=x></noscript><title>t</title></head><p>a", "a"),
    ("<td>9</td><td>12</td>", "9\n\n12"),  # browsers would write 912
    ('<x-tab><template shadowrootmode="open"><p>a</p></template></x-tab><template>b</template>', "a"),
    ('<a href="/x">Form<span class="sr-only"> (opens in a new window)</span></a>', "[Form](/x)"),
    ('<h2 class="visually-hidden">Fees</h2>', "## Fees"),
]
# What a control of the page opens is content, under the control's text: adobecom/milo PR 6703, BuilderIO/gpt-crawler
# issue 157, w3c/aria-practices issue 2443.
_QUESTION = '<h3><button aria-expanded="false" aria-controls="p1">Opening hours?</button></h3>'
KEPT += [
    (f'{_QUESTION}<div id="p1" role="region" {hidden}><p>9 to 5</p></div>', "### Opening hours?\n\n9 to 5")
    for hidden in ("hidden", 'style="display:none"', 'aria-hidden="true"', "")
]
KEPT += [
    (
        '<div role="tablist"><button role="tab">Prices</button><button role="tab">Hours</button></div>'
        '<div role="tabpanel"><p>5 euros</p></div><div role="tabpanel" hidden><p>9 to 5</p></div>',
        "## Prices\n\n5 euros\n\n## Hours\n\n9 to 5",
    ),
    (
        "<h1>A</h1><ul role=tablist><li><a role=tab aria-controls=a>One</a></li><li><a role=tab id=t>Two</a></li></ul>"
        "<div id=b role=tabpanel aria-labelledby=t hidden>second</div><div id=a role=tabpanel>first</div>",
        "# A\n\n## Two\n\nsecond\n\n## One\n\nfirst",
    ),
    (
        '<button class="accordion">How much is parking?</button><div class="panel"><p>2 euros an hour</p></div>',
        "## How much is parking?\n\n2 euros an hour",
    ),
    ('<button class="accordion">Q</button><div style="display:none">A</div>', "## Q\n\nA"),
    ('<button class="accordion"><i>+</i> Q+</button><div style="display:none">A</div>', "## Q+\n\nA"),
    ("<h1>F</h1><details><summary>Q <span>▾</span></summary><p>A</p></details>", "# F\n\n## Q\n\nA"),
    (
        '<h2>FAQ</h2><button data-bs-target="#c">Q</button><p>b</p><div id="c" hidden>A</div>',
        "## FAQ\n\nb\n\n### Q\n\nA",
    ),
    ("<div role=button aria-controls=x>Q</div><ul id=x aria-hidden=true><li>A</ul>", "## Q\n\n- A"),
]
DROPPED = [
    "<script>a()</script>",
    "<style>a {}</style>",
    "<template>a</template>",
    "<noscript>a</noscript>",
    "<nav>a</nav>",
    "<header>a</header>",
    "<footer>a</footer>",
    '<div role="navigation">a</div>',
    '<div role="banner">a</div>',
    '<div role="contentinfo">a</div>',
    '<div role="dialog">a</div>',
    '<div id="CookieBanner">a</div>',
    '<div class="x cookie-consent">a</div>',
    '<div id="onetrust-consent-sdk">a</div>',
    '<div class="cmplz-cookiebanner">a</div>',
    '<section class="gdpr_popup"><p>a</p></section>',
    '<div class="navbar">a</div>',
    '<p class="skip-link">a</p>',
    "<form>a <input value=b><button>c</button></form>",
    "<form><h2>a</h2><label>b</label><input></form>",
    "<form><p>a</p><input></form>",
    "<button>a</button>",
    "<select><option>a</select>",
    "<textarea>a</textarea>",
    "<svg><title>a</title></svg>",
    "<iframe>a</iframe>",
    "<p hidden>a</p>",
    '<p aria-hidden="true">a</p>',
    '<button aria-controls="nowhere">a</button>',
    "<button aria-expanded=false aria-controls=menu>a</button><div id=menu hidden><a href=/x>b</a></div>",
    "<button aria-controls=d>a</button><div id=d role=dialog hidden>b</div>",
    "<button aria-controls=d>a</button><div id=d class=cookie-banner hidden>b</div>",
    "<button>a</button><div hidden></div>",
    '<p style="color: red; display : none">a</p>',
    '<p style="visibility:hidden">a</p>',
    "<!-- a -->",
    "<title>a</title>",
]


@pytest.mark.parametrize(("html", "markdown"), KEPT)
def test_content_keeps_its_form(html: str, markdown: str) -> None:
    assert to_markdown(html) == markdown


@pytest.mark.parametrize("html", DROPPED)
def test_what_is_no_content_is_left_out(html: str) -> None:
    assert to_markdown(f"<p>before</p>{html}<p>after</p>") == "before\n\nafter"


def test_nothing_leaks_from_inside_what_is_left_out() -> None:
    assert to_markdown("<nav><div><p>a<b>b</b></p><ul><li>c</ul></div><table><tr><td>d</table></nav><p>e</p>") == "e"


def test_what_stands_behind_an_embedded_film_is_not_taken_for_a_part_of_it() -> None:
    assert to_markdown("<div><p>one</p><embed src=a><p>two</p></div>three") == "one\n\ntwo\n\nthree"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain text", "plain text"),
        ("two\n\nparagraphs", "two\n\nparagraphs"),
        ("1 < 2 and 3 > 2, <3", "1 < 2 and 3 > 2, <3"),
        ("*stars* and snake_case", "*stars* and snake_case"),
        ("AT&amp;T &#252;ber AT&T", "AT&T über AT&T"),
        ("a\r\nb\x00c\x07", "a\nbc"),
        ("3. Oktober: zu\n\n- 5 °C\n\n+ 49 30", "3\\. Oktober: zu\n\n\\- 5 °C\n\n\\+ 49 30"),
        ("- 3 eggs\n- 2 onions\n\n1. a\n2. b\n\n1. c\n\n- d", "- 3 eggs\n- 2 onions\n\n1. a\n2. b\n\n1. c\n\n- d"),
        ("broken \ud83d half", "broken \ufffd half"),
        ("", ""),
    ],
)
def test_text_without_tags_stays_itself(text: str, kept: str) -> None:
    assert to_markdown(text) == kept


@given(st.text())
@settings(max_examples=2 * settings().max_examples)
def test_any_text_without_mark_up_keeps_its_words(text: str) -> None:
    plain = "".join(c for c in text if c.isalnum() or c in " \n")
    assert to_markdown(plain).split() == to_markdown(f"<p>{plain}</p>").split()


TAGS = st.sampled_from(
    ["a", "b", "br", "button", "code", "dd", "div", "dl", "dt", "form", "h1", "header", "hr", "i", "img", "li", "main"]
)
MORE_TAGS = st.sampled_from(
    ["nav", "ol", "p", "pre", "script", "section", "span", "table", "tbody", "td", "th", "thead", "tr", "ul", "x-y"]
)
RARE_TAGS = st.sampled_from(["o:p", "textarea", "title", "html", "body", "head", "svg", "math", "select", "h99999999"])
SCRAPS = st.sampled_from(
    ["<", ">", "&", "&#x;", "&#0;", "&#xd800;", "<!--", "-->", "<![CDATA[", "]]>", "<?xml ", "<!", "</", '"', "'", "\0"]
)
ODD = st.sampled_from(["<a href='", '<ol start="-1">', '<li value="99999999999">', '<td colspan="99999">', "\ud800"])
NAMES = st.one_of(TAGS, MORE_TAGS, RARE_TAGS)
SOUP = st.lists(
    st.one_of(
        NAMES.map(lambda tag: f"<{tag}>"),
        NAMES.map(lambda tag: f"</{tag}>"),
        SCRAPS,
        ODD,
        st.text(st.characters(), max_size=5),
    ),
    max_size=60,
).map("".join)


@given(SOUP)
@example("<h" + "9" * 5000 + ">")
@example("<?xml <a>")
@example("<p/><!DOCTYPE html><p></p></p></html><p>")
@settings(max_examples=3 * settings().max_examples)
def test_any_mark_up_becomes_clean_text(html: str) -> None:
    markdown = to_markdown(html)
    assert "\x00" not in markdown
    assert "\r" not in markdown
    assert "\n\n\n" not in markdown
    assert markdown == markdown.strip()
    markdown.encode()  # no lone surrogates


@pytest.mark.parametrize("tag", ["div", "b", "ul><li", "blockquote", "table><tr><td", "span", "section", "x-y"])
def test_ten_thousand_levels_are_no_problem(tag: str) -> None:
    markdown = to_markdown(f"<p>before</p>{f'<{tag}>' * 10_000}deep<p>after</p>")
    assert "before" in markdown
    assert "deep" in markdown
    assert "after" in markdown
    assert len(markdown) < 50_000


def test_deep_indentation_does_not_multiply_the_text() -> None:
    html = "<ul><li>word" * 2_000
    assert len(to_markdown(html)) < 4 * len(html)


def test_more_elements_than_a_page_has_lose_their_form_not_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_tree, "MAX_ELEMENTS", 10)
    assert to_markdown("<ul>" + "<li>w" * 10) == "- w\n" * 8 + "w w"


def test_a_long_word_stays_whole() -> None:
    word = "".join(random.Random(1).choices("abc", k=10_000))
    assert to_markdown(f"<p>{word}</p>") == word


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Town &amp; <b>country</b>", "Town & country"),
        ("Vector<int> &lt;explained&gt;", "Vector<int> <explained>"),
        ("<p>One</p><p>Two<br>three</p><script>x()</script>", "One Two three"),
        (" a\r\n\u00a0b\x00 ", "a b"),
    ],
)
def test_a_short_field_is_one_line_without_mark_up(text: str, line: str) -> None:
    assert one_line(text) == line


def test_text_that_is_no_html_gets_the_same_form() -> None:
    assert tidy("<b>a</b>\u00a0 \r\n\r\n\r\n\r\nb&amp;\x00 ") == "<b>a</b>\n\nb&amp;"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("3 < 4 &amp; 5 > 2", "3 < 4 & 5 > 2"),
        ("a<br/>b<!-- c -->d", "abd"),
        ("<style>p {}</style>x<SCRIPT>y</SCRIPT>", "x"),
        ("&copy=1 AT&T; &#x41;&#66;", "&copy=1 AT&T; AB"),
        ("  a\n\tb&nbsp;c ", "a b c"),
        ("<script>a</style>b<style>c</script>d</style>e", "de"),
        ("<script>open <b>bold</b>", "open bold"),
        ("<scr", "<scr"),
    ],
)
def test_stripped_is_what_wordpress_makes_of_it(html: str, text: str) -> None:
    assert stripped(html) == text


@pytest.mark.parametrize(
    "unit",
    ["<script", "<script>", "<script ", "<style><script>", "<script></script", "<", "</", "<a", "<a ", "&", "&a"],
)
def test_stripped_takes_time_that_grows_with_its_text(unit: str) -> None:
    """It took the square of the scripts that nobody closed, and of tags that do not end."""
    began = time.process_time()
    stripped(unit * (2**20 // len(unit)))
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<div class=x-price-table__price><span>€</span><span class=x-price-table__integer-part>89</span>\n"
         "<div class=x-price-table__after-price>\n <span class=x-price-table__fractional-part>90</span></div></div>",
         "€89.90"),
        ("<div class='price price--on-sale'><div class=price__regular>99 €</div><div class=price__sale><s>99 €</s>"
         " 79 €</div></div><div class=price><div class=price__regular>9 €</div></div>", "~~99 €~~ 79 €\n\n9 €"),
        ("<p class=price>Fractional 9</p><div class=after-price>Later.</div>", "Fractional 9\n\nLater."),
    ],
)  # fmt: skip
def test_prices_are_read_as_style_sheets_show_them(html: str, text: str) -> None:
    assert to_markdown(html) == text


def test_an_expanding_section_is_read() -> None:
    content = "<div class=expand-content style='display:none'><p>By hand.</p></div>"
    assert to_markdown(f"<div class=expand-control>How?</div>{content}") == "How?\n\nBy hand."


PANES = "<div class=panes><div id=p><p>5 euros</p></div><div id=h><h4>Pool</h4><p>9 to 5</p></div></div>"


@pytest.mark.parametrize(
    "tabs",
    [
        "<ul><li><a href='#p'>Prices</a></li><li><a href='#h'>Hours</a></li></ul>",
        "<ul class='nav nav-tabs'><li><a data-toggle=tab href=#p>Prices</a><li><a href=#h>Hours</a></ul>",
        "<nav><div role=tablist><a role=tab href='#p' aria-controls=p>Prices</a><a role=tab aria-controls=h>Hours</a>"
        "</div></nav>",
    ],
)
def test_links_to_sections_beside_each_other_are_tabs_and_name_them(tabs: str) -> None:
    panes = PANES.replace("<h4>Pool</h4>", "")
    assert to_markdown(f"<main><h2>Pool</h2>{tabs}{panes}</main>") == (
        "## Pool\n\n### Prices\n\n5 euros\n\n### Hours\n\n9 to 5"
    )


@pytest.mark.parametrize(
    "choices",
    [
        "<input type=radio id=a checked><label for=a>Prices</label><div class=one style='display:none'>5 euros</div>"
        "<input type=radio id=b><label for=b>Hours</label><div class=one style='display:none'>9 to 5</div>",
        "<input type=radio id=a><label for=a>Prices</label><input type=radio id=b><label for=b>Hours</label>"
        "<section style='display:none'>5 euros</section><section style='display:none'>9 to 5</section>",
        "<input type=RADIO id=a><input type=radio id=b>"
        "<ul><li><label for=a>Prices</label><li><label for=b>Hours</label></ul>"
        "<div><div style='display:none'>5 euros</div><div style='display:none'>9 to 5</div></div>",
        "<div><input type=checkbox id=a><label for=a>Prices</label><div style='display:none'>5 euros</div></div>"
        "<div><input type=checkbox id=b><label for=b>Hours</label><p>9 to 5</p></div>",
        "<input type=checkbox id=a><h3><label for=a>Prices</label></h3><div style='display:none'>5 euros</div>"
        "<h3>Hours</h3><div>9 to 5</div>",
    ],
)
def test_labels_of_choices_that_open_sections_name_them(choices: str) -> None:
    assert to_markdown(f"<main><h2>Pool</h2><div class=tabs>{choices}</div></main>") == (
        "## Pool\n\n### Prices\n\n5 euros\n\n### Hours\n\n9 to 5"
    )


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ("<p><input type=checkbox id=a><label for=a>I agree</label></p><p>Go on.</p>", "I agree\n\nGo on."),
        ("<input type=checkbox id=nav-toggle><label for=nav-toggle>Menu</label><div>Go on.</div>", "Menu\n\nGo on."),
        ("<input type=checkbox id=a><label for=a>Dark</label><div><h1>Pool</h1></div>", "Dark\n\n# Pool"),
        ("<input type=checkbox id=a><div>Go on.</div><div style='display:none'>hidden</div>", "Go on."),
        ("<input type=radio id=a><label for=a>A</label><input type=radio id=b><label for=b>B</label><div>C</div>",
         "A B\n\nC"),
        ("<label for=''>A</label><div>B</div>", "A\n\nB"),
    ],
)  # fmt: skip
def test_other_labels_stay_text(choices: str, text: str) -> None:
    assert to_markdown(f"<main>{choices}</main>") == text


def test_a_table_of_contents_names_no_section_again() -> None:
    contents = "<ul><li><a href=#p>Prices</a></li><li><a href=#h>Hours</a></li></ul>"
    for sections in (PANES, "<h2 id=p>Prices</h2><p>5 euros</p><div id=h>9 to 5</div>"):
        assert to_markdown(f"<main>{contents}{sections}</main>").startswith("- Prices\n- Hours\n\n")
    assert to_markdown(f"<main><ul><li><a href=#p>Skip to the text</a></li></ul>{PANES}</main>").startswith("- Skip")
    assert "Skip" in to_markdown(
        "<main><ul><li><a href=#p>Skip</a><li><a href=#p>Skip</a></ul><div id=p>a</div></main>"
    )


def test_what_a_system_tells_of_now_is_content_whatever_its_role() -> None:
    message = "<div class='messages messages--warning' role=contentinfo><div role=alert>The pool is closed.</div></div>"
    assert to_markdown(f"<main>{message}</main>") == "The pool is closed."
    assert to_markdown("<main><div role=contentinfo><p>Imprint</p></div>a</main>") == "a"


def test_a_break_at_the_end_of_emphasis_parts_words() -> None:
    assert to_markdown("<p><b>Phones<br></b>There are 22<em><br>blue</em> ones</p>") == (
        "**Phones**\nThere are 22\n*blue* ones"
    )


def test_marks_by_their_old_numbers_are_those_marks() -> None:
    assert to_markdown("<p>the town\x92s \x84Bad\x93, 5 \x80, a\x81b</p>") == "the town’s „Bad“, 5 €, ab"


def test_an_image_named_as_its_file_says_nothing() -> None:
    images = "".join(f"<img alt='{alt}'> " for alt in ("IMG_0305-new", "pool-1024x683", "COVID-19", "Hall_2 upstairs"))
    assert to_markdown(f"<p>{images}</p>") == "COVID-19 Hall_2 upstairs"


def test_rows_that_a_pager_opens_are_read() -> None:
    rows = "<tbody><tr><td>Ada<td>101</tbody><tbody style='display:none'><tr><td>Max<td>102</tbody>"
    text = to_markdown(f"<table><thead><tr><th>Name<th>Room</thead>{rows}</table>")
    assert "| Max | 102 |" in text
    hidden = "<table><thead><tr><th>Name<th>Room</thead><tbody hidden><tr><td>Max<td>102</tbody></table>"
    assert "Max" not in to_markdown(hidden)
