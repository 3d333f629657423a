"""What kind of document an attachment is.

`expected` goes by what is said of it, before it is fetched, so that no film is. `kind_of` goes by the bytes: what a CMS
calls them is often a guess, and sometimes a lie. It opens archives, so only the process that reads documents asks it.
"""

from __future__ import annotations

import io
import re
import zipfile
from email.message import Message
from functools import cache
from mimetypes import MimeTypes
from typing import Literal

Kind = Literal["pdf", "docx", "pptx", "xlsx", "odt", "eml", "html", "csv", "text"]

# The packages of the extra `attachments` that read it.
NEEDS: dict[Kind, tuple[str, ...]] = {
    "pdf": ("pypdf",),
    "docx": ("mammoth",),
    "pptx": ("unstructured", "pptx"),
    "xlsx": ("openpyxl",),
    "odt": (),
    "eml": (),
    "html": (),
    "csv": (),
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
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
}
# Says nothing: what uploads and servers send that do not know.
UNSAID = frozenset(
    {
        "",
        "application/octet-stream",
        "binary/octet-stream",
        "application/zip",
        "application/x-zip-compressed",
        "application/download",
        "application/x-download",
        "application/force-download",
    }
)
MAIN_PARTS: dict[str, Kind] = {"word/document.xml": "docx", "ppt/presentation.xml": "pptx", "xl/workbook.xml": "xlsx"}
_BYTES_ARE_ENOUGH: frozenset[Kind | None] = frozenset({"pdf", "docx", "pptx", "xlsx", "odt"})
_SUFFIXES: dict[str, Kind] = {
    "eml": "eml", "htm": "html", "html": "html", "txt": "text", "md": "text", "csv": "csv", "tsv": "csv"
}  # fmt: skip
SUFFIXES: dict[str, Kind] = _SUFFIXES | {"pdf": "pdf", "docx": "docx", "pptx": "pptx", "xlsx": "xlsx", "odt": "odt"}
# Other names of types that are read: unregistered ones, those of templates, and those of Office before 2007, which many
# systems give to all of its files.
_PERHAPS = re.compile(r"application/.*(pdf|msword|ms-word|ms-excel|ms-powerpoint|openxmlformats-officedocument).*")
_OLD_SUFFIXES = frozenset({"doc", "xls", "ppt"})
_VAGUE = UNSAID - {"application/zip"}  # a file that is named so is an archive; one that is served so may be a DOCX
_NEVER = ("image/", "audio/", "video/")
_NOT_READ = "not a kind of document that is read"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The stream of an OLE file that holds an encrypted Office file ([MS-OFFCRYPTO] 2.3.1), as its directory names it.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
PROTECTED = "protected by a password"
_PDF_WITHIN = 1024  # bytes; readers accept some before the mark
_ENTRIES = 20_000  # of an archive that is looked at


class NotADocument(ValueError):
    """A picture, a film, an archive, an old binary format: nothing that is read here."""


class Mislabelled(ValueError):
    """The bytes are not what they are said to be, or are behind a password."""


def expected(media_type: str, name: str = "") -> Kind | None:
    """Which kind it will turn out to be, by what is said of it; None: only the bytes can tell.

    Args:
        media_type, name: as for `kind_of`.

    Raises:
        NotADocument: it is nothing that is read here, and need not be fetched.
    """
    said, suffix = essence(media_type), suffix_of(name)
    if said not in UNSAID:
        kind = TYPES.get(said)
        possible = bool(kind or _PERHAPS.fullmatch(said))
    else:
        kind = SUFFIXES.get(suffix)
        said = next(filter(None, _by_name().guess_type(f"x.{suffix}")), "")  # else how it is packed
        possible = bool(kind or said in _VAGUE or _PERHAPS.fullmatch(said))
    if not kind and suffix in _OLD_SUFFIXES:
        raise NotADocument("in the format of an Office before 2007")
    if not possible:
        raise NotADocument(f"{said}: {_NOT_READ}")
    return kind


@cache
def _by_name() -> MimeTypes:
    return MimeTypes()  # Python's own table: with what a machine adds to it, workers would differ


def is_none(media_type: str) -> bool:
    """Whether nothing that is called this is ever a document: a picture, sound, a film."""
    return essence(media_type).startswith(_NEVER)


def suffix_of(name: str) -> str:
    """`pdf`, in lower case; empty without one."""
    return name.lower().rpartition(".")[2] if "." in name else ""


def essence(media_type: str) -> str:
    """Without parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def charset_of(media_type: str) -> str | None:
    """The encoding that a media type names, in lower case."""
    said = Message()
    said["content-type"] = media_type
    return said.get_content_charset()


def kind_of(data: bytes, media_type: str, name: str = "") -> Kind:
    """Which kind it is.

    Args:
        media_type: as the CMS or the server says; generic ones say nothing.
        name: of the file, for what bytes cannot tell: mails from other texts.

    Raises:
        NotADocument, Mislabelled: for an editor to read.
    """
    said = essence(media_type)
    wanted = TYPES.get(said)
    found = _by_bytes(data)
    if found:
        if wanted not in (None, found) or said.startswith(("text/", *_NEVER)):
            raise Mislabelled(f"said to be {said}, but it is {found.upper()}")
        return found
    if wanted in _BYTES_ARE_ENOUGH:
        if data.startswith(_OLE):
            raise Mislabelled("in the format of an Office before 2007")
        raise Mislabelled(f"said to be {said}, which it is not")
    if wanted:
        return wanted
    if said in UNSAID and (kind := _SUFFIXES.get(suffix_of(name))):
        return kind
    raise NotADocument(f"{said or 'a file'}: {_NOT_READ}")


def _by_bytes(data: bytes) -> Kind | None:
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return "pdf"
    if data.startswith(_OLE) and _ENCRYPTED in data:
        raise Mislabelled(PROTECTED)
    if not data.startswith(b"PK"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {info.filename for info in archive.infolist()[:_ENTRIES]}
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 100:
                return TYPES.get(archive.read("mimetype").decode("latin-1").strip())
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError, EOFError) as err:
        raise Mislabelled(f"damaged: {err}") from err
    return next((kind for member, kind in MAIN_PARTS.items() if member in names), None)
