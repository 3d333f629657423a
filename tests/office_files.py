"""Real documents, made as small as they can be; and some that are made to hurt."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from html import escape

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
EML = "message/rfc822"


def pdf(pages: Sequence[str]) -> bytes:
    """A page per text, Latin letters, one line of it per line."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, text in enumerate(pages):
        lines = text.translate({40: "\\(", 41: "\\)", 92: "\\\\"}).split("\n")
        drawn = "BT /F1 11 Tf 50 780 Td 14 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        packed = zlib.compress(drawn.encode("cp1252"))
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
            + f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>".encode(),
            f"<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n".encode() + packed + b"\nendstream",
        ]
    return _pdf_of(objects)


def pdf_of_a_million_pages() -> bytes:
    """One page, a thousand times in a list, which stands a thousand times in the list of lists."""
    page = b"<< /Type /Page /Parent 3 0 R /MediaBox [0 0 9 9] >>"
    return _pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Count 1000000 /Kids [" + b"3 0 R " * 1000 + b"] >>",
            b"<< /Type /Pages /Count 1000 /Kids [" + b"4 0 R " * 1000 + b"] >>",
            page,
        ]
    )


def pdf_bomb(megabytes: int = 100) -> bytes:
    """A page that unpacks to more than pypdf lets it."""
    packer = zlib.compressobj(1)
    million = b" " * 2**20
    packed = b"".join(packer.compress(million) for _ in range(megabytes)) + packer.flush()
    return _pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
            f"<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n".encode() + packed + b"\nendstream",
        ]
    )


def _pdf_of(objects: Sequence[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    starts = []
    for number, body in enumerate(objects, 1):
        starts.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    xref = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{start:010} 00000 n \n".encode() for start in starts)
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n".encode()
    return bytes(out)


def encrypted(document: bytes, password: str) -> bytes:
    """A PDF behind a password (needs pypdf)."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(document)))
    writer.encrypt(password, algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


_WORD = " ".join(
    f'xmlns:{prefix}="http://schemas.openxmlformats.org/{name}"'
    for prefix, name in (
        ("w", "wordprocessingml/2006/main"),
        ("m", "officeDocument/2006/math"),
        ("mc", "markup-compatibility/2006"),
    )
)


def docx(heading: str, paragraphs: Sequence[str], rows: Sequence[Sequence[str]] = ()) -> bytes:
    """The first row names the columns of the others."""
    body = [wp(wr(heading), '<w:pStyle w:val="Heading1"/>'), *(wp(wr(text)) for text in paragraphs)]
    lines = ["".join(f"<w:tc>{wp(wr(text))}</w:tc>" for text in row) for row in rows]
    header = "<w:trPr><w:tblHeader/></w:trPr>"
    table = "".join(f"<w:tr>{header if n == 0 else ''}{line}</w:tr>" for n, line in enumerate(lines))
    return word("".join(body) + (f"<w:tbl>{table}</w:tbl>" if rows else ""))


def word(body: str, **parts: str) -> bytes:
    """A DOCX of XML: what is in its body, and in the roots of other parts (`styles="..."`)."""
    document = {"word/document.xml": f"<w:document {_WORD}><w:body>{body}</w:body></w:document>"}
    return archive(
        document | {f"word/{name}.xml": f"<w:{name} {_WORD}>{xml}</w:{name}>" for name, xml in parts.items()}
    )


def wp(runs: str, properties: str = "") -> str:
    """A paragraph of Word's."""
    return f"<w:p><w:pPr>{properties}</w:pPr>{runs}</w:p>"


def wr(text: str, properties: str = "") -> str:
    """A run of Word's."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def strict(document: bytes) -> bytes:
    """An office file as `Strict Open XML` of its programs."""
    with zipfile.ZipFile(io.BytesIO(document)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    found = re.compile(rb"http://schemas\.openxmlformats\.org/(?!package)(\w+)/2006/")
    return archive({name: found.sub(rb"http://purl.oclc.org/ooxml/\1/", part) for name, part in parts.items()})


def pptx(slides: Sequence[tuple[str, str]]) -> bytes:
    """Title and text of each slide. Needs python-pptx."""
    import pptx as library

    show = library.Presentation()
    for title, text in slides:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    return _saved(show)


def xlsx(sheets: Mapping[str, Sequence[Sequence[object]]]) -> bytes:
    """Needs openpyxl."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    return _saved(book)


def odt(body: str, styles: str = "", **members: str) -> bytes:
    """`body` is XML inside office:text, `styles` inside office:automatic-styles; other members by name."""
    names = {name: name for name in ("office", "style", "text", "table")} | {"fo": "xsl-fo-compatible"}
    spaces = "".join(
        f' xmlns:{each}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for each, name in names.items()
    )
    styled = f"<office:automatic-styles>{styles}</office:automatic-styles>"
    content = f"<office:document-content{spaces}>{styled}<office:body><office:text>{body}</office:text></office:body>"
    return archive({"mimetype": ODT, "content.xml": content + "</office:document-content>", **members})


def eml(subject: str, text: str) -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "clerk@town.example", "all@town.example", subject
    mail.set_content(text)
    return bytes(mail)


def archive(members: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return out.getvalue()


def with_parts(document: bytes, parts: Mapping[str, str]) -> bytes:
    """An office file with further parts."""
    with zipfile.ZipFile(io.BytesIO(document)) as file:
        return archive({name: file.read(name) for name in file.namelist()} | parts)


def zip_bomb(megabytes: int = 210) -> bytes:
    """Looks like a DOCX, and unpacks to so many MiB."""
    return archive({"[Content_Types].xml": "<Types/>", "word/document.xml": b" " * (megabytes * 2**20)})


def archive_of_many_names(names: int) -> bytes:
    """Looks like any archive, and holds a directory alone: 47 bytes of it take a third of a KiB once it is read."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 3, 20, *[0] * 8, 1, *[0] * 6) + b"a"
    whole = entry * names
    head = b"PK\x03\x04" + bytes(26)
    return (
        head + whole + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, names & 0xFFFF, names & 0xFFFF, len(whole), 30, 0)
    )


def laughing_odt() -> bytes:
    """A billion laughs: entities of entities."""
    entities = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    space = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    xml = f"<!DOCTYPE x [{entities}]><office:document-content {space}><office:text>&a9;</office:text>"
    return archive({"mimetype": ODT, "content.xml": xml + "</office:document-content>"})


def deep_odt(depth: int = 200_000) -> bytes:
    """Nested deeper than any stack."""
    space = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    return odt(f"<text:section {space}>" + "<text:section>" * depth + "</text:section>" * (depth + 1))


def _saved(document: object) -> bytes:
    out = io.BytesIO()
    document.save(out)  # type: ignore[attr-defined]
    return out.getvalue()
