"""Tabs and accordions without a script: labels of radio buttons and check boxes open the sections behind them."""

from __future__ import annotations

from collections.abc import Sequence

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

_SECTIONS = frozenset(("article", "div", "ol", "p", "section", "ul"))


def name_by_labels(soup: BeautifulSoup, label: Tag, name: str) -> int:
    """Move a label, and those beside it, as headings above the sections that they open; how many.

    Labels of other choices stay text.

    Args:
        label: A `button` with the attribute `choice`. It and those beside it become other elements.
        name: of the headings.
    """
    labels, last = _together(label)
    sections = _behind(last, len(labels))
    for one in labels:
        one.name = "span"
    if not sections or not all(map(_title, labels)) or any(one.find("h1") for one in sections):
        return 0
    for one, section in zip(labels, sections, strict=True):
        heading = soup.new_tag(name)
        heading.string = _title(one)
        section.insert_before(heading) if section.name == "p" else section.insert(0, heading)
        one.clear()
    return len(labels)


def _together(label: Tag) -> tuple[list[Tag], Tag]:
    """The labels next to each other, and the element that ends with them."""
    around = label
    while (parent := around.parent) is not None and parent.name in ("div", "li", "ol", "ul") and _has_only(parent):
        around = parent
    if around is not label:
        return [one for one in around.find_all("button") if "choice" in one.attrs], around
    labels = [label]
    while (behind := _next(labels[-1])) is not None and "choice" in behind.attrs:
        labels.append(behind)
    return labels, labels[-1]


def _has_only(element: Tag) -> bool:
    """Whether labels are all that is in it."""
    return all(any("choice" in one.attrs for one in text.parents) for text in element.strings if text.strip())


def _behind(element: Tag, count: int) -> Sequence[Tag]:
    """The next so many sections, or those in the next one; empty if there are others."""
    first = _next(element)
    if first is None or first.name not in _SECTIONS:
        return ()
    inside = [child for child in first.children if isinstance(child, Tag)]
    if count > 1 and len(inside) == count and all(one.name in _SECTIONS for one in inside):
        return inside
    found = [first]
    while len(found) < count and (behind := _next(found[-1])) is not None and behind.name in _SECTIONS:
        found.append(behind)
    return found if len(found) == count else ()


def _next(element: Tag) -> Tag | None:
    """The element directly behind it, without words between them."""
    behind = element.next_sibling
    while isinstance(behind, NavigableString) and not behind.strip():
        behind = behind.next_sibling
    return behind if isinstance(behind, Tag) else None


def _title(label: Tag) -> str:
    return " ".join(label.get_text(" ").split())
