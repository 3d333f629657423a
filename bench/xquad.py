"""XQuAD (Artetxe et al., 2020) as a website: one page per article, and the questions its paragraphs answer."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path

from schemas.page import PageDocument


@dataclass(frozen=True)
class Asked:
    """A question, the page that answers it, and the answer as it stands there."""

    question: str
    page_id: str
    answer: str


@dataclass(frozen=True)
class Corpus:
    lang: str
    pages: tuple[PageDocument, ...]
    questions: tuple[Asked, ...]


def load(folder: Path, lang: str) -> Corpus:
    """Read `xquad.LANG.json` (SQuAD 1.1 format).

    Raises:
        FileNotFoundError: no such file in `folder`.
    """
    articles = json.loads((folder / f"xquad.{lang}.json").read_text(encoding="utf-8"))["data"]
    pages, questions = [], []
    for number, article in enumerate(articles):
        page_id = f"{number:02d}"
        title = article["title"].replace("_", " ")
        paragraphs = article["paragraphs"]
        content = "\n".join(f"<p>{html.escape(p['context'])}</p>" for p in paragraphs)
        url = f"https://xquad.example/{lang}/{page_id}"
        pages.append(PageDocument(id=page_id, lang=lang, url=url, title=title, content=content, revision=1))
        questions += [Asked(qa["question"], page_id, qa["answers"][0]["text"]) for p in paragraphs for qa in p["qas"]]
    return Corpus(lang, tuple(pages), tuple(questions))
