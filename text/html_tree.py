"""Parses the content of a web page, without scripts, navigation, consent bars, forms and hidden parts.

Elements are dropped while parsing, so that the tree is small and of bounded depth for any input. Words in classes and
ids are matched whole: a page about cookies (the biscuits) is content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from text.html5 import well_formed
from text.html_rows import is_former, join_labels, join_prices, mark_former
from text.html_sections import name_sections
from text.loss import DELETED, HIDDEN, LeftOutText
from text.shortcodes import is_shortcodes

MAX_DEPTH = 80  # nested elements; text.html_walk needs three stack frames for each, Python allows 1,000
MAX_INDENT = 12  # nested lists and quotes; each indents all its lines
MAX_ELEMENTS = 40_000  # of a page; each costs some 30 µs. Further elements are kept as text only
LONGEST_DELETED = 200  # characters that are shown struck through
LONGEST_CELL = 1_000  # characters; a table with a longer cell is layout
MAX_TAGS = 100_000  # of a page; each costs some 2 µs to parse. The rest of the page is not read


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_XML_PROLOG = re.compile(r"\A\s*<\?(?=xml)", re.IGNORECASE)  # BeautifulSoup warns of it
# Dropped with their content
_DROPPED = _names(
    "audio base canvas datalist dialog frame frameset iframe input link map meta meter nav noframes "
    "noscript object optgroup option output progress rp rt rtc script search select style svg template textarea "
    "title video annotation annotation-xml"
)
_DROPPED_ROLES = {
    "alertdialog": "dialog", "banner": "header", "contentinfo": "footer", "dialog": "dialog", "menu": "menu",
    "menubar": "menu", "navigation": "menu", "search": "menu", "searchbox": "menu",
}  # fmt: skip
_ALERTS = _names("alert alerts message messages notice notices")
# Why what visitors see of these is left out; of the others they see nothing.
_SEEN = {
    "datalist": "form", "dialog": "dialog", "nav": "menu", "optgroup": "form", "option": "form", "output": "form",
    "search": "menu", "select": "form", "textarea": "form",
}  # fmt: skip
UNSEEN = _DROPPED - _SEEN.keys()
_FRAME = frozenset(("aside", "footer", "form", "header"))
_FRAME_WORDS = {
    "breadcrumb": "menu", "breadcrumbs": "menu", "footer": "footer", "header": "header", "menu": "menu", "nav": "menu",
    "navbar": "menu", "navigation": "menu", "sidebar": "aside", "topbar": "header",
}  # fmt: skip
# Kept as they are, for markdownify
_KEPT = _names(
    "a article b blockquote br caption cents code dd del details div dl dt em figcaption form h1 h2 h3 h4 h5 h6 hr i "
    "img kbd li mfrac mi mn mo mroot mrow msqrt msub msubsup msup mtext munderover ol p pre q s samp section strong "
    "sub summary sup table tbody td tfoot th thead tr ul"
)
# Become `div`, since markdownify would join these blocks
_BLOCKS = _names("address aside body center fieldset figure footer header hgroup legend main")
# Only their text is kept
_TRANSPARENT = _names(
    "abbr acronym bdi bdo big button cite data dfn font head html ins label mark math mstyle nobr picture "
    "rb ruby semantics small span time tt u var wbr"
)
_SPANS = _names("a b label small span strong time")
_INLINE = _SPANS | _names(
    "del em font i ins link math meta noscript s script slot ruby rb rp rt rtc strike style sub sup svg template u"
)
_TABLE = _names("caption table tbody td tfoot th thead tr")
_INDENTED = _names("blockquote dd dl li ol ul")
_SECTIONING = _names("article aside main section")
_HEADINGS = _names("h1 h2 h3 h4 h5 h6")
_IN_TABLE = _TABLE | _HEADINGS

_SENTENCES = re.compile(r"[.!?。！？]\s|\n")
_HIDING_STYLE = re.compile(r"(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden)", re.IGNORECASE)
_ENDS = frozenset(
    ".!?:;,%)€$£…"
)  # of a text, behind which one for screen readers is another, as are several words: Mo<i>ntag</i> is a word
_STRUCK_STYLE = re.compile(r"text-decoration(?:-line)?\s{0,9}:[^;]{0,99}line-through", re.IGNORECASE)
_CLASS = re.compile(r"\s*[a-z]{0,10}\.([\w-]{1,60})\s*")  # a selector; others depend on what is around
_STYLE_SHEET = re.compile(r"<style[^<>]{0,200}>([^<]{0,200000})", re.IGNORECASE)
_NOTE = re.compile(r"\b(?:footnote|endnote|noteref|reference)|\b(?:fn|fnref)\b", re.IGNORECASE)
_FIELD = dict.fromkeys(("field__label", "field-label"), "dt") | dict.fromkeys(
    ("field__item", "field__items", "field-item", "field-items"), "dd"
)
_ARIA_CELLS = _names("cell columnheader gridcell rowheader")
_CENTS = _names("cent centimes cents decimal decimals pence")  # in classes of shops; raised by their style sheets
_CELL = ("colspan", "rowspan", "scope", "id", "headers")
# Line numbers beside code, and the tables that set them beside it: of Pygments, Chroma, Rouge
_LINE_NUMBERS = _names("linenodiv lineno linenos lnt rouge-gutter")
_CODE_TABLES = _names("highlighttable lntable rouge-table")
_CODE_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source)-([\w+#.-]{1,30})")

# Consent bars and page furniture, by the words in class and id: `cookie-banner`, `CookieConsent`
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_CONTAINERS = _names("aside div footer form header p section span ul")
_CONSENT = _names("ccpa consent cookie cookies dsgvo gdpr rgpd")
_BAR = _names(
    "agreement alert bar banner box dialog disclaimer layer message modal notice notification overlay panel popup "
    "prompt toast wall"
)
_STATE = _names("accepted active has hidden is no not set shown visible with")
_CONSENT_TOOLS = _names(
    "borlabs cky cmplz cookiebanner cookiebar cookiebot cookieconsent cookiefirst cookielaw cookienotice "
    "cookieyes cybot didomi iubenda klaro onetrust osano truste usercentrics"
)
_FURNITURE = dict.fromkeys(
    _names(
        "breadcrumb breadcrumbs catlinks main-menu main-nav main-navigation mw-editsection nav-menu navbar "
        "pagination primary-menu primary-nav site-nav site-navigation skip-link skip-to-content skiplink"
    ),
    "menu",
) | {"site-footer": "footer", "site-header": "header"}


# Classes that the style sheets of Webflow hide
_HIDING = _names("w-condition-invisible w-form-done w-form-fail")


def is_hidden(attributes: Mapping[str, str]) -> bool:
    return (
        attributes.get("hidden", "until-found") != "until-found"
        or not _HIDING.isdisjoint(attributes.get("class", "").split())
        or attributes.get("aria-hidden") == "true"
        or _HIDING_STYLE.search(attributes.get("style", "")) is not None
    )


# Sections that a control of the page opens are content, except those of tools such as menus.
_CONTROLS = re.compile(r"(?:aria-controls|data-(?:bs-)?target)\s*=\s*[\"']?([\w:.# -]{1,200})", re.IGNORECASE)
# Sections that a list of links on the same page names, as tabs without ARIA do.
_FRAGMENTS = re.compile(r"href\s*=\s*[\"']?#([\w:.-]{1,200})", re.IGNORECASE)
_CONTROLLING = ("aria-controls", "aria-expanded", "data-bs-target", "data-target")
_FOLDING = _names("accordion collapse collapsible expand expandable faq")
_TABS = _names("pane panel tab tabs")
_FOLDED_TOOLS = _names(
    "cart dialog dropdown flyout language languages lightbox login megamenu menu modal nav navigation offcanvas "
    "popover popup search share sharing tooltip"
)
_EDITS = frozenset(("del", "ins", "s", "strike"))
# For screen readers only. In a link, such text is about the link: "opens in a new window".
_SPOKEN = _names("screen-reader-only screen-reader-text sr-only visually-hidden visuallyhidden")


def struck_classes(css: str) -> frozenset[str]:
    """The classes that a style sheet strikes through, as Google Docs writes deleted prices."""
    found: set[str] = set()
    for rule in css.split("}"):
        selectors, _, declarations = rule.rpartition("{")
        if _STRUCK_STYLE.search(declarations):
            found.update(match[1] for match in map(_CLASS.fullmatch, selectors.split(",")) if match)
    return frozenset(found)


def behind_limit(text: str) -> str:
    """What of HTML is not read, as it has too many tags before it."""
    return text[len(first_tags(text, MAX_TAGS)) :]


def first_tags(text: str, count: int) -> str:
    return "<".join(text.split("<", count + 1)[: count + 1])


def content_tree(text: str) -> ContentTree:
    """Parse HTML, as text without NUL, up to its tag number `MAX_TAGS`; in the tree are only the tags that markdownify
    knows.

    Elements get the attributes `note` for references to notes, and `language` for blocks of code.
    """
    read = first_tags(text, MAX_TAGS)
    opened = frozenset(name.lstrip("#") for found in _CONTROLS.findall(read) for name in found.split())
    linked = frozenset(_FRAGMENTS.findall(read))
    struck = frozenset[str]().union(*map(struck_classes, _STYLE_SHEET.findall(read)))
    soup = ContentTree(
        _XML_PROLOG.sub("<!", well_formed(read)), "lxml", opened=opened, linked=linked, struck_classes=struck
    )
    name_sections(soup)
    mark_former(soup)
    join_prices(soup)
    join_labels(soup)
    for deleted in soup.find_all(("del", "s")):
        said = deleted.get_text()
        if said.strip() and not shows_deleted(said) and deleted.find_parent(("del", "s")) is None:
            soup.left_out.append(LeftOutText(DELETED, said))
            deleted.clear()
    for form in soup.find_all("form"):
        # Some CMSs put the whole page into a form. Only such a form has headings and paragraphs.
        if form.decomposed:
            continue
        inside = {tag.name for tag in form.find_all(True)}
        if "p" not in inside or inside.isdisjoint(_HEADINGS):
            soup.left_out.append(LeftOutText("form", form.get_text(" ")))
            form.clear(decompose=True)
            form.name = "div"  # the words before and behind it stay apart
    return soup


def shows_deleted(said: str) -> bool:
    """Whether deleted text is shown, struck through: a price or a word; no sentences, which would be read as valid."""
    return len(said) <= LONGEST_DELETED and not _SENTENCES.search(said.strip())


class ContentTree(BeautifulSoup):
    """Builds a tree of bounded depth that holds only content; the parser calls its `handle_...` methods."""

    left_out: list[LeftOutText]  # what is not in it

    def __init__(
        self,
        *args: Any,
        opened: frozenset[str] = frozenset(),
        linked: frozenset[str] = frozenset(),
        struck_classes: frozenset[str] = frozenset(),
        **kwargs: Any,
    ) -> None:
        self._opened = opened  # ids of sections that controls of the page open
        self._linked = linked  # ids of elements that links of the page lead to
        self._struck_classes = struck_classes  # which the page's own style sheets strike through
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        super().reset()
        self._open: list[tuple[str, str | None]] = []  # what the parser opened, and its name in the tree
        self._dropping = 0  # length of `_open` just inside of what is being dropped
        self._dropped: list[str] = []  # text of it
        self._struck = 0  # length of `_open` just inside of an element that a style strikes through
        self._on_sale = 0  # length of `_open` just inside of a price that is reduced
        self._why = ""
        self.left_out = []
        self._elements = 0
        self._indents = 0
        self._sections = 0
        self._seam = ""  # of adjacent spans: "after" the end of one, "in" the next, "spoken" in one for screen readers
        self._last = ""  # character before the seam
        self._choices: dict[str, int] = {}  # by id of a check box 0, of a radio button the length of `_open` beside it
        self._choosing = 0  # the length of `_open` beside the radio button of the last tab
        self._tables: list[list[Tag] | None] = []  # the parts of each open table; None: a layout table

    def handle_starttag(self, name: str, *args: Any, **kwargs: Any) -> Tag | None:
        """Add the tag to the tree, perhaps by another name, or drop it."""
        attributes: Mapping[str, str] = args[2]
        if self._struck_classes and not self._struck_classes.isdisjoint(attributes.get("class", "").split()):
            attributes = {**attributes, "style": attributes.get("style", "") + ";text-decoration:line-through"}
        known_as: str | None = None
        self._seam = "in" if self._seam and name in _SPANS else ""
        classes = attributes.get("class", "")
        if "price" in classes:
            name = self._of_price(name, classes)
        name = _known_name(name, attributes, self._last)
        if name == "input" and (kind := attributes.get("type", "").lower()) in ("checkbox", "radio"):
            self._choices[attributes.get("id", "")] = len(self._open) if kind == "radio" else 0
        if 0 < self._dropping == len(self._open) and self._open[-1][0] == "nav" and attributes.get("role") == "tablist":
            self._dropping = 0  # tabs of the content, as Bootstrap writes them
        if not self._dropping:
            why = self._why_dropped(name, attributes)
            if why is not None:
                self._dropping, self._why = len(self._open) + 1, why
            else:
                known_as = self._name_in_tree(name, attributes)
            if why is None and _is_spoken(attributes):
                self._seam = "spoken"
        if known_as is not None:
            self._end_text()
        self._open.append((name, known_as))
        if known_as is None:
            return None
        if not self._struck and known_as != "s" and _is_struck(attributes):
            self._struck = len(self._open)
        self._elements += 1
        self._indents += known_as in _INDENTED
        self._sections += name in _SECTIONING
        tag = super().handle_starttag(known_as, None, None, self._attributes(known_as, attributes))
        if known_as in _IN_TABLE:  # a nested table is also a part of the outer one
            for own in self._tables[-2 if known_as == "table" else -1 :]:
                if own is not None and tag is not None:
                    own.append(tag)
        return tag

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        """Close the tag of `handle_starttag`; lxml calls both in balanced pairs."""
        opened, known_as = self._open.pop()
        self._choosing = self._choosing if self._choosing <= len(self._open) else 0
        self._on_sale = self._on_sale if self._on_sale <= len(self._open) else 0
        self._seam = "after" if opened in _SPANS else ""
        if len(self._open) < self._dropping:
            self._dropping = 0
            if self._why and (text := " ".join(self._dropped)).strip():
                self.left_out.append(LeftOutText(self._why, text))
            self._dropped = []
            if opened not in _INLINE:
                super().handle_data(" ")  # a block: the words before and behind it stay apart
        if known_as is None:
            return
        self._end_text()
        self._struck = self._struck if self._struck <= len(self._open) else 0
        self._indents -= known_as in _INDENTED
        self._sections -= opened in _SECTIONING
        super().handle_endtag(known_as)
        own = self._tables.pop() if opened == "table" else None
        if own is not None and _lays_out(own):
            for tag in (own[0], *(tag for tag in own if tag.name in _TABLE and tag.name != "table")):
                tag.name = "div"

    def handle_data(self, data: str) -> None:
        if not self._dropping:
            spoken = self._seam == "spoken" and data[:1].isalnum()
            if (spoken and (self._last in _ENDS or " " in data.strip())) or (
                self._seam == "in" and _are_apart(self._last, data[:1]) and not self._is_code()
            ):
                super().handle_data(" ")
            self._seam, self._last = "", data[-1:]
            super().handle_data(data)
        elif self._why and not any(name in UNSEEN for name, _ in self._open[self._dropping - 1 :]):
            self._dropped.append(data)

    def endData(self, containerClass: type[NavigableString] | None = None) -> None:  # noqa: N802, N803
        """Called at every tag. Text only ends at tags of the tree. Comments are left out."""
        if containerClass is not None and not self._dropping:
            del self.current_data[-1:]

    def _is_code(self) -> bool:
        return bool(self.preserve_whitespace_tag_stack) or any(known == "code" for _, known in self._open)

    def _end_text(self) -> None:
        if not self.current_data:
            return
        text = "".join(self.current_data)
        self.current_data = []
        if text and not self.preserve_whitespace_tag_stack:
            if (self.currentTag is None or self.currentTag.name != "code") and is_shortcodes(text):
                self.left_out.append(LeftOutText("shortcode", text))
                text = " "
            words = " ".join(text.split())
            before = " " if text[0].isspace() else ""
            after = " " if words and text[-1].isspace() else ""
            text = before + words + after
        if text.strip() and self._struck:
            super().handle_starttag("s", None, None, {})
            self.object_was_parsed(NavigableString(text))
            super().handle_endtag("s")
        elif text:
            self.object_was_parsed(NavigableString(text))

    def _why_dropped(self, name: str, attributes: Mapping[str, str]) -> str | None:
        """Why it is left out, "" where visitors see nothing of it; None: it is content."""
        if name in ("html", "head", "body", "main", "article"):  # <body class="cookie-bar-shown">
            return None
        if name in _DROPPED:
            shown = name == "template" and "shadowrootmode" in attributes
            return None if shown else _SEEN.get(name, "")
        if name == "button":  # a heading that folds its section is a button in a heading
            return None if self._in_heading() or _is_control(name, attributes) else "form"
        if name in ("header", "footer") and not self._sections:  # of the page, not of an article in it
            return name
        if role := _role(attributes):
            return role
        if name in _EDITS and "aria-hidden" in attributes:  # a shop's prices: readers hear them in other words
            attributes = {key: value for key, value in attributes.items() if key != "aria-hidden"}
        if not _LINE_NUMBERS.isdisjoint(attributes.get("class", "").split()):
            return ""
        if is_hidden(attributes) and not (self._is_opened(name, attributes) or self._is_next_rows(name)):
            return HIDDEN
        if _is_spoken(attributes) and (self._is_deleted_before() or any(known == "a" for _, known in self._open[-3:])):
            return HIDDEN
        return furniture(name, attributes)

    def _of_price(self, name: str, classes: str) -> str:
        """The name of an element of a price as its style sheet shows it.

        Elementor's price tables have the cents in a block of their own. Shopify's themes write the regular price twice,
        and show the one that is not struck where nothing is reduced.
        """
        if "price--on-sale" in classes.split():
            self._on_sale = self._on_sale or len(self._open) + 1
        if self._on_sale and "price__regular" in classes.split():
            return "template"  # a style sheet hides it
        words = words_of(classes)
        if "fractional" in words and not self._dropping:
            near = self.current_data[-3:]
            while near and near[-1].isspace():
                near.pop()
            if near and near[-1][-1:].isdigit():
                self.current_data[-3:] = near
                return "cents"
        if is_former(words) or "regular-price" in classes.split():
            return "s" if name in _TRANSPARENT or name == "div" else name
        return "span" if name == "div" and {"after", "price"} <= words else name

    def _in_heading(self) -> bool:
        return any(opened in _HEADINGS or opened in ("dt", "summary") for opened, _ in self._open[-3:])

    def _is_opened(self, name: str, attributes: Mapping[str, str]) -> bool:
        if name in _SPANS and attributes.get("aria-hidden") == "true":
            return False  # the icon of a control
        names = words_of(attributes.get("class", "")) | words_of(attributes.get("id", ""))
        if names & _FOLDED_TOOLS:
            return False
        role = attributes.get("role", "")
        if role == "tabpanel" or (role == "region" and "aria-labelledby" in attributes) or names & _FOLDING:
            return True
        if 0 < self._choosing <= len(self._open) <= self._choosing + 1:  # a style sheet shows the chosen one's
            return True
        before = self._tag_before()
        is_behind = before is not None and (before.name == "button" or "folds" in before.attrs)
        own_id = attributes.get("id", "")
        return is_behind or own_id in self._opened or (own_id in self._linked and bool(names & _TABS))

    def _is_tab(self, attributes: Mapping[str, str]) -> bool:
        """Whether a label may open a section without a script."""
        target = attributes.get("for", "")
        named = words_of(attributes.get("class", "")) | words_of(target)
        return target != "" and target in self._choices and not named & _FOLDED_TOOLS

    def _tag_before(self) -> Tag | None:
        """The element directly before the next one, without words between them."""
        siblings = self.currentTag.contents[-2:] if self.currentTag is not None else []
        before = next((one for one in reversed(siblings) if isinstance(one, Tag) or str(one).strip()), None)
        return before if isinstance(before, Tag) and not "".join(self.current_data).strip() else None

    def _is_deleted_before(self) -> bool:
        """Whether a text for screen readers repeats a deleted price, as in WooCommerce."""
        before = self._tag_before()
        return before is not None and before.name in ("del", "s")

    def _is_next_rows(self, name: str) -> bool:
        """Whether it holds further rows of a table whose first ones are shown: a pager opens them."""
        shown = self.currentTag.contents if name == "tbody" and self.currentTag is not None else ()
        return any(isinstance(one, Tag) and one.name == "tbody" for one in shown)

    def _name_in_tree(self, name: str, attributes: Mapping[str, str]) -> str | None:
        if _is_control(name, attributes) and self._in_heading():
            if self.currentTag is not None and "aria-expanded" in attributes:
                self.currentTag["folds"] = "yes"
        elif _is_control(name, attributes):
            return "button" if self._elements < MAX_ELEMENTS and len(self.tagStack) < MAX_DEPTH else None
        if name == "label" and self._is_tab(attributes):
            self._choosing = self._choices[attributes["for"]]
            if self._in_heading():
                if self.currentTag is not None:
                    self.currentTag["folds"] = "yes"
                return None
            return "button" if self._elements < MAX_ELEMENTS and len(self.tagStack) < MAX_DEPTH else None
        if name in _TRANSPARENT:
            if attributes.get("role") in _ARIA_CELLS:
                super().handle_data(" ")
            return None
        too_deep = len(self.tagStack) >= MAX_DEPTH or (name in _INDENTED and self._indents >= MAX_INDENT)
        if too_deep or self._elements >= MAX_ELEMENTS or not (name in _KEPT or name in _BLOCKS):
            super().handle_data(" ")  # separates its words from the previous ones, since it may be a block
            return None
        if name == "table":
            lays_out = attributes.get("role") in ("none", "presentation")
            is_code = not _CODE_TABLES.isdisjoint(attributes.get("class", "").split())
            self._tables.append(None if lays_out or is_code else [])
        if name == "div" and (field := _field(attributes)):
            siblings = self.currentTag.contents if self.currentTag is not None else []
            if field == "dt" or "dt" in [one.name for one in siblings if isinstance(one, Tag)][-1:]:
                return field
        if name in _HEADINGS and {"author", "name"} <= words_of(attributes.get("class", "")):
            return "p"  # it heads no section
        if name in _BLOCKS or (name in _TABLE and (not self._tables or self._tables[-1] is None)):
            return "div"
        return name

    def _attributes(self, name: str, attributes: Mapping[str, str]) -> dict[str, str]:
        """The attributes that the tree needs, and results that markdownify would have to search the tree for."""
        named = self._of_name(name, attributes, self.currentTag)
        own_id, role = attributes.get("id", ""), _part_of_tabs(attributes)
        target = {"target": own_id} if own_id in self._linked else {}
        if role != "tabpanel" and own_id not in self._opened:
            return named | target
        return named | {
            "panel": own_id,
            "label": attributes.get("aria-labelledby", ""),
            "tabpanel": str(role == "tabpanel"),
        }

    def _of_name(self, name: str, attributes: Mapping[str, str], parent: Tag | None) -> dict[str, str]:
        match name:
            case "button" if "for" in attributes:
                return {"choice": "yes", "opens": "", "known_as": "", "tab": "False"}
            case "button":
                target = attributes.get("data-bs-target") or attributes.get("data-target") or ""
                opens = attributes.get("aria-controls") or target.lstrip("#")
                is_tab = _part_of_tabs(attributes) == "tab"
                return {"opens": opens, "known_as": attributes.get("id", ""), "tab": str(is_tab)}
            case "a":
                return {"href": attributes.get("href", "")} | _note(attributes)
            case "s" if "price" in attributes.get("class", ""):
                return {"former": "yes"}
            case "sup":
                return _note(attributes)
            case "img":
                return {"alt": attributes.get("alt", "")}
            case "ol":
                return {key: attributes[key] for key in ("start", "reversed", "type") if key in attributes}
            case "li":
                return {"value": attributes["value"]} if "value" in attributes else {}
            case "td" | "th":
                return {key: attributes[key] for key in _CELL if key in attributes}
            case "pre" | "code":
                language = _CODE_LANGUAGE.search(attributes.get("class", ""))
                if language and name == "code" and parent is not None and parent.name == "pre":
                    parent["language"] = language[1]
                elif language:
                    return {"language": language[1]}
        return {}


def _are_apart(left: str, right: str) -> bool:
    """Whether two spans without white space between them are two words, which the page's style sheet sets apart."""
    if not (left.isalnum() and right.isalnum()):
        return False
    return left.isdigit() or right.isdigit() or (left.islower() and right.isupper())


def _lays_out(own: Sequence[Tag]) -> bool:
    """Whether a table is for layout only: none of its own parts marks it as data."""
    inside = [tag.name for tag in own[1:]]
    if not {"caption", "thead", "th"}.isdisjoint(inside):
        return False
    cells = [tag for tag in own if tag.name == "td"]
    rows = inside.count("tr")
    return (
        len(cells) in (1, rows)
        or not (_HEADINGS | {"div"}).isdisjoint(inside)
        or (rows == 1 and "table" in inside)
        or any(map(_is_long, cells))
    )


def _is_long(cell: Tag) -> bool:
    length = 0
    for text in cell.strings:
        length += len(text)
        if length > LONGEST_CELL:
            return True
    return False


def _field(attributes: Mapping[str, str]) -> str | None:
    """`dt` for the label of a field, and `dd` for its value, as Drupal names them."""
    return next(filter(None, map(_FIELD.get, attributes.get("class", "").split())), None)


def _note(attributes: Mapping[str, str]) -> dict[str, str]:
    said = " ".join(attributes.get(key, "") for key in ("class", "role", "rel", "epub:type"))
    return {"note": "yes"} if _NOTE.search(said) else {}


def _known_name(name: str, attributes: Mapping[str, str], before: str) -> str:
    """The name of the element that means what its style shows: deleted text, the cents behind a figure."""
    if name == "strike" or (name in _TRANSPARENT and _is_struck(attributes)):
        return "s"
    is_small = name == "small" or (name == "span" and words_of(attributes.get("class", "")) & _CENTS)
    return "cents" if is_small and before.isdigit() else name


def _is_struck(attributes: Mapping[str, str]) -> bool:
    return _STRUCK_STYLE.search(attributes.get("style", "")) is not None


def _is_spoken(attributes: Mapping[str, str]) -> bool:
    return not _SPOKEN.isdisjoint(attributes.get("class", "").split())


def _part_of_tabs(attributes: Mapping[str, str]) -> str:
    """`tab` or `tabpanel`, by its role, or by the name that a script of Webflow gives a role."""
    named = attributes.get("class", "").split() if "data-w-tab" in attributes else ()
    return "tab" if "w-tab-link" in named else "tabpanel" if "w-tab-pane" in named else attributes.get("role", "")


def _is_control(name: str, attributes: Mapping[str, str]) -> bool:
    """Whether it only opens another part of the page."""
    if name != "button":
        return _part_of_tabs(attributes) == "tab" or (
            attributes.get("role") == "button" and "aria-controls" in attributes
        )
    named = words_of(attributes.get("class", ""))
    return any(one in attributes for one in _CONTROLLING) or attributes.get("role") == "tab" or bool(named & _FOLDING)


def words_of(name: str) -> set[str]:
    """The words of a class or an id, in lower case: the same for `CookieBanner` and `cookie-banner`."""
    return {word.lower() for word in _WORD.findall(name)}


def _role(attributes: Mapping[str, str]) -> str | None:
    role = attributes.get("role", "").strip().lower()
    if role == "contentinfo" and _ALERTS & words_of(attributes.get("class", "")):
        return None  # Drupal's messages
    return _DROPPED_ROLES.get(role)


def why_frame(name: str, attributes: Mapping[str, str]) -> str | None:
    """What it is of the frame, by all that its names say: for what is left out already."""
    if name in _FRAME:
        return name
    named = words_of(attributes.get("class", "")) | words_of(attributes.get("id", ""))
    by_word = (why for word, why in _FRAME_WORDS.items() if word in named)
    return _SEEN.get(name) or _role(attributes) or furniture(name, attributes) or next(by_word, None)


def furniture(name: str, attributes: Mapping[str, str]) -> str | None:
    """What around the content it is, by its class and id: a consent bar, a menu."""
    if name not in _CONTAINERS or not ("class" in attributes or "id" in attributes):
        return None
    named = (*attributes.get("class", "").split(), attributes.get("id", ""))
    return next(filter(None, map(_furniture, named)), None)


def _furniture(name: str) -> str | None:
    if why := _FURNITURE.get(name.lower()):
        return why
    words = words_of(name)
    about = words & _CONSENT
    is_bar = bool(words & _CONSENT_TOOLS) or ((len(about) > 1 or bool(about and words & _BAR)) and not words & _STATE)
    return "consent" if is_bar else None
