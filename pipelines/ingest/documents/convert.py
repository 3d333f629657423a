"""A page's five searchable fields as text, which is cut, embedded, searched and quoted.

PageDocument ─text.html─▶ {field: text} ─chunk─▶ cores
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.ingest.documents.facts import VisiblePage, facts_of
from pipelines.ingest.documents.structured_data import structured_data_in
from schemas.ingest import Reading, WordCounts
from schemas.page import FieldName, PageDocument, PageMetadata
from text.html import one_line, read
from text.html_tree import MAX_TAGS
from text.loss import warning
from text.reader import READER

CUT = f"the content has more than {MAX_TAGS:,} tags: what stands behind them is not searchable"


@dataclass(frozen=True)
class Converted:
    """A page as text."""

    fields: dict[FieldName, str]  # the content as Markdown, the short ones on one line each
    reading: Reading
    notes: tuple[str, ...]  # what its editor should know of what was left out, and of what was added
    metadata: PageMetadata  # what the page says of itself for machines


def convert(page: PageDocument, lang: str = "") -> Converted:
    """The page's fields as text, and what of its words is not in there. Behind the content stand facts that the page
    tells machines alone.

    Args:
        lang: Of the page, where it does not say so itself.
    """
    lang = page.lang or lang
    content = read(page.content, lang)
    words = content.words(page.left_out)
    metadata = page.metadata or structured_data_in(page.content) or PageMetadata()
    title = one_line(page.title, lang) or one_line(page.name, lang)
    facts = facts_of(metadata, VisiblePage(content.markdown, lang, page.url, title))
    notes = (CUT if content.is_cut else None, warning(words) if words else None, facts.note)
    fields: dict[FieldName, str] = {
        "name": one_line(page.name, lang),
        "title": one_line(page.title, lang),
        "description": one_line(page.description, lang),
        "keywords": ", ".join(filter(None, map(one_line, page.keywords))),
        "content": "\n\n".join(filter(None, (content.markdown, facts.markdown))),
    }
    reading = Reading(reader=READER, words=WordCounts.model_validate(words, from_attributes=True) if words else None)
    return Converted(fields, reading, tuple(filter(None, notes)), metadata)
