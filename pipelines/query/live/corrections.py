"""Corrections: what editors have put right, as the stages know it.

versions that were made live (live_texts.py) ─▶ SiteCorrections ─▶ of a site: questions with what answers them
                                                                └▶ words that mean others ─▶ site_prompts.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from itertools import count, islice

import structlog
from pydantic import ValidationError

from pipelines.query.live.glossary import Glossary, WholeWord, holding
from prompts.loader import PromptError
from schemas.base import problems
from schemas.correction import Correction
from schemas.text_version import TextVersion
from text.folding import fold
from text.language import stopwords
from text.words import words

log = structlog.get_logger(__name__)

SHORT = 6  # letters
CHUNKS = 500  # of a page's content that tell whether it has changed; a view of a page has no more
MAX_CORRECTIONS = 500  # of a site, in force; each is compared with each question


@dataclass(frozen=True)
class StoredCorrection:
    """A correction in force."""

    id: str
    at: datetime
    correction: Correction


@dataclass(frozen=True)
class CorrectionSet:
    """The corrections of a site, the newest first."""

    kept: tuple[StoredCorrection, ...] = ()

    @cached_property
    def asked(self) -> tuple[tuple[str, StoredCorrection], ...]:
        return tuple((question, one) for one in self.kept for question in one.correction.questions)

    @cached_property
    def compared(self) -> bool:
        """Whether one of them answers more than its own words."""
        return any(one.correction.reach != "same" for one in self.kept if one.correction.questions)

    @cached_property
    def in_words(self) -> Mapping[tuple[str, ...], Sequence[StoredCorrection]]:
        """The corrections of each question, by its words, the newest first."""
        found: dict[tuple[str, ...], list[StoredCorrection]] = {}
        for question, one in self.asked:
            found.setdefault(asked_words(question), []).append(one)
        return found

    @cached_property
    def synonyms(self) -> tuple[StoredCorrection, ...]:
        return tuple(one for one in self.kept if one.correction.kind == "synonym")

    def understood(self, text: str) -> tuple[str, ...]:
        if not self.synonyms:
            return ()
        holds = holding(text)
        return tuple(one.id for one in self.synonyms if _holds(one.correction, holds))


NONE = CorrectionSet()


class SiteCorrections:
    """What is in force, as far as is known here. One per process."""

    def __init__(self) -> None:
        self._live: Mapping[str, CorrectionSet] = {}

    def of(self, site: str) -> CorrectionSet:
        return self._live.get(site, NONE)

    def take(self, live: Iterable[TextVersion]) -> None:
        """From now on these count, in place of those taken before."""
        taken: dict[str, list[TextVersion]] = {}
        for version in live:
            if version.kind == "corrections" and version.text is not None:
                taken.setdefault(version.site, []).append(version)
        self._live = {site: correction_set(versions) for site, versions in taken.items()}


def correction_set(live: Iterable[TextVersion]) -> CorrectionSet:
    """Of one site. What another release has written, and this one cannot read, is passed over and logged."""
    found = []
    for version in live:
        if version.kind != "corrections" or version.text is None:
            continue
        try:
            found.append(StoredCorrection(version.name, version.at, read_correction(version.text)))
        except PromptError as err:
            log.warning("a correction is passed over", site=version.site, id=version.name, reason=str(err))
    return CorrectionSet(tuple(sorted(found, key=lambda one: (one.at, one.id), reverse=True)))


def read_correction(text: str) -> Correction:
    """Raises: PromptError."""
    try:
        return Correction.model_validate_json(text, extra="allow")
    except ValidationError as err:
        raise PromptError(f"correction: {problems(err)}") from None


def written_correction(correction: Correction) -> str:
    return correction.model_dump_json(exclude_defaults=True)


def correction_key(correction: Correction) -> tuple[str, ...]:
    """What a correction is about: its first question, or its word. A newer one about the same takes its place."""
    lang = correction.lang.partition("-")[0]
    return (lang, correction.word.casefold()) if correction.word else (lang, *asked_words(correction.questions[0]))


def correction_id(correction: Correction, known: CorrectionSet) -> str:
    """The id of the known one about the same, else a new one, which is the same whenever it is asked for."""
    key, taken = correction_key(correction), {one.id: correction_key(one.correction) for one in known.kept}
    if (same := next((id for id, other in taken.items() if other == key), None)) is not None:
        return same
    made = (sha256(repr((key, n)).encode()).hexdigest()[:12] for n in count())
    return next(id for id in made if id not in taken)  # one whose question was changed has kept its id


def asked_words(question: str) -> tuple[str, ...]:
    """What makes two questions the same, whatever their case, accents and marks."""
    return tuple(map(fold, words(question))) or (question.strip(),)


def telling(question: str, langs: Iterable[str] | None = None) -> list[str]:
    """The words of a question that say what it is about, each once.

    Args:
        langs: in which other words say nothing; default: all.
    """
    known = stopwords()
    empty = frozenset[str]().union(*(known.get(lang, ()) for lang in (known if langs is None else langs)))
    return [word for word in dict.fromkeys(words(question)) if word not in empty]


def page_content(texts: Iterable[str]) -> str:
    """A hash of what a page says, wherever it is cut into chunks and however its lines are broken.

    Args:
        texts: of the chunks of its content, in order.
    """
    return sha256(" ".join("".join(islice(texts, CHUNKS)).split()).encode()).hexdigest()[:16]


def with_synonyms(glossary: Glossary, synonyms: Iterable[Correction]) -> Glossary:
    """A glossary by which questions are searched: what a word means is searched as well."""
    found: dict[str, dict[str, Sequence[str]]] = {}
    for one in synonyms:
        for word, means in ((one.word, one.means), (one.means, one.word))[: 1 + one.both]:
            by_lang = found.setdefault(
                _sought(means), {lang: _listed(those) for lang, those in glossary.get(means, {}).items()}
            )
            # Of no language: nothing is called so, it is only understood.
            by_lang[""] = (*by_lang.get("", ()), _sought(word))
    return {**glossary, **found}


def is_understood(synonym: Correction, text: str) -> bool:
    """Whether a text has the word that means another."""
    return _holds(synonym, holding(text))


def _holds(synonym: Correction, holds: Callable[[str], bool]) -> bool:
    return holds(_sought(synonym.word)) or (synonym.both and holds(_sought(synonym.means)))


def synonym_circle(synonyms: Iterable[Correction], glossary: Glossary) -> Sequence[str]:
    """Words that mean each other in a circle; none where there is no circle.

    Two words that mean each other by one synonym (`both`) count as one word.
    """
    every, one_word = list(synonyms), _Same()
    if (same := next((one for one in every if one.word.casefold() == one.means.casefold()), None)) is not None:
        return same.word, same.means
    for one in every:
        if one.both:
            one_word.join(one.word, one.means)
    means: dict[str, set[str]] = {}
    for one in every:
        if not one.both:
            word, other = one_word.of(one.word), one_word.of(one.means)
            if word == other:
                return one.word, one.means
            means.setdefault(word, set()).add(other)
    for term, names in glossary.items():
        for name in (name for those in names.values() for name in _listed(those)):
            if (word := one_word.of(name)) != (other := one_word.of(term)):
                means.setdefault(word, set()).add(other)
    try:
        TopologicalSorter(means).prepare()
    except CycleError as err:
        return tuple(err.args[1])
    return ()


@dataclass
class _Same:
    """Words that count as one word."""

    _first: dict[str, str] = field(default_factory=dict)

    def of(self, word: str) -> str:
        word = word.casefold()
        while word in self._first:
            word = self._first[word]
        return word

    def join(self, one: str, other: str) -> None:
        if (first := self.of(one)) != (second := self.of(other)):
            self._first[second] = first


def _sought(word: str) -> str:
    """As it is looked for. A short word is the beginning of others by chance; scripts without capitals may have no
    spaces, where no word ends."""
    return WholeWord(word) if len(word) < SHORT and word.upper() != word.lower() else word


def _listed(those: str | Sequence[str]) -> tuple[str, ...]:
    return (those,) if isinstance(those, str) else tuple(those)
