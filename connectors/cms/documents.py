"""Page documents on disk: NDJSON, and a folder of HTML, Markdown or office files; titles of pages that name none."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml import etree, html
from pydantic import ValidationError

from connectors.cms.front_matter import DRAFT, FIELDS, is_draft, known_fields, split
from pipelines.runtime.errors import WrongUse, nearest
from pipelines.runtime.folder import Folder, FolderEntry, reason
from schemas.base import problems
from schemas.page import Attachment, PageDocument
from text.encodings import decoded
from text.markdown import to_html

FIELD = 20_000  # characters of a short field
_SEPARATOR = " ?(?:[|·•»«–—]| - |::) ?"  # between a page's title and its site's name, both in single spaces


def title_of(tree: Any) -> str:
    """The title of an HTML document: its heading if the title contains it (`Library - Town of X`), else its title
    without the site's name, else its first heading, else empty.
    """
    site = _meta(tree, "og:site_name")
    title = _cut(_spaced(next(iter(tree.xpath("//head/title/text()")), "")) or _meta(tree, "og:title"), site)
    headings = [found for found in (_spaced(heading.text_content()) for heading in tree.xpath("//h1")) if found]
    if not title:
        return headings[0] if headings else ""
    return headings[0] if len(headings) == 1 and headings[0] in title else title


def title_in(content: str) -> str:
    """The same for HTML text. Empty if it cannot be parsed."""
    try:
        return title_of(html.document_fromstring(content, parser=html.HTMLParser(no_network=True, huge_tree=False)))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return ""


def _cut(title: str, site: str) -> str:
    if not site:
        return title
    name = re.escape(site)
    return re.sub(rf"{_SEPARATOR}{name}$|^{name}{_SEPARATOR}", "", title) or title


def _meta(tree: Any, name: str) -> str:
    return _spaced(next(iter(tree.xpath("//meta[@property=$name or @name=$name]/@content", name=name)), ""))


def _spaced(value: object) -> str:
    return " ".join(str(value).split())[:FIELD]


HTML = {".html", ".htm"}
SUFFIXES = HTML | {".md", ".markdown"}
LANG = re.compile(r"([a-zA-Z]{2,3})((?:[-_][A-Za-z0-9]{2,8})*)")
HEAD = 10_000  # characters of a page in which `<html>` is looked for
_HTML_LANG = re.compile(r"<html\b[^>]{0,1000}?\slang\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
# Not read here: the page gets the file as an attachment, which the ingest workers read.
OFFICE = {
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".eml": "message/rfc822",
    ".txt": "text/plain",
    ".csv": "text/csv",
}
LARGEST_FILE = 5 * 1024 * 1024  # bytes: the change contains the file and must fit into one message
LARGEST_TEXT = 32 * 1024 * 1024  # bytes of a text file; the intake's own limit is lower


class BadSource(WrongUse):
    """The source cannot be read as pages."""

    code = "bad-source"


@dataclass
class Left:
    """Files or lines that gave no page, and why."""

    failed: dict[str, str] = field(default_factory=dict)
    omitted: dict[str, str] = field(default_factory=dict)  # links to files outside the folder


def documents(source: Path, left: Left, languages: tuple[str, ...] = ()) -> Iterator[PageDocument]:
    """Pages of an NDJSON file (one PageDocument per line) or of a folder, in a stable order.

    Args:
        left: receives what cannot be read; the others are returned.
        languages: of the site. An HTML file is in the one that its `<html lang>` names, if it is one of these.

    Raises:
        BadSource: the source does not exist, or cannot be opened.
    """
    try:
        if source.is_dir():
            yield from _folder(Folder(source), left, languages)
        elif source.is_file():
            yield from _ndjson(source, left)
        else:
            raise _missing(source)
    except OSError as err:
        raise BadSource(f"{source}: {reason(err)}") from err


def count(source: Path) -> int:
    """The most pages that `documents` may return, for a progress bar. Raises: BadSource: it does not exist."""
    try:
        if source.is_dir():
            return sum(not found.problem for found in page_files(Folder(source)))
        if not source.is_file():
            raise _missing(source)
        with source.open("rb") as file:
            return sum(1 for line in file if line.strip())
    except OSError as err:
        raise BadSource(f"{source}: {reason(err)}") from err


def _missing(source: Path) -> BadSource:
    return BadSource(f"{source}: no such file or folder")


def _ndjson(path: Path, left: Left) -> Iterator[PageDocument]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield PageDocument.model_validate_json(line)
                except ValidationError as err:
                    left.failed[f"{path}:{number}"] = problems(err)


def page_files(folder: Folder) -> Iterator[FolderEntry]:
    """Files that are pages by their names, and folders that cannot be listed."""
    return (one for one in folder.walk() if one.kind == "folder" or one.path.suffix.lower() in SUFFIXES | OFFICE.keys())


def _folder(folder: Folder, left: Left, languages: tuple[str, ...]) -> Iterator[PageDocument]:
    for found in page_files(folder):
        name = folder.relative(found.path)
        if found.problem or found.stat is None:
            (left.omitted if found.kind == "link" else left.failed)[name] = found.problem
            continue
        try:
            page: PageDocument | None
            if found.path.suffix.lower() in OFFICE:
                page = _office(folder, found.path, found.stat)
            else:
                page = _text(folder, found.path, found.stat, languages)
        except FileNotFoundError:  # deleted meanwhile
            continue
        except Exception as err:  # noqa: BLE001 - one file must not stop the others
            left.failed[name] = reason(err)
        else:
            if page is None:
                left.omitted[name] = DRAFT
            else:
                yield page


def _text(folder: Folder, path: Path, stat: os.stat_result, languages: tuple[str, ...]) -> PageDocument | None:
    """None: a draft."""
    relative = path.relative_to(folder.path).with_suffix("")
    said, body = split(text_of(folder, path))
    fields = known_fields(said)
    for name in said.keys() - fields.keys():
        if nearest(
            str(name), ("groups",)
        ):  # a page for some people alone must not become everybody's by a typing error
            raise ValueError(f"{name}: no field of a page; did you mean groups?")
    if is_draft(fields):
        return None
    fields = {name: value for name, value in fields.items() if name in {*FIELDS, "attachments"}}
    content = html_of(path, body)
    tagged = language_of(lang_tag(path, body), languages)
    named = {"lang": tagged} if tagged in languages else {}
    page = {"id": relative.as_posix(), "revision": _changed(stat), **named} | fields
    if "title" not in fields:
        page["title"] = title_in(content) or relative.name
    return PageDocument.model_validate(page | {"content": content})


def _office(folder: Folder, path: Path, stat: os.stat_result) -> PageDocument:
    if stat.st_size > LARGEST_FILE:
        raise ValueError(
            f"larger than {LARGEST_FILE:,} bytes: make the folder a connector, which hands large files on by their path"
        )
    data = b64encode(folder.read(path, LARGEST_FILE)).decode()
    attached = Attachment(data_base64=data, media_type=OFFICE[path.suffix.lower()], title=path.name)
    page_id = path.relative_to(folder.path).as_posix()
    return PageDocument(id=page_id, title=path.name, revision=_changed(stat), attachments=(attached,))


def _changed(stat: os.stat_result) -> int:
    """The time of the last change in milliseconds, so that a file imported twice has the same revision."""
    return round(stat.st_mtime * 1000)


def text_of(folder: Folder, path: Path) -> str:
    """The content of a text file, with line ends `\n`. Raises: as `Folder.read`, UnknownEncoding."""
    return text_in(path, folder.read(path, LARGEST_TEXT))


def text_in(path: Path, data: bytes) -> str:
    """The same from a file's bytes. Raises: UnknownEncoding."""
    text = decoded(data, page=path.suffix.lower() in HTML)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lang_tag(path: Path, text: str) -> str | None:
    """What an HTML file says in `<html lang>`; None: nothing, or it is no HTML file."""
    found = _HTML_LANG.search(text, 0, HEAD) if path.suffix.lower() in HTML else None
    return found[1] if found else None


def language_of(tag: str | None, languages: tuple[str, ...]) -> str | None:
    """The site's language for a tag such as `de-AT`, else the normalized tag; None: it is no language."""
    match = LANG.fullmatch((tag or "").strip())
    if match is None:
        return None
    primary = match[1].lower()
    whole = primary + match[2].replace("_", "-")
    for own in languages:
        if own.lower() == whole.lower():
            return own
    return primary if primary in languages else whole


def html_of(path: Path, body: str) -> str:
    """The text of a file as HTML."""
    if path.suffix.lower() in HTML:
        return body
    return to_html(body)
