"""Notices: whether what can be quoted alone of a short text is a whole thing: days with their hours, a question with
its answer, an abbreviation with what it belongs to.

bench/notices.yaml ─▶ HTML ─▶ Markdown ─▶ units, beside where a person would cut
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import yaml

from text.html import to_markdown
from text.markdown import plain
from text.units import units

NOTICES = Path(__file__).with_name("notices.yaml")
COLUMNS = ("notices", "of", "cut right", "share", "wrong by language")
_CUT, _BREAK, _PARAGRAPH = "|", " / ", "//"


@dataclass(frozen=True)
class Notice:
    """A text, and the parts that it is to be cut into."""

    lang: str
    html: str
    parts: tuple[str, ...]

    @property
    def found(self) -> tuple[str, ...]:
        """The parts that it is cut into."""
        return tuple(map(_words, (plain(unit.text) for unit in units(to_markdown(self.html), self.lang))))

    @property
    def is_right(self) -> bool:
        return self.found == self.parts


def notices(part: str) -> Iterator[Notice]:
    """Those of a part of the file."""
    for lang, lines in yaml.safe_load(NOTICES.read_text("utf-8"))[part].items():
        for line in lines.splitlines():
            whole = escape(line.replace(f"{_CUT} ", ""), quote=False)
            paragraphs = "".join(f"<p>{each}</p>" for each in whole.split(_PARAGRAPH))
            yield Notice(lang, paragraphs.replace(_BREAK, "<br>"), tuple(map(_words, line.split(_CUT))))


def _words(text: str) -> str:
    return " ".join(text.replace(_PARAGRAPH, " ").replace(_BREAK, " ").split())


def lines() -> Sequence[tuple[object, ...]]:
    """In the order of `COLUMNS`."""
    found = []
    for part in ("hard", "new"):
        every = list(notices(part))
        wrong = [notice.lang for notice in every if not notice.is_right]
        by_lang = ", ".join(f"{lang} {wrong.count(lang)}" for lang in dict.fromkeys(wrong))
        right = len(every) - len(wrong)
        found.append((part, len(every), right, right / len(every), by_lang))
    return found
