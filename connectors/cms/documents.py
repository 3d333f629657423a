"""Page documents on disk: NDJSON, and a folder of HTML, Markdown or office files."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from connectors.cms.front_matter import DRAFT, FIELDS, is_draft, known_fields, split
from connectors.cms.page_fields import OFFICE, language_of, title_in
from connectors.cms.sitemap.page import WebPage, read_page
from pipelines.runtime.errors import WrongUse, nearest
from pipelines.runtime.folder import Folder, FolderEntry, reason
from schemas.base import problems
from schemas.page import Attachment, PageDocument
from text.encodings import decoded
from text.loss import counted
from text.markdown import to_html

HTML = {".html", ".htm"}
SUFFIXES = HTML | {".md", ".markdown"}
HEAD = 10_000  # characters of a page in which `<html>` is looked for
# What stands around the content of a website's page.
_FRAME = re.compile(r"<(?:aside|footer|header|nav)\b|\brole=[\"']?(?:banner|contentinfo|navigation)\b", re.IGNORECASE)
_BODY = re.compile(r"<body\b", re.IGNORECASE)
_HTML_LANG = re.compile(r"<html\b[^>]{0,1000}?\slang\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
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
    tagged = language_of(lang_tag(path, body), languages)
    named = {"lang": tagged} if tagged in languages else {}
    read = fields_of(path, body)
    page = {"id": relative.as_posix(), "revision": _changed(stat), **named, **read} | fields
    page["title"] = page.get("title") or relative.name
    return PageDocument.model_validate(page)


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


def html_of(path: Path, body: str) -> str:
    """The text of a file as HTML."""
    if path.suffix.lower() in HTML:
        return body
    return to_html(body)


def whole_page(path: Path, body: str) -> WebPage | None:
    """The page in an HTML file as a website shows it, with menus or a footer; None: there is content alone."""
    if path.suffix.lower() not in HTML or not (_BODY.search(body) and _FRAME.search(body)):
        return None
    try:
        return read_page(body.encode(), "https://page.invalid/", "utf-8")
    except ValueError:
        return None


def fields_of(path: Path, body: str) -> dict[str, Any]:
    """The fields of a page document that a file's text gives."""
    page = whole_page(path, body)
    if page is None:
        content = html_of(path, body)
        return {"content": content, "title": title_in(content)}
    return {
        "content": page.content,
        "title": page.title,
        "description": page.description,
        "keywords": page.keywords,
        "left_out": counted(page.left_out),
        "metadata": page.metadata,
    }
