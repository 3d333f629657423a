"""Grounding: whether the sources that a sentence cites support it.

    "A card costs 99 euros [1]."   source 1: "A card costs 12 euros a year."   ─▶ Doubt("figure", "99 euros")

Compared are figures (numbers with their units, prices, dates, times, weekdays, telephone numbers, addresses), the
subject of each figure, names, and negations. Other words are not compared: a model may use its own. A sentence without
a doubt may still be wrong; these are the mistakes that a program can find.

Measured by `python -m bench citations`; the thresholds were chosen on its tuned half.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import zip_longest

from pipelines.query.answer import claims
from pipelines.query.answer.amounts import FREE, is_rounded, nearly
from pipelines.query.answer.claims import Clause, Name, Passage, Sentence
from pipelines.query.answer.derived import Derivations
from pipelines.query.answer.other_names import other_name, unknown_code
from schemas.answer import DoubtKind
from schemas.query import Source
from text.figures import COUNTED, Figure
from text.language import spoken

SAME_SAYING = 0.6  # share of a clause's words that a passage's clause needs to have the same subject
SAME_ENOUGH = 0.1  # distance from the best share, within which other clauses have the same subject as well
SHARED = 2  # least number of common words of two clauses with the same subject
NEARER = 2  # words more in common with another figure's clause than with its own
MOST_DERIVED = 4  # figures of a sentence for which a derivation is searched
MOST_FIGURES = 250  # figures of a sentence or table row that are compared; one with more is doubted
SHOWN = 40  # characters shown of a sentence with too many figures


@dataclass(frozen=True)
class Doubt:
    """The part of a sentence that its sources do not support, and why. `entailment` comes from a judge (judging)."""

    kind: DoubtKind
    said: str


class Grounds:
    """The evidence for one answer: its sources, the visitor's question, and the facts in the prompt.

    Args:
        question: the visitor's. Its figures may be repeated without evidence, except prices and shares.
        lang: the visitor's language.
        known: other texts of the prompt: the date, the site's name, results of tools.
    """

    def __init__(self, sources: Sequence[Source], question: str, lang: str, known: Iterable[str] = ()) -> None:
        self._sources = {source.n: source for source in sources}
        self._lang = lang
        self._question = question
        self._known = tuple(known)
        self._read: dict[int, Passage] = {}

    def doubt(self, markdown: str, cited: Iterable[int]) -> Doubt | None:
        """The first part of a sentence that the cited sources do not support; without citations, all sources count."""
        numbers = [n for n in cited if n in self._sources] or list(self._sources)
        passages = [self._passage(n) for n in numbers]
        langs = _langs(self._lang, markdown)
        said = claims.sentence(markdown, langs)
        evidence = [self._facts, *passages]
        read = dict.fromkeys((*langs, *(self._sources[n].lang for n in numbers)))
        derived = Derivations(evidence, said.figures, self._asked.figures, tuple(read))
        # A heading's words are capitalised by the rules of headings.
        named = () if markdown.lstrip().startswith("#") else tuple(claims.names(said, langs))
        # Words are compared only within a language: many names are translated.
        alike = any(self._sources[n].lang.partition("-")[0] in langs for n in numbers)
        return (
            _unsupported(said, evidence, self._repeated, derived, langs)
            or _misattributed(said, passages, derived, langs, words=alike)
            or self._other_name(said, named, evidence, langs, words=alike)
            or (_open_when_closed(said, passages, langs) or _opposite(said, passages) if alike else None)
        )

    def _other_name(
        self, said: Sentence, named: Iterable[Name], evidence: Sequence[Passage], langs: Sequence[str], *, words: bool
    ) -> Doubt | None:
        evidence = [*evidence, self._asked]
        nouns = langs[-1] in claims.NOUNS_ARE_CAPITALISED
        name = unknown_code(said, evidence) or (other_name(named, evidence, nouns=nouns) if words else None)
        return Doubt("name", name) if name else None

    def _passage(self, n: int) -> Passage:
        if n not in self._read:
            source = self._sources[n]
            self._read[n] = claims.passage(
                f"{source.title}\n\n{source.heading}\n\n{source.text}\n\n{source.url}", (source.lang,)
            )
        return self._read[n]

    @cached_property
    def _facts(self) -> Passage:
        return claims.passage("\n\n".join(self._known), ("en", self._lang))

    @cached_property
    def _asked(self) -> Passage:
        return claims.passage(self._question, _langs(self._lang, self._question))

    @cached_property
    def _repeated(self) -> list[Figure]:
        """Figures of the question that need no evidence. Prices do: "Is it 99 euros?" does not make it 99 euros."""
        return [figure for figure in self._asked.figures if figure.family not in ("price", "percent")]


def _langs(lang: str, said: str) -> tuple[str, ...]:
    """The languages in which a text is parsed: the visitor's, and the detected one if detection is certain."""
    heard = spoken(said) - {lang}
    return (lang, *(heard if len(heard) == 1 else ()))


def _unsupported(
    said: Sentence, evidence: Sequence[Passage], repeated: Sequence[Figure], derived: Derivations, langs: Sequence[str]
) -> Doubt | None:
    """A figure that no passage has, that cannot be derived from theirs, and is not `repeated` from the question."""
    if len(said.figures) > MOST_FIGURES:
        return Doubt("figure", said.text[said.figures[MOST_FIGURES].start :][:SHOWN])
    unsupported = [
        figure
        for figure in said.figures
        if not _supported(figure, said, evidence, langs) and not any(other.bears(figure) for other in repeated)
    ]
    if not unsupported:
        return None
    factors = [derived.factors(figure) for figure in unsupported[:MOST_DERIVED]]
    # Three days at 5 euros are 15 euros, although the page does not say "three days".
    counts = frozenset[Fraction]().union(*filter(None, factors))
    for figure, found in zip_longest(unsupported, factors):
        if found is None and not counts & figure.numbers:
            return Doubt("figure", said.text[figure.start : figure.end])
    return None


def _supported(figure: Figure, said: Sentence, evidence: Sequence[Passage], langs: Sequence[str]) -> bool:
    """Whether a passage has the figure, or the figure needs no evidence."""
    counted = figure.kind == "number" and figure.spelled and figure.unit is None  # "three ways:"
    if figure.vague or (counted and (max(figure.numbers) < COUNTED or said.text.rstrip().endswith(":"))):
        return True
    if figure.kind == "weekday":  # "closed on Monday" where the hours do not name Monday
        return said.whole.denies or any(passage.any_day or figure.times <= passage.days for passage in evidence)
    if figure.kind == "address":
        return any(figure.said in passage.folded for passage in evidence)
    return (
        any(_supports(other, figure) for passage in evidence for other in passage.figures)
        or (counted and any(_counts_in(figure, said.text, passage) for passage in evidence))
        or any(
            nearly(figure, said.text, langs, part.figures, part.text)
            for passage in evidence
            for part in passage.sentences
        )
    )


def _supports(other: Figure, figure: Figure) -> bool:
    if (other.unit or figure.unit) and other.times & figure.times:  # sept heures
        return True
    return other.bears(figure) and not (other.kind == "time" and figure.unit)  # 2 pm does not support two months


def _counts_in(figure: Figure, text: str, passage: Passage) -> bool:
    """Whether a word of the passage contains the number: ten visits, Zehnerkarte."""
    begins = f"{text[figure.start : figure.end].casefold()}er"
    return any(word.startswith(begins) for word in passage.words)


def _misattributed(
    said: Sentence, passages: Sequence[Passage], derived: Derivations, langs: Sequence[str], *, words: bool
) -> Doubt | None:
    """A figure that the passages give for another day or, if `words` are compared, for another subject."""
    theirs = [clause for passage in passages for clause in passage.clauses if clause.figures]
    counting = [clause for clause in said.clauses if clause.figures]
    # If only one clause has figures, the whole sentence is their subject: "For minors, it lasts 5 years".
    for mine in [said.whole] if len(counting) == 1 else counting:
        has = [[_has(clause, figure) for clause in theirs] for figure in mine.figures]
        for figure, where in zip(mine.figures, has, strict=True):
            claimed = figure.kind not in ("weekday", "address", "phone") and not (
                figure.vague or _in_words(figure) or is_rounded(figure, said.text, langs)
            )
            if not claimed or not any(where):
                continue
            homes = [clause for clause, there in zip(theirs, where, strict=True) if there]
            # The 10 euros that members save may be derived; "ten lessons" does not contradict them.
            if not any(_same_family(clause, figure) for clause in homes) and derived.factors(figure) is not None:
                continue
            # A clause whose figure is in the sentence as well is no rival: 80 euros instead of 95.
            alike = [there for other, there in zip(mine.figures, has, strict=True) if other.family == figure.family]
            rivals = [
                clause
                for clause, *any_of in zip(theirs, *alike, strict=True)
                if not any(any_of) and any(other.family == figure.family for other in clause.figures)
            ]
            other_days = all(home.days and not home.days & mine.days for home in homes)
            # If a home has another figure of the sentence, the two belong together on the page as well.
            others = [other for other in said.figures if other is not figure and not other.vague]
            if any(_has(home, other) for home in homes for other in others if other.kind == "number"):
                rivals = []
            least = SHARED if figure.said == FREE else 1
            if (words and _nearer(mine, rivals, homes, least)) or (figure.kind == "time" and mine.days and other_days):
                return Doubt("belongs", said.text[figure.start : figure.end])
    return None


def _has(clause: Clause, figure: Figure) -> bool:
    return any(other.bears(figure) for other in clause.figures)


def _in_words(figure: Figure) -> bool:
    return figure.kind == "time" and figure.spelled


def _same_family(clause: Clause, figure: Figure) -> bool:
    return any(other.family == figure.family and other.bears(figure) for other in clause.figures)


def _nearer(mine: Clause, rivals: Iterable[Clause], homes: Iterable[Clause], least: int) -> bool:
    """Whether a clause shares words with a rival that no home has, and hardly any the other way round."""
    # A figure without words of its own has the subject of the figure before it: at 15:30 and 16:30.
    if not all(home.subject for home in homes):
        return False
    at_home = {mine.subject & home.subject for home in homes}
    return any(
        len(there) >= least
        and all(there - here and (here <= there or len(there - here) >= len(here - there) + NEARER) for here in at_home)
        for there in {mine.subject & rival.subject for rival in rivals}
    )


def _open_when_closed(said: Sentence, passages: Sequence[Passage], langs: Sequence[str]) -> Doubt | None:
    """Whether the sentence says "open" of a day that the passages only name with a negation."""
    for mine in said.clauses:
        if mine.days and not mine.denies and claims.says_open(mine.text, tuple(langs)):
            on_it = [c for p in passages for c in p.clauses if c.days & mine.days]
            if on_it and all(claims.is_closed(clause, tuple(langs)) for clause in on_it):
                return Doubt("negation", mine.text)
    return None


def _opposite(said: Sentence, passages: Sequence[Passage]) -> Doubt | None:
    """Whether all clauses with the same subject are negated and the sentence is not, or the other way round."""
    theirs = [other for passage in passages for s in passage.sentences for other in (*s.clauses, s.whole)]
    for mine in (clause for clause in said.clauses if len(clause.saying) >= SHARED):
        alike = list(_alike(mine, theirs))
        best = max((share for share, _ in alike), default=0.0)
        answers = {other.denies for share, other in alike if share >= best - SAME_ENOUGH}
        if best >= SAME_SAYING and answers == {not mine.denies}:
            return Doubt("negation", mine.text)
    return None


def _alike(mine: Clause, theirs: Iterable[Clause]) -> Iterator[tuple[float, Clause]]:
    for other in theirs:
        shared = len(mine.saying & other.saying)
        # "Not open on Sundays" does not contradict "open on weekdays"; nor does "not in August" contradict "in May".
        same_days = not mine.days or bool(mine.days & other.days)
        same_dates = all(_has(other, figure) for figure in mine.figures if figure.kind == "date")
        if shared >= SHARED and same_days and same_dates:
            yield shared / len(mine.saying), other
