"""Pages made up for the storm: plain words, so that what must be found is known without asking the product."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from schemas.page import FieldName

WORDS = (
    "harbour ferry ticket council museum garden bridge market winter summer office permit window letter street "
    "school library swimming festival parking recycling notice meeting budget lantern orchard crane river"
)
MOST_CHARACTERS = 14_000  # of a page's content: some 30 chunks
BASE = "abcdefghijklmnopqrstuvwxyz0123456789"


def word_of(kind: str, number: int) -> str:
    """A word that stands for a number: five characters, so that it is its own stem; `kind` is one letter."""
    mixed = number * 7_919 % len(BASE) ** 4
    letters = ""
    for _ in range(4):
        mixed, rest = divmod(mixed, len(BASE))
        letters += BASE[rest]
    return kind + letters


def marker(number: int) -> str:
    """The word that only this change's texts have."""
    return word_of("q", number)


def sentence(random: Random) -> str:
    words = WORDS.split()
    return " ".join(random.choice(words) for _ in range(random.randint(6, 16))).capitalize() + "."


def paragraph(random: Random) -> str:
    return " ".join(sentence(random) for _ in range(random.randint(1, 7)))


@dataclass
class Draft:
    """A page as its editor has it: what stands in it changes a little with every save."""

    page_id: str
    lang: str
    key: str
    word: str  # only this page has it, whatever the revision
    paragraphs: list[str] = field(default_factory=list)

    def edit(self, random: Random) -> None:
        """One edit: change, insert, remove, grow, shrink, or nothing."""
        place = random.randrange(len(self.paragraphs) + 1)
        match random.choices(("change", "insert", "remove", "grow", "shrink", "none"), (30, 20, 15, 12, 13, 10))[0]:
            case "change":
                self.paragraphs[place : place + 1] = [paragraph(random)]
            case "insert":
                self.paragraphs.insert(place, paragraph(random))
            case "remove":
                self.paragraphs[place : place + 1] = []
            case "grow":
                self.paragraphs += [paragraph(random) for _ in range(random.choice((3, 8, 40)))]
            case "shrink":
                del self.paragraphs[random.randint(0, 2) :]
        while sum(map(len, self.paragraphs)) > MOST_CHARACTERS:
            self.paragraphs.pop()

    def document(self, number: int, *, empty: bool = False) -> dict[str, Any]:
        """The page as JSON for the gateway; the change's marker is in every text and in the URL."""
        page: dict[str, Any] = {"id": self.page_id, "lang": self.lang, "url": f"/{self.page_id}?m={number}"}
        if not empty:
            mark = marker(number)
            page |= {
                "name": f"{self.word} name {mark}",
                "title": f"{self.word} title {mark}",
                "description": f"About {mark}" if number % 3 else "",
                "keywords": [mark, "storm"] if number % 2 else [],
                "content": "".join(f"<p>{text}</p>\n" for text in self._content(mark)),
            }
        return page

    def fields(self, number: int, *, empty: bool = False) -> dict[FieldName, str]:
        """What must be found of that document, by field; fields without text are missing."""
        if empty:
            return {}
        mark = marker(number)
        texts: dict[FieldName, str] = {
            "name": f"{self.word} name {mark}",
            "title": f"{self.word} title {mark}",
            "description": f"About {mark}" if number % 3 else "",
            "keywords": f"{mark}, storm" if number % 2 else "",
            "content": "\n\n".join(self._content(mark)),
        }
        return {name: text for name, text in texts.items() if text}

    def _content(self, mark: str) -> list[str]:
        return [f"{self.word} stands in {mark} now.", *self.paragraphs]


def number_in(url: str) -> int | None:
    """The number of the change whose document has this URL."""
    _, found, number = url.partition("?m=")
    return int(number) if found and number.isdecimal() else None
