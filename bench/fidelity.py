"""Fidelity: how much of what a page says arrives, in words, figures and structure.

page ─▶ as a website's page is read ─▶ Markdown ─▶ units, beside what should be there; and the reported loss

The sample site's pages stand in a frame of ours, so that all of them is known. Other pages are read from folders that
hold NAME/source.html and NAME/expected.html, as Mozilla's Readability tests itself with. The cuts of notices were
made by a person: what can be quoted alone of a short text is a whole thing (days with their hours, a question with its
answer). Of other pages and documents (bench/without_gold.py, bench/word_paragraphs.py) all that is in them should
arrive.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from time import process_time
from typing import Annotated

import typer
import yaml
from bs4 import BeautifulSoup, Tag

from bench import strings, without_gold, word_paragraphs
from bench.report import report
from connectors.cms.front_matter import split
from connectors.cms.sitemap.page import read_page
from sites.content import DEMO
from text.html import read, to_markdown
from text.loss import counted, is_lacking
from text.markdown import plain
from text.units import units
from text.words import words

NOTICES = Path(__file__).with_name("notices.yaml")
NOTICE_COLUMNS = ("notices", "of", "cut right", "share", "wrong by language")
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


def notice_lines() -> Sequence[tuple[object, ...]]:
    """In the order of `NOTICE_COLUMNS`."""
    found = []
    for part in ("hard", "new"):
        every = list(notices(part))
        wrong = [notice.lang for notice in every if not notice.is_right]
        by_lang = ", ".join(f"{lang} {wrong.count(lang)}" for lang in dict.fromkeys(wrong))
        right = len(every) - len(wrong)
        found.append((part, len(every), right, right / len(every), by_lang))
    return found


FRAME = """<body><header><a href=/>Town</a><nav><ul><li><a href=/a>Living here</a><li><a href=/b>Contact</a></ul></nav>
</header><div class=cookie-banner>This site uses cookies.</div><div class=page>{}</div>
<div class=related><h2>Related</h2><ul><li><a href=/c>Holidays</a><li><a href=/d>Waste</a></ul></div>
<aside><p>Weather: sunny</p></aside><footer>Imprint</footer></body>"""
_FIGURE = re.compile(r"\d(?:[\d.,:/]*\d)?")
_CELL = re.compile(r"(?<!\\)\|")
_NOTE = re.compile(r"\[\s*\d+\s*\]")  # [12], which refers to a note and is left out
STRUCTURE = {
    "headings": "h1, h2, h3, h4, h5, h6",
    "items": "li",
    "cells": "table:has(th):not(:has(table)) :is(td, th)",  # others may lay out the page
    "captions": "figcaption, caption",
}
COLUMNS = (
    "corpus", "pages", "words kept", "precision", "below .5", "figures", "altered", "in no unit", *STRUCTURE,
    "lacking", "flagged", "of these lacking", "ms a page",
)  # fmt: skip


@dataclass(frozen=True)
class Page:
    """A page of a website, and the HTML of what it says."""

    name: str
    source: bytes
    expected: str


@dataclass
class Tally:
    """Of one corpus."""

    kept: list[float] = field(default_factory=list)  # share of a page's words
    precise: list[float] = field(default_factory=list)  # share of what was indexed that should be
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def line(self, corpus: str) -> tuple[object, ...]:
        """In the order of `COLUMNS`."""
        pages = len(self.kept)
        of = self.counts
        return (
            corpus,
            pages,
            sum(self.kept) / pages,
            sum(self.precise) / pages,
            sum(kept < 0.5 for kept in self.kept),
            of["figures"],
            of["altered"],
            of["in no unit"],
            *(f"{of[name]}/{of[f'all {name}']}" for name in STRUCTURE),
            of["lacking"],
            of["flagged"],
            of["both"],
            f"{self.seconds * 1000 / pages:.0f}",
        )


def main(
    pages: Annotated[
        list[Path] | None,
        typer.Option(exists=True, file_okay=False, help="Folder of NAME/source.html and NAME/expected.html."),
    ] = None,
    html: Annotated[
        list[Path] | None, typer.Option(exists=True, file_okay=False, help="Folder of pages, for encodings and tables.")
    ] = None,
    docx: Annotated[
        list[Path] | None, typer.Option(exists=True, file_okay=False, help="Folder of DOCX, for their paragraphs.")
    ] = None,
    wanted: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Folder `tests` of trafilatura, for strings that arrive."),
    ] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Also the half of them that no rule is made on.")
    ] = False,
) -> None:
    """What arrives of what pages say: words, figures, structure, notices; which pages are flagged. Needs no system.

    Of the sample site's pages in a frame, of notices, and of folders: pages with what should be read of them
    (`--pages`), any pages (`--html`: encodings, tables, figures), documents (`--docx`: paragraphs of all kinds), pages
    with strings that must and must not be read of them (`--wanted`).
    `go mod download -json codeberg.org/readeck/go-readability/v2@v2.1.3` fetches Mozilla's 130, whose folder is
    `test-pages` in its `Dir`.

    Example: python -m bench fidelity --pages test-pages
    """
    corpora = {"sample site, in a frame": [*sample()], **{str(folder): [*pages_in(folder)] for folder in pages or []}}
    for name, found in corpora.items():
        if not found:
            raise typer.BadParameter(f"{name}: no NAME/source.html with an expected.html beside it")
    lines = [measured(found).line(name) for name, found in corpora.items()]
    report("fidelity", "what arrives of what pages say", COLUMNS, lines)
    report("fidelity-notices", "notices, and how many are cut right", NOTICE_COLUMNS, notice_lines())
    if html:
        lines = list(without_gold.lines(html))
        report("fidelity-html", "encodings, tables and figures of pages", without_gold.COLUMNS, lines)
    if wanted:
        halves = ("tuned", "held out") if held_out else ("tuned",)
        report("fidelity-strings", "strings that arrive", strings.COLUMNS, list(strings.lines(wanted, halves)))
    if docx:
        report("fidelity-docx", "paragraphs of documents", word_paragraphs.COLUMNS, list(word_paragraphs.lines(docx)))


def sample() -> Iterator[Page]:
    """The pages of the sample site, none of which has a `main`."""
    for file in sorted((DEMO / "pages").rglob("*.html")):
        _, body = split(file.read_text("utf-8"))
        yield Page(file.stem, FRAME.format(body).encode(), body)


def pages_in(folder: Path) -> Iterator[Page]:
    """Pages with what should be read of them."""
    for source in sorted(folder.glob("*/source.html")):
        expected = source.with_name("expected.html")
        if expected.exists():
            yield Page(source.parent.name, source.read_bytes(), expected.read_text("utf-8"))


def measured(pages: Iterable[Page]) -> Tally:
    """Read each page, and compare."""
    tally = Tally()
    for page in pages:
        began = process_time()
        found = read_page(page.source, f"https://www.town.example/{page.name}", "utf-8")
        text = read(found.content)
        cut = units(text.markdown, found.lang or "")
        tally.seconds += process_time() - began
        gold = BeautifulSoup(page.expected, "lxml")
        said = plain(text.markdown)
        wanted, got = Counter(words(gold.get_text(" "))), Counter(words(said))
        common = (wanted & got).total()
        kept = common / max(wanted.total(), 1)
        tally.kept.append(kept)
        tally.precise.append(common / max(got.total(), 1))
        sayings = " ".join(" ".join((*unit.headings, plain(unit.intro), unit.said)) for unit in cut)
        figures, there = set(_FIGURE.findall(_NOTE.sub("", gold.get_text(" ")))), set(_FIGURE.findall(said))
        tally.counts += Counter(
            {
                "figures": len(figures),
                "altered": len(figures - there),
                "in no unit": len(there - set(_FIGURE.findall(sayings))),
                "lacking": kept < 0.9,
                "flagged": (flagged := is_lacking(text.words(counted(found.left_out)))),
                "both": flagged and kept < 0.9,
            }
        )
        tally.counts += _structure(gold, text.markdown)
    return tally


def _structure(gold: Tag, markdown: str) -> Counter[str]:
    """How many headings, items, cells and captions there are, and how many are such in the Markdown."""
    lines = markdown.split("\n")
    there = {
        "headings": [line for line in lines if line.startswith("#")],
        "items": [line for line in lines if re.match(r"\s*(?:-|\d+[.)]) ", line)],
        "cells": [cell for line in lines if line.startswith("|") for cell in _CELL.split(line)],
        "captions": lines,
    }
    counts: Counter[str] = Counter()
    for name, selector in STRUCTURE.items():
        known = {_key(plain(f". {text}")) for text in there[name]}  # whose first mark is none
        for tag in gold.select(selector):
            # An item is known by its own first line, of a list in it the items are.
            text = _key(next(iter(tag.stripped_strings), "") if name == "items" else tag.get_text(" "))
            if text:
                counts[f"all {name}"] += 1
                counts[name] += any(text in one for one in known)
    return counts


def _key(text: str) -> str:
    return " ".join(words(text))
