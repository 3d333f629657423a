"""Converts the elements of a page's tree to Markdown, with markdownify's converters where they lose nothing."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any, cast

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement

from text.html_sections import control_title
from text.html_tree import shows_deleted
from text.html_walk import TreeConverter
from text.markdown import escaped, escaped_line
from text.scripts import NEAR, lowered, raised, small
from text.tables import MAX_COLUMNS, Cell, SectionName, Table

_NO_TARGET = re.compile(r"\s*(?:#|javascript:|data:|vbscript:|$)", re.IGNORECASE)
_DEFINED = re.compile(r"^(?=.)(?!:   )", re.MULTILINE)  # a line of a definition, to be indented
_BLOCK_MARK = re.compile(r"(?:#{1,6}|-) ")
_FILE_NAME = re.compile(r"\S+\.(?:avif|gif|jpe?g|png|svg|webp)|(?=\S*\d)\S*(?:_|\d{2}x\d{2})\S*", re.IGNORECASE)
_EMPHASIS = re.compile(r"\s*\*+\d[^*]*\*+\s*")  # of a figure
_HEADING_MARK = re.compile(r"^#{1,6} ", re.MULTILINE)
_BACKTICKS = re.compile("`{3,20}")
# Between the parts of a formula
_FORMULA = {
    "mfrac": ("/",), "mroot": (), "msqrt": (), "msub": ("_",), "msubsup": ("_", "^"), "msup": ("^",),
    "munderover": ("_", "^"),
}  # fmt: skip
_IN_LINE = frozenset(
    ("a", "b", "cents", "code", "del", "em", "i", "img", "kbd", "q", "s", "samp", "strong", "sub", "sup")
).union(_FORMULA, ("mi", "mn", "mo", "mrow", "mtext"))
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "summary"))
# Between two lines of a cell that end and begin with figures: hours, prices
_BREAK = re.compile(r"(?<=\d)((?:[^\S\n]?(?:[^\W\d_]{1,4}|[€$£%])\.?)?+)[^\S\n]*+\n\s*+(?=\d)")
_ASKED = re.compile(r"\A(\s*[^#\s][^\n]*)\n\n(?=\w)")  # a question with its answer directly below
_NOTE_MARK = re.compile(r"\W*(?:[^\W\d]+ )?\d{1,3}\W*|[^\w\s]{1,3}")
_SIGN = re.compile(r"[^\w\s]{1,3}")  # back to a note, or of a heading
_ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")


def markdown(page: BeautifulSoup, decimal: str = ".") -> str:
    """The tree of a page (text.html_tree) as Markdown, with this sign before raised cents."""
    return str(_ToMarkdown(decimal).convert_soup(page))


def line(field: BeautifulSoup, decimal: str = ".") -> str:
    """The tree of a short field as plain text, with this sign before raised cents."""
    return str(_ToLine(decimal).convert_soup(field))


class _ToMarkdown(TreeConverter):
    """markdownify's rules without those that take quadratic time, lose text, or keep data for browsers only."""

    def __init__(self, decimal: str = ".", **options: Any) -> None:
        super().__init__(heading_style="atx", bullets="-", **options)
        self._decimal = decimal
        self._tables: list[Table] = []  # open tables
        self._level = 0  # of the last heading

    def process_tag(self, node: Tag, parent_tags: frozenset[str]) -> str:
        if node.name == "table":
            self._tables.append(Table())
        elif node.name == "tr" and self._tables:
            self._tables[-1].begin_row()
        elif node.name in ("thead", "tbody", "tfoot") and self._tables:
            self._tables[-1].begin_section(cast(SectionName, node.name))
        return super().process_tag(node, parent_tags)

    def process_text(self, el: PageElement, parent_tags: frozenset[str]) -> str:
        text = super().process_text(el, parent_tags)
        return self.begun(text, el) if parent_tags.isdisjoint(("_noformat", "_inline")) else text

    def begun(self, text: str, el: PageElement) -> str:
        """The text, with escaped list and heading marks at the start of a line."""
        marked = escaped_line(text)
        return marked if marked != text and _begins_line(el) else text

    def _escaped(self, text: str, parent_tags: frozenset[str]) -> str:
        return escaped(text, linked="a" in parent_tags)

    def convert_a(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        target = str(el.get("href", ""))
        said = el.get_text().strip() if target.startswith("#") else ""
        if _SIGN.fullmatch(said) or ("note" in el.attrs and _NOTE_MARK.fullmatch(said)):
            return ""
        if _NO_TARGET.match(target) or "\n" in text.strip() or "_noformat" in parent_tags:
            return text
        label = text.strip()
        if not label or label.replace("\\", "") == target:
            return text
        target = re.sub(r"[\s()<>|]", lambda odd: f"%{ord(odd[0]):02X}", target.strip())
        mark = _BLOCK_MARK.match(label)  # a heading or an item in the link is still one
        linked = f"{mark[0]}[{label[mark.end() :]}]({target})" if mark else f"[{label}]({target})"
        return text.replace(label, linked, 1)

    def convert_b(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        marked = super().convert_b(el, text, parent_tags)  # type: ignore[misc]  # its stubs leave it out
        return _with_breaks(marked, text)

    convert_strong = convert_b

    def convert_br(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        return "\n"

    def convert_caption(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        self._tables[-1].caption = text.strip()
        return ""

    def convert_cents(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        return small(_before(el), text, _after(el), self._decimal)

    def convert_dd(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        text = text.strip()
        if not text or "_inline" in parent_tags:
            return f" {text} "
        # If the first definition has no end tag, the parser nests the second one in it.
        return "\n:" + _DEFINED.sub("    ", text)[1:] + "\n"

    def convert_del(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        said = text.strip()
        if not said or not shows_deleted(said) or "_noformat" in parent_tags:
            return " "
        return text.replace(said, f"~~{said}~~", 1)

    convert_s = convert_del

    def convert_details(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        return self.convert_div(el, _ASKED.sub(r"\1\n", text, count=1), parent_tags)

    def convert_div(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        text = text.strip()
        if "_inline" in parent_tags:
            return f"\n{text}\n"
        return f"\n\n{text}\n\n"  # also for an empty one, which separates its neighbours

    convert_article = convert_p = convert_section = convert_div

    def convert_dt(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        term = " ".join(text.split())
        if not term or "_inline" in parent_tags:
            return f" {term} "
        above = el.previous_sibling
        while above is not None and not isinstance(above, Tag):
            above = above.previous_sibling
        # Terms with a common definition are adjacent lines above it.
        return f"{term}\n" if above is not None and above.name == "dt" else f"\n\n{term}\n"

    def convert_em(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        marked = super().convert_em(el, text, parent_tags)  # type: ignore[misc]  # its stubs leave it out
        return _with_breaks(marked, text)

    convert_i = convert_em

    def convert_form(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        return f"\n\n{text.strip()}\n\n"

    def convert_hN(self, n: int, el: Tag, text: str, parent_tags: frozenset[str]) -> str:  # noqa: N802
        title = " ".join(text.split())
        if not title or "_inline" in parent_tags:
            return title
        self._level = n
        return f"\n\n{'#' * n} {title}\n\n"

    def convert_img(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        alt = " ".join(str(el.get("alt", "")).split())
        if not alt or _FILE_NAME.fullmatch(alt):
            return ""
        before, after = el.previous_sibling, el.next_sibling
        left = " " if isinstance(before, Tag) or str(before or "")[-1:].isalnum() else ""
        right = " " if isinstance(after, NavigableString) and str(after)[:1].isalnum() else ""
        return left + escaped(alt, linked="a" in parent_tags) + right

    def convert_li(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        label, text = _label(el), text.strip()
        if not text:
            return "\n"
        if "_inline" in parent_tags:
            return f" {label}{text}{'; ' if el.find_next_sibling('li') else ' '}"
        bullet = label if label[:1].isdigit() else "- "
        indent = "\n" + " " * len(bullet)
        return bullet + (label if bullet == "- " else "") + indent.join(text.split("\n")) + "\n"

    def convert_mfrac(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        return escaped(_formula(el)) if parent_tags.isdisjoint(_FORMULA) else ""

    convert_mroot = convert_msqrt = convert_msub = convert_msubsup = convert_msup = convert_munderover = convert_mfrac

    def convert_pre(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        text = text.strip("\n")
        if not text.strip() or "_inline" in parent_tags:
            return text
        fence = max(_BACKTICKS.findall(text), default="``") + "`"
        return f"\n\n{fence}{el.get('language', '')}\n{text}\n{fence}\n\n"

    def convert_sub(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        return lowered(_before(el), text, _after(el), self._decimal)

    def convert_summary(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        """A heading for its section, unless later content would fall under the heading as well."""
        title = control_title(_HEADING_MARK.sub("", text))
        if not title or "_inline" in parent_tags:
            return f" {title} "
        inside = sum(parent.name == "details" for parent in el.parents)
        if el.parent is None or not inside or not _ends_section(el.parent):
            return f"\n\n{title}\n\n"
        # Without a heading above, the lowest level, so that no later heading is below it.
        level = min(self._level + inside, 6) if self._level else 6
        return f"\n\n{'#' * level} {title}\n\n"

    def convert_sup(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        link = el.find("a") or (el.find_parent("a") if "a" in parent_tags else None)
        if "note" in el.attrs or (
            link and (str(link.get("href", ""))[:1] == "#" or _NOTE_MARK.fullmatch(el.get_text()))
        ):
            return ""
        said = el.get_text() if _EMPHASIS.fullmatch(text) else text
        return raised(_before(el), said, _after(el), self._decimal)

    def convert_table(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        table = self._tables.pop()
        if "_inline" in parent_tags:
            return f" {text.strip()} {table.flat()} "
        return f"\n\n{text.strip()}\n\n{table.markdown()}\n\n"

    def convert_td(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        text = " ".join(_BREAK.sub(r"\1; ", text.strip()).split()).replace("|", "\\|")
        self._tables[-1].add(
            Cell(
                text,
                head=el.name == "th",
                colspan=min(max(_number(el.get("colspan"), 1), 1), MAX_COLUMNS),
                rowspan=max(_number(el.get("rowspan"), 1), 0),
                scope=str(el.get("scope", "")).lower(),
                id=str(el.get("id", "")),
                headers=tuple(filter(None, el.get_attribute_list("headers"))),
            )
        )
        return ""

    convert_th = convert_td

    def convert_thead(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        self._tables[-1].begin_section("tbody")
        return text

    convert_tbody = convert_tfoot = convert_thead

    def convert_tr(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        return text


class _ToLine(_ToMarkdown):
    """Converts a short field to its plain text, without deleted text."""

    def __init__(self, decimal: str) -> None:
        super().__init__(decimal, convert=["p", "div", "br", "li", "cents", "sup", "sub", "del", "s"])

    def _escaped(self, text: str, parent_tags: frozenset[str]) -> str:
        return text

    def begun(self, text: str, el: PageElement) -> str:
        return text

    def convert_del(self, el: Tag, text: str, parent_tags: frozenset[str]) -> str:
        return " "

    convert_s = convert_del


def _with_breaks(marked: str, text: str) -> str:
    """Emphasis with the line breaks at its ends, which markdownify leaves out."""
    said = text.strip(" ")
    return ("\n" if said[:1] == "\n" else "") + marked + ("\n" if said[1:].endswith("\n") else "")


def _begins_line(el: PageElement) -> bool:
    while True:
        before = el.previous_sibling
        while before is not None and _shows_nothing(before):
            before = before.previous_sibling
        if before is not None:
            return isinstance(before, Tag) and before.name not in _IN_LINE
        if el.parent is None or el.parent.name not in _IN_LINE:
            return True
        el = el.parent


def _shows_nothing(el: PageElement) -> bool:
    if isinstance(el, Tag):
        return el.name in _IN_LINE and not (el.get("alt") or el.contents)
    return not str(el).strip()


def _number(text: object, default: int) -> int:
    return int(text) if isinstance(text, str) and re.fullmatch("-?[0-9]{1,9}", text) else default


def _label(item: Tag) -> str:
    """The number of an item in an ordered list: "3. ", "c. "; empty in other lists."""
    ol = item.parent
    if ol is None or ol.name != "ol":
        return ""
    if "next" not in ol.attrs:
        items = len(ol.find_all("li", recursive=False)) if "reversed" in ol.attrs else 1
        ol["next"] = str(_number(ol.get("start"), items))
    n = _number(item.get("value"), _number(ol["next"], 1))
    ol["next"] = str(n + (-1 if "reversed" in ol.attrs else 1))
    kind = ol.get("type")
    if kind in ("a", "A") and 0 < n <= 26:
        return f"{chr(ord(kind) + n - 1)}. "
    if kind in ("i", "I") and 0 < n < len(_ROMAN):
        return f"{_ROMAN[n] if kind == 'i' else _ROMAN[n].upper()}. "
    return f"{n}. "


def _formula(el: PageElement) -> str:
    """MathML on one line: a/(b+c), x^2."""
    if not isinstance(el, Tag):
        return "".join(str(el).split())
    parts = [part for part in map(_formula, el.children) if part]
    if el.name == "msqrt":
        return f"√{_grouped(''.join(parts))}"
    if el.name == "mroot" and len(parts) == 2:
        return f"{_grouped(parts[0])}^(1/{_grouped(parts[1])})"
    signs = _FORMULA.get(el.name, ())
    if len(parts) != len(signs) + 1:
        return "".join(parts)
    return "".join(chain.from_iterable(zip(("", *signs), map(_grouped, parts), strict=True)))


def _grouped(part: str) -> str:
    return part if part.isalnum() or len(part) == 1 else f"({part})"


def _ends_section(el: Tag | None) -> bool:
    """Whether it is the last element, or a new section follows."""
    while el is not None:
        behind = el.next_sibling
        while behind is not None and not isinstance(behind, Tag) and not str(behind).strip():
            behind = behind.next_sibling
        if behind is not None:
            return _headed(behind)
        el = el.parent
    return True


def _headed(el: PageElement) -> bool:
    while isinstance(el, Tag) and el.name not in _HEADINGS:
        inside = next((child for child in el.children if isinstance(child, Tag) or str(child).strip()), None)
        if inside is None:
            return False
        el = inside
    return isinstance(el, Tag)


def _before(el: PageElement) -> str:
    """The end of the text before it in its line."""
    found = ""
    for _ in range(NEAR):
        before = el.previous_sibling
        if before is None and el.parent is not None and el.parent.name in _IN_LINE:
            el = el.parent
            continue
        inside = before
        while isinstance(inside, Tag) and inside.name in _IN_LINE and inside.contents:
            inside = inside.contents[-1]
        if before is None or isinstance(inside, Tag) or len(found) >= NEAR:
            break
        el, found = before, str(inside) + found
    return found[-NEAR:]


def _after(el: Tag) -> str:
    """The beginning of the text after it in its line."""
    behind = el.next_sibling
    if behind is None and el.parent is not None and el.parent.name in _IN_LINE:
        behind = el.parent.next_sibling
    if isinstance(behind, Tag):
        behind = next(iter(behind.strings), None) if behind.name in _IN_LINE else None
    return str(behind)[:NEAR] if behind is not None else ""
