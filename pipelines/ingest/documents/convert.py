"""A page's five searchable fields as text, which is cut, embedded, searched and quoted.

PageDocument ─text.html─▶ {field: text} ─chunk─▶ cores
"""

from __future__ import annotations

from schemas.page import FieldName, PageDocument
from text.html import is_cut, one_line, to_markdown
from text.html_tree import MAX_TAGS

CUT = f"the content has more than {MAX_TAGS:,} tags: what stands behind them is not searchable"


def fields(page: PageDocument) -> dict[FieldName, str]:
    """The content as Markdown, the short fields on one line each."""
    return {
        "name": one_line(page.name),
        "title": one_line(page.title),
        "description": one_line(page.description),
        "keywords": ", ".join(filter(None, map(one_line, page.keywords))),
        "content": to_markdown(page.content),
    }


def notes(page: PageDocument) -> tuple[str, ...]:
    """What its editor should know of what was left out."""
    return (CUT,) if is_cut(page.content) else ()
