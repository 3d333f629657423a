"""The parts of an Office Open XML file, its charts and SmartArt, whose texts stand in parts of their own, and slides.

A chart becomes a table of the values that the file keeps for it, below its titles (ECMA-376-1, 21.2). SmartArt becomes
the texts of its nodes (21.4).
"""

from __future__ import annotations

import posixpath
import zipfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import Any

from lxml import etree

from adapters.extraction.cell_formats import formatted, is_date
from text.html import to_markdown
from text.scripts import NEAR, lowered, raised
from text.words import count_roughly

_OFFICE = "http://schemas.openxmlformats.org"
A = f"{{{_OFFICE}/drawingml/2006/main}}"
C = f"{{{_OFFICE}/drawingml/2006/chart}}"
R = f"{{{_OFFICE}/officeDocument/2006/relationships}}"
_DGM = f"{{{_OFFICE}/drawingml/2006/diagram}}"
_NUMBERS = (C + "numCache", C + "numLit")
_CACHES = (C + "strCache", C + "strLit", *_NUMBERS)
GRAPHIC = A + "graphicData"
PICTURE = "{*}pic"  # of any of the formats


def parsed(xml: bytes) -> Any:
    """The root of a part. Raises: ValueError: it has a document type; lxml.etree.XMLSyntaxError."""
    root = etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False))
    if root.getroottree().docinfo.doctype:
        raise ValueError("an office file has no document type")
    return root


@dataclass(frozen=True)
class Drawing:
    """A chart or SmartArt as text."""

    lines: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()  # of its table, the first one is the header

    @property
    def html(self) -> str:
        rows = (
            "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
            for tag, row in zip(["th", *["td"] * len(self.rows)], self.rows, strict=False)
        )
        table = "".join(f"<tr>{row}</tr>" for row in rows)
        return "".join(f"<p>{escape(line)}</p>" for line in self.lines) + (f"<table>{table}</table>" if table else "")

    @property
    def texts(self) -> tuple[str, ...]:
        return (*self.lines, *(cell for row in self.rows for cell in row))


class Parts:
    """The XML parts of an open file."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())

    def root(self, name: str) -> Any:
        """The root of a part; None without that part."""
        return parsed(self._archive.read(name)) if name in self._names else None

    def related(self, name: str) -> dict[str, str]:
        """The names of the parts that a part refers to, by the ids that it has for them."""
        folder, file = posixpath.split(name)
        found = self.root(f"{folder}/_rels/{file}.rels")
        return {
            each.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, each.get("Target", ""))).lstrip("/")
            for each in (found if found is not None else ())
            if each.get("TargetMode") != "External"
        }

    def drawn(self, graphic: Any, related: dict[str, str]) -> tuple[str, Drawing | None]:
        """What a `GRAPHIC` is called and holds.

        Returns:
            `charts`, `SmartArt`, or an empty string for others; None for what has no form in text.
        """
        diagram = graphic.find(_DGM + "relIds")
        if diagram is not None:
            root = self.root(related.get(diagram.get(R + "dm", ""), ""))
            return "SmartArt", _diagram(root) if root is not None else None
        if not graphic.get("uri", "").endswith(("/chart", "/chartex")):
            return "", None
        chart = graphic.find(C + "chart")
        root = self.root(related.get(chart.get(R + "id", ""), "")) if chart is not None else None
        return "charts", _chart(root) if root is not None else None


def paragraphs(node: Any) -> list[str]:
    """The texts of the paragraphs of DrawingML in a node, without blank ones."""
    found = ("".join(each.itertext(A + "t")) for each in node.iter(A + "p"))
    return [" ".join(text.split()) for text in found if text.strip()]


def plain_runs(root: Any) -> Counter[str]:
    """Make raised and lowered runs of DrawingML plain text, and empty struck ones. Returns their numbers by kind.

    Libraries read all runs alike: 6 euros with 50 raised cents would be 650.
    """
    found: Counter[str] = Counter()
    for paragraph in root.iter(A + "p"):
        runs = [(run.find(A + "rPr"), text) for run in paragraph.iter(A + "r", A + "fld") for text in run.iter(A + "t")]
        before = ""
        for at, (style, text) in enumerate(runs):
            given, get = text.text or "", style.get if style is not None else {}.get
            if get("strike", "noStrike") != "noStrike":
                found["struck"] += bool(given.strip())
                text.text = ""
            elif shift := get("baseline", "0").lstrip("0%"):
                found["shifted"] += 1
                after = "".join(each.text or "" for _, each in runs[at + 1 : at + 3])[:NEAR]
                text.text = (lowered if shift.startswith("-") else raised)(before, given, after)
            before = (before + (text.text or ""))[-NEAR:]
    return found


def _diagram(root: Any) -> Drawing | None:
    nodes = (point for point in root.iter(_DGM + "pt") if point.get("type", "node") in ("node", "asst"))
    lines = tuple(line for node in nodes for line in paragraphs(node))
    return Drawing(lines) if lines else None


def _chart(root: Any) -> Drawing | None:
    """A chart whose series share their categories. Others, or those with dates for categories, have no simple table."""
    series = list(root.iter(C + "ser"))
    names, values = ([_cached(each.find(C + tag)) for each in series] for tag in ("tx", "val"))
    categories = [_cached(each.find(C + "cat")) for each in series]
    if not series or not categories[0] or any(each != categories[0] for each in categories) or not all(values):
        return None
    titles = tuple(line for title in root.iter(C + "title") for line in paragraphs(title))
    header = ("", *(name.get(0, "") for name in names))
    rows = ((name, *(each.get(at, "") for each in values)) for at, name in sorted(categories[0].items()))
    return Drawing(titles, (header, *rows))


def _float(text: str) -> float | str:
    with suppress(ValueError):
        if isfinite(number := float(text)):
            return number
    return ""  # `#N/A`


def _cached(node: Any) -> dict[int, str]:
    """The values of a series by their places, in their formats; empty where they are none of one level."""
    caches: list[Any] = list(node.iter(*_CACHES)) if node is not None else []
    if len(caches) != 1:
        return {}
    found: dict[int, str] = {}
    pattern = caches[0].findtext(C + "formatCode", "General")
    for point in caches[0].iter(C + "pt"):
        text, own = point.findtext(C + "v", ""), point.get("formatCode", pattern)
        is_number = caches[0].tag in _NUMBERS
        if is_number and is_date(own):
            return {}
        said = formatted(_float(text), own) if is_number else text
        found[int(point.get("idx", "0"))] = " ".join(said.split())
    return found


class Slide:
    """`words` that its viewers see; `left_out` counts its pictures, notes, struck runs, and charts that are no table.

    The runs of the slide become plain.
    """

    def __init__(self, slide: Any, parts: Parts) -> None:
        """`slide` is python-pptx's."""
        root, name = slide.element, str(slide.part.partname).lstrip("/")
        self.is_hidden = root.get("show") in ("0", "false")
        runs = plain_runs(root)
        self.is_rewritten = bool(runs)
        self.left_out = Counter({"pictures": sum(1 for _ in root.iter(PICTURE)), "deletions": runs["struck"]})
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        self.left_out["notes"] = int(notes is not None and bool(notes.text.strip()))
        related, drawn = parts.related(name), list[Drawing]()
        for graphic in root.iter(GRAPHIC):
            what, one = parts.drawn(graphic, related)
            self.left_out[what] += bool(what and one is None)
            drawn += [one] if one else []
        self.drawings = to_markdown("".join(one.html for one in drawn))  # Markdown
        self.words = count_roughly(" ".join((*paragraphs(root), *(text for one in drawn for text in one.texts))))
