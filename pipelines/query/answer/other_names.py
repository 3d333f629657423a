"""Other names: names and codes of a sentence that its passages do not have, where they have another one.

"Ask Helen Marsh."   passage: "Ask Susan Marsh."   ─▶ "Helen Marsh"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipelines.query.answer.claims import Name, Passage, Sentence
from text.words import words

NAME_ENDING = 4  # letters that the names of two streets have in common: Gartenstraße, Lindenstraße
SHORTEST_NAME, CASE_ENDING = 4, 2  # letters of a name, and of what a case adds to it

_CODE = re.compile(r"(?<!\w)(?=[A-Z-]{0,30}\d)(?=\d{0,30}[A-Z])[A-Z\d-]{2,40}(?!\w)")  # B12, N2


def unknown_code(said: Sentence, told: Sequence[Passage]) -> str | None:
    """A code (B12, N2) that no passage has."""
    for match in _CODE.finditer(said.text):
        code = match.group()
        whole = re.compile(rf"(?<!\w){re.escape(code.casefold())}(?!\w)")
        if not any(whole.search(passage.folded) for passage in told):
            return code
    return None


def other_name(named: Iterable[Name], told: Sequence[Passage], *, nouns: bool) -> str | None:
    """A name that the passages do not have, where they have nothing of it or another word at its place.

    Args:
        nouns: all nouns are capitalised.
    """
    known = frozenset(word for passage in told for word in passage.words)
    neighbours = frozenset(pair for passage in told for pair in passage.neighbours)
    for name in named:
        there = [_known(word, known) for word in name.words]
        if all(there):
            continue
        # Where nouns are capitalised, a sentence may begin with two capitals that are no name.
        whole = len(name.words) > 1 and not any(there) and not (nouns and name.first)
        if whole or _rivalled(name, there, neighbours):
            return " ".join(name.words)
        ending = name.words[-1].casefold()[-NAME_ENDING:] if nouns else ""
        elsewhere = any(number == name.number and word.endswith(ending) for word, number in neighbours)
        if name.number and not there[-1] and elsewhere:
            return f"{name.words[-1]} {name.number}"
    return None


def _known(word: str, known: frozenset[str]) -> bool:
    """Whether the passages have the word, perhaps in another case: Kesslers; of Mill-Lane both parts."""
    return all(part in known or any(_case_of(part, other) for other in known) for part in words(word))


def _case_of(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    return len(short) >= SHORTEST_NAME and len(long) - len(short) <= CASE_ENDING and long.startswith(short)


def _rivalled(name: Name, there: Sequence[bool], neighbours: frozenset[tuple[str, str]]) -> bool:
    """Whether the passages have another word at the place of one that they do not have: Helen Marsh, Susan Marsh."""
    folded = [name.title, *(word.casefold() for word in name.words)]
    known = [bool(name.title), *there]
    return any(
        (known[i - 1] and any(first == folded[i - 1] and second[:1].isalpha() for first, second in neighbours))
        or (i + 1 < len(folded) and known[i + 1] and any(second == folded[i + 1] for _, second in neighbours))
        for i in range(1, len(folded))
        if not known[i]
    )
