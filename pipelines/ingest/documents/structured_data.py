"""Reads what a page says of itself for machines: JSON-LD, microdata, RDFa Lite, OpenGraph.

HTML ─▶ nodes (text.json_ld, text.microdata) ─▶ kind, dates, authors, breadcrumbs, questions, events, products, hours

Everything in there may be missing, of another type or made to hurt: what does not fit is left out, nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from lxml import etree, html

from pipelines.ingest.documents.opening_hours import opening_of
from schemas.page import (
    Availability,
    PageEvent,
    PageKind,
    PageMetadata,
    PageProduct,
    PageQuestion,
)
from text.html import to_markdown
from text.html5 import well_formed
from text.html_tree import MAX_TAGS, first_tags
from text.json_ld import Node, nodes_of
from text.microdata import items_of
from text.schema_org import first, line, nested, term, types_of

QUESTIONS = 50
ANSWER, ANSWERS = 5_000, 60_000  # characters of an answer, of all together
LISTED = 50  # events, products
AUTHORS = BREADCRUMBS = 20
EARLIEST, LATEST = 1990, 2200  # years of a page's dates
# What a page is, by the types of its nodes: the most telling first.
_KINDS: dict[str, PageKind] = {
    "HowTo": "HowTo", "Recipe": "Recipe", "JobPosting": "JobPosting", "Course": "Course", "Event": "Event",
    "Product": "Product", "GovernmentService": "GovernmentService", "NewsArticle": "NewsArticle",
    "BlogPosting": "BlogPosting", "Article": "Article", "TechArticle": "Article", "Report": "Article",
    "ScholarlyArticle": "Article", "FAQPage": "FAQPage", "QAPage": "QAPage", "Service": "Service",
    "ContactPage": "ContactPage", "AboutPage": "AboutPage", "ProfilePage": "Person", "CollectionPage": "CollectionPage",
}  # fmt: skip
_LISTED_KINDS = ("Event", "Product")  # a page with several is about none of them
_OPEN_GRAPH: dict[str, PageKind] = {"article": "Article", "product": "Product", "profile": "Person"}
_PAGES = frozenset((*_KINDS, "WebPage", "ItemPage"))
_STOCK: dict[str, Availability] = {
    "InStock": "in-stock", "InStoreOnly": "in-stock", "OnlineOnly": "in-stock", "LimitedAvailability": "in-stock",
    "OutOfStock": "out-of-stock", "SoldOut": "out-of-stock", "Discontinued": "out-of-stock", "PreOrder": "pre-order",
    "PreSale": "pre-order", "BackOrder": "pre-order",
}  # fmt: skip
_TAKES_PLACE = frozenset(("", "EventScheduled", "EventRescheduled"))
_MARKS = re.compile(r"ld\+json|itemtype|typeof|<meta\s", re.IGNORECASE)
_PRICE = re.compile(r"(\d{1,9})(?:[.,](\d{1,2}))?")
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?")


def structured_data_in(text: str) -> PageMetadata | None:
    """The same from HTML; None: there is none, or it is no HTML."""
    read = first_tags(text.replace("\0", ""), MAX_TAGS)
    if not _MARKS.search(read):
        return None
    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
    try:
        tree = html.document_fromstring(well_formed(read).encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None
    return structured_data(tree)


def structured_data(tree: Any) -> PageMetadata | None:
    """What an HTML document (lxml) says of itself for machines; None: nothing."""
    scripts = (one.text or "" for one in tree.iter("script") if "ld+json" in (one.get("type") or "").lower())
    nodes = _pages_apart([*nodes_of(scripts), *items_of(tree)])
    metas = _metas(tree)
    kind = _kind(nodes) or _OPEN_GRAPH.get(metas.get("og:type", "").lower(), "")
    own = sorted((node for node in nodes if types_of(node) & _PAGES), key=lambda node: _rank(node, kind))
    modified = (metas.get(name) for name in ("article:modified_time", "og:updated_time"))
    found = PageMetadata(
        page_kind=kind,
        published_at=_date([*(first(n, "datePublished") for n in own), metas.get("article:published_time")]),
        changed_at=_date([*(first(n, "dateModified") for n in own), *modified]),
        authors=next(filter(None, map(_authors, (*own, metas))), ()),
        breadcrumbs=next(filter(None, map(_breadcrumbs, _of_type(nodes, "BreadcrumbList"))), ()),
        faq=_faq(nodes),
        events=tuple(islice(filter(None, map(_event, _of_type(nodes, "Event"))), LISTED)),
        products=tuple(islice(filter(None, map(_product, _of_type(nodes, "Product"))), LISTED)),
        opening=opening_of(nodes),
    )
    return found if found != PageMetadata() else None


def _pages_apart(nodes: list[Node]) -> list[Node]:
    """Also what the nodes of pages are about, and the items of lists."""
    about = [one for node in nodes if types_of(node) & _PAGES for one in nested(node, "mainEntity")]
    items = [one for node in nodes if "ItemList" in types_of(node) for one in nested(node, "itemListElement")]
    listed = [item for one in items for item in (*nested(one, "item"), one)]
    apart = {id(node): node for node in (*nodes, *about, *listed)}
    return list(apart.values())


def _of_type(nodes: Iterable[Node], type: str) -> Iterator[Node]:
    return (node for node in nodes if type in types_of(node))


def _kind(nodes: list[Node]) -> PageKind:
    for type, kind in _KINDS.items():
        count = sum(1 for _ in _of_type(nodes, type))
        if count == 1 or (count and kind not in _LISTED_KINDS):
            return kind
    return ""


def _rank(node: Node, kind: PageKind) -> int:
    """The node of the page's own kind comes first, that of a page before one that is listed on it."""
    kinds = [_KINDS.get(type) for type in types_of(node)]
    return 0 if kind and kind in kinds else 2 if set(kinds) & set(_LISTED_KINDS) else 1


def _metas(tree: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for meta in islice(tree.iter("meta"), 500):
        found.setdefault((meta.get("property") or meta.get("name") or "").lower(), meta.get("content") or "")
    return found


def _date(said: Iterable[Any]) -> datetime | None:
    for one in said:
        if (iso := _iso(one)) is not None:
            at = datetime.fromisoformat(iso)
            return at if at.tzinfo else at.replace(tzinfo=UTC)
    return None


def _iso(said: Any) -> str | None:
    """A date, perhaps with a time, of a plausible year."""
    text = said.strip().replace(" ", "T", 1) if isinstance(said, str) and len(said) < 40 else ""
    if not _ISO.fullmatch(text) or not EARLIEST <= int(text[:4]) <= LATEST:
        return None
    with suppress(ValueError):
        datetime.fromisoformat(text)
        return text
    return None


def _authors(node: Node) -> tuple[str, ...]:
    """Names; many write the address of a profile."""
    said = node.get("author")
    names = map(line, said[:AUTHORS] if isinstance(said, list) else [first(node, "author")])
    return tuple(dict.fromkeys(name for name in names if name and "://" not in name and not name.startswith("/")))


def _breadcrumbs(node: Node) -> tuple[str, ...]:
    """The names of the pages above. An entry without an address is the page itself."""
    entries = islice(nested(node, "itemListElement"), BREADCRUMBS)
    names = (line(first(one, "name")) or line(first(one, "item")) for one in entries if first(one, "item"))
    return tuple(name for name in names if name and "://" not in name)


def _faq(nodes: Iterable[Node]) -> tuple[PageQuestion, ...]:
    found: dict[str, PageQuestion] = {}
    left = ANSWERS
    for one in islice(chain.from_iterable(map(_questions, _of_type(nodes, "FAQPage"))), QUESTIONS):
        if left >= len(one.answer):
            left -= len(one.answer)
            found.setdefault(one.question, one)
    return tuple(found.values())


def _questions(node: Node) -> Iterator[PageQuestion]:
    for one in islice(nested(node, "mainEntity"), 2 * QUESTIONS):
        question = line(first(one, "name")) or line(first(one, "text"))
        answers = [*nested(one, "acceptedAnswer"), *nested(one, "suggestedAnswer")]
        said = first(answers[0], "text") if answers else first(one, "acceptedAnswer")
        answer = to_markdown(said)[:ANSWER] if isinstance(said, str) and len(said) <= ANSWER else ""
        if question and answer:
            yield PageQuestion(question=question, answer=answer)


def _event(node: Node) -> PageEvent | None:
    """An event that takes place once, as it was announced or at its new date."""
    if term(first(node, "eventStatus")) not in _TAKES_PLACE or "eventSchedule" in node:
        return None
    name, start = line(first(node, "name")), _iso(first(node, "startDate"))
    if not name or start is None:
        return None
    place = first(node, "location")
    where = [line(place)] if not isinstance(place, dict) else [line(first(place, "name")), _address(place)]
    return PageEvent(
        name=name, start=start, end=_iso(first(node, "endDate")), place=", ".join(filter(None, where))[:500]
    )


def _address(place: Node) -> str:
    address = first(place, "address")
    if not isinstance(address, dict):
        return line(address)
    town = " ".join(filter(None, (line(first(address, "postalCode")), line(first(address, "addressLocality")))))
    return ", ".join(filter(None, (line(first(address, "streetAddress")), town)))


def _product(node: Node) -> PageProduct | None:
    """A product with one price. A range of prices is left out, and so are offers that differ."""
    name = line(first(node, "name"))
    offers = list(islice(nested(node, "offers"), LISTED))
    prices = {_price(offer) for offer in offers}
    stock = {_STOCK.get(term(first(offer, "availability")), "") for offer in offers}
    price, currency = next(iter(prices)) if len(prices) == 1 else (None, "")
    availability = next(iter(stock)) if len(stock) == 1 else ""
    if not name or not (price is not None or availability):
        return None
    return PageProduct(name=name, price=price, currency=currency, availability=availability)


def _price(offer: Node) -> tuple[Decimal | None, str]:
    """Amount and currency; neither without the other."""
    low, high = first(offer, "lowPrice"), first(offer, "highPrice")
    within = next(nested(offer, "priceSpecification"), {})
    said = first(offer, "price") if first(offer, "price") is not None else first(within, "price")
    said = low if said is None and low == high else said
    currency = line(first(offer, "priceCurrency") or first(within, "priceCurrency"))
    match = _PRICE.fullmatch(str(said).strip()) if isinstance(said, str | int | float) and said is not True else None
    if match is None or not re.fullmatch("[A-Z]{3}", currency):
        return None, ""
    return Decimal(f"{match[1]}.{match[2] or '0'}"), currency
