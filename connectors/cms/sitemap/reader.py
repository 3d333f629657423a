"""Reads what an address answered: a page, a file, or why it is neither.

response ─▶ redirect, canonical elsewhere ─▶ moved
         ─▶ noindex, unavailable_after, another kind of file ─▶ nothing
         ─▶ HTML, PDF, office file ─▶ page, with its document
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from connectors.cms.addresses import same_site
from connectors.cms.fetching import Fetched
from connectors.cms.page_fields import OFFICE, language_of
from connectors.cms.settings import SitemapConnector
from connectors.cms.sitemap.page import WebPage, links_in, normal, page_id, read_page
from connectors.cms.sitemap.visits import Visit
from schemas.base import problems
from schemas.page import Attachment, PageDocument
from text.loss import counted

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", ""})
FILE_TYPES = frozenset(OFFICE.values())
LINKED = (".pdf", ".docx", ".odt")
DOCUMENTS = 20  # that one page links to; a page may have 200 attachments


@dataclass(frozen=True)
class Reader:
    """Reads the responses of one website.

    Args:
        why_forbidden: why an address is not requested; empty: it may be.
        now: milliseconds since the epoch.
    """

    connector: SitemapConnector
    languages: tuple[str, ...]
    why_forbidden: Callable[[str], str]
    now: int

    def read(self, url: str, found: Fetched, *, is_own: bool) -> tuple[Visit, PageDocument | None]:
        """The visit, and the document of a page.

        Args:
            is_own: the page's canonical address redirects back to it, and does not count.
        """
        visit = Visit(url, "nothing", etag=found.etag, modified=found.modified, fetched_at=self.now)
        if normal(found.url) != url:  # redirected
            target = normal(found.url)
            return replace(visit, kind="moved", target=target, why=f"redirects to {target}"), None
        try:
            if found.media_type in HTML_TYPES:
                page = read_page(found.body, url, found.charset, found.headers.get("x-robots-tag", ""))
                visit = replace(visit, links=page.links)  # followed also where the page is no good
                visit, document = self._page(visit, page, is_own=is_own)
            elif found.media_type in FILE_TYPES:
                document = self._file(url, found.media_type)
            else:
                return replace(visit, why=f"no text is read from {found.media_type}"), None
        except ValidationError as err:
            return self._bad(visit, problems(err)), None
        except ValueError as err:
            return self._bad(visit, str(err)), None
        if document is None:
            return visit, None
        assert document.lang
        return replace(visit, kind="page", page_id=document.id, lang=document.lang), document

    def _page(self, visit: Visit, page: WebPage, *, is_own: bool) -> tuple[Visit, PageDocument | None]:
        """Raises: ValidationError."""
        if page.canonical != visit.url and not is_own:
            why = f"its canonical address is {page.canonical}"
            return replace(visit, kind="moved", target=page.canonical, why=why), None
        if not page.indexed:
            return replace(visit, why="noindex"), None
        if page.until is not None:
            if page.until.timestamp() * 1000 <= self.now:
                return replace(visit, why=f"unavailable_after {page.until:%Y-%m-%d}"), None
            visit = replace(visit, etag=None, modified=None, fetched_at=0)  # every run reads it again
        attached = self._linked(page)
        # The crawl makes no pages of them as well.
        visit = replace(visit, links=tuple(link for link in page.links if link not in attached))
        return visit, self._document(visit.url, page, attached.values())

    def _bad(self, visit: Visit, why: str) -> Visit:
        return replace(
            visit, kind="page", etag=None, modified=None, page_id=page_id(visit.url), lang=self._lang, problem=why
        )

    @property
    def _lang(self) -> str:
        """Of pages that do not say theirs."""
        return self.connector.lang or self.languages[0]

    def _linked(self, page: WebPage) -> dict[str, Attachment]:
        """The documents of this website that a page links to in its content, by address."""
        found: dict[str, Attachment] = {}
        for url, words in links_in(page) if self.connector.linked_documents else ():
            path = urlsplit(url).path
            suffix = path[path.rfind(".") :].lower()
            if suffix not in LINKED or not same_site(url, self.connector.url) or self.why_forbidden(url):
                continue
            found.setdefault(url, Attachment(url=url, media_type=OFFICE[suffix], title=words or _file_name(url)))
            if len(found) == DOCUMENTS:
                break
        return found

    def _document(self, url: str, page: WebPage, attached: Iterable[Attachment]) -> PageDocument:
        return PageDocument.model_validate(
            {
                "id": page_id(url),
                "lang": language_of(page.lang, self.languages) or self._lang,
                "url": url,
                "title": page.title,
                "description": page.description,
                "keywords": page.keywords,
                "content": page.content,
                "left_out": counted(page.left_out),
                "metadata": page.metadata,
                "attachments": tuple(attached),
            }
        )

    def _file(self, url: str, media_type: str) -> PageDocument:
        name = _file_name(url)
        attachment = Attachment(url=url, media_type=media_type, title=name)
        return PageDocument(id=page_id(url), lang=self._lang, url=url, title=name, attachments=(attachment,))


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])
