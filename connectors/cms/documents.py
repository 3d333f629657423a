"""Sources of page documents on disk: NDJSON, and a folder of HTML, Markdown or office files."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from connectors.cms.titles import title_in
from pipelines.runtime.errors import WrongUse
from schemas.base import problems
from schemas.page import Attachment, PageDocument
from text.markdown import to_html

SUFFIXES = {".html", ".htm", ".md", ".markdown"}
# Not read here: a page with the file attached, which the ingest workers read.
OFFICE = {
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".eml": "message/rfc822",
    ".txt": "text/plain",
}
LARGEST_FILE = 5 * 1024 * 1024  # bytes: the change with the file in it must fit into one message
FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)


class BadSource(WrongUse):
    """The source cannot be read as pages; names file and line."""

    code = "bad-source"


def documents(source: Path) -> Iterator[PageDocument]:
    """Pages of an NDJSON file (one PageDocument per line) or of a folder, in a stable order.

    Raises:
        BadSource: naming the file, the line and what is wrong.
    """
    if source.is_dir():
        yield from _folder(source)
    elif source.is_file():
        yield from _ndjson(source)
    else:
        raise _missing(source)


def count(source: Path) -> int:
    """How many pages `documents` will give, for a progress bar. Raises: BadSource: there is no such source."""
    if source.is_dir():
        return sum(1 for _ in _files(source))
    if not source.is_file():
        raise _missing(source)
    with source.open("rb") as file:
        return sum(1 for line in file if line.strip())


def _missing(source: Path) -> BadSource:
    return BadSource(f"{source}: no such file or folder")


def _ndjson(path: Path) -> Iterator[PageDocument]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield PageDocument.model_validate_json(line)
                except ValidationError as err:
                    raise BadSource(f"{path}:{number}: {problems(err)}") from None


def _files(folder: Path) -> Iterator[Path]:
    return (p for p in sorted(folder.rglob("*")) if p.suffix.lower() in SUFFIXES | OFFICE.keys() and p.is_file())


def _folder(folder: Path) -> Iterator[PageDocument]:
    for path in _files(folder):
        try:
            yield _office(folder, path) if path.suffix.lower() in OFFICE else _text(folder, path)
        except ValidationError as err:
            raise BadSource(f"{path}: {problems(err)}") from None
        except (OSError, ValueError, yaml.YAMLError) as err:
            raise BadSource(f"{path}: {err}") from err


def _text(folder: Path, path: Path) -> PageDocument:
    relative = path.relative_to(folder).with_suffix("")
    fields, body = split(path.read_text(encoding="utf-8-sig"))  # editors on Windows put a mark at the start
    content = html(path, body)
    said = {"id": relative.as_posix(), "revision": _changed(path)} | fields
    if "title" not in fields:
        said["title"] = title_in(content) or relative.name
    return PageDocument.model_validate(said | {"content": content})


def _office(folder: Path, path: Path) -> PageDocument:
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(
            f"larger than {LARGEST_FILE:,} bytes: make the folder a connector, which hands large files on by their path"
        )
    attached = Attachment(
        data_base64=b64encode(path.read_bytes()).decode(), media_type=OFFICE[path.suffix.lower()], title=path.name
    )
    page_id = path.relative_to(folder).as_posix()
    return PageDocument(id=page_id, title=path.name, revision=_changed(path), attachments=(attached,))


def _changed(path: Path) -> int:
    """Milliseconds of the last change: importing the same file twice is the same revision."""
    return round(path.stat().st_mtime * 1000)


def split(text: str) -> tuple[dict[str, Any], str]:
    """What the front matter of a file says, as a page document says it, and the rest.

    Raises:
        ValueError, yaml.YAMLError: it is not front matter.
    """
    matter = FRONT_MATTER.match(text)
    if matter is None:
        return {}, text
    return _front_matter(matter.group(1)), text[matter.end() :]


def html(path: Path, body: str) -> str:
    """The text of a file as HTML."""
    if path.suffix.lower() in (".html", ".htm"):
        return body
    return to_html(body)


def _front_matter(text: str) -> dict[str, Any]:
    """What front matter commonly says, as a page document says it."""
    said = yaml.safe_load(text) or {}
    if not isinstance(said, dict):
        raise ValueError("front matter: must be `name: value` lines")
    if "path" in said:
        said.setdefault("url", said.pop("path"))
    changed = said.get("changed_at")
    if isinstance(changed, datetime) and changed.tzinfo is None:
        said["changed_at"] = changed.replace(tzinfo=UTC)
    elif isinstance(changed, date) and not isinstance(changed, datetime):
        said["changed_at"] = datetime.combine(changed, time(), UTC)
    return said
