"""The numbers of a DOCX's lists and headings, which are not part of its text: "§ 4", "2.1", "(b)".

ECMA-376-1, 17.9: a paragraph or its style names a list and a level; each paragraph increments the list's counter.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
LEVELS = 9
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_PLACE = re.compile(r"%([1-9])")


@dataclass(frozen=True)
class _Level:
    start: int
    kind: str
    text: str


class Numbers:
    """Counts a document's paragraphs. Call `label` once for each, in their order."""

    def __init__(self, numbering: Any, styles: Any) -> None:
        """
        Args:
            numbering, styles: roots of these parts, None without them.
        """
        self._levels: dict[str, dict[int, _Level]] = {}  # by abstract list
        self._abstract: dict[str, str] = {}  # by list
        self._begins: dict[str, dict[int, int]] = {}  # by list and level: the first number
        self._by_style: dict[str, tuple[str, int]] = {}  # list and level
        self._counters: dict[str, dict[int, int]] = defaultdict(dict)
        for each in numbering.iter(W + "abstractNum") if numbering is not None else ():
            levels = {_int(level.get(W + "ilvl")): _level(level) for level in each.iter(W + "lvl")}
            self._levels[each.get(W + "abstractNumId")] = levels
        for each in numbering.iter(W + "num") if numbering is not None else ():
            number = each.get(W + "numId")
            self._abstract[number] = _value(each, "abstractNumId")
            over = each.iter(W + "lvlOverride")
            self._begins[number] = {
                _int(one.get(W + "ilvl")): _int(_value(one, "startOverride"), 1)
                for one in over
                if one.find(W + "startOverride") is not None
            }
        for style in styles.iter(W + "style") if styles is not None else ():
            num_pr = style.find(f"{W}pPr/{W}numPr")
            if num_pr is not None:
                self._by_style[style.get(W + "styleId")] = (_value(num_pr, "numId"), _int(_value(num_pr, "ilvl")))

    def label(self, paragraph: Any) -> str:
        """The paragraph's number; empty for bullets and unknown kinds of numbers."""
        number, at = self._place(paragraph)
        abstract = self._abstract.get(number, "")
        level = self._levels.get(abstract, {}).get(at)
        if level is None:
            return ""
        counters = self._counters[abstract]
        if at in self._begins[number]:
            counters[at] = self._begins[number].pop(at) - 1
        counters[at] = counters.get(at, level.start - 1) + 1
        for deeper in range(at + 1, LEVELS):
            counters.pop(deeper, None)
        if level.kind in ("bullet", "none"):
            return ""
        texts = {n: _written(counters.get(n, above.start), above.kind) for n, above in self._levels[abstract].items()}
        named = [texts.get(int(place) - 1) for place in _PLACE.findall(level.text)]
        return "" if None in named else _PLACE.sub(lambda place: texts[int(place[1]) - 1] or "", level.text).strip()

    def _place(self, paragraph: Any) -> tuple[str, int]:
        properties = paragraph.find(W + "pPr")
        if properties is None:
            return "", 0
        num_pr = properties.find(W + "numPr")
        styled = self._by_style.get(_value(properties, "pStyle"), ("", 0))
        if num_pr is None:
            return styled
        level = num_pr.find(W + "ilvl")
        return _value(num_pr, "numId") or styled[0], styled[1] if level is None else _int(level.get(W + "val"))


def _level(level: Any) -> _Level:
    return _Level(_int(_value(level, "start")), _value(level, "numFmt") or "decimal", _value(level, "lvlText"))


def _value(parent: Any, name: str) -> str:
    found = parent.find(W + name)
    return found.get(W + "val", "") if found is not None else ""


def _int(text: str | None, default: int = 0) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 6 else default


def _written(number: int, kind: str) -> str | None:
    if kind == "decimal":
        return str(number)
    if kind == "decimalZero":
        return f"{number:02}"
    if number < 1 or number > 3_999:
        return None
    if kind in ("lowerLetter", "upperLetter"):  # a … z, aa … zz
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif kind in ("lowerRoman", "upperRoman"):
        letters = ""
        for value, sign in _ROMAN:
            letters += sign * (number // value)
            number %= value
    else:
        return None
    return letters.upper() if kind.startswith("upper") else letters
