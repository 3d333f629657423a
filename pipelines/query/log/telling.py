"""Words that tell a group of texts from the others.

As TF-IDF of classes (Grootendorst 2022, BERTopic), counted once per text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from text.language import stopwords
from text.words import words

WORDS = 4  # of a group


def telling(listed: Iterable[Sequence[str]], every: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Of each listed group of texts the words that many of its texts have and few groups of all do."""
    empty = frozenset[str]().union(*stopwords().values())

    def said(group: Sequence[str]) -> Counter[str]:
        return Counter(word for text in group for word in set(words(text)) if word not in empty and len(word) > 1)

    groups = 0
    having: Counter[str] = Counter()
    for group in every:
        groups += 1
        having.update(set(said(group)))
    found = []
    for group in listed:
        own = said(group)
        best = sorted(own, key=lambda word: (-own[word] * math.log(1 + groups / having[word]), word))
        found.append(tuple(best[:WORDS]))
    return found
