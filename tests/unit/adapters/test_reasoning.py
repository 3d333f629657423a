"""What a model thinks aloud."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.written import ReasoningFilter

PIECES = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<THINKING>", "</Thinking>", "<", ">", "<thin", "k>", "/", "</", "think", "ing", " ",
         "\n", "Nine", "<b>", "\u0130", "\u212a"]
    ),
    max_size=12,
)  # fmt: skip


def spoken(*pieces: str) -> list[str]:
    one = ReasoningFilter()
    return [*(one.feed(piece) for piece in pieces), one.finish()]


@given(PIECES, st.data())
def test_however_the_stream_is_cut_the_same_is_spoken(pieces: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(["", "<think>", "\n<Thinking>so"])) + "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    said = spoken(*(text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)))
    block = r"\s*<think(?:ing)?>(?s:.*?)(?:</think(?:ing)?>\s*|\Z)"
    assert "".join(said) == re.sub(rf"\A(?:{block})+", "", text, flags=re.IGNORECASE)
    assert "".join(spoken(*text)) == "".join(said)


@given(PIECES)
def test_no_more_is_held_back_than_what_may_open_reasoning(pieces: list[str]) -> None:
    text = "".join(pieces)
    one, said = ReasoningFilter(), ""
    for n, ch in enumerate(text, 1):
        said += one.feed(ch)
        opens = any(tag.startswith(text[:n].lstrip().lower()) for tag in ("<think>", "<thinking>"))
        if not (opens or re.match(r"\s*<think(?:ing)?>", text[:n], re.IGNORECASE)):
            assert said == text[:n]


def test_several_thoughts_in_a_row_are_all_thoughts() -> None:
    assert "".join(spoken("<think>a</think>\n<think>b</think>\n\nNine.")) == "Nine."
