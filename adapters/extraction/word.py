"""DOCX to HTML by mammoth; `text.html` converts the HTML to Markdown.

    DOCX ─prepared─▶ DOCX without what mammoth would lose ─mammoth─▶ HTML ─notes moved to their blocks─▶ HTML

Left out and counted: comments, what tracked changes deleted, hidden text, pictures, charts that are no table. Left out:
page headers and footers, tables of contents.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from lxml import etree
from lxml import html as lxml_html

from adapters.extraction.office_parts import GRAPHIC, PICTURE, Drawing, Parts
from adapters.extraction.word_numbers import Numbers
from text.words import count_roughly

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_VML = "{urn:schemas-microsoft-com:vml}"
_STORIES = frozenset((W + "document", W + "footnotes", W + "endnotes"))
_FORMULA = {"f": "/", "sSup": "^", "sSub": "_"}
# The numbers of list items are part of their text, so all lists become bullets.
_STYLES = """
    p[style-name^='toc '] => !
    p:ordered-list(1) => ul > li:fresh
    p:ordered-list(2) => ul|ol > li > ul > li:fresh
    p:ordered-list(3) => ul|ol > li > ul|ol > li > ul > li:fresh
    p:ordered-list(4) => ul|ol > li > ul|ol > li > ul|ol > li > ul > li:fresh
    p:ordered-list(5) => ul|ol > li > ul|ol > li > ul|ol > li > ul|ol > li > ul > li:fresh
"""

_LANGUAGE = re.compile(rb'<w:lang\s[^<>]{0,200}?w:val="([\w-]{2,20})"')


def to_html(data: bytes) -> tuple[str, Counter[str], int]:
    """The text of a DOCX, with each note below its paragraph, list or table; what is left out of it, and how often; and
    how many words its readers see.
    """
    import mammoth

    prepared, left_out, seen = _prepared(data)
    made = mammoth.convert_to_html(
        io.BytesIO(prepared),
        style_map=_STYLES,
        include_embedded_style_map=False,
        convert_image=lambda _: [],
    )
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        lang = _language(archive)
    return f'<html lang="{lang}">{_with_notes(made.value)}', left_out, seen


def _language(archive: zipfile.ZipFile) -> str:
    """The language of most of its text by its styles; empty if they do not say it."""
    styles = archive.read("word/styles.xml") if "word/styles.xml" in archive.namelist() else b""
    found = _LANGUAGE.search(styles)
    return found[1].decode() if found else ""


def _prepared(data: bytes) -> tuple[bytes, Counter[str], int]:
    """Remove hidden and decorative parts; turn numbers, formulas, shapes and charts into text. Counts as `to_html`."""
    out, left_out, seen = io.BytesIO(), Counter[str](), 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as prepared:
        names = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
        parts = Parts(archive)
        roots = {name: parts.root(name) for name in names if name.startswith("word/") and name.count("/") == 1}
        styles = _Styles(roots.get("word/styles.xml"))
        numbers = Numbers(roots.get("word/numbering.xml"), roots.get("word/styles.xml"))
        for name in names:
            root = roots.get(name)
            if root is not None and root.tag in _STORIES:
                left_out += _draw(root, parts, parts.related(name))
                left_out["hidden passages"] += _prepare(root, styles)
                left_out["deletions"] += sum(1 for each in root.iter(W + "del") if _has_text(each, "delText"))
                seen += _words(root, styles)
                for paragraph in root.iter(W + "p"):
                    _number(paragraph, numbers)
                prepared.writestr(name, etree.tostring(root))
            else:
                if root is not None and root.tag == W + "comments":
                    left_out["comments"] += sum(1 for each in root if _has_text(each, "t"))
                prepared.writestr(name, archive.read(name))
    return out.getvalue(), +left_out, seen


def _has_text(node: Any, name: str) -> bool:
    return any(text.strip() for text in node.itertext(W + name))


def _draw(root: Any, parts: Parts, related: dict[str, str]) -> Counter[str]:
    """Write charts and SmartArt as text behind their paragraphs. Counts those that have none, and pictures."""
    old = (each for each in root.iter(_VML + "imagedata") if next(each.iterancestors(_MC + "Fallback"), None) is None)
    left_out = Counter({"pictures": sum(1 for _ in old)})
    for drawing in reversed(
        list(root.iter(W + "drawing"))
    ):  # the last one first, since each goes next to its paragraph
        left_out["pictures"] += sum(1 for _ in drawing.iter(PICTURE))
        paragraph = next(drawing.iterancestors(W + "p"), None)
        for graphic in drawing.iter(GRAPHIC):
            what, drawn = parts.drawn(graphic, related)
            if drawn is None or paragraph is None:
                left_out[what] += bool(what)
            else:
                for block in reversed(list(_blocks(drawn))):
                    paragraph.addnext(block)
    return left_out


def _blocks(drawing: Drawing) -> Iterator[Any]:
    yield from map(_paragraph, drawing.lines)
    if drawing.rows:
        table = etree.Element(W + "tbl")
        for number, row in enumerate(drawing.rows):
            line = etree.SubElement(table, W + "tr")
            if number == 0:
                etree.SubElement(etree.SubElement(line, W + "trPr"), W + "tblHeader")
            for cell in row:
                etree.SubElement(line, W + "tc").append(_paragraph(cell))
        yield table


def _paragraph(text: str) -> Any:
    paragraph = etree.Element(W + "p")
    etree.SubElement(etree.SubElement(paragraph, W + "r"), W + "t").text = text
    return paragraph


def _words(root: Any, styles: _Styles) -> int:
    """How many words the readers of a prepared part see, without its table of contents."""
    texts: dict[Any, list[str]] = defaultdict(list)
    for node in root.iter(W + "t", W + "tab", W + "br"):
        above: Iterable[Any] = node.iterancestors(W + "p", W + "moveFrom", _MC + "Choice")
        paragraph = next(iter(above), None)
        if paragraph is not None and paragraph.tag == W + "p":
            texts[paragraph].append(node.text or "" if node.tag == W + "t" else " ")
    return sum(count_roughly("".join(text)) for each, text in texts.items() if not styles.is_contents(each))


class _Styles:
    """The properties that styles give to runs: `vanish`, `vertAlign`, `strike`."""

    def __init__(self, root: Any) -> None:
        styles = root.iter(W + "style") if root is not None else ()
        self._styles = {style.get(W + "styleId"): style for style in styles}

    def is_contents(self, paragraph: Any) -> bool:
        """Whether a paragraph is a line of a table of contents."""
        named = paragraph.find(f"{W}pPr/{W}pStyle")
        style = self._styles.get(named.get(W + "val")) if named is not None else None
        name = style.find(W + "name") if style is not None else None
        return name is not None and name.get(W + "val", "").lower().startswith("toc ")

    def of(self, element: Any, name: str) -> list[Any]:
        """The run properties of an element's style and of the styles it is based on. `name`: `rStyle`, `pStyle`."""
        found: list[Any] = []
        at = element.find(f"{element.tag}Pr/{W}{name}") if element is not None else None
        style = self._styles.get(at.get(W + "val")) if at is not None else None
        for _ in range(9):
            if style is None:
                break
            found += style.findall(W + "rPr")
            above = style.find(W + "basedOn")
            style = self._styles.get(above.get(W + "val")) if above is not None else None
        return found


def _prepare(root: Any, styles: _Styles) -> int:
    """Prepare a part in place. Returns the number of hidden runs with a text."""
    for node in [*root.iter(_MC + "AlternateContent"), *root.iter(W + "drawing")]:
        _open_shape(node)
    for node in list(root.iter(W + "sdt")):
        if any(_is_placeholder(node)):
            _remove(node)
    for node in list(root.iter(_M + "oMath")):
        text = etree.SubElement(etree.Element(W + "r"), W + "t")
        text.text = "".join(map(_formula, node))
        node.getparent().replace(node, text.getparent())
    etree.strip_elements(root, W + "rt", W + "rubyPr", with_tail=False)
    etree.strip_tags(root, W + "ruby", W + "rubyBase", W + "fldSimple", W + "dir", W + "bdo", _M + "oMathPara")
    return sum(_style(run, styles) for run in list(root.iter(W + "r")))


def _open_shape(node: Any) -> None:
    """Replace a shape by what mammoth reads: its text boxes in the old format, or else the content of its fallback."""
    parent = node.getparent()
    if parent is None:
        return
    first = node.find(_MC + "Choice") if node.tag == _MC + "AlternateContent" else node
    boxes = list(first.iter(W + "txbxContent")) if first is not None else []
    if boxes:
        shape = etree.Element(W + "pict")
        inside = set(boxes)
        shape.extend([box for box in boxes if inside.isdisjoint(box.iterancestors(W + "txbxContent"))])
        parent.replace(node, shape)
    elif first is not None and first is not node and node.find(_MC + "Fallback") is None:
        for child in list(first):
            node.addprevious(child)
        parent.remove(node)


def _is_placeholder(control: Any) -> Iterator[bool]:
    """Whether a content control shows a placeholder ("Click here to enter text"), or is a table of contents."""
    yield control.find(f"{W}sdtPr/{W}showingPlcHdr") is not None
    gallery = control.find(f"{W}sdtPr/{W}docPartObj/{W}docPartGallery")
    yield gallery is not None and gallery.get(W + "val") == "Table of Contents"


def _style(run: Any, styles: _Styles) -> bool:
    """Copy a run's style into the run, or remove a hidden run. Returns whether it was hidden and had a text."""
    own = run.findall(W + "rPr")
    paragraph = next(run.iterancestors(W + "p"), None)
    for_all = styles.of(paragraph, "pStyle")
    properties = {
        name: _first([*own, *styles.of(run, "rStyle"), *for_all], name) for name in ("vanish", "strike", "dstrike")
    }
    if _is_on(properties["vanish"]):
        _remove(run)
        return any(text.strip() for text in run.itertext(W + "t"))
    if not own:
        own = [etree.Element(W + "rPr")]
        run.insert(0, own[0])
    align = _first([*own, *styles.of(run, "rStyle")], "vertAlign")
    if align is not None and align.getparent() is not own[0]:
        etree.SubElement(own[0], W + "vertAlign", {W + "val": align.get(W + "val", "")})
    if _is_on(properties["strike"]) or _is_on(properties["dstrike"]):
        for strike in own[0].findall(W + "strike"):
            own[0].remove(strike)
        etree.SubElement(own[0], W + "strike")
    return False


def _first(properties: list[Any], name: str) -> Any:
    return next((found for each in properties if (found := each.find(W + name)) is not None), None)


def _is_on(switch: Any) -> bool:
    return switch is not None and switch.get(W + "val", "true") not in ("false", "0", "off")


def _remove(node: Any) -> None:
    parent = node.getparent()
    if parent is not None:
        parent.remove(node)


def _formula(node: Any) -> str:
    """Office's MathML on one line: a/(b+c), x^2."""
    kind = etree.QName(node).localname
    if kind == "t":
        return node.text or ""
    if kind.endswith("Pr") or kind == "deg":
        return ""
    parts = [part for part in map(_formula, node) if part]
    if kind not in _FORMULA or len(parts) < 2:
        return f"√({''.join(parts)})" if kind == "rad" else "".join(parts)
    base, *more = (part if part.isalnum() else f"({part})" for part in parts)
    return f"{base}{_FORMULA[kind]}{''.join(more)}"


def _number(paragraph: Any, numbers: Numbers) -> None:
    label = numbers.label(paragraph)
    if label:
        run = etree.Element(W + "r")
        etree.SubElement(run, W + "t").text = label + " "
        properties = paragraph.find(W + "pPr")
        paragraph.insert(0 if properties is None else paragraph.index(properties) + 1, run)


def _with_notes(html: str) -> str:
    """Move notes behind their blocks, since mammoth puts all of them at the end."""
    root = lxml_html.fragment_fromstring(html, create_parent="div")
    notes = {item.get("id"): item for item in root.iter("li") if item.get("id")}
    behind: dict[Any, Any] = {}  # by block: the element that the next note follows
    for link in list(root.iter("a")):
        if link.text == "↑" and link.get("href", "").startswith(("#footnote-ref-", "#endnote-ref-")):
            link.drop_tree()
    for link in list(root.iter("a")):
        note = notes.pop(link.get("href", "")[1:], None) if "-ref-" in link.get("id", "") else None
        if note is None:
            continue
        block = next(each for each in (link, *link.iterancestors()) if each.getparent() is root)
        mark = link.getparent() if link.getparent().tag == "sup" else link
        mark.drop_tree()
        for child in list(note):
            behind.get(block, block).addnext(child)
            behind[block] = child
        note.drop_tree()
    return str(lxml_html.tostring(root, encoding="unicode"))
