"""XQuAD (Artetxe et al., 2020) as a website: one page per article, and the questions its paragraphs answer."""

from __future__ import annotations

import html
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

    Raises:
        FileNotFoundError: no such file in `folder`.
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
