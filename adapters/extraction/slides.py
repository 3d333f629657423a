"""PPTX: what stands on a slide besides the text that unstructured reads, and what is left out of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from adapters.extraction.office_parts import GRAPHIC, PICTURE, Drawing, Parts, paragraphs
from text.html import to_markdown
from text.words import count_roughly


class Slide:
    """`words` that its viewers see; `left_out` counts its pictures, notes, and charts that are no table."""

    def __init__(self, slide: Any, parts: Parts) -> None:
        """`slide` is python-pptx's."""
        root, name = slide.element, str(slide.part.partname).lstrip("/")
        self.is_hidden = root.get("show") in ("0", "false")
        self.left_out = Counter({"pictures": sum(1 for _ in root.iter(PICTURE))})
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        self.left_out["notes"] = int(notes is not None and bool(notes.text.strip()))
        related, drawn = parts.related(name), list[Drawing]()
        for graphic in root.iter(GRAPHIC):
            what, one = parts.drawn(graphic, related)
            self.left_out[what] += bool(what and one is None)
            drawn += [one] if one else []
        self.drawings = to_markdown("".join(one.html for one in drawn))  # Markdown
        self.words = count_roughly(" ".join((*paragraphs(root), *(text for one in drawn for text in one.texts))))
