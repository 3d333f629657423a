"""From hits to sources: what an answer may read, within a budget.

A hit is one chunk. Its neighbours give it context, but reading them left to right before the next hit costs up to six
points (XQuAD); all hits before any neighbour is better, and taking each for what it is worth is best. A neighbour
is worth what its hit is, less a standard deviation for each chunk that it is away:

    hits, best first            A3 2.1   B0 1.9   A7 0.4
    + their neighbours          A2 A4 1.1   B1 0.9   A1 A5 0.1 ...
    = by worth                  A3 B0 A2 A4 B1 A7 A1 A5 ... until the budget is spent
    = sources                   [1] A1..A8      [2] B0..B2

A short field is no source of its own where content of its page is one: it is that one's heading, and a title that
stands there anyway costs nothing. So the same characters hold more content.

A source never goes on into an attachment, nor from one of its pages to the next: its link opens what it quotes.

On XQuAD the answer is more often within the budget so than with all hits first: docs/reference/quality.md.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.query.search.fuse import standing
from pipelines.query.search.ports import Candidate, ChunkKey, Hit
from schemas.query import Source
from text.sentences import cut

# A hit that must be cut shorter than this says too little to be worth a source.
MIN_CUT = 200  # characters
STEP = 1.0  # standard deviations of the fused score that a chunk's distance from its hit costs


@dataclass(frozen=True)
class _Piece:
    """A core that made it into the budget, on behalf of the hit of this rank."""

    rank: int
    text: str
    hit: bool
    shown: tuple[str, str]  # title and URL: of the page, or of the place in an attachment where it stands
    whole: bool = True


def wanted(hits: Sequence[Candidate], around: int) -> list[ChunkKey]:
    """The neighbours to read, the most useful first, none that is a hit itself.

    A content hit wants `around` chunks on both sides. A hit in a short field says that the page is about the
    question: it wants the beginning of the page's content, as many chunks. Places past the end of a field are
    asked for too: where it ends is unknown here.
    """
    return [place for place, _ in _neighbours(hits, around)]


def nearest(hits: Sequence[Candidate], around: int, room: int) -> list[ChunkKey]:
    """Those of `wanted` that are among the `room` most useful chunks, hits included."""
    better = sorted(-standing(hit.score) for hit in hits)
    return [place for n, (place, cost) in enumerate(_neighbours(hits, around)) if n + bisect(better, cost) < room]


def _neighbours(hits: Sequence[Candidate], around: int) -> list[tuple[ChunkKey, float]]:
    """Each neighbour and what it costs to read it: less for a better hit, more for each chunk away from it."""
    known = {hit.place for hit in hits}
    costs: dict[ChunkKey, float] = {}
    for hit in hits:
        for distance in range(1, around + 1):
            ords = (hit.ord - distance, hit.ord + distance) if hit.field == "content" else (distance - 1,)
            for ord_ in ords:
                place: ChunkKey = (hit.page_key, "content", ord_)
                if ord_ >= 0 and place not in known:
                    costs[place] = min(STEP * distance - standing(hit.score), costs.get(place, math.inf))
    return sorted(costs.items(), key=lambda each: each[1])


def passages(
    hits: Sequence[Hit], neighbours: Iterable[Hit], budget: int, *, whole_fields: bool = False
) -> tuple[Source, ...]:
    """Sources in the order of their best hits, numbered from 1, together at most `budget` characters of text.

    Args:
        hits: best first; no chunk twice.
        neighbours: any chunks near the hits; unconnected ones are left out.
        budget: characters. The first hit that does not fit is cut at a sentence end, what is worth less is dropped.
        whole_fields: all hits first, then the best hit's field until that is whole, then the next;
            otherwise by worth.
    """
    taken: dict[ChunkKey, _Piece] = {}
    left = budget
    for rank, chunk, distance in _ordered(hits, neighbours, whole_fields):
        if chunk.field != "content" and _same(chunk.text, chunk.title):
            taken[chunk.place] = _Piece(rank, chunk.text, hit=not distance, shown=chunk.shown)
            continue
        if distance:
            if _connected(chunk, taken, hits) and len(chunk.text) <= left:
                taken[chunk.place] = _Piece(rank, chunk.text, hit=False, shown=chunk.shown)
                left -= len(chunk.text)
            continue
        text = _fitting(chunk.text, left, chunk.lang, first=rank == 0)
        if text:
            taken[chunk.place] = _Piece(rank, text, hit=True, shown=chunk.shown, whole=text == chunk.text)
            left -= len(text)
        if text != chunk.text:
            break
    return _sources(hits, taken)


def _ordered(hits: Sequence[Hit], neighbours: Iterable[Hit], whole_fields: bool) -> Iterator[tuple[int, Hit, int]]:
    """(rank of the hit, the hit or its neighbour, chunks between them), the most useful first."""
    worth = [0.0 if whole_fields else standing(hit.score) for hit in hits]
    found: list[tuple[tuple[float, ...], int, Hit, int]] = [
        ((-worth[rank], 0, rank), rank, hit, 0) for rank, hit in enumerate(hits)
    ]
    known = {hit.place for hit in hits}
    for chunk in neighbours:
        wanting = [
            (STEP * away - worth[rank], away, rank)
            for rank, hit in enumerate(hits)
            if (away := _distance(hit, chunk)) is not None
        ]
        if not wanting or chunk.place in known:
            continue
        known.add(chunk.place)
        cost, away, rank = min(wanting)
        order = (math.inf, rank, away) if whole_fields else (cost, away, rank)
        found.append(((*order, chunk.ord), rank, chunk, away))
    for _, rank, chunk, away in sorted(found, key=lambda each: each[0]):
        yield rank, chunk, away


def _connected(chunk: Hit, taken: Mapping[ChunkKey, _Piece], hits: Sequence[Hit]) -> bool:
    """Whether it touches what is there, or opens a page whose title was hit."""
    page_key, field, ord_ = chunk.place
    beside = (page_key, field, ord_ - 1) in taken or (page_key, field, ord_ + 1) in taken
    opens = ord_ == 0 and any(hit.page_key == page_key and hit.field != "content" for hit in hits)
    return beside or opens


def _distance(hit: Hit, neighbour: Hit) -> int | None:
    """The distance in chunks; None for a field that the hit does not want, or another place of an attachment."""
    if hit.page_key != neighbour.page_key or hit.shown != neighbour.shown:
        return None
    if hit.field == neighbour.field:
        return abs(hit.ord - neighbour.ord)
    return neighbour.ord + 1 if neighbour.field == "content" else None


_Window = list[tuple[ChunkKey, _Piece]]


def _sources(hits: Sequence[Hit], taken: dict[ChunkKey, _Piece]) -> tuple[Source, ...]:
    """Merge cores that touch, give short fields to the best passage of their page, order by best hit, number."""
    shorts: dict[tuple[str, tuple[str, str]], _Window] = {}
    windows: list[_Window] = []
    for place, piece in sorted(taken.items(), key=lambda entry: entry[0]):
        page_key, field, ord_ = place
        if field != "content":
            shorts.setdefault((page_key, piece.shown), []).append((place, piece))
            continue
        if windows:
            before, last = windows[-1][-1]
            if last.whole and before == (page_key, field, ord_ - 1) and piece.shown == last.shown:
                windows[-1].append((place, piece))
                continue
        windows.append([(place, piece)])
    ranked: list[tuple[tuple[int, bool], _Window, _Window]] = []  # standing, content, short fields above it
    for window in sorted(windows, key=_standing):
        above = shorts.pop((window[0][0][0], window[0][1].shown), [])
        ranked.append((_standing([*window, *above]), window, above))
    ranked += [(_standing(alone), [], alone) for alone in shorts.values()]
    sources: list[Source] = []
    for _, window, above in sorted(ranked, key=lambda each: each[0]):
        (_, field, ord_), _ = min(window or above, key=_better)
        _, best = min([*window, *above], key=_better)
        hit = hits[best.rank]
        text = "".join(piece.text for _, piece in window) if window else _short_text(above)
        if not text.strip():
            continue
        made = hit.source(len(sources) + 1, text.strip(), _heading(above, hit.title) if window else "")
        cosine = hit.cosine if best.hit else None
        sources.append(made.model_copy(update={"field": field, "ord": ord_, "cosine": cosine}))
    return tuple(sources)


def _better(entry: tuple[ChunkKey, _Piece]) -> tuple[bool, int]:
    return not entry[1].hit, entry[1].rank


def _heading(above: _Window, title: str) -> str:
    """The short fields by their names, a line each; none that says what the title does."""
    fields: dict[str, str] = {}
    for (_, field, _), piece in above:
        fields[field] = fields.get(field, "") + piece.text
    return "\n".join(
        f"{field.capitalize()}: {' '.join(text.split())}" for field, text in fields.items() if not _same(text, title)
    )


def _short_text(above: _Window) -> str:
    """Of a page with no content: each of its short fields once."""
    texts = [" ".join(piece.text.split()) for _, piece in above]
    return "\n\n".join(dict.fromkeys(texts))


def _same(text: str, title: str) -> bool:
    return text.split() == title.split()


def _standing(window: _Window) -> tuple[int, bool]:
    """Windows stand in the order of their best hit; one without a hit just after the hit that wanted it."""
    rank = min(piece.rank for _, piece in window)
    return rank, not any(piece.hit and piece.rank == rank for _, piece in window)


def fit(sources: Sequence[Source], budget: int) -> tuple[Source, ...]:
    """The best sources whose texts fit into `budget` characters, numbers unchanged; the last one may be cut."""
    kept: list[Source] = []
    left = budget
    for source in sources:
        text = _fitting(source.text, left - len(source.heading), source.lang, first=not kept)
        if text:
            kept.append(source.model_copy(update={"text": text}))
            left -= len(source.heading) + len(text)
        if text != source.text:
            break
    return tuple(kept)


def _fitting(text: str, left: int, lang: str, *, first: bool) -> str:
    """`text`, or its beginning up to a sentence end, or nothing when that would be too little."""
    piece = cut(text, left, lang)
    return piece if piece == text or first or len(piece) >= MIN_CUT else ""
