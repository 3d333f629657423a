"""Websites by strangers: XQuAD, and the manual of npm's command line.

XQuAD (Artetxe et al., 2020): one page per article, and the questions its paragraphs answer.

npm pack (the registry that npm is configured for) ─▶ checked by SHA-256 ─▶ one PageDocument for each HTML page

83 pages in English, under the Artistic License 2.0. They are read when a benchmark runs and never committed. What a CMS
would hold is the body of a page; its banner and table of contents are the theme's.
"""

from __future__ import annotations

import hashlib
import html
import json
import random
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from schemas.page import PageDocument

HALVES = 5  # random ones
SEED = 20_261_128  # of the questions of a share
TRAINING = 24  # pages on which weights are chosen; the others are reported on


@dataclass(frozen=True)
class Asked:
    """A question, the page and paragraph that answer it, and the answer as it stands there."""

    question: str
    page_id: str
    answer: str
    paragraph: int = 0

    @property
    def training(self) -> bool:
        return int(self.page_id) < TRAINING


@dataclass(frozen=True)
class Article:
    """A page's plain text."""

    id: str
    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Corpus:
    lang: str
    articles: tuple[Article, ...]
    questions: tuple[Asked, ...]

    @property
    def pages(self) -> tuple[PageDocument, ...]:
        """All of it, as a website."""
        return self.site()

    def site(self, *, ids: Iterable[str] | None = None, without: int | None = None) -> tuple[PageDocument, ...]:
        """Pages of a website: only `ids`, if given, and each without its paragraph of that number, from 0."""
        wanted = None if ids is None else set(ids)
        return tuple(
            _page(article, self.lang, [p for number, p in enumerate(article.paragraphs) if number != without])
            for article in self.articles
            if wanted is None or article.id in wanted
        )

    def half(self, number: int) -> frozenset[str]:
        """Ids of half the pages by chance, the same for the same number."""
        ids = [article.id for article in self.articles]
        return frozenset(random.Random(number).sample(ids, len(ids) // 2))


def load(folder: Path, lang: str, share: float = 1.0) -> Corpus:
    """Read `xquad.LANG.json` (SQuAD 1.1 format).

    Args:
        share: of the questions; the same ones in all languages.

    Raises: FileNotFoundError: no such file in `folder`.
    """
    data = json.loads((folder / f"xquad.{lang}.json").read_text(encoding="utf-8"))["data"]
    articles, questions = [], []
    for number, article in enumerate(data):
        page_id = f"{number:02d}"
        paragraphs: list[dict[str, Any]] = article["paragraphs"]
        texts = tuple(paragraph["context"] for paragraph in paragraphs)
        articles.append(Article(page_id, article["title"].replace("_", " "), texts))
        questions += [
            Asked(qa["question"], page_id, qa["answers"][0]["text"], place)
            for place, paragraph in enumerate(paragraphs)
            for qa in paragraph["qas"]
        ]
    kept = sorted(random.Random(SEED).sample(range(len(questions)), round(share * len(questions))))
    return Corpus(lang, tuple(articles), tuple(questions[number] for number in kept))


def _page(article: Article, lang: str, paragraphs: Sequence[str]) -> PageDocument:
    content = "\n".join(f"<p>{html.escape(paragraph)}</p>" for paragraph in paragraphs)
    url = f"https://xquad.example/{lang}/{article.id}"
    return PageDocument(id=article.id, lang=lang, url=url, title=article.title, content=content, revision=1)


PACKAGE = "npm@11.6.2"
SHA256 = "585f95094ee5cb2788ee11d90f2a518a7c9ef6e083fa141d0b63ca3383675a20"
MANUAL_LANGUAGE = "en"
PAGES = "package/docs/output/"
TWICE = {"npm-global", "npm-json"}  # other addresses of `folders` and `package-json`


class OtherManual(Exception):
    """What was downloaded is not the package that the questions were written for."""


def manual_documents(base_url: str) -> Iterator[dict[str, Any]]:
    """The pages as PageDocuments. `base_url`: where they would answer. Needs npm. Raises: OtherManual."""
    with tempfile.TemporaryDirectory(prefix="pagewire-manual-") as folder:
        yield from packed_documents(_downloaded(Path(folder)), base_url)


def packed_documents(tarball: Path, base_url: str) -> Iterator[dict[str, Any]]:
    """The pages of a package that is here already."""
    with tarfile.open(tarball) as members:
        for member in sorted(members, key=lambda each: each.name):
            page_id = PurePosixPath(member.name).stem
            if member.name.startswith(PAGES) and member.name.endswith(".html") and page_id not in TWICE:
                file = members.extractfile(member)
                assert file is not None, member.name
                yield _document(page_id, file.read().decode(), base_url)


def manual_text(document: Mapping[str, Any]) -> str:
    """What a reader sees of a page."""
    return f"{document['title']}\n{document['description']}\n{LexborHTMLParser(document['content']).text()}"


def _downloaded(folder: Path) -> Path:
    command = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (tarball,) = folder.iterdir()
    if (found := hashlib.sha256(tarball.read_bytes()).hexdigest()) != SHA256:
        raise OtherManual(f"{PACKAGE}: SHA-256 is {found}, not {SHA256}")
    return tarball


def _document(page_id: str, html: str, base_url: str) -> dict[str, Any]:
    page = LexborHTMLParser(html)
    title, description, body = (page.css(each)[0] for each in ("h1 > span", "header .description", "#_content"))
    return {
        "id": page_id,
        "lang": MANUAL_LANGUAGE,
        "url": f"{base_url}/{MANUAL_LANGUAGE}/{page_id}",
        "name": title.text(strip=True),
        "title": title.text(strip=True),
        "description": description.text(strip=True),
        "content": body.html,
    }
