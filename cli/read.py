"""`pagewire read`: how a page, a piece of HTML or an attachment would be read, without indexing it.

address, file or stdin ─▶ as its connector reads it ─▶ Markdown ─▶ units ─▶ beside what its visitors see
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from lxml import html
from rich.markup import escape
from typer import Argument, Option

from adapters.extraction.reader import DocumentReader
from cli.output import explained, out, print_json
from cli.wired import load
from connectors.cms.documents import HTML, text_in
from connectors.cms.documents import html as as_html
from connectors.cms.fetching import SafeFetch
from connectors.cms.front_matter import split
from connectors.cms.sitemap.page import read_page
from pipelines.ingest.documents.attachments import INSTALL, Missing, Sections
from pipelines.ingest.documents.kinds import suffix_of
from pipelines.operate.addresses import is_address
from pipelines.runtime.errors import WrongUse
from text.encodings import decoded
from text.html import to_markdown
from text.html5 import well_formed
from text.markdown import plain
from text.units import Unit, units
from text.words import words

As = Literal["page", "html", "attachment"]
LARGEST = 100 * 1024 * 1024  # bytes
STDIN = "-"
NOT_SEEN = frozenset({"head", "script", "style", "template", "noscript", "title", "iframe", "svg"})
HIDDEN, PAGE = "hidden", "not taken for content"  # what nobody can open is not seen
REASONS = {"nav": "menu", "header": "header", "footer": "footer", "aside": "aside", "form": "form", "dialog": "dialog"}


@dataclass(frozen=True)
class LeftOut:
    """What visitors see and the index does not hold."""

    why: str
    words: int
    text: str  # its beginning


@dataclass(frozen=True)
class Reading:
    """What one input would be in the index."""

    source: str
    title: str
    lang: str | None
    markdown: str
    left_out: tuple[LeftOut, ...]
    visible: int  # words
    note: str | None = None  # of an attachment that is not read to its end

    @property
    def units(self) -> list[Unit]:
        return units(self.markdown, self.lang or "")

    @property
    def indexed(self) -> int:
        return len(words(plain(self.markdown)))


def read(
    sources: Annotated[list[str], Argument(help="Addresses (`https://...`), files, or - for standard input.")],
    kind: Annotated[
        As | None,
        Option("--as", help="Default: an address is a page, HTML and Markdown files HTML, others attachments."),
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON: an object for each input.")] = False,
) -> None:
    """Show what would be indexed of a page or a file: Markdown, what can be quoted, what is left out.

    Example: pagewire read https://www.town.example/fees
    """
    with explained():
        readings = [_reading(source, kind) for source in sources]
    if json:
        made = [_as_json(reading) for reading in readings]
        print_json(made[0] if len(made) == 1 else made)
        return
    for reading in readings:
        _print(reading)


def _reading(source: str, kind: As | None) -> Reading:
    """Raises: WrongUse: it cannot be read. PagewireError: it cannot be fetched."""
    charset, robots, media_type = None, "", ""
    if is_address(source):
        data, charset, robots, media_type = asyncio.run(_fetched(source))
        kind = kind or ("page" if "html" in media_type or not media_type else "attachment")
    elif source == STDIN:
        data = sys.stdin.buffer.read(LARGEST)
        kind = kind or "html"
    else:
        data = Path(source).read_bytes()
        kind = kind or ("html" if Path(source).suffix.lower() in HTML | {".md", ".markdown"} else "attachment")
    try:
        if kind == "page":
            return _of_page(source, data, charset, robots)
        return _of_html(source, data, charset) if kind == "html" else _of_attachment(source, data, media_type)
    except ValueError as err:
        raise WrongUse(f"{source}: {err}") from err


async def _fetched(address: str) -> tuple[bytes, str | None, str, str]:
    async with SafeFetch(load().fetch_allow) as fetch:
        found = await fetch.get(address, limit=LARGEST)
    return found.body, found.charset, found.headers.get("x-robots-tag", ""), found.content_type


def _of_page(source: str, data: bytes, charset: str | None, robots: str) -> Reading:
    page = read_page(data, source if is_address(source) else "https://page.invalid/", charset, robots)
    markdown = to_markdown(page.content)
    left_out, visible = _compared(decoded(data, charset, page=True), markdown)
    if not page.indexed:
        left_out = (LeftOut("robots: the page asks not to be indexed", visible, ""), *left_out)
    return Reading(source, page.title, page.lang, markdown, left_out, visible)


def _of_html(source: str, data: bytes, charset: str | None) -> Reading:
    path = Path("page.html" if source == STDIN or is_address(source) else source)
    fields, body = split(text_in(path, data) if charset is None else decoded(data, charset, page=True))
    content = as_html(path, body)
    markdown = to_markdown(content)
    left_out, visible = _compared(content, markdown)
    lang = fields.get("lang")
    return Reading(source, str(fields.get("title", "")), str(lang) if lang else None, markdown, left_out, visible)


def _of_attachment(source: str, data: bytes, media_type: str) -> Reading:
    name = Path(urlsplit(source).path if is_address(source) else source).name
    try:
        found = asyncio.run(_read_attachment(data, media_type, suffix_of(name)))
    except Missing as err:
        raise WrongUse(f"{source}: what reads such files is not installed; `{INSTALL}` installs it") from err
    markdown = "\n\n".join(section.text for section in found.sections)
    note = "; ".join(filter(None, [found.left_out, found.hidden and f"hidden: {found.hidden}"]))
    return Reading(source, name, None, markdown, (), len(words(plain(markdown))), note or None)


async def _read_attachment(data: bytes, media_type: str, suffix: str) -> Sections:
    """In the process with limits that ingest reads them in: files are strangers'."""
    settings = load()
    reader = DocumentReader(memory=settings.attachment_memory, seconds=settings.attachment_timeout)
    try:
        return await reader.read(data, media_type, suffix, settings.attachment_text)
    finally:
        await reader.aclose()


def _compared(content: str, markdown: str) -> tuple[tuple[LeftOut, ...], int]:
    """What is seen of HTML and is not in its Markdown, and how many words are seen."""
    texts = [(why, text, words(text)) for why, text in _seen(content)]
    left = Counter(words(plain(markdown)))
    lost = set()
    # What a menu says as well is the content's.
    for n, (_, _, said) in sorted(enumerate(texts), key=lambda each: each[1][0] != PAGE):
        if any(left[word] < count for word, count in Counter(said).items()):
            lost.add(n)
        else:
            left.subtract(said)
    visible = sum(len(said) for n, (why, _, said) in enumerate(texts) if not (n in lost and why == HIDDEN))
    gone = [(why, text) for n, (why, text, _) in enumerate(texts) if n in lost]
    runs = [(why, " ".join(text for _, text in run)) for why, run in groupby(gone, key=lambda each: each[0])]
    return tuple(LeftOut(why, len(words(text)), text[:200]) for why, text in runs), visible


def _seen(content: str) -> Iterator[tuple[str, str]]:
    """Texts that the page holds for its visitors, each with why it might be left out."""
    if not content.strip():
        return
    body = html.document_fromstring(well_formed(content).encode(), parser=html.HTMLParser(encoding="utf-8"))
    for element in body.iter():
        if not isinstance(element.tag, str):
            continue
        above = [element, *element.iterancestors()]
        if not NOT_SEEN.isdisjoint(one.tag for one in above):
            continue
        texts = [element.text, *(child.tail for child in element)]
        if said := " ".join(" ".join(filter(None, texts)).split()):
            yield _why(above), said


def _why(above: list[Any]) -> str:
    for one in above:
        if one.tag in REASONS:
            return REASONS[one.tag]
        if one.get("hidden") is not None or one.get("aria-hidden") == "true":
            return HIDDEN
    return PAGE


def _as_json(reading: Reading) -> dict[str, Any]:
    return {
        "source": reading.source,
        "title": reading.title,
        "lang": reading.lang,
        "markdown": reading.markdown,
        "units": [
            {
                "text": unit.text,
                "kind": unit.kind,
                "header": unit.header or None,
                "section": " > ".join(unit.headings) or None,
                "said": unit.said,
            }
            for unit in reading.units
        ],
        "left_out": [{"why": one.why, "words": one.words, "text": one.text} for one in reading.left_out],
        "note": reading.note,
        "words": {"visible": reading.visible, "indexed": reading.indexed},
    }


def _print(reading: Reading) -> None:
    out.print(f"[bold]{escape(reading.title or reading.source)}[/]  {escape(reading.lang or '')}\n")
    out.print(reading.markdown, markup=False, soft_wrap=True)
    out.print("\n[bold]What can be quoted[/]")
    for unit in reading.units:
        section = f"[dim]{escape(' > '.join(unit.headings))}:[/] " if unit.headings else ""
        out.print(f"- {section}{escape(unit.said)}", soft_wrap=True)
    if reading.left_out:
        out.print("\n[bold]Left out[/]")
    for one in reading.left_out:
        out.print(f"- {one.why}, {one.words:,} words: [dim]{escape(one.text)}[/]", soft_wrap=True)
    if reading.note:
        out.print(f"\nnot whole: {escape(reading.note)}")
    out.print(f"\n{reading.visible:,} words are seen, {reading.indexed:,} would be indexed")
