"""What a one-sentence edit of a long page costs: embeddings, counted by the hashes that the embed stage looks up.

    page ─chunk─▶ plan ─▶ hashes ┐
      └ one sentence inserted, changed or removed   ├▶ new ones = embeddings
    page'─chunk─▶ plan ─▶ hashes ┘

No model and no server are needed for it. A few edits go all the way (HTML, embed, index, receipt) with a fake embedder,
to show that the receipt counts the same.
"""

from __future__ import annotations

import asyncio
import html
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.progress import track

from bench.corpora import load
from bench.report import change, numbers, percentile, report
from pipelines.ingest.embed import Embedding, VectorCache
from pipelines.ingest.embedding_plan import plan
from pipelines.ingest.handlers import chunked
from pipelines.ingest.index import index_part
from pipelines.ingest.ports import KnownPages
from pipelines.runtime.embedder import Embedders
from schemas.ingest import Chunker
from schemas.page import PageChange, PageDocument
from sites.content import page_documents
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.pages import FakeIndex, FakePages
from text.html import to_markdown
from wiring.settings import Settings

SITE = "edits"
CHUNKS = 50  # of a page, about
FILL = 0.72  # a core's length as a share of its limit, about
EDITS_A_PAGE = 15
WHOLE_WAY = 6  # edits per text and size that go through all the functions
TARGET = 6  # embeddings an edit should cost at most
SEED = 20
AT = datetime(2026, 1, 1, tzinfo=UTC)
SAMPLE = Path(__file__).resolve().parents[1] / "sites" / "demo"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\sa-z])")
_MARKED = re.compile(r"#|\||- |\d+\. |```|>")  # headings, tables, lists, code: blocks that are not prose

Paragraph = Sequence[str]  # its sentences


@dataclass(frozen=True)
class Text:
    """Much text of one kind, from which long pages are taken."""

    name: str
    paragraphs: Sequence[Paragraph]

    @property
    def sentences(self) -> list[str]:
        return [sentence for paragraph in self.paragraphs if is_prose(paragraph) for sentence in paragraph]


def main(
    data: Annotated[Path | None, typer.Option(help="Folder with xquad.LANG.json, for texts beside our own.")] = None,
    sizes: Annotated[str, typer.Option(help="Comma-separated chunk sizes.")] = "512,1000",
    edits: Annotated[int, typer.Option(min=15, help="Edits per text and size.")] = 3000,
) -> None:
    """Embeddings that a sentence inserted, changed or removed in a page of 50 chunks costs."""
    texts = [*generated(), *sample_site(), *(xquad(data) if data else ())]
    chunker = Settings().chunker
    lines = []
    for text in texts:
        for size in numbers(sizes):
            lines.append(measure(text, chunker.model_copy(update={"size": size}), edits))
    columns = ("text", "size", "chunks", "core", "edits", "mean", "p50", "p95", "p99", "worst", f"> {TARGET} of 10,000")
    report("edits", "embeddings that a one-sentence edit of a long page costs", columns, lines)


def measure(text: Text, chunker: Chunker, edits: int) -> tuple[object, ...]:
    """One line of the table."""
    rng = random.Random(SEED)
    costs: list[int] = []
    lengths: list[int] = []
    whole_way: list[tuple[str, str]] = []
    for _ in track(range(-(-edits // EDITS_A_PAGE)), description=f"{text.name}, {chunker.size}"):
        page = long_page(text, chunker.size, rng)
        before = written(page)
        known = hashes(before, chunker)
        lengths += [len(planned) for planned in cores(before, chunker)]
        for edit in ("insert", "change", "remove") * (EDITS_A_PAGE // 3):
            after = written(edited(page, edit, text.sentences, rng))
            costs.append(len(hashes(after, chunker) - known))
            if len(whole_way) < WHOLE_WAY:
                whole_way.append((as_html(before), as_html(after)))
    for before, after in whole_way:
        cost = len(hashes(after, chunker) - hashes(before, chunker))
        paid = asyncio.run(on_receipt(before, after, chunker))
        assert paid == cost, f"the receipt says {paid}, the hashes {cost}"
    pages = len(costs) / EDITS_A_PAGE
    return (
        text.name,
        chunker.size,
        round(len(lengths) / pages),
        round(sum(lengths) / len(lengths)),
        len(costs),
        round(sum(costs) / len(costs), 2),
        *(round(percentile(costs, q)) for q in (50, 95, 99)),
        max(costs),
        round(sum(cost > TARGET for cost in costs) / len(costs) * 10_000, 1),
    )


def long_page(text: Text, size: int, rng: random.Random) -> list[list[str]]:
    """Consecutive paragraphs from a random one on, as many as make about `CHUNKS` chunks."""
    wanted = CHUNKS * size * FILL  # characters
    page: list[list[str]] = []
    at = rng.randrange(len(text.paragraphs))
    while wanted > 0:
        page.append(list(text.paragraphs[at % len(text.paragraphs)]))
        wanted -= len(written(page[-1:])) + 2
        at += 1
    return page


def edited(page: Sequence[Paragraph], edit: str, sentences: Sequence[str], rng: random.Random) -> list[list[str]]:
    """The page with one sentence more, another or less."""
    after = [list(paragraph) for paragraph in page]
    target = rng.choice([paragraph for paragraph in after if is_prose(paragraph)])
    at = rng.randrange(len(target))
    target[at : at + (edit != "insert")] = [] if edit == "remove" else [rng.choice(sentences)]
    return after


def is_prose(paragraph: Paragraph) -> bool:
    return not _MARKED.match(paragraph[0])


def written(page: Sequence[Paragraph]) -> str:
    return "\n\n".join(" ".join(sentences) for sentences in page if sentences)


def cores(content: str, chunker: Chunker) -> list[str]:
    return [chunk.text for chunk in chunked(_change(content), chunker, 0, 0).chunks]


def hashes(content: str, chunker: Chunker) -> set[str]:
    """What the embed stage looks up for a page with this content."""
    return {planned.embed_hash for planned in plan(chunked(_change(content), chunker, 0, 0), "bench")}


def as_html(content: str) -> str:
    return "".join(f"<p>{html.escape(paragraph)}</p>\n" for paragraph in content.split("\n\n"))


async def on_receipt(before: str, after: str, chunker: Chunker) -> int:
    """What the receipt of the edit counts as embedded."""
    pages, models = FakePages(), _OneModel()
    pages.index = FakeIndex(models.model.fingerprint, chunker.fingerprint)
    receipt = None
    for revision, content in enumerate((before, after), start=1):
        page = chunked(_change(content, revision), chunker, 0, 0)
        for part in await Embedding(cast(Embedders, models), cast(KnownPages, pages), VectorCache(0)).embed(page):
            receipt = (await index_part(part, pages, lambda: AT)).receipt
    assert receipt
    return receipt.chunks.embedded


class _OneModel:
    """The same fake embedder for every site."""

    def __init__(self) -> None:
        self.model = FakeEmbedder()

    async def for_site(self, site: str) -> FakeEmbedder:
        return self.model

    for_new = for_site


def _change(content: str, revision: int = 1) -> PageChange:
    return change(SITE, PageDocument(id="page", lang="en", content=content), AT, revision)


def generated() -> Iterator[Text]:
    """Prose of made-up words, in short paragraphs and in long ones."""
    for name, longest in (("prose, paragraphs of 2-3 sentences", 3), ("prose, of 2-7", 7)):
        rng = random.Random(SEED)
        yield Text(name, [[sentence(rng) for _ in range(rng.randint(2, longest))] for _ in range(6_000 // longest)])


def sentence(rng: random.Random) -> str:
    """8 to 28 made-up words, some 118 characters."""
    words = ["".join(rng.choices("abcdefghijklmnoprstuvz", k=rng.randint(2, 9))) for _ in range(rng.randint(8, 28))]
    return " ".join(words).capitalize() + "."


def sample_site() -> Iterator[Text]:
    """The bundled sample site as one long text per language: headings, lists and tables between prose."""
    documents = list(page_documents(SAMPLE, "https://sample.example"))
    for lang in sorted({str(document["lang"]) for document in documents}):
        blocks = []
        for document in documents:
            if document["lang"] == lang:
                blocks += [f"# {document['title']}", *to_markdown(str(document["content"])).split("\n\n")]
        yield Text(f"sample site, {lang}", [_split(block) for block in blocks])


def xquad(data: Path) -> Iterator[Text]:
    """XQuAD's articles end to end."""
    for lang in ("en", "de"):
        pages = [to_markdown(page.content) for page in load(data, lang).pages]
        yield Text(f"XQuAD, {lang}", [_split(paragraph) for page in pages for paragraph in page.split("\n\n")])


def _split(block: str) -> Paragraph:
    return [block] if _MARKED.match(block) else _SENTENCE_END.split(block)
