"""Replies: the text for a question without an answer, and narrower questions to ask instead. Nothing is made up.

    grade 2..5 ─▶ a sentence in the visitor's language ─▶ the nearest pages ─▶ the site's contact
    courtesy ──▶ a sentence in the visitor's language
    grade 1 (an answer from many pages), grade 3 (several subjects), a question of a word or two
        ─▶ pages nearly as near as the nearest ─▶ their titles; headings, if a title says no more than the question

The answer's model is not called; the translator may be, for languages in which we have no sentence. Strategies that
search themselves ignore the grade, and end here if they find nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pipelines.query.extractive.confidence import ABOUT, in_another_language
from prompts.phrases import Phrases
from schemas.answer import QuestionMeaning
from schemas.query import MAX_QUESTION, Grade, Retrieved, Source
from text.language import stopwords
from text.likeness import Likeness
from text.markdown import plain
from text.words import count_words, stems, words

CANDIDATES = 3  # pages
TELLING, SAME = 6, 0.85  # letters of a word to compare with a page's text, and the likeness that it needs
UNCLEAR: Grade = 2
NOTHING = "nothing-found"
NAMES = {UNCLEAR: "unclear", 3: "several", 4: "not-answered", 5: NOTHING}

_SPECIAL = re.compile(r"([\\\[\]`*_<>])")
TOPICS = 4
FEWEST = 2  # topics of a choice
NEAR = 0.6  # share of the best source's score that a page needs to count as near
SHORT = 2  # words of a question that only names a subject
HEADINGS = 3  # headings of one page
LONGEST = 80  # characters of a topic
CERTAIN = 0.6  # chance of the best unit from which the visitor gets no further suggestions
FINE: Grade = 0
BROAD: frozenset[Grade] = frozenset({1, 3})

_JOINTS = (" | ", " – ", " — ", " - ", " · ", " • ", " :: ")


def refused(grade: Grade) -> bool:
    """Whether the grade means that there is no answer."""
    return grade in NAMES


def reply(retrieved: Retrieved, phrases: Phrases, contact: str = "") -> str:
    """Markdown: the reason, a note during an import, and links to the nearest pages.

    For grades that are not `refused`, the reason is that nothing was found.

    Args:
        contact: the site's own text with its contact.
    """
    lang = retrieved.request.lang
    pages = [f"- [{title}](<{url}>)" for title, url in candidates(_named(retrieved)) if refused(retrieved.grade)]
    # Who says that there are pages on the subject names some.
    name = NAMES.get(retrieved.grade, NOTHING) if pages or retrieved.grade == UNCLEAR else NOTHING
    said = phrases.say(name, lang)
    nearest = "\n".join([phrases.say("see-pages", lang), "", *pages]) if pages else ""
    later = phrases.say("importing", lang) if retrieved.request.importing else ""
    return "\n\n".join(part for part in (said, later, nearest, contact) if part)


def _named(retrieved: Retrieved) -> list[Source]:
    """The sources that may be about the question.

    They share a word or a stem of their title with it, or a longer word of what was found; or they are in another
    language, and the chance is there that the best page answers.
    """
    sure = retrieved.sure
    likely, known = sure is not None and (sure.page or 0.0) >= ABOUT, sure.signals.get("known", 1.0) if sure else 1.0
    empty = frozenset[str]().union(*stopwords().values())
    asked = [word for word in words(f"{retrieved.request.question} {retrieved.question}") if word not in empty]
    telling = [word for word in asked if len(word) >= TELLING]

    def shares(source: Source) -> bool:
        if likely and in_another_language(retrieved.question, source.lang, known):
            return True
        title, text = Likeness(words(source.title)), Likeness(words(source.text))
        if any(map(title.of, asked)) or any(max(text.of(w).values(), default=0) >= SAME for w in telling):
            return True
        # "Bus" is too short to be looked for inside other words, and a part of "Stadtbus".
        return not set(stems(source.title, source.lang)).isdisjoint(stems(" ".join(asked), source.lang))

    return [source for source in retrieved.sources if shares(source)]


def candidates(sources: Iterable[Source]) -> list[tuple[str, str]]:
    """(title as Markdown, address) of the nearest pages, each once."""
    pages = {source.url: " ".join(source.title.split()) or source.url for source in sources if _linkable(source.url)}
    return [(_SPECIAL.sub(r"\\\1", title), url) for url, title in pages.items()][:CANDIDATES]


def _linkable(url: str) -> bool:
    return url.startswith(("https://", "http://", "/")) and not re.search(r"[<>\s]", url)


def narrower(retrieved: Retrieved) -> tuple[QuestionMeaning, ...]:
    """Narrower questions, the nearest first; empty if the question is narrow, or if there is only one."""
    request = retrieved.request
    # The rewritten question is in the site's language; the first question of a conversation needs no rewriting.
    question = retrieved.question if request.history else request.question
    short = count_words(question) <= SHORT or _names_one_thing(question)
    sure = retrieved.sure
    if not short and sure is not None and sure.of == "unit" and (sure.unit or 0.0) >= CERTAIN:
        return ()
    if retrieved.courtesy is not None or not (retrieved.grade in BROAD or (short and retrieved.grade == FINE)):
        return ()
    named: dict[tuple[str, ...], str] = {}
    said = set(stems(question))
    for label in _labels(retrieved, question):
        if len(label) <= LONGEST and (key := tuple(words(label))) and not set(stems(label)) <= said:
            named.setdefault(key, label)
    topics = [QuestionMeaning(label=label, question=_asking(question, label, short)) for label in named.values()]
    return tuple(topics[:TOPICS]) if len(topics) >= FEWEST else ()


def _names_one_thing(question: str) -> bool:
    """Whether a question names so little that it fits many subjects: "how do I register"."""
    empty = frozenset[str]().union(*stopwords().values())
    return len(question) <= LONGEST and sum(word not in empty for word in set(words(question))) <= 1


def _labels(retrieved: Retrieved, question: str) -> Iterator[str]:
    near = _near(retrieved.sources)
    titles = bare([" ".join(source.title.split()) for source in near])
    said = set(stems(question))
    for source, title in zip(near, titles, strict=True):
        if len(near) > 1 and (len(title) > LONGEST or not set(stems(title)) <= said):
            yield title
            continue
        numbers = {one.n for one in retrieved.sources if one.page_id == source.page_id}
        headings = (unit.headings[-1] for unit in retrieved.evidence if unit.n in numbers and unit.headings)
        yield from list(dict.fromkeys(plain(heading) for heading in headings))[:HEADINGS]


def _near(sources: Iterable[Source]) -> list[Source]:
    """The best source of each page that is nearly as near as the nearest page."""
    best: dict[str, Source] = {}
    for source in sources:
        if source.page_id not in best or source.score > best[source.page_id].score:
            best[source.page_id] = source
    least = NEAR * max((source.score for source in best.values()), default=0.0)
    return [source for source in best.values() if source.score >= least]


def bare(titles: Sequence[str]) -> list[str]:
    """The titles without the site's name, if all of them end with it."""
    first = titles[0] if titles else ""
    tails = sorted(
        (first[i:] for joint in _JOINTS for i in range(1, len(first)) if first.startswith(joint, i)), key=len
    )
    for tail in reversed(tails):
        if len(set(titles)) > 1 and all(len(title) > len(tail) and title.endswith(tail) for title in titles):
            return [title.removesuffix(tail) for title in titles]
    return list(titles)


def _asking(question: str, label: str, short: bool) -> str:
    if short and set(stems(question)) <= set(stems(label)):
        return label
    return f"{question[: MAX_QUESTION - LONGEST - 3]} – {label}"
