"""Converts HTML to text. The only place that does.

    HTML ─content_tree─▶ tree of the content ─markdownify, text.tables─▶ Markdown ─tidy─▶ text

HTML is untrusted: nothing here raises or recurses without bound, and the functions for ingest take linear time for any
input.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from text.html_elements import line, markdown
from text.html_tree import ContentTree, behind_limit, content_tree
from text.loss import CUT, LeftOutText, Words, counted, measured
from text.scripts import decimal_sign

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
_ANY_TAG = re.compile(r"</?[a-zA-Z!][^>]*(?:>|\Z)")
_ANY_ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
_SPACE = re.compile(r"[ \t\r\n\f\xa0]+")
# Invisible: controls except tab and line end, lone surrogates, soft hyphens, zero-width spaces, byte order marks.
# Joiners (U+200C, U+200D) and direction marks are kept, since Persian, emoji and mixed texts need them.
# Marks of windows-1252 that a page in UTF-8 holds by their old numbers, such as an apostrophe. U+0085 is a line end.
_OLD = {code: mark for code in range(0x80, 0xA0) if code != 0x85 and (mark := bytes([code]).decode("cp1252", "ignore"))}
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_ODD_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_BLANK_LINES = re.compile(r"\n{3,}")
# A one-line paragraph that begins with a number or sign. A single item that is not the first one is no list.
_ALONE = re.compile(r"^((?<![^\n]\n)(?:(?!1[.)])\d{1,3}(?=[.)] )|(?=[-+] \d)))(.)(?= [^\n]*(?:\n\n|\Z))", re.MULTILINE)


@dataclass(frozen=True)
class Text:
    """What HTML is as text."""

    markdown: str
    left_out: tuple[LeftOutText, ...] = ()
    tree: ContentTree | None = None  # None: it is no HTML, and loses nothing

    @property
    def is_cut(self) -> bool:
        """Whether it is of the beginning of the HTML alone."""
        return any(why == CUT for why, _ in self.left_out)

    def words(self, elsewhere: Mapping[str, int]) -> Words | None:
        """How many words there are; None of what is no HTML and no part of a page.

        Args:
            elsewhere: Words of the page that were left out before, by why.
        """
        if self.tree is None:
            return None
        return measured(self.tree, self.markdown, counted(self.left_out) + Counter(elsewhere))


def read(content: str, lang: str = "") -> Text:
    """HTML as Markdown; text without a single tag is Markdown, entities resolved.

    Headings, lists, tables, links and code keep their form, images become their alternative text. Left out:
    scripts, styles, navigation, a page's own header and footer, consent bars, forms, hidden elements. The Markdown is
    NFC, with neither control characters nor lone surrogates, lines ended by one line feed.

    Args:
        lang: of the content, which has the decimal sign of 7<sup>50</sup> €.
    """
    text = _clean(content)
    if not _TAG.search(text):
        return Text(_ALONE.sub(r"\1\\\2", tidy(_ENTITY.sub(_unescape, text))))
    tree = content_tree(text)
    cut = without_tags(behind_limit(text), " ")
    left_out = (*tree.left_out, LeftOutText(CUT, cut)) if cut else tuple(tree.left_out)
    return Text(tidy(markdown(tree, decimal_sign(lang))), left_out, tree)


def to_markdown(content: str) -> str:
    return read(content).markdown


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
    text = _without_scripts(text)
    end = text.rfind(">") + 1  # a tag that begins behind it has no end, and is kept as text
    return _ANY_TAG.sub(instead.replace("\\", r"\\"), text[:end]) + text[end:]


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


def one_line(text: str, lang: str = "") -> str:
    """A short field: one line, no mark-up; `lang` as in `read`."""
    text = _clean(text)
    text = line(content_tree(text), decimal_sign(lang)) if _TITLE_TAG.search(text) else _ENTITY.sub(_unescape, text)
    return " ".join(tidy(text).split())


def _unescape(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _clean(text: str) -> str:
    return _INVISIBLE.sub("", _SURROGATE.sub("\ufffd", text).translate(_OLD))
