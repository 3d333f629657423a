"""Converts HTML to text. The only place that does.

    HTML ─content_tree─▶ tree of the content ─markdownify, text.tables─▶ Markdown ─tidy─▶ text

HTML is untrusted: nothing here raises or recurses without bound, and the functions for ingest take linear time for any
input.
"""

from __future__ import annotations

import html
import re
import unicodedata

from text.html_elements import line, markdown
from text.html_tree import content_tree, too_many_tags

_TAG = re.compile(r"<(?:[a-zA-Z][a-zA-Z0-9:-]*[\s/>]|/[a-zA-Z]|!)")
# Tags that are mark-up in a title. A title such as "Vector<int> explained" is text.
_TITLE_TAG = re.compile(
    r"</?(?:a|abbr|b|big|br|center|code|div|em|font|h[1-6]|i|img|li|mark|p|s|small|span|strong|sub|sup|u|ul|wbr)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_SCRIPT = re.compile(r"<(script|style)", re.IGNORECASE | re.ASCII)
_SCRIPT_END = {name: re.compile(f"</{name}>", re.IGNORECASE | re.ASCII) for name in ("script", "style")}
# A tag without an end extends to the end of the text, so that the search stays linear.
_ANY_TAG = re.compile(r"</?[a-zA-Z!][^>]*(?:>|(?P<endless>\Z))")
_ANY_ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
_SPACE = re.compile(r"[ \t\r\n\f\xa0]+")
# Invisible: controls except tab and line end, lone surrogates, soft hyphens, zero-width spaces, byte order marks.
# Joiners (U+200C, U+200D) and direction marks are kept, since Persian, emoji and mixed texts need them.
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_ODD_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_BLANK_LINES = re.compile(r"\n{3,}")
# A one-line paragraph that begins with a number or sign. A single item that is not the first one is no list.
_ALONE = re.compile(r"^((?<![^\n]\n)(?:(?!1[.)])\d{1,3}(?=[.)] )|(?=[-+] \d)))(.)(?= [^\n]*(?:\n\n|\Z))", re.MULTILINE)


def to_markdown(content: str) -> str:
    """Convert HTML to Markdown. Text without any tag is treated as Markdown with entities.

    Keeps headings, lists, tables, links and code; images become their alternative text. Leaves out scripts, styles,
    navigation, the page's header and footer, consent bars, forms and hidden elements. Returns NFC without control
    characters and lone surrogates, with line feeds.
    """
    text = _clean(content)
    if _TAG.search(text):
        return tidy(markdown(content_tree(text)))
    return _ALONE.sub(r"\1\\\2", tidy(_ENTITY.sub(_unescape, text)))


def is_cut(content: str) -> bool:
    """Whether `to_markdown` only reads the beginning of this HTML."""
    return too_many_tags(content) and _TAG.search(content) is not None


def tidy(text: str) -> str:
    """Normalize plain text like the result of `to_markdown`."""
    text = unicodedata.normalize("NFC", _ODD_SPACE.sub(" ", _LINE_END.sub("\n", _clean(text))))
    return _BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()


def stripped(text: str) -> str:
    """HTML without tags and entities, white space as single spaces.

    Does the same as WordPress's functions and our plugin (class-pages.php), so that both make the same document.
    """
    return _SPACE.sub(" ", _ANY_ENTITY.sub(_unescape, without_tags(text))).strip(" ")


def without_tags(text: str, instead: str = "") -> str:
    """HTML without scripts and styles, with `instead` in place of each tag. Entities are kept."""
    return _ANY_TAG.sub(lambda tag: instead if tag["endless"] is None else tag[0], _without_scripts(text))


def _without_scripts(text: str) -> str:
    """HTML without scripts and styles. Unclosed ones are kept, since the rest may be the page's text."""
    kept, at, begin = [], 0, _SCRIPT.search(text)
    closed = {"script": True, "style": True}
    while begin:
        name = begin[1].lower()
        opened = text.find(">", begin.end()) if closed[name] else -1
        end = _SCRIPT_END[name].search(text, opened) if opened >= 0 else None
        if end:
            kept.append(text[at : begin.start()])
            at = end.end()
        else:
            closed[name] = False  # later ones are not closed either
        begin = _SCRIPT.search(text, end.end() if end else begin.end())
    return "".join(kept) + text[at:]


def one_line(text: str) -> str:
    """A short field: one line, no mark-up."""
    text = _clean(text)
    text = line(content_tree(text)) if _TITLE_TAG.search(text) else _ENTITY.sub(_unescape, text)
    return " ".join(tidy(text).split())


def _unescape(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _clean(text: str) -> str:
    return _INVISIBLE.sub("", _SURROGATE.sub("\ufffd", text))
