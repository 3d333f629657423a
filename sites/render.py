"""Turns the sample site into browsable HTML with the chat on every page.

Pure: a page in, a text out; nothing is written to disk. Content keeps its own HTML (it is ours), everything
from front matter and settings is escaped, and neither script nor style is inline, so a strict
Content-Security-Policy fits.
"""

from functools import cache

from bs4 import BeautifulSoup
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sites.content import SamplePage, SampleSite

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
    labels, day = site.labels[page.lang], page.changed_at
    return _rendered(
        "page.html",
        site,
        page.lang,
        chat_script_url,
        title=f"{page.title} · {site.town}",
        description=page.description,
        page=page,
        group=site.group_of(page.id),
        content=_content(page, labels.table),
        updated=labels.updated.format(day=day.day, month=labels.months.split()[day.month - 1], year=day.year),
    )


def render_index(site: SampleSite, lang: str, chat_script_url: str) -> str:
    """The home page in one of the site's languages."""
    title, description = site.name[lang], site.tagline[lang]
    return _rendered("index.html", site, lang, chat_script_url, title=title, description=description, page=None)


def _rendered(template: str, site: SampleSite, lang: str, chat_script_url: str, **more: object) -> str:
    def home(lang: str) -> str:
        return f"{MOUNT}/" if lang == site.languages[0] else f"{MOUNT}/{lang}/"

    return (
        _templates()
        .get_template(template)
        .render(
            site=site,
            lang=lang,
            labels=site.labels[lang],
            mount=MOUNT,
            home=home,
            chat_script_url=chat_script_url,
            **more,
        )
    )


@cache
def _templates() -> Environment:
    loader = PackageLoader("sites")
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )


def _content(page: SamplePage, table_label: str) -> Markup:
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
    return Markup(str(soup).strip())  # noqa: S704 - our own HTML
