"""From hits to sources: what an answer may read, within a budget.

A hit is one chunk. Its neighbours give it context, but they are worth less than the next hit (PEERS.md: reading
the window left to right costs up to six points), so all hits come first and neighbours share what is left:

    hits, best first            A3      B0      A7
    + nearest neighbours        A2 A4   B1      A6 A8
    + the next                  A1 A5   B2      (A5 is in already)
    = sources                   [1] A1..A8      [2] B0..B2
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipelines.query.fuse import Hit
from pipelines.query.sentences import cut
from schemas.page import FieldName
from schemas.query import Source

Place = tuple[str, FieldName, int]  # page key, field, ord

# A hit that must be cut shorter than this says too little to be worth a source.
MIN_CUT = 200  # characters


@dataclass(frozen=True)
class _Piece:
    """A core that made it into the budget, on behalf of the hit of this rank."""

    rank: int
    text: str
    hit: bool
    whole: bool = True


def wanted(hits: Sequence[Hit], around: int) -> list[Place]:
    """The neighbours to fetch: best hit first, nearest first, none that is a hit itself.

    A content hit wants `around` chunks on both sides. A hit in a short field says that the page is about the
    question: it wants the beginning of the page's content, as many chunks. Places past the end of a field are
    asked for too: nobody here knows where it ends.
    """
    known = {hit.place for hit in hits}
    places: dict[Place, None] = {}
    for hit in hits:
        for distance in range(1, around + 1):
            if hit.field == "content":
                ords: tuple[int, ...] = (hit.ord - distance, hit.ord + distance)
            else:
                ords = (distance - 1,)
            for ord_ in ords:
                place: Place = (hit.page_key, "content", ord_)
                if ord_ >= 0 and place not in known:
                    places[place] = None
    return list(places)


def passages(
    hits: Sequence[Hit], neighbours: Iterable[Hit], budget: int, *, whole_fields: bool = False
) -> tuple[Source, ...]:
    """Sources in the order of their best hits, numbered from 1, together at most `budget` characters of text.

    Args:
        hits: best first; no chunk twice.
        neighbours: any chunks near the hits; unconnected ones are left out.
        budget: characters. The first hit that does not fit is cut at a sentence end, lower ones are dropped.
        whole_fields: the budget goes to the best hit's field until that is whole, then to the next (SPEC B3);
            otherwise to every hit's nearest neighbours first.
    """
    taken: dict[Place, _Piece] = {}
    left = budget
    for rank, hit in enumerate(hits):
        text = _fitting(hit.text, left, hit.lang, first=rank == 0)
        if text:
            taken[hit.place] = _Piece(rank, text, hit=True, whole=text == hit.text)
            left -= len(text)
        if text != hit.text:
            break
    else:
        _widen(taken, hits, neighbours, left, whole_fields)
    return _sources(hits, taken)


def _widen(
    taken: dict[Place, _Piece],
    hits: Sequence[Hit],
    neighbours: Iterable[Hit],
    left: int,
    whole_fields: bool,
) -> None:
    """Add the neighbours that fit and touch what is there; never a part of one."""
    ranked: list[tuple[tuple[int, ...], int, Hit]] = []
    for neighbour in neighbours:
        near = min(
            ((d, rank) for rank, hit in enumerate(hits) if (d := _distance(hit, neighbour)) is not None),
            default=None,
        )
        if near is not None and neighbour.place not in taken:
            distance, rank = near
            order = (rank, distance) if whole_fields else (distance, rank)
            ranked.append(((*order, neighbour.ord), rank, neighbour))
    for _, rank, neighbour in sorted(ranked, key=lambda entry: entry[0]):
        page_key, field, ord_ = neighbour.place
        beside = (page_key, field, ord_ - 1) in taken or (page_key, field, ord_ + 1) in taken
        opens = ord_ == 0 and any(hit.page_key == page_key and hit.field != "content" for hit in hits)
        if (beside or opens) and neighbour.place not in taken and len(neighbour.text) <= left:
            taken[neighbour.place] = _Piece(rank, neighbour.text, hit=False)
            left -= len(neighbour.text)


def _distance(hit: Hit, neighbour: Hit) -> int | None:
    """Chunks between the two; None if the hit does not want that field."""
    if hit.page_key != neighbour.page_key:
        return None
    if hit.field == neighbour.field:
        return abs(hit.ord - neighbour.ord)
    return neighbour.ord + 1 if neighbour.field == "content" else None


def _sources(hits: Sequence[Hit], taken: dict[Place, _Piece]) -> tuple[Source, ...]:
    """Merge cores that touch, order by best hit, number."""
    windows: list[list[tuple[Place, _Piece]]] = []
    for place, piece in sorted(taken.items(), key=lambda entry: entry[0]):
        if windows:
            (page_key, field, ord_), last = windows[-1][-1]
            if last.whole and place == (page_key, field, ord_ + 1):
                windows[-1].append((place, piece))
                continue
        windows.append([(place, piece)])
    sources: list[Source] = []
    for window in sorted(windows, key=_standing):
        (_, field, ord_), best = min(window, key=lambda entry: (not entry[1].hit, entry[1].rank))
        hit = hits[best.rank]
        text = "".join(piece.text for _, piece in window).strip()
        if not text:
            continue
        sources.append(
            Source(
                n=len(sources) + 1,
                page_id=hit.page_id,
                lang=hit.lang,
                title=hit.title,
                url=hit.url,
                field=field,
                ord=ord_,
                text=text,
                score=hit.score,
                cosine=hit.cosine if best.hit else None,
                revision=hit.revision,
            )
        )
    return tuple(sources)


def _standing(window: list[tuple[Place, _Piece]]) -> tuple[int, bool]:
    """Windows stand in the order of their best hit; one without a hit just after the hit that wanted it."""
    rank = min(piece.rank for _, piece in window)
    return rank, not any(piece.hit and piece.rank == rank for _, piece in window)


def fit(sources: Sequence[Source], budget: int) -> tuple[Source, ...]:
    """The best sources whose texts fit into `budget` characters, numbers unchanged; the last one may be cut."""
    kept: list[Source] = []
    left = budget
    for source in sources:
        text = _fitting(source.text, left, source.lang, first=not kept)
        if text:
            kept.append(source.model_copy(update={"text": text}))
            left -= len(text)
        if text != source.text:
            break
    return tuple(kept)


def _fitting(text: str, left: int, lang: str, *, first: bool) -> str:
    """`text`, or its beginning up to a sentence end, or nothing when that would be too little."""
    piece = cut(text, left, lang)
    return piece if piece == text or first or len(piece) >= MIN_CUT else ""
