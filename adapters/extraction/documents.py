"""Documents to text, place by place. Runs in the child process only, since documents may be malicious.

bytes ─pypdf────────────────────────────────▶ pages  ┐
      ─unstructured: pptx, openpyxl: xlsx───▶ places ├─▶ Section(page, label, text)…
      ─mammoth: docx, lxml: odt ─▶ HTML ────▶ one    │
      ─email: eml, html, text as it is──────▶ one    ┘

Hidden content is left out; `Sections.hidden` counts it.
"""

from __future__ import annotations

import email
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from email import policy
from itertools import groupby
from typing import Any

from adapters.extraction import open_document, word
from adapters.extraction.sheets import sheets
from pipelines.ingest.documents.attachments import Section, Sections
from pipelines.ingest.documents.kinds import MAIN_PARTS, PROTECTED, Kind
from text.encodings import UnknownEncoding, decoded
from text.html import read as read_html
from text.html import tidy, to_markdown

SECTIONS = 2_000  # pages, slides or sheets that are read of one document
UNPACKED = 200 * 1024 * 1024  # bytes of an unpacked office file
ENTRIES = 10_000  # files in an office file
_LINE = 60  # characters; a line of running text in a PDF is rarely shorter than two thirds of the longest
ENCRYPTED_MAILS = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime")
# Prefix of namespaces in the Strict form of Office Open XML; ECMA-376-1, annex A, and ECMA-376-4.
STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_NAME = re.compile(STRICT + rb"(\w+)/")
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
        case "html":
            return _from_html(_decoded(data, charset, page=True), 0, limit)
        case "eml":
            return _within([Section(_mail(data))], 1, limit)
    data = _checked(data)
    match kind:
        case "odt":
            return _from_html(*open_document.to_html(data), limit)
        case "docx":
            return _from_html(*word.to_html(data), limit)
        case "pptx":
            return _slides(data, limit)
        case "xlsx":
            found, hidden = sheets(data)
            return _within((Section(text, name) for name, text in found), len(found), limit, hidden)


def _from_html(html: str, hidden: int, limit: int) -> Sections:
    text = read_html(html)
    read = _within([Section(text.markdown)], 1, limit, f"passages: {hidden}" if hidden else "")
    return replace(read, left_out=read.left_out or "all but its end") if text.is_cut else read


def _within(sections: Iterable[Section], total: int, limit: int, hidden: str = "") -> Sections:
    """The sections within the limit; the last one may be cut."""
    kept: list[Section] = []
    left = limit
    for number, section in enumerate(sections):
        if left <= 0 or number >= SECTIONS:
            return Sections(tuple(kept), f"only the first {number:,} of {total:,} places in it", hidden)
        if section.text.strip():
            kept.append(Section(section.text[:left], section.label, section.page))
        left -= len(section.text)
    return Sections(tuple(kept), "all but its end" if left < 0 else "", hidden)


def _pdf(data: bytes, limit: int) -> Sections:
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise Unreadable(PROTECTED)
    total = len(reader.pages)
    pages = (Section(_page(reader.pages[number]), f"{number + 1}/{total}", number + 1) for number in range(total))
    return _within(pages, total, limit)


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
    slides = enumerate(Presentation(io.BytesIO(data)).slides, 1)
    hidden = {number for number, slide in slides if slide.element.get("show") in ("0", "false")}
    elements: Sequence[Any] = partition_pptx(file=io.BytesIO(data), languages=[""])
    groups = groupby(elements, key=lambda element: element.metadata.page_number)
    found = [(number, tidy("\n\n".join(filter(None, map(_element, group))))) for number, group in groups]
    shown = [(number, text) for number, text in found if number is not None and number not in hidden]
    last = max((number for number, _ in shown), default=0)
    places = (Section(text, f"{number}/{last}") for number, text in shown)
    return _within(places, len(shown), limit, f"slides: {len(hidden)}" if hidden else "")


def _element(element: Any) -> str:
    as_html = getattr(element.metadata, "text_as_html", None)
    return to_markdown(as_html) if as_html else str(element.text).strip()


def _mail(data: bytes) -> str:
    """Subject and text, preferring HTML. Attachments are not read."""
    mail = email.message_from_bytes(data, policy=policy.default)
    if mail.get_content_type() in ENCRYPTED_MAILS:
        raise Unreadable("encrypted")
    subject = " ".join(str(mail.get("subject", "")).split())
    text = "\n\n".join(_bodies(mail))
    return f"# {subject}\n\n{text}" if subject else text


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
