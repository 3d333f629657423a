"""Documents to text, place by place. Runs in the child process only: what it reads may be made to hurt.

bytes ─pypdf───────────────────────────────▶ pages  ┐
      ─unstructured: docx, pptx, xlsx, eml─▶ places ├─▶ Section(page, label, text)…
      ─lxml: odt; text as it is────────────▶ one    ┘
"""

from __future__ import annotations

import email
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from email import policy
from importlib import import_module
from itertools import groupby
from typing import Any

from lxml import etree

from pipelines.ingest.documents.attachments import Section, Sections
from pipelines.ingest.documents.kinds import Kind
from text.encodings import UnknownEncoding, decoded
from text.html import tidy, to_markdown
from text.tables import of_rows

SECTIONS = 2_000  # pages, slides or sheets that are read of one document
UNPACKED = 200 * 1024 * 1024  # bytes that an office file may unpack to
ENTRIES = 10_000  # files in it
_ODF = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_LINE = 60  # characters; a line of running text in a PDF is hardly shorter than two thirds of the longest
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")


class Unreadable(Exception):
    """Why there is no text, for an editor to read."""


def read(kind: Kind, data: bytes, limit: int, charset: str | None = None) -> Sections:
    """The text of a document, at most `limit` characters and `SECTIONS` places.

    Args:
        charset: that its server names, for HTML and text.

    Raises:
        Unreadable: protected, damaged, a bomb. Whatever else the libraries raise means damaged, too.
    """
    match kind:
        case "pdf":
            return _pdf(data, limit)
        case "text":
            return _within([Section(tidy(_decoded(data, charset)))], 1, limit)
        case "html":
            return _within([Section(to_markdown(_decoded(data, charset, page=True)))], 1, limit)
        case "eml":
            return _within([Section(_mail(data))], 1, limit)
    _check_archive(data)
    match kind:
        case "odt":
            return _within([Section(_odt(data))], 1, limit)
        case "docx":
            return _within([Section(_text(_elements("docx", data)))], 1, limit)
        case "pptx":
            places = _places(_elements("pptx", data), "page_number")
            last = max((number for number, _ in places), default=0)
            return _within((Section(text, f"{number}/{last}") for number, text in places), len(places), limit)
        case "xlsx":
            sheets = _places(_elements("xlsx", data, find_subtable=False), "page_name")
            return _within((Section(text, str(name)) for name, text in sheets), len(sheets), limit)


def _within(sections: Iterable[Section], total: int, limit: int) -> Sections:
    """The sections that fit; the last one may be cut."""
    kept: list[Section] = []
    left = limit
    for number, section in enumerate(sections):
        if left <= 0 or number >= SECTIONS:
            return Sections(tuple(kept), f"only the first {number:,} of {total:,} places in it")
        if section.text.strip():
            kept.append(Section(section.text[:left], section.label, section.page))
        left -= len(section.text)
    return Sections(tuple(kept), "its end" if left < 0 else "")


def _pdf(data: bytes, limit: int) -> Sections:
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise Unreadable("protected by a password")
    total = len(reader.pages)
    pages = (Section(_page(reader.pages[number]), f"{number + 1}/{total}", number + 1) for number in range(total))
    return _within(pages, total, limit)


def _page(page: Any) -> str:
    text = reflowed(tidy(page.extract_text()))
    if not text and (contents := page.get_contents()) is not None:
        contents.get_data()  # raises what `extract_text` keeps to itself: that it is a bomb
    return text


def reflowed(text: str) -> str:
    """A page of a PDF, which knows lines only, with the lines of a paragraph put together again.

    A line goes on in the next when it is nearly as long as the longest; a hyphen at its end goes when the next one
    begins with a small letter.
    """
    lines = text.split("\n")
    long = max(_LINE, max(map(len, lines), default=0)) * 2 / 3
    paragraphs: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on and line:
            before = paragraphs[-1]
            if _HYPHEN.search(before) and line[0].islower():
                paragraphs[-1] = before[:-1] + line
            else:
                paragraphs[-1] = f"{before} {line}"
        else:
            paragraphs.append(line)
        goes_on = len(line) >= long
    return "\n".join(paragraphs)


def _elements(kind: str, data: bytes, **more: Any) -> Sequence[Any]:
    import spacy
    from unstructured.nlp import tokenize

    def no_model() -> Any:
        # It would download one to guess what is a title: we only want what is written, and where.
        blank = spacy.blank("xx")
        blank.add_pipe("sentencizer")
        return blank

    tokenize._load_spacy_model = no_model
    module = import_module(f"unstructured.partition.{kind}")
    found: Sequence[Any] = getattr(module, f"partition_{kind}")(file=io.BytesIO(data), languages=[""], **more)
    return found


def _places(elements: Iterable[Any], by: str) -> list[tuple[Any, str]]:
    groups = groupby(elements, key=lambda element: getattr(element.metadata, by))
    return [(place, _text(group)) for place, group in groups if place is not None]


def _text(elements: Iterable[Any]) -> str:
    return tidy("\n\n".join(filter(None, map(_element, elements))))


def _element(element: Any) -> str:
    as_html = getattr(element.metadata, "text_as_html", None)
    if as_html:
        return to_markdown(as_html)
    depth = element.metadata.category_depth
    text: str = element.text.strip()
    if text and element.category == "Title" and depth is not None and element.metadata.page_number is None:
        return f"{'#' * min(depth + 1, 6)} {' '.join(text.split())}"  # not on slides, where every line is a title
    return text


def _mail(data: bytes) -> str:
    subject = str(email.message_from_bytes(data, policy=policy.default).get("subject", "")).strip()
    text = _text(_elements("email", data))
    return f"# {' '.join(subject.split())}\n\n{text}" if subject else text


def _odt(data: bytes) -> str:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        root = etree.fromstring(archive.read("content.xml"), parser)
    body = root.find(f".//{_ODF % 'office'}text")
    return tidy("\n\n".join(_blocks(body))) if body is not None else ""


def _blocks(parent: Any) -> Iterator[str]:
    """Headings, paragraphs, list items and tables, in order."""
    text, tables = _ODF % "text", _ODF % "table"
    for node in parent:
        if node.tag == text + "h":
            level = node.get(text + "outline-level", "1")
            yield f"{'#' * min(int(level) if level.isdecimal() else 1, 6)} {_flat(node)}"
        elif node.tag == text + "p":
            yield _flat(node)
        elif node.tag == text + "list-item":
            yield "- " + "\n".join(_blocks(node))
        elif node.tag == text + "list":
            yield "\n".join(_blocks(node))
        elif node.tag == tables + "table":
            rows = [
                [_flat(cell) for cell in row.iter(tables + "table-cell")] for row in node.iter(tables + "table-row")
            ]
            yield of_rows(rows)
        elif node.tag != text + "tracked-changes" and isinstance(node.tag, str):
            yield from _blocks(node)


def _flat(node: Any) -> str:
    return " ".join("".join(node.itertext()).split())


def _decoded(data: bytes, charset: str | None, *, page: bool = False) -> str:
    try:
        return decoded(data, charset, page=page)
    except UnknownEncoding as err:
        raise Unreadable(str(err)) from None


def _check_archive(data: bytes) -> None:
    """Raises: Unreadable: it unpacks to more than any document would. zipfile holds it to what it says here."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
    if any(member.flag_bits & 1 for member in members):
        raise Unreadable("protected by a password")
    if len(members) > ENTRIES or sum(member.file_size for member in members) > UNPACKED:
        raise Unreadable(f"unpacks to more than {UNPACKED // 2**20} MiB or {ENTRIES:,} files")
