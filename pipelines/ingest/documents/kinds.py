"""What kind of document some bytes are. By the bytes: what a CMS calls them is often a guess, and sometimes a lie."""

from __future__ import annotations

import io
import zipfile
from typing import Literal

Kind = Literal["pdf", "docx", "pptx", "xlsx", "odt", "eml", "html", "text"]

# The packages of the extra `attachments` that read it.
NEEDS: dict[Kind, tuple[str, ...]] = {
    "pdf": ("pypdf",),
    "docx": ("unstructured", "docx"),
    "pptx": ("unstructured", "pptx"),
    "xlsx": ("unstructured", "openpyxl"),
    "odt": (),
    "eml": ("unstructured",),
    "html": (),
    "text": (),
}
TYPES: dict[str, Kind] = {
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.oasis.opendocument.text": "odt",
    "message/rfc822": "eml",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/plain": "text",
    "text/markdown": "text",
    "text/csv": "text",
    "text/tab-separated-values": "text",
}
# Says nothing: what uploads and servers send that do not know.
UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/zip", "application/x-download"})
_MEMBERS: dict[str, Kind] = {"word/document.xml": "docx", "ppt/presentation.xml": "pptx", "xl/workbook.xml": "xlsx"}
_BYTES_ARE_ENOUGH: frozenset[Kind | None] = frozenset({"pdf", "docx", "pptx", "xlsx", "odt"})
_SUFFIXES: dict[str, Kind] = {"eml": "eml", "htm": "html", "html": "html", "txt": "text", "md": "text", "csv": "text"}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_WITHIN = 1024  # bytes; readers accept some before the mark
_ENTRIES = 20_000  # of an archive that is looked at


class NotADocument(ValueError):
    """A picture, a film, an archive, an old binary format: nothing that is read here."""


class Mislabelled(ValueError):
    """The bytes are not what they are said to be."""


def kind_of(data: bytes, media_type: str, name: str = "") -> Kind:
    """Which kind it is.

    Args:
        media_type: as the CMS or the server says; generic ones say nothing.
        name: of the file, for what bytes cannot tell: mails from other texts.

    Raises:
        NotADocument, Mislabelled: for an editor to read.
    """
    said = media_type.partition(";")[0].strip().lower()
    wanted = TYPES.get(said)
    found = _by_bytes(data)
    if found:
        if wanted not in (None, found) or said.startswith(("text/", "image/", "audio/", "video/")):
            raise Mislabelled(f"said to be {said}, but it is {found.upper()}")
        return found
    if wanted in _BYTES_ARE_ENOUGH:
        if data.startswith(_OLE):
            raise Mislabelled("protected by a password, or in the format of an Office before 2007")
        raise Mislabelled(f"said to be {said}, which it is not")
    if wanted:
        return wanted
    if said in UNSAID and (kind := _SUFFIXES.get(name.lower().rpartition(".")[2])):
        return kind
    raise NotADocument(f"{said or 'a file'}: not a kind of document that is read")


def _by_bytes(data: bytes) -> Kind | None:
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return "pdf"
    if not data.startswith(b"PK"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {info.filename for info in archive.infolist()[:_ENTRIES]}
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 100:
                return TYPES.get(archive.read("mimetype").decode("latin-1").strip())
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError, EOFError) as err:
        raise Mislabelled(f"damaged: {err}") from err
    return next((kind for member, kind in _MEMBERS.items() if member in names), None)
