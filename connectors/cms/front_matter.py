"""Front matter of text files: YAML between `---`, as in Jekyll, or Hugo's TOML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from prompts.strict_yaml import load_plain
from schemas.labels import fitting_labels
from schemas.page import PageDocument

LONGEST_MATTER = 64 * 1024  # characters of front matter
LONGEST_TOML = 4 * 1024  # characters of TOML: the time of Python's parser is quadratic in the parts of a key
_FENCES = {mark: re.compile(rf"^{re.escape(mark)}[ \t]*(?:\n|\Z)", re.MULTILINE) for mark in ("---", "+++")}
# `title: Fees: what they are`, which is no valid YAML, but unambiguous
_COLON = re.compile(r"^([a-zA-Z_]\w*:)[ ]+([^\s\[\]{}\"'|>&*!%@`#][^\n]*:[ ][^\n]*)$", re.MULTILINE)

# `metadata` in front matter is of other tools, and can be anything.
FIELDS = frozenset(PageDocument.model_fields) - {"content", "attachments", "metadata"}
# Names in Hugo, Jekyll and Eleventy.
OTHER_NAMES = {"tags": "keywords", "summary": "description", "lastmod": "changed_at", "date": "changed_at"}
AUTHOR = "author"  # a name may have a comma
SORTED_BY = ("tags", "categories", AUTHOR)
DRAFT = "a draft"


def split(text: str) -> tuple[dict[str, Any], str]:
    """The front matter of a file as fields of a page document, and the rest of the text.

    Raises:
        ValueError: the front matter is malformed.
    """
    first, _, rest = text.partition("\n")
    fence = _FENCES.get(first.rstrip())
    end = fence.search(rest) if fence else None
    if end is None or (rest[:1].isspace() and rest[: end.start()].strip()):  # a horizontal rule, then text
        return {}, text
    if end.start() > LONGEST_MATTER:
        raise ValueError(f"front matter: longer than {LONGEST_MATTER:,} characters")
    return _fields(rest[: end.start()], _toml if first.startswith("+") else _yaml), rest[end.end() :]


def known_fields(said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of front matter that Pagewire uses: those of a page document, `draft`, `published`, `attachments`."""
    fields: dict[str, Any] = {}
    for name, value in said.items():
        own = OTHER_NAMES.get(name, name)
        if own in FIELDS or name in ("draft", "published", "attachments"):
            fields.setdefault(own, value)
    for name in ("id", "title", "name"):
        if isinstance(fields.get(name), int | float):
            fields[name] = str(fields[name])
    if "keywords" in fields:
        fields["keywords"] = _listed(fields["keywords"])
    sorted_by = fitting_labels(
        {name: _values(said[name] if name == AUTHOR else _listed(said[name])) for name in SORTED_BY if name in said}
    )
    labels = fields.get("labels", {})
    if isinstance(labels, dict):
        labels = {**sorted_by, **{key: _values(value) for key, value in labels.items()}}
    if labels:
        fields["labels"] = labels
    if "changed_at" in fields:
        fields["changed_at"] = with_zone(fields["changed_at"])
    return fields


def _values(value: Any) -> list[Any]:
    """One value or a list of them; numbers and dates as text."""
    found = value if isinstance(value, list | tuple) else [value]
    return [str(each) if isinstance(each, int | float | date) else each for each in found]


def _listed(value: Any) -> Any:
    """A line with commas is a list."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def is_draft(fields: Mapping[str, Any]) -> bool:
    """Whether the file is not to be published yet."""
    return fields.get("draft") is True or fields.get("published") is False


def with_zone(value: Any) -> Any:
    """A date or time of front matter, in UTC if it has no zone; other values unchanged."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    return datetime.combine(value, time(), UTC) if isinstance(value, date) else value


def _fields(text: str, load: Any) -> dict[str, Any]:
    """Common names of front matter as fields of a page document."""
    try:
        said = load(text) or {}
    except (ValueError, OverflowError, RecursionError) as err:
        raise ValueError(f"front matter: {err}") from err
    if not isinstance(said, dict):
        raise ValueError("front matter: must be `name: value` lines")
    if "path" in said:
        said.setdefault("url", said.pop("path"))
    if "changed_at" in said:
        said["changed_at"] = with_zone(said["changed_at"])
    if said.get("lang") is False:
        said["lang"] = "no"  # Norwegian, which YAML parses as False
    return said


def _toml(text: str) -> dict[str, Any]:
    if len(text) > LONGEST_TOML:
        raise ValueError(f"longer than {LONGEST_TOML:,} characters")
    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    try:
        return load_plain(text)
    except ValueError:
        quoted = _COLON.sub(lambda line: f"{line[1]} {json.dumps(line[2], ensure_ascii=False)}", text)
        if quoted == text:
            raise
        return load_plain(quoted)
