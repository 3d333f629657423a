"""DOCX to HTML by mammoth; `text.html` converts the HTML to Markdown.

    DOCX ─prepared─▶ DOCX without what mammoth would lose ─mammoth─▶ HTML ─notes moved to their blocks─▶ HTML

Left out: page headers and footers, comments, what tracked changes deleted, hidden text, tables of contents.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from lxml import etree
from lxml import html as lxml_html

from adapters.extraction.word_numbers import Numbers

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
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


def to_html(data: bytes) -> tuple[str, int]:
    """The text of a DOCX, with each note below its paragraph, list or table; and the number of hidden runs."""
    import mammoth

    prepared, hidden = _prepared(data)
    made = mammoth.convert_to_html(
        io.BytesIO(prepared),
        style_map=_STYLES,
        include_embedded_style_map=False,
        convert_image=lambda _: [],
    )
    return _with_notes(made.value), hidden


def _prepared(data: bytes) -> tuple[bytes, int]:
    """Remove hidden and decorative parts; turn numbers, formulas and shapes into text. Also counts the hidden runs."""
    out, hidden = io.BytesIO(), 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as prepared:
        parts = {name: archive.read(name) for name in archive.namelist() if name.endswith((".xml", ".rels"))}
        roots = {name: _parsed(xml) for name, xml in parts.items() if name.startswith("word/") and name.count("/") == 1}
        styles = _Styles(roots.get("word/styles.xml"))
        numbers = Numbers(roots.get("word/numbering.xml"), roots.get("word/styles.xml"))
        for name, xml in parts.items():
            root = roots.get(name)
            if root is not None and root.tag in _STORIES:
                hidden += _prepare(root, styles)
                for paragraph in root.iter(W + "p"):
                    _number(paragraph, numbers)
                prepared.writestr(name, etree.tostring(root))
            else:
                prepared.writestr(name, xml)
    return out.getvalue(), hidden


def _parsed(xml: bytes) -> Any:
    root = etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False))
    if root.getroottree().docinfo.doctype:
        raise ValueError("an office file has no document type")
    return root


class _Styles:
    """The properties that styles give to runs: `vanish`, `vertAlign`, `strike`."""

    def __init__(self, root: Any) -> None:
        styles = root.iter(W + "style") if root is not None else ()
        self._styles = {style.get(W + "styleId"): style for style in styles}

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
