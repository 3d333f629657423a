"""A page as Markdown, exactly as it is indexed: its Markdown twin.

LivePage ─▶ front matter (as the folder connector reads it), content, attachments
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import yaml

from schemas.http import LivePage, LiveSection
from text.markdown import escaped

SAFE = ":/?#[]@!$&'*+,;=%"  # in an address: all that belongs to it, without brackets that end a link (RFC 3986, 2.2)


def markdown_of(page: LivePage) -> str:
    """The whole page; its texts are those of the index, letter by letter."""
    matter: dict[str, Any] = {
        "id": page.page_id,
        "lang": page.lang,
        "title": page.title,
        "url": page.url,
        "description": page.fields.get("description"),
        "keywords": page.fields.get("keywords"),
        "name": name if (name := page.fields.get("name")) != page.title else None,
        "labels": {key: list(values) for key, values in page.labels.items()} or None,
        "changed_at": page.changed_at.isoformat(timespec="milliseconds"),
        "revision": page.revision,
    }
    said = {key: value for key, value in matter.items() if value not in (None, "")}
    # One line a value: a long one would else be folded.
    front = yaml.safe_dump(said, allow_unicode=True, sort_keys=False, width=float("inf"))
    return f"---\n{front}---\n\n" + "\n\n".join(map(_section, page.sections)).rstrip("\n") + "\n"


def _section(section: LiveSection) -> str:
    """The page's own text as it is; an attachment's under a line and its link."""
    text = section.text.strip("\n")
    return f"---\n\n{link(section.title, section.url)}\n\n{text}" if section.title or section.url else text


def link(title: str, url: str) -> str:
    """A link of Markdown. Without a title the address is the text."""
    text = " ".join(title.split()) or url
    return f"[{escaped(text, linked=True)}]({quote(url, safe=SAFE)})"
