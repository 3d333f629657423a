"""`pagewire read`: how a page, a piece of HTML or an attachment would be read, without indexing it.

address, file or stdin ─▶ as its connector reads it ─▶ Markdown ─▶ units ─▶ beside what its visitors see
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from rich.markup import escape
from typer import Argument, Option

from adapters.extraction.reader import DocumentReader
from cli.output import out, print_json
from cli.wired import load
from connectors.cms.documents import HTML, lang_tag, text_in, whole_page
from connectors.cms.documents import html_of as as_html
from connectors.cms.fetching import SafeFetch
from connectors.cms.front_matter import split
from connectors.cms.sitemap.page import read_page
from pipelines.ingest.documents.attachments import INSTALL, Limits, Missing, Sections
from pipelines.ingest.documents.facts import PageFacts, VisiblePage, facts_of
from pipelines.ingest.documents.kinds import suffix_of
from pipelines.ingest.documents.structured_data import structured_data_in
from pipelines.runtime.errors import WrongUse
from schemas.keys import is_address
from schemas.page import PageMetadata
from text import html
from text.encodings import decoded
from text.language import identified
from text.loss import LeftOutText, Words, counted, warning, whole
from text.units import Unit, units

As = Literal["page", "html", "attachment"]
LARGEST = 100 * 1024 * 1024  # bytes
STDIN = "-"
SHOWN = 200  # characters of what is left out


@dataclass(frozen=True)
class InputReading:
    """What one input would be in the index."""

    source: str
    title: str
    lang: str | None
    markdown: str  # with the facts of its structured data at the end
    words: Words
    left_out: tuple[LeftOutText, ...] = ()
    facts: PageFacts = field(default_factory=PageFacts)  # of a page: what it tells machines alone
    metadata: PageMetadata | None = None
    note: str | None = None  # of an attachment, what is not in its text
    parts: Mapping[str, int] = field(default_factory=dict)  # of an attachment, those left out: `{"hidden rows": 3}`

    @property
    def units(self) -> list[Unit]:
        return units(self.markdown, self.lang or "")


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
    readings = [_reading(source, kind) for source in sources]
    if json:
        made = [_as_json(reading) for reading in readings]
        print_json(made[0] if len(made) == 1 else made)
        return
    for reading in readings:
        _print(reading)


def _reading(source: str, kind: As | None) -> InputReading:
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


def _of_page(source: str, data: bytes, charset: str | None, robots: str) -> InputReading:
    page = read_page(data, source if is_address(source) else "https://page.invalid/", charset, robots)
    found = _content(source, page.title, page.lang, page.content, page.left_out, page.metadata)
    asked = () if page.indexed else (LeftOutText("robots: the page asks not to be indexed", ""),)
    return replace(found, left_out=(*asked, *found.left_out))


def _of_html(source: str, data: bytes, charset: str | None) -> InputReading:
    path = Path("page.html" if source == STDIN or is_address(source) else source)
    fields, body = split(text_in(path, data) if charset is None else decoded(data, charset, page=True))
    lang = fields.get("lang") or lang_tag(path, body)
    if page := whole_page(path, body):
        return _content(source, page.title, str(lang) if lang else None, page.content, page.left_out, page.metadata)
    return _content(source, str(fields.get("title", "")), str(lang) if lang else None, as_html(path, body))


def _content(
    source: str,
    title: str,
    lang: str | None,
    content: str,
    around: tuple[LeftOutText, ...] = (),
    metadata: PageMetadata | None = None,
) -> InputReading:
    text = html.read(content, lang or "")
    if lang is None and (lang := identified(text.markdown)):  # as it is cut into sentences
        text = html.read(content, lang)
    words = text.words(counted(around)) or whole(text.markdown)
    metadata = metadata or structured_data_in(content)
    url = source if is_address(source) else ""
    facts = facts_of(metadata, VisiblePage(text.markdown, lang or "", url, title))
    markdown = "\n\n".join(filter(None, (text.markdown, facts.markdown)))
    return InputReading(source, title, lang, markdown, words, (*around, *text.left_out), facts=facts, metadata=metadata)


def _of_attachment(source: str, data: bytes, media_type: str) -> InputReading:
    name = Path(urlsplit(source).path if is_address(source) else source).name
    try:
        found = asyncio.run(_read_attachment(data, media_type, suffix_of(name)))
    except Missing as err:
        raise WrongUse(f"{source}: what reads such files is not installed; `{INSTALL}` installs it") from err
    markdown = "\n\n".join(section.text for section in found.sections)
    lang = identified(markdown)
    return InputReading(source, name, lang, markdown, found.words, note=found.note, parts=found.left_out)


async def _read_attachment(data: bytes, media_type: str, suffix: str) -> Sections:
    """In the process with limits that ingest reads them in: files are strangers'."""
    reader = DocumentReader()
    try:
        return await reader.read(data, media_type, suffix, Limits.text)
    finally:
        await reader.aclose()


def _as_json(reading: InputReading) -> dict[str, Any]:
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
        "left_out": [
            {"why": why, "words": counted([LeftOutText(why, text)]).total(), "text": text[:SHOWN]}
            for why, text in reading.left_out
        ],
        "structured_data": reading.metadata.dumped() if reading.metadata else None,
        "from_structured_data": reading.facts.markdown,
        "note": reading.note,
        "parts": dict(reading.parts),
        "words": {"visible": reading.words.visible, "indexed": reading.words.indexed},
    }


def _print(reading: InputReading) -> None:
    out.print(f"[bold]{escape(reading.title or reading.source)}[/]  {escape(reading.lang or '')}\n")
    out.print(reading.markdown, markup=False, soft_wrap=True)
    out.print("\n[bold]What can be quoted[/]")
    for unit in reading.units:
        section = f"[dim]{escape(' > '.join(unit.headings))}:[/] " if unit.headings else ""
        out.print(f"- {section}{escape(unit.said)}", soft_wrap=True)
    if reading.metadata:
        out.print("\n[bold]Structured data[/]")
        for name, value in reading.metadata.dumped().items():
            out.print(f"- {name}: [dim]{escape(str(value)[:SHOWN])}[/]", soft_wrap=True)
    if reading.facts:
        out.print(f"\n[bold]Not shown on the page, from its structured data[/]: {', '.join(reading.facts.names)}")
        out.print(reading.facts.markdown, markup=False, soft_wrap=True)
    if reading.left_out:
        out.print("\n[bold]Left out[/]")
    for why, text in reading.left_out:
        out.print(f"- {why}: [dim]{escape(text[:SHOWN])}[/]", soft_wrap=True)
    if reading.note:
        out.print(f"\nnote: {escape(reading.note)}")
    words = reading.words
    out.print(f"\n{words.visible:,} words are seen, {words.indexed:,} would be indexed")
    for why, count in words.left_out.items():
        out.print(f"- {why}: {count:,}")
    if flag := warning(words):
        out.print(f"[yellow]{flag}[/]", soft_wrap=True)
