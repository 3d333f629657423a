"""Every word of a page is either in its text or told with the reason why it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text import html_tree
from text.html import read
from text.loss import CUT, DELETED, FRAME, HIDDEN, counted, is_lacking, share, warning

REASONS = {
    "<nav>a menu here</nav>": {"menu": 3},
    "<nav>a <script>no word</script>menu</nav>": {"menu": 2},
    "<ul class=breadcrumbs><li>Home</ul>": {"menu": 1},
    "<h2>Fees<span class=mw-editsection>[<a href=/e>edit</a>]</span></h2>": {"menu": 1},
    "<div role=navigation>Home</div>": {"menu": 1},
    "<header>Town</header>": {"header": 1},
    "<div role=contentinfo>Imprint</div>": {"footer": 1},
    "<div class=cookie-banner>We use cookies</div>": {"consent": 3},
    "<dialog open>Sign up</dialog>": {"dialog": 2},
    "<form><label>Name</label><input></form>": {"form": 1},
    "<select><option>Monday<option>Tuesday</select>": {"form": 2},
    "<button>Print</button>": {"form": 1},
    "<p><del>Open on Monday. Closed on <b>Tuesday</b>.</del> <del>9 €</del></p>": {DELETED: 6},
    "<div hidden>nobody sees it</div>": {HIDDEN: 3},
    "<script>let a = 1</script><style>b {}</style><noscript>c</noscript><svg><text>d</text></svg>": {},
    "<details><summary>Fees</summary>9 euros</details>": {},
    "<div class=accordion><button aria-expanded=false>Fees</button><div hidden>9 euros</div></div>": {},
}


@pytest.mark.parametrize("html", REASONS)
def test_what_is_left_out_is_counted_with_its_reason(html: str) -> None:
    words = read(f"<p>one two three</p>{html}<p>four</p>").words({})
    assert words
    assert words.left_out == REASONS[html]
    seen = sum(count for why, count in words.left_out.items() if why != HIDDEN)
    assert words.visible == words.indexed + seen


def test_what_is_no_html_loses_nothing_and_is_not_counted() -> None:
    assert read("# Fees\n\n9 euros, 1 < 2").words({"menu": 3}) is None


def test_what_stands_behind_the_limit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_tree, "MAX_TAGS", 4)
    words = read("<p>one</p><p>two</p><p>three four</p>").words({})
    assert words
    assert (words.visible, words.indexed, words.left_out) == (4, 2, {CUT: 2})


def test_a_page_that_loses_a_tenth_is_flagged_and_the_frame_is_no_loss() -> None:
    for elsewhere, kept in (
        (dict.fromkeys([*FRAME, HIDDEN], 99), 1.0),
        ({"form": 1}, 0.9),
        ({"form": 1, "not taken for content": 2}, 0.75),
    ):
        words = read("<p>1 2 3 4 5 6 7 8 9</p>").words(elsewhere)
        assert words
        assert share(words) == kept
        assert is_lacking(words) == (kept < 0.9) == (warning(words) is not None)
    assert warning(words) == (
        "75% of the words that its visitors see can be found; left out: form: 1, not taken for content: 2"
    )


PIECES = (
    "<p>x y</p>", "<b>x</b>y", "<table><tr><td>x<td>y</table>", "<ul><li>x<li>y</ul>", "<p>m<sup>2</sup></p>", "<br>",
    "z", "<p>H<sub>2</sub>O</p>", "<nav>n</nav>", "<iframe></iframe>",
)  # fmt: skip


@given(st.lists(st.sampled_from([*REASONS, *PIECES]), min_size=1))
def test_what_is_in_the_content_is_all_in_the_text(pieces: list[str]) -> None:
    text = read("<div>" + "".join(pieces) + "</div>")
    words = text.words({})
    assert words
    assert words.left_out == counted(text.left_out)
