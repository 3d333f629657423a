"""The console's texts in its languages, from `words.yaml` in this folder; answers as the chat shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from babel import Locale
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup
from pydantic import TypeAdapter

from prompts.strict_yaml import UniqueKeys
from schemas.answer import Citation, Doubted

# Language -> (locale of its dates and numbers, its own name).
LANGUAGES = {"en": ("en_GB", "English"), "de": ("de_DE", "Deutsch")}
FALLBACK = "en"


class Say:
    """The texts of one language by name: `say("sign-in")`. Keyword arguments fill `{name}` in a text."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self.locale = Locale.parse(LANGUAGES[lang][0])

    def __call__(self, name: str, /, **values: object) -> str:
        """Raises: KeyError: no text has this name."""
        return catalogue()[name][self.lang].format_map(values)

    def knows(self, name: str) -> bool:
        return name in catalogue()


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Name -> language -> text. Raises: ValidationError: not a catalogue; KeyError: a text lacks a language."""
    raw = (files("gateway.console") / "words.yaml").read_text("utf-8")
    words = yaml.load(raw, UniqueKeys)  # noqa: S506
    found = TypeAdapter(dict[str, dict[str, str]]).validate_python(words)
    return {name: {lang: said[lang] for lang in LANGUAGES} for name, said in found.items()}


BREAK = re.compile(r"&lt;br\s?/?&gt;")  # how models write line breaks in cells of a table
MARKS = re.compile("(<[^<>]*>|\ue000\\d{1,4}\ue001|[\ue002\ue003])")
# Headings become bold text: an answer must not change the screen's outline. Wide tables scroll.
TAGS = {
    "heading_open": "<p><strong>",
    "heading_close": "</strong></p>",
    "table_open": '<div class="scroll" tabindex="0"><table>',
    "table_close": "</table></div>",
}
PRIVATE = re.compile("[\ue000-\ue003]")  # private-use characters, which mark places until the HTML is rendered


def seen(text: str, citations: Iterable[Citation] = (), doubted: Sequence[Doubted] = ()) -> Markup:
    """HTML without active content: HTML in the text is escaped, images are dropped, links lead to websites and mail."""
    places = [(each.end, 1, f"\ue000{each.n}\ue001") for each in citations]
    places += [(each.start, 2, "\ue002") for each in doubted] + [(each.end, 0, "\ue003") for each in doubted]
    pieces, done = list[str](), 0
    for at, _, mark in sorted(set(places)):
        pieces += (PRIVATE.sub("", text[done:at]), mark)
        done = at
    html = _renderer().render("".join((*pieces, PRIVATE.sub("", text[done:]))))
    return Markup("".join(_marked(MARKS.split(BREAK.sub("<br>", html)))))  # noqa: S704  # the renderer escapes the text


def _marked(pieces: Iterable[str]) -> Iterable[str]:
    """The HTML with citation numbers in `<sup>` and each doubtful text in a `<span class="doubt">`."""
    in_doubt = False
    for piece in pieces:
        match piece[:1]:
            case "\ue000":
                yield f"<sup>{piece[1:-1]}</sup>"
            case "\ue002" | "\ue003":
                in_doubt = piece == "\ue002"
            case "<":
                yield piece
            case "":
                pass
            case _:
                yield f'<span class="doubt">{piece}</span>' if in_doubt else piece


@cache
def _renderer() -> MarkdownIt:
    markdown = MarkdownIt("gfm-like", {"linkify": False, "html": False, "breaks": True}).disable("image")
    for token, html in TAGS.items():
        markdown.add_render_rule(token, _always(html))
    markdown.core.ruler.push("nameless", _drop_blank_headers)
    return markdown


def _drop_blank_headers(state: StateCore) -> None:
    """Drop empty table headers: Markdown demands a header row, even where columns have no names."""
    kept: list[Token] = []
    header = 0  # index where the newest header begins
    for token in state.tokens:
        kept.append(token)
        if token.type == "thead_open":
            header = len(kept) - 1
        elif token.type == "thead_close" and not any(each.content for each in kept[header:]):
            del kept[header:]
    state.tokens = kept


def _always(html: str) -> Callable[..., str]:
    def rule(*_: Any) -> str:
        return html

    return rule
