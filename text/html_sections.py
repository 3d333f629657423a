"""Names the sections of a page that its controls open: tabs, accordions, with or without a script.

A control is what `text.html_tree` keeps as a `button`: a button, a tab, the label of a check box or a radio button.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

MAX_MOVED = 500  # moved headings of a page; each may cost a scan of its siblings
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
# What turns when a section opens: "+ Prices", "Prices ▾".
_TURNED = "[+＋➕−–➖▲△▴▵▶▷▸▹►▼▽▾▿◀◂◄∨∧⌄⌃˅˄›»⊕⊖]"
_TURNED_AT_ENDS = re.compile(rf"^{_TURNED} | {_TURNED}$")
_SECTIONS = frozenset(("article", "div", "ol", "p", "section", "ul"))


def name_sections(soup: BeautifulSoup) -> None:
    """Move the text of each control as a heading above the section that it opens. Other controls are removed."""
    tags = soup.find_all(True)
    panels = [tag for tag in tags if "panel" in tag.attrs and next(tag.stripped_strings, None)]
    by_name = {name: tag for tag in panels for name in (str(tag["panel"]), *str(tag["label"]).split()) if name}
    tabs = [tag for tag in tags if tag.name == "button" and tag["tab"] == "True"]
    in_order = [tag for tag in panels if tag["tabpanel"] == "True"]
    by_place = dict(zip(map(id, tabs), in_order, strict=True)) if len(tabs) == len(in_order) else {}
    targets = {str(tag["target"]): tag for tag in tags if tag.name == "div" and "target" in tag.attrs}
    level, moved, named = 1, 0, set()
    for tag in tags:
        if tag.name == "ul":
            moved += _name_tabs(soup, tag, targets, level) if moved < MAX_MOVED else 0
            continue
        if tag.name in _HEADINGS:
            level = int(tag.name[1])
        if tag.name != "button":
            continue
        if "choice" in tag.attrs:
            moved += max(1, _name_by_labels(soup, tag, f"h{min(level + 1, 6)}")) if moved < MAX_MOVED else 0
            continue
        behind = tag.find_next_sibling()
        opened = by_name.get(str(tag["opens"])) or by_name.get(str(tag["known_as"])) or by_place.get(id(tag))
        if opened is None and not tag["opens"] and tag["tab"] != "True":
            opened = behind
        title = control_title(tag.get_text(" "))
        tag.clear()
        tag.name = "span"
        if not title or opened is None or opened.name == "button" or id(opened) in named:
            continue
        named.add(id(opened))
        heading = tag
        if opened is not behind:
            if (moved := moved + 1) > MAX_MOVED:
                continue
            heading = soup.new_tag("h3")
            opened.insert(0, heading) if opened.name in ("div", "section", "article") else opened.insert_before(heading)
        heading.name = f"h{min(level + 1, 6)}"
        heading.string = title


def _name_tabs(soup: BeautifulSoup, tabs: Tag, targets: Mapping[str, Tag], level: int) -> int:
    """Move the items of a list of links above the sections next to each other that they lead to; how many."""
    items = tabs.find_all("li", recursive=False)
    links = [item.find_all("a") for item in items[:MAX_MOVED]]
    if len(items) < 2 or any(len(link) != 1 for link in links):
        return 0
    sections = [targets.get(str(link["href"]).removeprefix("#")) for [link] in links]
    known = [one for one in sections if one is not None and not _is_headed(one)]
    if len(set(map(id, known))) < len(items) or any(one.parent is not known[0].parent for one in known):
        return 0
    for [link], section in zip(links, known, strict=True):
        heading = soup.new_tag(f"h{min(level + 1, 6)}")
        heading.string = " ".join(link.get_text(" ").split())
        section.insert(0, heading)
    tabs.clear()
    tabs.name = "div"
    return len(items)


def _is_headed(section: Tag) -> bool:
    first = next((text for text in section.strings if text.strip()), None)
    return first is not None and first.find_parent(_HEADINGS) is not None


def _name_by_labels(soup: BeautifulSoup, label: Tag, name: str) -> int:
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
    if not sections or not all(one.get_text(strip=True) for one in labels) or any(one.find("h1") for one in sections):
        return 0
    for one, section in zip(labels, sections, strict=True):
        heading = soup.new_tag(name)
        heading.string = control_title(one.get_text(" "))
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


def control_title(text: str) -> str:
    """The title of the section that a control opens: its text without the mark that shows whether it is open."""
    return _TURNED_AT_ENDS.sub("", " ".join(text.split()))
