"""Recognizes what in the content of a page is about other pages, or about reading the page: teasers, sharing, comments.

By names that themes of many systems share, by headings in many languages, by shares of links. Never by site.
"""

from __future__ import annotations

import re
from typing import Any

from text.html_tree import words_of

TITLES = ("h2", "h3", "h4", "h5", "h6")
LABEL = 8  # most words of a heading that is known
LINKED = 0.9  # least share of the words of a menu in links
LEAD = 4  # most words of "Read also:"
CROSS_REFERENCE = 30  # most words of "Read also: another page"
_BLOCKS = frozenset(
    ("article", "aside", "blockquote", "div", "footer", "form", "header", "li", "nav", "ol", "p", "section", "ul")
)
_TEXTS = frozenset(("a", "li", "p", "span"))  # where a longer one is content whatever its name
# Words in classes and ids of what is about other pages, or about the page itself
_OTHERS = frozenset(
    """addtoany adv ads advert advertisement advertising affiliate affiliatelinks backlink breadcrumb breadcrumbs
    comment commentaires comments commentlist comentarios disqus feedback kommentar kommentare likes newsletter outbrain
    pager paginate pagination plista popular postmetadata promo publicidad recirculation recommended
    recommendations related relatedlinks relatedposts reklama respond share sharedaddy sharing siguenos social sponsored
    subscribe taboola tagcloud teilen trending werbung yarpp""".split()  # noqa: SIM905
)
# The same, where a name has a word of each
_PAIRS = tuple(
    (frozenset(first.split()), frozenset(second.split()))
    for first, second in (
        ("author authors autor contributor contributors writer", "about avatar bio box card desc descr description"),
        ("author authors autor contributor contributors writer", "info intro profile section"),
        (
            "latest more most next other others popular recent similar top",
            "articles entries posts read stories",
        ),
        ("entry", "utility"),
        ("cat", "links"),
        ("read", "also next on"),
        ("lee lea leia", "tambien mais"),
        ("next", "prev previous"),
        ("article entry post posts page", "nav pager rating ratings reaction reactions vote votes"),
        ("tag tags keyword keywords", "body cloud label links list wrap wrapper"),
        ("news", "letter"),
        ("follow", "google us"),
        ("back", "button link"),
        ("print", "button link version"),
        ("skip", "content link links main nav navigation to"),
        ("wp", "embed embedded"),
        ("kg", "bookmark signup"),
    )
)
# Of what is content where it says a fact, or where trafilatura has found something of it
_PERHAPS = frozenset(
    """ad aside donation linklist noprint rating ratings sidebar tags""".split()  # noqa: SIM905
)
_MENUS = frozenset(("menu", "menus", "nav", "navbar", "navigation", "navi"))  # where nearly all words are links
_ALERTS = frozenset(("alert", "alerts", "closure", "hinweis", "messages", "notice", "notices", "warning"))
_TEASERS = frozenset(("cta", "newsteaser", "teaser", "teasers"))  # with a link
_UNPRINTED = frozenset(("hidden", "hide", "no", "none"))
_LINKS = 3  # least number in a block of links
_FACT = re.compile(r"tel:|mailto:[^?]|[^?#]*\.(?:pdf|docx?|xlsx?|odt)(?:[?#]|$)", re.IGNORECASE)
_DATE = re.compile(
    r"\b\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)?(?!\d)|\b\d{4}-\d\d-\d\d\b|\b\d{1,2}\.? ?[^\W\d]{3,10}\.?,? \d{4}\b"
)
# Of an hour, a price, a place or a telephone
_FIGURE = re.compile(r"\d[:.,]\d\d\b|[€$£]|\d\s?(?:am|pm|h|uhr)\b|\b(?!(?:19|20)\d\d\b)\d{4}", re.IGNORECASE)
_WORD = re.compile(r"\w+")

# How headings of other pages begin, and cross-references within a text. Whole words, in lower case.
_TITLES = """
    auch auf|auch interessant|auch lesen|aktuell(?:e|ste) (?:artikel|beiträge)
    (?:das|dies|diese \\w+) (?:könnte|dürfte|wird) (?:auch )?(?:sie|dich|euch|dir|ihnen)
    weitere[nrs]? (?:aktuelle |interessante )?(?:artikel|beiträge|empfehlungen|news|themen|texte)
    mehr (?:aus|von|zum thema|zu diesem thema|themen|artikel|beiträge|interessantes)|(?:meist|viel)[ -]?gelesen\\w*
    die (?:meistgelesenen|beliebtesten|besten \\w+ der)|beliebte(?:ste)? (?:artikel|beiträge)|top[- ]themen
    (?:verwandte|ähnliche|passende) (?:artikel|beiträge|inhalte|themen)|(?:zum )?weiterlesen
    lesen sie (?:auch|mehr|hier)|lies auch|neugierig geworden|empfehlungen (?:aus|der)|schon gelesen
    videos? zum thema|nicht verpassen
    related(?: (?:articles?|content|news|pages?|posts?|reading|stories|topics|videos?))?|also (?:on|read)
    you (?:may|might) (?:also )?(?:be|enjoy|like)|more (?:articles|from|in|like this|news|on|stories)
    most (?:popular|read|viewed)|trending|popular (?:articles|now|posts|stories)
    (?:latest|recent) (?:articles|on|posts|stories)|keep reading|read (?:also|further|next)
    recommended (?:articles?|for you|posts?|reading|stories)|up next
    don.t miss|editor.?s.? picks|what to read next|filed under|latest on|vous (?:aimerez|pourriez|serez)
    [àa] lire (?:aussi|également)|lire (?:aussi|la suite)|(?:sur|dans) le même (?:sujet|thème)
    articles? (?:connexes|liés|récents|similaires)|les plus lus|voir aussi|(?:te|le) (?:podría|puede) interesar
    también (?:le|te)|(?:artículos?|noticias|notas) relacionad[ao]s|otras noticias|lo último
    más (?:artículos|leíd[ao]s?|noticias|sobre)|lo más|(?:lea|lee|ver) (?:además|más|también)|leer más
    le recomendamos|visto ahora|(?:leia|veja) (?:mais|também)|(?:artigos|matérias|notícias) relacionad[ao]s
    mais (?:lidas|lidos|notícias)|últimas notícias|(?:leggi|vedi) anche|(?:articoli|notizie) correlat[ei]
    articoli simili|(?:ti )?potrebbe(?:ro)? interessar\\w*|altri articoli|lees (?:meer|ook|verder)|gerelateerde?
    meer (?:artikelen|lezen|nieuws|over)|meest gelezen|bekijk ook|ook interessant
    (?:czytaj|dowiedz się|przeczytaj|zobacz) (?:także|też|również|więcej)|powiązane|podobne (?:artykuły|wpisy)
    polecan[ey]|polecamy|najczęściej czytane|najnowsze (?:artykuły|wpisy)|související|čtěte také|nejčtenější
    další články|mohlo by vás|(?:läs|les|læs) (?:mer|mere|också|også|även)|(?:mest|mer) (?:lest|lästa|læst|fra|från)
    relat(?:erade|erede|erte)|lue (?:lisää|myös)|aiheeseen liittyv\\w*|luetuimmat
    ilgili (?:haberler|içerikler|yazılar)|benzer (?:haberler|yazılar)|en çok okunan|(?:смотрите|читайте) также
    похожие|материалы по теме|популярное|читайте також|дивіться також|схожі|اقرأ أيضا
    (?:مقالات|مواضيع|أخبار) ذات صلة|قد يعجبك|関連記事|おすすめ記事|人気記事|あわせて読みたい
    相关(?:文章|新闻|推荐|阅读)|推荐阅读|热门文章|延伸閱讀|相關(?:文章|新聞)|관련 ?(?:기사|글)|많이 본
"""
_TITLE = re.compile(rf"\W*(?:{'|'.join(map(str.strip, _TITLES.strip().splitlines()))})(?!\w)", re.IGNORECASE)
_BACK = re.compile(
    r"\W*(?:zurück|zur startseite|nach oben|(?:nächster|vorheriger) (?:artikel|beitrag)|back to"
    r"|(?:next|previous) (?:article|post)|edit (?:on|this) \w+|(?:diese )?seite bearbeiten"
    r"|volver|voltar|retour|torna a|terug|tilba[gk]e|tillbaka|takaisin|wróć|powrót|zpět|назад)(?!\w)",
    re.IGNORECASE,
)


def is_title(text: str) -> bool:
    """Whether it stands above other pages, or names one: "Related articles", "Read also: ..."."""
    return _TITLE.match(text) is not None


def is_cross_reference(element: Any, text: str) -> bool:
    """Whether all it says is where to go on reading: "Read also: ...", "Back to the list"."""
    if element.tag not in _BLOCKS:
        return False
    linked = "".join("".join(anchor.itertext()) for anchor in element.iter("a"))
    if is_title(text) and not text.lstrip().lower().startswith("related"):
        return bool(linked) and len(_WORD.findall(text)) - len(_WORD.findall(linked)) <= LEAD
    return _BACK.match(text) is not None and len(_WORD.findall(text)) <= LABEL and linked.split() == text.split()


def is_named_so(element: Any) -> bool:
    """Whether its names say that it is about others, or about the author."""
    if not is_block(element) and element.tag not in ("a", "span"):
        return False
    names = _names(element)
    if element.tag in _TEXTS and len(_WORD.findall("".join(element.itertext()))) > CROSS_REFERENCE:
        return False
    return (
        bool(names & _OTHERS)
        or any(name.startswith("newsletter") for name in names)
        or any(names & first and names & second for first, second in _PAIRS)
    )


def is_block(element: Any) -> bool:
    """Whether it may be about others by its share of links."""
    return element.tag in _BLOCKS or "-" in element.tag


def may_be(element: Any, text: str, share: float, *, is_found: bool) -> bool:
    """Whether it is about others, if hardly anything of it is the page's own text.

    Args:
        share: of its words in links.
        is_found: Whether a few words in a row may be the page's own.
    """
    if any(map(_is_alert, element.iter("aside", "div", "p", "section"))):
        return False
    if element.tag not in ("blockquote", "li", "ol", "p", "ul") and share > 1 / 2 and not _has_figures(text):
        return _outward(element) >= _LINKS
    names = _names(element)
    if names & _TEASERS and next(element.iter("a"), None) is not None and not _has_figures(text):
        return True
    perhaps = (
        element.tag == "aside"
        or bool(names & _PERHAPS)
        or "widget" in (element.get("class") or "").split()  # of WordPress's sidebars; builders name all of it so
        or (element.tag == "footer" and "meta" in names)
        or {"area", "widget"} <= names
        or ("print" in names and bool(names & _UNPRINTED))
    )
    return perhaps and not is_found and not any(map(str.isdigit, _DATE.sub(" ", text)))


def is_menu(element: Any, share: float) -> bool:
    """Whether it is named a menu and all but a tenth of its words are in links."""
    return share >= LINKED and _outward(element) > 0 and bool(_names(element) & _MENUS)


def _outward(element: Any) -> int:
    """The number of links to other pages; those on the same page may be its tabs."""
    return sum(1 for anchor in element.iter("a") if not (anchor.get("href") or "#").startswith("#"))


def _is_alert(element: Any) -> bool:
    """Whether it tells visitors of something now: a closure, a change of hours."""
    return element.get("role") in ("alert", "status") or bool(_names(element) & _ALERTS)


def has_facts(element: Any) -> bool:
    """Whether the element, which is no menu, links to telephones, mailboxes or files. Then it is kept."""
    return not _names(element) & _MENUS and any(_FACT.match(anchor.get("href") or "") for anchor in element.iter("a"))


def _has_figures(text: str) -> bool:
    return _FIGURE.search(_DATE.sub(" ", text)) is not None


def _names(element: Any) -> set[str]:
    """The words of its class and its id."""
    return words_of(element.get("class") or "") | words_of(element.get("id") or "")
