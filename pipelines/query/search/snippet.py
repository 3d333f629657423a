"""A hit as a list of results shows it: the sentence that fits best, and what follows it, with the searched words."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from urllib.parse import quote

import numpy as np

from pipelines.query.search.ports import Hit, HitUnit
from schemas.http import Snippet, SnippetPart
from schemas.ingest import Vector32
from text.language import stopwords
from text.markdown import cells, inline, plain
from text.words import stems, word_spans, words

LONGEST = 280  # characters of a snippet
MOST_WORDS = 40  # of a query that are marked
MOST_MARKS = 40
EDGE_WORDS = 5  # words at each end of a long sentence: enough for a browser to find it


def snippet(hit: Hit, query: str, vector: Vector32 | None = None) -> Snippet:
    """What to show of a hit. `vector`: the query's; None: the words alone decide."""
    wanted = searched(query, hit.lang)
    # Headings and code are shown in their place on the page alone.
    said = [unit for unit in hit.units if unit.kind in ("prose", "item", "row")]
    if not said:
        return Snippet(parts=_parts(plain(hit.text), wanted, hit.lang))
    texts = [plain(unit.text) for unit in said]
    fits = vector is not None and said[0].vector.shape == vector.shape
    near = [float(np.dot(unit.vector, vector)) if vector is not None and fits else 0.0 for unit in said]
    found = [len(wanted & set(stems(text, hit.lang))) for text in texts]
    best = max(range(len(said)), key=lambda n: (found[n] + near[n], -n))
    shown = texts[best]
    for more in texts[best + 1 :]:
        if len(shown) + len(more) >= LONGEST:
            break
        shown = f"{shown} {more}"
    heading = next(iter(said[best].headings[-1:]), "")
    return Snippet(
        parts=_parts(shown, wanted, hit.lang), fragment=text_fragment(_sentence(said[best])), heading=heading
    )


def searched(query: str, lang: str) -> frozenset[str]:
    """The stems of a query's words, without those that say nothing, unless it has no others."""
    every = list(dict.fromkeys(words(query)))[:MOST_WORDS]
    empty = stopwords().get(lang.partition("-")[0], frozenset())
    telling = [word for word in every if word not in empty] or every
    return frozenset(stem for word in telling for stem in stems(word, lang))


def text_fragment(sentence: str) -> str:
    """What goes behind the `#` of an address to jump to a sentence (https://wicg.github.io/scroll-to-text-fragment/)."""
    said = sentence.split()
    one = len(said) <= 2 * EDGE_WORDS
    ends = [said] if one else [said[:EDGE_WORDS], said[-EDGE_WORDS:]]
    written = [quote(" ".join(end).encode("utf-8", "replace"), safe="").replace("-", "%2D") for end in ends if end]
    return f":~:text={','.join(written)}" if written else ""


def _sentence(unit: HitUnit) -> str:
    """What a browser finds on the page: it looks for no text across the cells of a row."""
    if unit.kind == "row":
        return max(map(inline, cells(unit.text)), key=len, default="")
    return plain(unit.text)


def _parts(text: str, wanted: AbstractSet[str], lang: str) -> tuple[SnippetPart, ...]:
    """The text in pieces, of which those are marked that are searched words."""
    shown, parts, end, marked = _cut(text), list[SnippetPart](), 0, 0
    for start, stop in word_spans(shown):
        if marked == MOST_MARKS:
            break
        word = shown[start:stop]
        if not wanted.isdisjoint(stems(word, lang)):
            parts += [SnippetPart(text=shown[end:start])] if start > end else []
            parts.append(SnippetPart(text=word, match=True))
            end, marked = stop, marked + 1
    return (*parts, *([SnippetPart(text=shown[end:])] if end < len(shown) else []))


def _cut(text: str) -> str:
    """At a space, where there is one nearby."""
    if len(text) <= LONGEST:
        return text
    end = text.rfind(" ", LONGEST // 2, LONGEST)
    return text[: end if end > 0 else LONGEST] + "…"
