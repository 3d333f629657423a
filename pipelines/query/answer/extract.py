"""Extract: a quotation where the search had no evidence (an index made before units): the sentences that fit best.

    best sources ─▶ sentences ─▶ .7 cosine + .3 shared words - .36 x rank of the source ─▶ the best, three at most

Tried on XQuAD, pages 0-23; cosine and shared words are measured in standard deviations among the candidates of the
question, and what is far behind the best is not quoted. Figures: docs/reference/quality.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.query.extractive.quotation import Quotation
from pipelines.runtime.embedder import Embedder
from schemas.answer import Citation, Token
from schemas.query import Source
from text.markdown import Kind, cells, plain, valid
from text.sentences import Sentence, cut, ended, split
from text.words import stems

READ = 5  # sources
LIMIT = 3  # sentences
# How far behind the best a sentence may be and still be quoted, in the score's own units: what is further off is mostly
# about something else. Costs less than a point of the answers, and saves a quarter of what a visitor reads.
BEHIND = 2.0
COSINE, OVERLAP, RANK = 0.7, 0.3, 0.36  # the best of the mixtures tried on XQuAD, pages 0-23
# The bundled embedder does some 40 sentences a second on two cores: a visitor waits for these.
# XQuAD en: the answer is among the picks for .945 of the questions without a limit, .943 with 24, .941 with 16.
MAX_EMBEDDED = 24
# Characters: a list or a table up to this length is quoted whole, with the words that introduce it. The row of a price
# list that fits the question best says something wrong without the others.
TOGETHER = 600
LONGEST = 600  # characters quoted of one sentence


class Row(NamedTuple):
    """Where a table row stands: number `n`, from 0, of `of` in the table that begins at `table`."""

    table: int
    n: int
    of: int


@dataclass(frozen=True)
class Candidate:
    """What can be quoted: a sentence, a list item, a row of a long table; as a block, a whole short list or table."""

    n: int  # of its source
    rank: int  # of its source, from 0
    order: int  # position in its source
    text: str  # Markdown, as on the page
    kind: Kind | Literal["block"]
    above: str = ""  # Markdown: the words that introduce it, the header of a row's table
    row: Row | None = None

    @property
    def read(self) -> str:
        """What it says, with what stands above it."""
        return plain(f"{self.above}\n{self.text}")


def candidates(sources: Sequence[Source]) -> list[Candidate]:
    """Everything in the best sources that can be quoted, in reading order, nothing twice.

    Titles and descriptions say what a page is about, in the very words of many a question, and not what it says: they
    are quoted where no content was found.
    """
    found: dict[str, Candidate] = {}
    told = [source for source in sources if source.field == "content"] or sources
    for rank, source in enumerate(told[:READ]):
        for order, (text, kind, above, row) in enumerate(_units(source)):
            if len(text) > LONGEST and kind not in ("code", "row"):
                text = f"{cut(text, LONGEST, source.lang)} …"
            candidate = Candidate(source.n, rank, order, text, kind, above, row)
            if any(ch.isalnum() for ch in candidate.text):
                found.setdefault(candidate.read, candidate)
    return list(found.values())


async def extract(
    question: str, sources: Sequence[Source], embedder: Embedder, lead_in: str, limit: int = LIMIT
) -> Quotation:
    """Quote at most `limit` candidates, each with its citation, after a `lead_in` that says that it is a quotation.

    Raises:
        Retryable, Permanent: of the embedder.
    """
    pool = candidates(sources)
    if not pool:
        return Quotation(())
    overlap = _overlap(question, pool)
    ranks = np.array([candidate.rank for candidate in pool])
    likely = np.sort(np.argsort(RANK * ranks - _standard(overlap), kind="stable")[:MAX_EMBEDDED])
    pool = [pool[i] for i in likely]
    vectors = await embedder.passages([candidate.read for candidate in pool])
    cosine = vectors @ await embedder.query(question)
    score = COSINE * _standard(cosine) + OVERLAP * _standard(overlap[likely]) - RANK * ranks[likely]
    best = [pool[i] for i in np.argsort(-score, kind="stable")[:limit] if score[i] >= score.max() - BEHIND]
    return Quotation(tuple(_quotation(best, lead_in)))


def _overlap(question: str, pool: Sequence[Candidate]) -> NDArray[np.float64]:
    """Share of the question's words in each candidate, rare words counting more."""
    asked = set(stems(question))
    found = [asked.intersection(stems(candidate.read)) for candidate in pool]
    having = Counter(stem for stems_ in found for stem in stems_)
    idf = {stem: math.log(1 + (len(pool) - having[stem] + 0.5) / (having[stem] + 0.5)) for stem in asked}
    total = sum(idf.values()) or 1.0
    return np.array([sum(idf[stem] for stem in stems_) / total for stems_ in found])


def _standard(values: NDArray[np.floating]) -> NDArray[np.float64]:
    spread = float(values.std())
    return np.asarray((values - values.mean()) / spread if spread > 1e-9 else np.zeros(len(values)), dtype=np.float64)


class _Unit(NamedTuple):
    text: str
    kind: Kind | Literal["block"]
    above: str = ""
    row: Row | None = None


def _units(source: Source) -> Iterator[_Unit]:
    """Whatever can be quoted by itself."""
    sentences = split(source.text, source.lang)
    heading = ""
    at = 0
    while at < len(sentences):
        sentence = sentences[at]
        at += 1
        text = source.text[sentence.start : sentence.end]
        items = _items(sentences, at)
        table = _table(sentences, at) if sentence.kind == "prose" and not ended(text) else []
        if sentence.kind == "heading":
            heading = text
        elif sentence.kind == "item" or (items and text.endswith(":")):
            # It is introduced by words of its own, or by the heading alone.
            lines, above = ([sentence, *items], heading) if sentence.kind == "item" else (items, text)
            if lines[-1].end - sentence.start <= TOGETHER:
                yield _Unit(source.text[sentence.start : lines[-1].end], "block", heading)
            else:
                terms = {item.header for item in lines}
                single = (item for item in lines if (item.start, item.end) not in terms)
                yield from (_Unit(_with_term(source.text, item), "item", above) for item in single)
            at += len(items)
        elif table and table[-1].end - sentence.start <= TOGETHER:
            yield _Unit(source.text[sentence.start : table[-1].end], "block", heading)
            at += len(table)
        elif sentence.kind == "row":
            table = _table(sentences, at - 1)
            # Its cells alone hardly say what they are about.
            yield from _of_table(source, table, heading or source.title)
            at += len(table) - 1
        else:
            yield _Unit(text, sentence.kind)


def _with_term(text: str, item: Sentence) -> str:
    """The item; of a definition list the definition below its term."""
    said = text[item.start : item.end]
    return f"{text[slice(*item.header)]}\n{said}" if item.header else said


def _of_table(source: Source, table: Sequence[Sentence], above: str) -> Iterator[_Unit]:
    """The table if it is short, else its rows."""
    first, last = table[0], table[-1]
    if last.end - first.start <= TOGETHER:
        yield _Unit(source.text[first.start : last.end], "block", above)
        return
    texts = [_shortened(source.text[row.start : row.end], source.lang) for row in table]
    header = texts.pop(0) if last.header == (first.start, first.end) else ""
    for n, text in enumerate(texts):
        yield _Unit(text, "row", header, Row(first.start, n, len(texts)))


def _table(sentences: Sequence[Sentence], at: int) -> list[Sentence]:
    """The rows from `at` on that are one table, its header first. Where that is missing, a table began before."""
    if at == len(sentences) or sentences[at].kind != "row":
        return []
    first = sentences[at]
    below = list(takewhile(lambda row: row.header == (first.start, first.end), sentences[at + 1 :]))
    if below:
        return [first, *below]
    headers = {sentence.header for sentence in sentences}
    rest = takewhile(lambda row: row.kind == "row" and (row.start, row.end) not in headers, sentences[at + 1 :])
    return [first, *rest]


def _items(sentences: Sequence[Sentence], at: int) -> list[Sentence]:
    """The list items from `at` on, unbroken."""
    items: list[Sentence] = []
    for sentence in sentences[at:]:
        if sentence.kind != "item":
            break
        items.append(sentence)
    return items


def _quotation(picked: Sequence[Candidate], lead_in: str) -> Iterator[Token | Citation]:
    """A block quotation per source, best source first, sentences in reading order."""
    yield Token(text=lead_in)
    at = len(lead_in)
    ordered = sorted(picked, key=lambda c: (c.rank, c.order))
    for _, group in groupby(ordered, key=lambda c: c.n):
        quoted = list(group)
        for before, candidate, after in zip([None, *quoted], quoted, [*quoted[1:], None], strict=False):
            joint = "\n\n> " if before is None else _joint(before, candidate)
            if candidate.above and (before is None or not _together(before, candidate)):
                joint += _above(candidate)
            if _rows_before(before, candidate):
                joint += f"{_gap(candidate)}\n> "
            text = valid(candidate.text).replace("\n", "\n> ")
            yield Token(text=joint + text)
            start = at + len(joint)
            at = start + len(text)
            yield Citation(n=candidate.n, start=start, end=at, quote=plain(candidate.text))
            if _rows_after(candidate, after):
                more = f"\n> {_gap(candidate)}"
                yield Token(text=more)
                at += len(more)


def _joint(before: Candidate, candidate: Candidate) -> str:
    """What goes between two quoted pieces of a source."""
    if before.kind == candidate.kind == "prose":
        return " " if candidate.order == before.order + 1 else " … "
    if before.kind == candidate.kind != "block" and _together(before, candidate):
        return "\n> "
    return "\n>\n> "


def _together(before: Candidate, candidate: Candidate) -> bool:
    """Whether what stands above them is the same."""
    return _same_table(before, candidate) if candidate.row else before.above == candidate.above


def _same_table(one: Candidate | None, other: Candidate | None) -> bool:
    return bool(one and other and one.row and other.row and one.row.table == other.row.table)


def _rows_before(before: Candidate | None, candidate: Candidate) -> bool:
    """Whether rows of its table are left out since the last quoted one, or since the table's beginning."""
    if candidate.row is None:
        return False
    quoted = before.row.n + 1 if before and before.row and _same_table(before, candidate) else 0
    return candidate.row.n > quoted


def _rows_after(candidate: Candidate, after: Candidate | None) -> bool:
    """Whether it is the last quoted row of its table, but not the table's last."""
    return candidate.row is not None and candidate.row.n + 1 < candidate.row.of and not _same_table(candidate, after)


def _above(candidate: Candidate) -> str:
    if candidate.kind == "row":
        return f"{candidate.above}\n> |{' --- |' * len(cells(candidate.above))}\n> "
    return f"**{plain(candidate.above)}**\n>\n> "


def _gap(row: Candidate) -> str:
    """A row that says that there are more."""
    return f"|{' … |' * len(cells(row.above or row.text))}"


def _shortened(row: str, lang: str) -> str:
    """The row, still a row, of some `LONGEST` characters at most."""
    if len(row) <= LONGEST:
        return row
    found = cells(row)
    room = LONGEST // len(found)
    return f"|{'|'.join(f' {c} ' if len(c) <= room else f' {cut(c, room, lang)} … ' for c in found)}|"
