"""Turns the sample site into browsable HTML with the chat on every page.

Pure: a page in, a text out; nothing is written to disk. Content keeps its own HTML (it is ours), everything
from front matter and settings is escaped, and neither script nor style is inline, so a strict
Content-Security-Policy fits.
"""

from collections.abc import Mapping
from html import escape

from bs4 import BeautifulSoup

from sites.content import SamplePage, SampleSite, load_pages, page_documents

__all__ = ["load_pages", "page_documents", "render_index", "render_page", "render_path"]

MOUNT = "/site"
"""Where the gateway serves the site; `assets/` lies below it."""

# What a CMS leaves in the content and a visitor need not see; the ingest converter meets it unfiltered.
_NOISE = "script, style, nav, .cookie-banner"


def render_path(site: SampleSite, path: str, chat_script_url: str) -> str | None:
    """The HTML for a path below the mount, or None if nothing lives there.

    `""` is the index in the site's own language, `en/` the index in English, `en/library` a page.
    """
    lang, _, page_id = path.partition("/")
    if not path:
        return render_index(site, site.languages[0], chat_script_url)
    if lang in site.languages and not page_id:
        return render_index(site, lang, chat_script_url)
    page = site.page(lang, page_id)
    return render_page(page, site, chat_script_url) if page else None


def render_page(page: SamplePage, site: SampleSite, chat_script_url: str) -> str:
    """A whole HTML document for one page."""
    labels, group = site.labels[page.lang], site.group_of(page.id)
    home = _index_url(site, page.lang)
    siblings = "\n".join(
        f'<li><a href="{_page_url(other)}"{_current(other == page)}>{escape(other.name)}</a></li>'
        for other in site.members(group, page.lang)
    )
    main = f"""\
<div class="page">
<nav class="breadcrumb" aria-label="{escape(labels["breadcrumb"])}">
<ol>
<li><a href="{home}">{escape(labels["home"])}</a></li>
<li><a href="{home}#{escape(group.id)}">{escape(group.title[page.lang])}</a></li>
<li><span aria-current="page">{escape(page.name)}</span></li>
</ol>
</nav>
<article>
<header>
<h1>{escape(page.title)}</h1>
<p class="lead">{escape(page.description)}</p>
</header>
<div class="content">
{_content(page, labels["table"])}
</div>
<p class="updated">{_updated(page, labels)}</p>
</article>
<aside aria-labelledby="related">
<h2 id="related">{escape(labels["related"])}</h2>
<ul>
{siblings}
</ul>
</aside>
</div>"""
    title = f"{page.title} · {site.town}"
    return _document(site, page.lang, title, page.description, main, chat_script_url, page)


def render_index(site: SampleSite, lang: str, chat_script_url: str) -> str:
    """The home page in one of the site's languages."""
    labels = site.labels[lang]
    popular = "\n".join(
        f'<li><a href="{_page_url(page)}">{escape(page.name)}</a></li>'
        for page_id in site.popular
        if (page := site.page(lang, page_id))
    )
    sections = "\n".join(
        f"""\
<section aria-labelledby="{escape(group.id)}">
<h2 id="{escape(group.id)}"><span class="icon icon-{escape(group.id)}" aria-hidden="true"></span>\
{escape(group.title[lang])}</h2>
<ul class="cards">
{"".join(_card(page) for page in site.members(group, lang))}</ul>
</section>"""
        for group in site.groups
    )
    main = f"""\
<div class="hero">
<div class="hero-text">
<h1>{escape(site.town)}</h1>
<p class="lead">{escape(site.tagline[lang])}</p>
<p>{escape(site.intro[lang])}</p>
</div>
</div>
<nav class="popular" aria-labelledby="popular">
<h2 id="popular">{escape(labels["popular"])}</h2>
<ul>
{popular}
</ul>
</nav>
<div class="topics">
{sections}
</div>"""
    return _document(site, lang, site.name[lang], site.tagline[lang], main, chat_script_url, None)


def _document(
    site: SampleSite,
    lang: str,
    title: str,
    description: str,
    main: str,
    chat_script_url: str,
    page: SamplePage | None,
) -> str:
    """The frame around `main`; `page` is None on the index."""
    labels, home, base = site.labels[lang], _index_url(site, lang), escape(MOUNT)
    menu = "\n".join(
        f'<li><a href="{home}#{escape(group.id)}"{_within(page is not None and page.id in group.pages)}>'
        f"{escape(group.title[lang])}</a></li>"
        for group in site.groups
    )
    return f"""\
<!DOCTYPE html>
<html lang="{escape(lang)}">
<head>
<meta charset="utf-8">
<title>{escape(title)}</title>
<meta name="description" content="{escape(description)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="{base}/assets/logo.svg" type="image/svg+xml">
<link rel="stylesheet" href="{base}/assets/site.css">
</head>
<body>
<a class="skip" href="#main">{escape(labels["skip"])}</a>
<header class="top">
<div class="bar">
<a class="brand" href="{home}"><img src="{base}/assets/logo.svg" alt="" width="40" height="40">\
{escape(site.name[lang])}</a>
<nav class="languages" aria-label="{escape(labels["languages"])}">
<ul>
{_language_links(site, lang, page)}
</ul>
</nav>
</div>
<nav class="menu" aria-label="{escape(labels["menu"])}">
<ul>
{menu}
</ul>
</nav>
</header>
<main id="main" tabindex="-1">
{main}
</main>
<footer class="foot">
<div class="bar">
<section aria-labelledby="contact">
<h2 id="contact">{escape(labels["contact"])}</h2>
<address>{escape(site.name[lang])}<br>{escape(site.contact.address)}<br>
{escape(labels["phone"])} {escape(site.contact.phone)}<br>
<a href="mailto:{escape(site.contact.email)}">{escape(site.contact.email)}</a></address>
</section>
<p class="fiction">{escape(labels["fiction"])}</p>
</div>
</footer>
<script type="module" src="{escape(chat_script_url)}" data-site="{escape(site.id)}" data-lang="{escape(lang)}"></script>
</body>
</html>
"""


def _language_links(site: SampleSite, lang: str, page: SamplePage | None) -> str:
    """One link per language: to the same page where it is translated, otherwise to that language's index."""
    links = []
    for other in site.languages:
        name = site.labels[other]["language"]
        twin = site.page(other, page.id) if page else None
        url = _page_url(twin) if twin else _index_url(site, other)
        hint = ""
        if page and not twin:
            text = site.labels[lang]["untranslated"].format(language=name)
            hint = f'<span class="hidden"> ({escape(text)})</span>'
        links.append(
            f'<li><a href="{url}" lang="{escape(other)}" hreflang="{escape(other)}"{_within(other == lang)}>'
            f"{escape(name)}{hint}</a></li>"
        )
    return "\n".join(links)


def _card(page: SamplePage) -> str:
    return f'<li><h3><a href="{_page_url(page)}">{escape(page.name)}</a></h3><p>{escape(page.description)}</p></li>\n'


def _content(page: SamplePage, table_label: str) -> str:
    """The page's own HTML without the noise, and with wide tables made scrollable on a small screen."""
    soup = BeautifulSoup(page.content, "html.parser")
    for element in soup.select(_NOISE):
        element.decompose()
    for table in soup.select("table"):
        # A region that scrolls must be reachable by keyboard and have a name.
        frame = soup.new_tag("div", attrs={"class": "scroll", "tabindex": "0", "role": "region"})
        frame["aria-label"] = table_label
        table.wrap(frame)
    for cell in soup.select("thead th"):
        cell["scope"] = "col"
    return str(soup).strip()


def _updated(page: SamplePage, labels: Mapping[str, str]) -> str:
    day = page.changed_at
    text = labels["updated"].format(day=day.day, month=labels["months"].split()[day.month - 1], year=day.year)
    return f'<time datetime="{day.date().isoformat()}">{escape(text)}</time>'


def _page_url(page: SamplePage) -> str:
    return escape(MOUNT + page.path)


def _index_url(site: SampleSite, lang: str) -> str:
    return escape(f"{MOUNT}/" if lang == site.languages[0] else f"{MOUNT}/{lang}/")


def _current(is_current: bool) -> str:
    return ' aria-current="page"' if is_current else ""


def _within(is_current: bool) -> str:
    return ' aria-current="true"' if is_current else ""
