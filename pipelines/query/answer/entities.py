"""Entities: replaces HTML entities in a model's text (`AT&amp;T` becomes AT&T), as in pages.

    "12&nbsp;eu" "ros, see `a &amp; b`" ─▶ "12\\u00a0eu" "ros, see `a &amp; b`"

This is the first filter, so that entities hide nothing from the filters for links and citations. A character that is a
mark of Markdown is escaped with a backslash, and code is left unchanged, as CommonMark has it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from html.entities import html5

_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z\d]{1,31});", re.IGNORECASE)
_BEGUN = re.compile(r"&(?:#\d{0,7}|#x[0-9a-f]{0,6}|(?:[a-z][a-z\d]{0,31})?)", re.IGNORECASE)
_MARKS = frozenset("\\`*_[]|~")
FENCE = "```"


class CodeSpans:
    """Whether a Markdown text, read character by character, is inside of code, where nothing means anything else.

    It is fed a text once, however long it is: what it keeps is about the line that is being read.
    """

    def __init__(self) -> None:
        self._within = False  # a fence was opened on a line before
        self._begins = ""  # the first characters of the line
        self._odd = False  # backticks on the line

    def feed(self, text: str) -> None:
        for ch in text:
            if ch == "\n":
                self._within, self._begins, self._odd = self.fenced, "", False
                continue
            if len(self._begins) < len(FENCE) and (self._begins or not ch.isspace()):
                self._begins += ch
            self._odd ^= ch == "`"

    @property
    def fenced(self) -> bool:
        """In a block of code, the line that opens it included."""
        return self._within != (self._begins == FENCE)

    @property
    def inside(self) -> bool:
        """There, or between two backticks of a line."""
        return self.fenced or self._odd


class EntityReader:
    """Takes a text piece by piece and gives it with its entities read. However it is cut, that is the same."""

    def __init__(self) -> None:
        self._held = ""  # what may become an entity
        self._code = CodeSpans()

    def feed(self, piece: str) -> str:
        """The text that is final after this piece."""
        said: list[str] = []
        for ch in piece:
            if self._held:
                held = self._held + ch
                if _BEGUN.fullmatch(held):
                    self._held = held
                    continue
                self._held = ""
                if _ENTITY.fullmatch(held):
                    said.append(self._said(_read(held)))
                    continue
                said.append(self._said(held[:-1]))
            if ch == "&" and not self._code.inside:
                self._held = ch
            else:
                said.append(self._said(ch))
        return "".join(said)

    def finish(self) -> str:
        """The text that is final only at the end."""
        held, self._held = self._held, ""
        return held

    def _said(self, text: str) -> str:
        self._code.feed(text)
        return text


def _read(entity: str) -> str:
    said = html.unescape(entity) if entity[1] == "#" else html5.get(entity[1:], entity)
    if any(unicodedata.category(ch) == "Cc" for ch in said):
        return entity  # a line end so written is none of Markdown's
    return "".join(f"\\{ch}" if ch in _MARKS else ch for ch in said)
