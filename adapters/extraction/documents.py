"""Documents to text, place by place. Runs in the child process only, since documents may be malicious.

bytes ─pypdf────────────────────────────────▶ pages  ┐
      ─unstructured: pptx, openpyxl: xlsx───▶ places ├─▶ Section(page, label, text)…
      ─mammoth: docx, lxml: odt ─▶ HTML ────▶ one    │
      ─csv: a table─────────────────────────▶ one    │
      ─email: eml, html, text as it is──────▶ one    ┘

`Sections.left_out` counts what has no place in the text: hidden rows, deletions, pictures.
"""

from __future__ import annotations

import email
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from email import policy
from itertools import groupby
from typing import Any

from adapters.extraction import delimited, open_document, word
from adapters.extraction.office_parts import Parts, Slide
from adapters.extraction.sheets import sheets
from pipelines.ingest.documents.attachments import Section, Sections
from pipelines.ingest.documents.kinds import MAIN_PARTS, PROTECTED, Kind
from text.encodings import UnknownEncoding, decoded
from text.html import read as read_html
from text.html import tidy, to_markdown

SECTIONS = 2_000  # pages, slides or sheets that are read of one document
UNPACKED = 200 * 1024 * 1024  # bytes of an unpacked office file
ENTRIES = 10_000  # files in an office file
ALL_BUT_END = "all but its end"
_LINE = 60  # characters; a line of running text in a PDF is rarely shorter than two thirds of the longest
ENCRYPTED_MAILS = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime")
# Prefix of namespaces in the Strict form of Office Open XML; ECMA-376-1, annex A, and ECMA-376-4.
STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_NAME = re.compile(STRICT + rb"(\w+)/")
_LANG = re.compile(r"<html[^<>]{0,500}?\slang\s{0,9}=\s{0,9}[\"']?([\w-]{2,20})", re.IGNORECASE)
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")


class Unreadable(Exception):
    """A document has no text; the message is for editors."""


def read(kind: Kind, data: bytes, limit: int, charset: str | None = None) -> Sections:
    """The text of a document, at most `limit` characters and `SECTIONS` places.

    Args:
        charset: by its server, for HTML and text.

    Raises:
        Unreadable: protected, damaged, a bomb. Other errors of the libraries mean damaged as well.
    """
    match kind:
        case "pdf":
            return _pdf(data, limit)
        case "text":
            return _within([Section(tidy(_decoded(data, charset)))], 1, limit)
        case "csv":
            text = _decoded(data, charset)
            return _within([Section(tidy(delimited.table(text) or text))], 1, limit)
        case "html":
            return _from_html(_decoded(data, charset, page=True), limit)
        case "eml":
            return _mail(data, limit)
    data = _checked(data)
    match kind:
        case "odt":
            html, left_out = open_document.to_html(data)
            return replace(_from_html(html, limit), left_out=dict(left_out))
        case "docx":
            html, left_out, seen = word.to_html(data)
            return replace(_from_html(html, limit), left_out=dict(left_out), seen=seen)
        case "pptx":
            return _slides(data, limit)
        case "xlsx":
            found, left_out, seen = sheets(data)
            read = _within((Section(text, name) for name, text in found), len(found), limit)
            return replace(read, left_out=dict(left_out), seen=seen)


def _from_html(html: str, limit: int) -> Sections:
    lang = _LANG.search(html)
    text = read_html(html, lang[1] if lang else "")
    read, words = _within([Section(text.markdown)], 1, limit), text.words({})
    return replace(read, cut=read.cut or (text.is_cut and ALL_BUT_END) or "", seen=words.visible if words else None)


def _within(sections: Iterable[Section], total: int, limit: int) -> Sections:
    """The sections within the limit; the last one may be cut."""
    kept: list[Section] = []
    left = limit
    for number, section in enumerate(sections):
        if left <= 0 or number >= SECTIONS:
            return Sections(tuple(kept), f"only the first {number:,} of {total:,} places in it")
        if section.text.strip():
            kept.append(Section(section.text[:left], section.label, section.page))
        left -= len(section.text)
    return Sections(tuple(kept), ALL_BUT_END if left < 0 else "")


def _pdf(data: bytes, limit: int) -> Sections:
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise Unreadable(PROTECTED)
    total = len(reader.pages)
    pages = (Section(_page(reader.pages[number]), f"{number + 1}/{total}", number + 1) for number in range(total))
    read = _within(pages, total, limit)
    without = 0 if read.cut else total - len(read.sections)
    return replace(read, left_out={"pages without text": without} if without else {})


def _page(page: Any) -> str:
    text = reflowed(tidy(page.extract_text()))
    if not text and (contents := page.get_contents()) is not None:
        contents.get_data()  # raises where the page is a bomb, which `extract_text` would suppress
    return text


def reflowed(text: str) -> str:
    """Join the lines of a PDF's page into paragraphs.

    A line is joined with the next when it is nearly as long as the longest one. A hyphen at its end is removed when
    the next line begins with a small letter.
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


def _slides(data: bytes, limit: int) -> Sections:
    import spacy
    from pptx import Presentation
    from unstructured.nlp import tokenize
    from unstructured.partition.pptx import partition_pptx

    def no_model() -> Any:
        # unstructured would download a model to find titles; we only need the text and its place.
        blank = spacy.blank("xx")
        blank.add_pipe("sentencizer")
        return blank

    tokenize._load_spacy_model = no_model
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts, show = Parts(archive), Presentation(io.BytesIO(data))
        slides = [Slide(slide, parts) for slide in show.slides]
        plain = io.BytesIO(data)
        if any(slide.is_rewritten for slide in slides):
            plain = io.BytesIO()
            show.save(plain)
    shown = {number: slide for number, slide in enumerate(slides, 1) if not slide.is_hidden}
    left_out = sum((slide.left_out for slide in shown.values()), Counter({"hidden slides": len(slides) - len(shown)}))
    elements: Sequence[Any] = partition_pptx(file=plain, languages=[""])
    groups = groupby(elements, key=lambda element: element.metadata.page_number)
    found = {number: "\n\n".join(filter(None, map(_element, group))) for number, group in groups}
    texts = {number: tidy(f"{found.get(number, '')}\n\n{slide.drawings}") for number, slide in shown.items()}
    last = max((number for number, text in texts.items() if text), default=0)
    places = (Section(text, f"{number}/{last}") for number, text in texts.items())
    read = _within(places, len(shown), limit)
    return replace(read, left_out=dict(+left_out), seen=sum(slide.words for slide in shown.values()))


def _element(element: Any) -> str:
    as_html = getattr(element.metadata, "text_as_html", None)
    return to_markdown(as_html) if as_html else str(element.text).strip()


def _mail(data: bytes, limit: int) -> Sections:
    """Subject and text, preferring HTML. Attachments are only counted."""
    mail = email.message_from_bytes(data, policy=policy.default)
    if mail.get_content_type() in ENCRYPTED_MAILS:
        raise Unreadable("encrypted")
    subject = " ".join(str(mail.get("subject", "")).split())
    text = "\n\n".join(_bodies(mail))
    attached = sum(part.is_attachment() for part in mail.walk())
    read = _within([Section(f"# {subject}\n\n{text}" if subject else text)], 1, limit)
    return replace(read, left_out={"attached files": attached} if attached else {})


def _bodies(mail: Any) -> Iterator[str]:
    bodies = (mail.get_body((form,)) for form in ("html", "plain"))
    text = next((text for body in bodies if body is not None and (text := _part(body))), "")
    if text:
        yield text
    elif mail.is_multipart():  # a digest: mails in a mail
        for part in mail.iter_parts() if mail.get_content_maintype() == "multipart" else mail.get_payload():
            if not part.is_attachment():
                yield from _bodies(part)


def _part(part: Any) -> str:
    try:
        text = decoded(part.get_payload(decode=True) or b"", part.get_content_charset())
    except UnknownEncoding:
        return ""
    return to_markdown(text) if part.get_content_subtype() == "html" else tidy(text)


def _decoded(data: bytes, charset: str | None, *, page: bool = False) -> str:
    try:
        return decoded(data, charset, page=page)
    except UnknownEncoding as err:
        raise Unreadable(str(err)) from None


def _checked(data: bytes) -> bytes:
    """An office file in the Transitional form of Office Open XML, the only one that libraries read.

    Raises:
        Unreadable: protected by a password, or too large unpacked. zipfile enforces the sizes that the file declares.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if any(member.flag_bits & 1 for member in members) or open_document.is_locked(archive):
            raise Unreadable(PROTECTED)
        if len(members) > ENTRIES or sum(member.file_size for member in members) > UNPACKED:
            raise Unreadable(f"unpacks to more than {UNPACKED // 2**20} MiB or {ENTRIES:,} files")
        names = {member.filename for member in members}
        if not any(STRICT in archive.read(name) for name in MAIN_PARTS if name in names):
            return data
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as transitional:
            for name in names:
                transitional.writestr(
                    name, _STRICT_NAME.sub(rb"http://schemas.openxmlformats.org/\1/2006/", archive.read(name))
                )
        return out.getvalue()
