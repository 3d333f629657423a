"""Which questions are to be labelled, and in which order: the same for every rater.

    disliked  ── by hash ──────────────────────────────┐
    stratum   ── by hash, PER_STRATUM of each ── turns ┴─▶ sample ─▶ less what is done, for a rater
      (outcome, language)

The hash of a question hangs on its id alone: new questions come in between, and move none of the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain, zip_longest

from pipelines.evaluate.labelling.ports import Candidate

PER_STRATUM = 20
RATERS = 2  # of each question


def sample(
    site: str, candidates: Sequence[Candidate], per_stratum: int = PER_STRATUM, seed: int = 0
) -> list[Candidate]:
    """What is to be labelled: all that was disliked, then so many of each outcome and language in turns.

    What somebody has labelled counts first, so that its second label is not lost to questions that came later.
    """
    strata: dict[tuple[str, str], list[Candidate]] = {}
    for each in candidates:
        strata.setdefault(("", "") if each.disliked else (each.became, each.lang), []).append(each)
    for some in strata.values():
        some.sort(key=lambda each: (not each.raters, _place(site, each, seed)))
    disliked = strata.pop(("", ""), [])
    turns = zip_longest(*(some[:per_stratum] for _, some in sorted(strata.items())))
    return [*disliked, *(each for each in chain.from_iterable(turns) if each is not None)]


def left(sampled: Sequence[Candidate], rater: str) -> list[Candidate]:
    """What is left for a rater: first what waits for a second label."""
    open_ = [each for each in sampled if rater not in each.raters and len(each.raters) < RATERS]
    return sorted(open_, key=lambda each: not each.raters)


def _place(site: str, each: Candidate, seed: int) -> str:
    return hashlib.sha256(f"label {seed} {site} {each.request_id}".encode()).hexdigest()
