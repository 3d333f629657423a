"""What is measured of an answer: every figure is between 0 and 1, more is better, and only what the case allows.

A case that names no page says nothing of rankings, one without a reference answer nothing of wording. What failed, or
was refused, stays in every figure of its case as what a visitor got: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import fsum, log2

from pipelines.evaluate.dataset import Case, Frozen
from pipelines.evaluate.wording import covers, exact, says, token_f1
from schemas.query import Source
from text.language import identified, spoken
from text.markdown import plain


def hit(found: Sequence[str], right: Collection[str], depth: int) -> float:
    """hit@depth, also called success: whether any right page is among the first."""
    return float(any(page in right for page in found[:depth]))


def reciprocal_rank(found: Sequence[str], right: Collection[str], depth: int) -> float:
    """1 / place of the first right page; 0 below `depth`. The mean over questions is MRR (Voorhees, 1999)."""
    return next((1 / place for place, page in enumerate(found[:depth], 1) if page in right), 0.0)


def recall(found: Sequence[str], right: Collection[str], depth: int) -> float:
    """Share of the right pages that are among the first."""
    return len(set(found[:depth]) & set(right)) / len(set(right))


def ndcg(found: Sequence[str], right: Collection[str], depth: int) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002), with gain 1 and discount log2(place + 1):
    1 when all right pages stand before all others."""
    gained = fsum(1 / log2(place + 1) for place, page in enumerate(found[:depth], 1) if page in right)
    return gained / fsum(1 / log2(place + 1) for place in range(1, min(len(set(right)), depth) + 1))


DEPTH = 10  # pages of a ranking
BUDGETS = (2_000, 4_000)  # characters of context; `python -m bench quality` has the same


class AnswerPassage(Frozen):
    """A source of an answer with its text, or what a search found: whose it is."""

    page: str
    lang: str
    text: str = ""
    cited: bool = False


def passages_of(sources: tuple[Source, ...]) -> tuple[AnswerPassage, ...]:
    """The sources with their whole texts, as the answer's writer read them: for a judge."""
    return tuple(AnswerPassage(page=each.page_id, lang=each.lang, text=each.text, cited=each.cited) for each in sources)


class Observed(Frozen):
    """What came of asking a case: all that is measured follows from it and the case."""

    case: str
    at: datetime
    answer: str = ""
    grade: int | None = None  # None: it failed before
    found: tuple[AnswerPassage, ...] = ()  # by the search alone, best first
    sources: tuple[AnswerPassage, ...] = ()  # of the answer, in their order
    from_memory: bool = False  # a model wrote it without any source
    ms: float  # from the question to the whole answer
    timings_ms: Mapping[str, float] = {}
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0  # of a model, where the answer lists its steps
    failed: str | None = None  # the code

    @property
    def cited(self) -> tuple[str, ...]:
        """Pages that the answer cites, each once."""
        return tuple(dict.fromkeys(source.page for source in self.sources if source.cited))

    @property
    def refused(self) -> bool:
        """Whether no page was cited, as visitors take it; nothing can be cited where a model answers from memory."""
        return not self.cited and not self.from_memory


@dataclass(frozen=True)
class CaseMeasure:
    """A figure of a case. `of` gives None where the case or the answer does not allow it."""

    name: str
    about: str
    of: Callable[[Case, Observed], float | None]


def measured(case: Case, observed: Observed) -> dict[str, float]:
    """All figures that the case allows, by name."""
    figures = {measure.name: measure.of(case, observed) for measure in MEASURES}
    return {name: figure for name, figure in figures.items() if figure is not None}


def _ranking(figure: Callable[[Sequence[str], Sequence[str], int], float], depth: int) -> Callable[..., float | None]:
    def of(case: Case, observed: Observed) -> float | None:
        return figure(_pages(case, observed.found), case.pages, depth) if case.pages else None

    return of


def _pages(case: Case, passages: Sequence[AnswerPassage]) -> list[str]:
    """Pages in the order of their best passage. A right page in another language than the case's counts as another."""
    wanted = case.page_lang
    names = (
        each.page if wanted in (None, each.lang) or each.page not in case.pages else f"{each.page}\0{each.lang}"
        for each in passages
    )
    return list(dict.fromkeys(names))


def _first_source(case: Case, observed: Observed) -> float | None:
    return hit(_pages(case, observed.sources), case.pages, 1) if case.pages else None


def _in_context(budget: int) -> Callable[[Case, Observed], float | None]:
    def of(case: Case, observed: Observed) -> float | None:
        if not case.answers:
            return None
        texts, left = [], budget
        for source in observed.sources:
            texts.append(plain(source.text[:left]))
            left -= min(left, len(source.text))
        return float(any(plain(answer) in text for answer in case.answers for text in texts))

    return of


def _wording(figure: Callable[[str, str, str | None], float]) -> Callable[[Case, Observed], float | None]:
    """Of the reference answer that fits best. A refusal says nothing."""

    def of(case: Case, observed: Observed) -> float | None:
        if not case.answers:
            return None
        said = "" if observed.refused else plain(observed.answer)
        return max(figure(said, plain(answer), case.lang) for answer in case.answers)

    return of


def _facts(case: Case, observed: Observed) -> float | None:
    if not case.facts:
        return None
    return 0.0 if observed.refused else sum(says(observed.answer, fact) for fact in case.facts) / len(case.facts)


def _right(case: Case, observed: Observed) -> float | None:
    """An answer: cites a page and says all facts; where there are none covers a reference answer; where there are none
    either cites a right page. A refusal: cites none. A courtesy: searched nothing. None says what must not be said."""
    if observed.failed:
        return 0.0 if case.expect else None
    clean = not says(observed.answer, case.never)
    match case.expect:
        case None:
            return None
        case "refuse":
            return float(clean and observed.refused)
        case "courtesy":
            return float(clean and observed.grade == 0 and not observed.sources)
    figures = (_facts(case, observed), _wording(covers)(case, observed), _citation_hit(case, observed))
    figure = next((figure for figure in figures if figure is not None), None)
    return None if figure is None else float(clean and not observed.refused and figure == 1)


def _citation_hit(case: Case, observed: Observed) -> float | None:
    return float(bool(set(observed.cited) & set(case.pages))) if case.pages else None


def _citation_precision(case: Case, observed: Observed) -> float | None:
    if not case.pages or not observed.cited:
        return None
    return len(set(observed.cited) & set(case.pages)) / len(observed.cited)


def _citation_recall(case: Case, observed: Observed) -> float | None:
    return len(set(observed.cited) & set(case.pages)) / len(set(case.pages)) if case.pages else None


def _refusal(case: Case, observed: Observed) -> float | None:
    if case.expect not in ("answer", "refuse"):
        return None
    return 0.0 if observed.failed else float(observed.refused == (case.expect == "refuse"))


def _language(case: Case, observed: Observed) -> float | None:
    """By stop words, or letters; not measured where neither tells it."""
    if case.lang is None or observed.failed:
        return None
    said = plain(observed.answer)
    heard = spoken(said) or {told for told in (identified(said),) if told}
    return float(case.lang.partition("-")[0] in heard) if heard else None


MEASURES = (
    *(CaseMeasure(f"hit@{k}", f"a right page is among the first {k}", _ranking(hit, k)) for k in (1, 5, DEPTH)),
    CaseMeasure(f"MRR@{DEPTH}", "1 / place of the first right page", _ranking(reciprocal_rank, DEPTH)),
    CaseMeasure(f"nDCG@{DEPTH}", "right pages, the more the higher they stand", _ranking(ndcg, DEPTH)),
    CaseMeasure(f"recall@{DEPTH}", f"share of the right pages among the first {DEPTH}", _ranking(recall, DEPTH)),
    CaseMeasure("first source", "the answer's first source is a right page", _first_source),
    *(
        CaseMeasure(
            f"answer in {k}", f"a reference answer stands in the first {k:,} characters of sources", _in_context(k)
        )
        for k in BUDGETS
    ),
    CaseMeasure("EM", "the answer is a reference answer", _wording(exact)),
    CaseMeasure("cover-EM", "a reference answer stands in the answer", _wording(covers)),
    CaseMeasure("F1", "words that answer and reference answer share", _wording(token_f1)),
    CaseMeasure("facts", "share of what must be said", _facts),
    CaseMeasure("right", "all that must be said and nothing that must not; or rightly nothing", _right),
    CaseMeasure("citation precision", "share of cited pages that are right", _citation_precision),
    CaseMeasure("citation recall", "share of right pages that are cited", _citation_recall),
    CaseMeasure("refusal", "answered if it can be answered, and only then", _refusal),
    CaseMeasure("language", "the answer is in the question's language", _language),
)
