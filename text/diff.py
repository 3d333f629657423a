"""Unified diffs of two versions of a page: short fields in one line each, content line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any

FIELDS = ("url", "name", "title", "description", "keywords", "groups")
# A CMS often sends the whole content as one line, so lines of the diff end with blocks.
BLOCK_END = re.compile(r"(</(?:p|h[1-6]|li|ul|ol|tr|table|div|section|article|pre|blockquote)>|<br ?/?>)(?!\n)", re.I)
CONTEXT = 2  # lines around a change
MAX_LINES = 20_000  # of a content, since a diff takes quadratic time at worst
MAX_SHOWN = 1_000  # lines of a diff
MAX_WIDTH = 1_000  # characters of a line

Page = Mapping[str, Any]  # a PageDocument as JSON


def page_diff(old: Page | None, new: Page | None, old_name: str, new_name: str) -> tuple[str, ...]:
    """Lines of a unified diff, empty for equal pages; None is a deleted or missing page."""
    lines = unified_diff(list(_lines(old)), list(_lines(new)), old_name, new_name, n=CONTEXT, lineterm="")
    shown: list[str] = []
    for line in lines:
        if len(shown) == MAX_SHOWN:
            shown.append(f"... only the first {MAX_SHOWN:,} lines are shown")
            break
        shown.append(line if len(line) <= MAX_WIDTH else line[:MAX_WIDTH] + "...")
    return tuple(shown)


def _lines(page: Page | None) -> Iterator[str]:
    if page is None:
        return
    for name in FIELDS:
        value = page.get(name)
        if isinstance(value, list | tuple):
            value = ", ".join(map(str, value)) or "(nobody)" if name == "groups" else ", ".join(map(str, value))
        if value:
            yield f"{name}: {' '.join(str(value).split())}"
    content = BLOCK_END.sub(r"\1\n", str(page.get("content") or "")).splitlines()
    for line in content[:MAX_LINES]:
        yield line.rstrip()
    if len(content) > MAX_LINES:
        yield f"... {len(content) - MAX_LINES:,} more lines, not compared"


def text_diff(old: str, new: str) -> tuple[str, ...]:
    """Lines of a unified diff of two plain texts, with `…` between distant places; empty for equal texts."""
    # Without the header and the first `@@`.
    lines = list(unified_diff(old.splitlines(), new.splitlines(), n=CONTEXT, lineterm=""))[3:]
    return tuple("…" if line.startswith("@@") else line for line in lines[:MAX_SHOWN])
