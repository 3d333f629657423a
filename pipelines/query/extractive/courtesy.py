"""Courtesy: recognizes greetings, thanks, insults and the like before a search, since they need none.

    "hiii :)"                            ─▶ greeting
    "thx, bye!"                          ─▶ thanks
    "asdkj qwpoe"                        ─▶ gibberish (text.plausible)
    "hi, when is the library open? ty"   ─▶ no courtesy; "when is the library open?" is searched

An utterance is cut into clauses. A clause is a courtesy if phrases of `prompts/courtesies.yaml` cover all its words, so
a question about a page is taken for a courtesy only if it consists of nothing but such phrases.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from prompts.loader import sentences
from schemas.query import CourtesyKind
from text.folding import normalized
from text.language import stopwords
from text.plausible import gibberish

GREETING = 6  # words of a greeting without a comma before the question
LONGEST = 14  # words of an insult; a longer clause tells something
LONGEST_UTTERANCE = 500  # characters; a longer utterance is searched as it is
# "person": the visitor wants to talk to a person. The message has a field of its own for it, which old workers ignore.
Kind = Literal[CourtesyKind, "person"]
# Of several kinds in one utterance the one with the highest weight is answered.
WEIGHTS: Mapping[Kind, int] = {
    "person": 7,
    "insult": 6,
    "conversation": 5,
    "about": 4,
    "thanks": 3,
    "goodbye": 2,
    "greeting": 1,
    "gibberish": 0,
}
# Kinds that are removed before or after a question.
STRIPPED = frozenset[Kind]({"greeting", "thanks", "goodbye", "insult", "about"})

Words = tuple[str, ...]

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_VOWEL_SIGNS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963"
# A letter of a script without spaces, a word of another script, or a picture.
_TOKEN = re.compile(
    rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_][{_VOWEL_SIGNS}]*)+(?:['’ʼ`´](?=[^\W_]))?|[\u2600-\u27bf\U0001f300-\U0001faff]"
)
_BREAK = re.compile(r"[.,;:!?…\n()–—،؛؟。！？，、]|\s-+\s")
_DROPPED = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670'’ʼ`´]")
_ARABIC = str.maketrans("ىةی", "يهي")
_DRAWN_OUT = re.compile(r"(.)\1{2,}")
_DOUBLED = re.compile(r"(.)\1+")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


@dataclass(frozen=True)
class Utterance:
    """An utterance, classified.

    `kind`: None for a question. `question`: the question without the courtesies around it. `lang`: language of the
    courtesy; the visitor's own if the phrase exists in it too.
    """

    kind: Kind | None
    lang: str
    question: str


@dataclass(frozen=True)
class _Language:
    """The phrases of one language, each as its folded words.

    `longest`: word -> number of words in the longest phrase that begins with it, 0 for words that begin none. `rude`:
    first words of `abuse`.
    """

    kinds: Mapping[Words, tuple[Kind, ...]]
    filler: frozenset[Words]
    abuse: frozenset[Words]
    target: frozenset[Words]
    address: tuple[Words, ...]
    longest: Mapping[str, int]
    rude: frozenset[str]

    def says(self, words: Words) -> bool:
        """Whether each word occurs in some phrase."""
        return all(word in self.longest for word in words)


class _Token(NamedTuple):
    word: str  # folded
    start: int
    end: int


@dataclass(frozen=True)
class _Clause:
    tokens: tuple[_Token, ...]
    kind: Kind | None
    langs: frozenset[str]


def recognized(said: str, lang: str, *, conversing: bool = False) -> Utterance:
    """The kind of an utterance, and the question in it.

    Args:
        lang: the visitor's language.
        conversing: whether the conversation has begun: then "ciao" is a goodbye.
    """
    if len(said) > LONGEST_UTTERANCE:
        return Utterance("gibberish" if gibberish(said) else None, lang, said)
    clauses = [_clause(tokens, lang.partition("-")[0], conversing) for tokens in _clauses(said)]
    if not clauses or (len(clauses) == 1 and clauses[0].kind is None and gibberish(said)):
        return Utterance("gibberish", lang, said)
    first = next((i for i, clause in enumerate(clauses) if clause.kind not in STRIPPED), None)
    if first is None or all(clause.kind is not None for clause in clauses):
        kind = max((clause.kind for clause in clauses if clause.kind is not None), key=lambda one: WEIGHTS[one])
        return Utterance(kind, _language(clauses, lang), said)
    last = max(i for i, clause in enumerate(clauses) if clause.kind not in STRIPPED)
    asked = _between(said, clauses, first, last)
    if gibberish(asked):
        return Utterance("gibberish", lang, said)
    return Utterance(None, lang, asked)


def _clauses(said: str) -> list[tuple[_Token, ...]]:
    """The words of each clause; clauses without words are dropped."""
    borders = [0, *(stop.end() for stop in _BREAK.finditer(said)), len(said)]
    found, pictures = [], _pictures()
    for start, end in pairwise(borders):
        tokens: list[_Token] = []
        for match in _TOKEN.finditer(said, start, end):
            word = folded(match.group())
            if not word[:1].isalnum() and word not in pictures:
                continue
            if tokens and said[tokens[-1].end - 1] in "'’ʼ`´":  # "what's" is one word, like "whats"
                tokens[-1] = _Token(tokens[-1].word + word, tokens[-1].start, match.end())
            else:
                tokens.append(_Token(word, match.start(), match.end()))
        if tokens := [token for token in tokens if token.word]:
            found.append(tuple(tokens))
    return found


def folded(word: str) -> str:
    """The word without case, accents and apostrophes, and with drawn-out letters once."""
    plain = _DROPPED.sub("", normalized("NFKD", word.casefold()))
    plain = unicodedata.normalize("NFC", plain).translate(_ARABIC)
    return _DOUBLED.sub(r"\1", plain) if _DRAWN_OUT.search(plain) else plain


def _clause(tokens: tuple[_Token, ...], own: str, conversing: bool) -> _Clause:
    """A clause with its kind: that in the visitor's language (`own`) if it has one there."""
    words = tuple(token.word for token in tokens)
    kinds: dict[str, Kind] = {}
    for lang, phrases in _phrases().items():
        if covered := phrases.says(words) and _covered(words, phrases, phrases.kinds):
            kinds[lang] = max((_one(each, conversing) for each in covered), key=lambda one: WEIGHTS[one])
        elif _insult(words, phrases):
            kinds[lang] = "insult"
    if not kinds:
        return _Clause(tokens, None, frozenset())
    strongest = max(kinds.values(), key=lambda one: WEIGHTS[one])
    return _Clause(tokens, kinds.get(own, strongest), frozenset(kinds))


def _one(kinds: Sequence[Kind], conversing: bool) -> Kind:
    return "goodbye" if conversing and "goodbye" in kinds else kinds[0]


def _covered(
    words: Words, phrases: _Language, kinds: Mapping[Words, tuple[Kind, ...]], *, filled: bool = True
) -> frozenset[tuple[Kind, ...]]:
    """The kinds of the phrases that cover all words; empty if no phrases do.

    Args:
        words: each occurs in some phrase.
        filled: whether filler words may be between phrases.
    """
    # best[i]: the kinds of phrases that cover words[i:], or None
    best: list[frozenset[tuple[Kind, ...]] | None] = [*([None] * len(words)), frozenset()]
    for start in range(len(words) - 1, -1, -1):
        for end in range(min(start + phrases.longest[words[start]], len(words)), start, -1):
            rest, piece = best[end], words[start:end]
            kind = kinds.get(piece)
            if rest is None or (kind is None and not (filled and piece in phrases.filler)):
                continue
            made = rest if kind is None or kind in rest else rest | {kind}
            if best[start] is None or (made and not best[start]):
                best[start] = made
    return best[0] or frozenset()


def _insult(words: Words, phrases: _Language) -> bool:
    """Whether the words insult the chat: after an address, or by nothing but insults and names for the chat."""
    if len(words) > LONGEST or phrases.rude.isdisjoint(words):
        return False
    while len(words) > 1 and words[:1] in phrases.filler and not _begins(words, phrases.address):
        words = words[1:]
    if _begins(words, phrases.address):
        return any(words[i:j] in phrases.abuse for i in range(1, len(words)) for j in range(i + 1, len(words) + 1))
    named: dict[Words, tuple[Kind, ...]] = dict.fromkeys(phrases.target, ("about",))
    named |= dict.fromkeys(phrases.abuse, ("insult",))
    covered = _covered(words, phrases, named) if phrases.says(words) else ()
    return ("insult",) in covered and ("about",) in covered


def _begins(words: Words, openings: Sequence[Words]) -> bool:
    return any(words[: len(opening)] == opening for opening in openings)


@cache
def _empty() -> frozenset[str]:
    """The stop words of all languages."""
    return frozenset(folded(word) for empty in stopwords().values() for word in empty)


def _language(clauses: Sequence[_Clause], lang: str) -> str:
    """The visitor's language if all clauses exist in it, else the language of most clauses."""
    languages = [clause.langs for clause in clauses if clause.langs]
    base = lang.partition("-")[0]
    if all(base in langs for langs in languages):
        return lang
    counts = {one: sum(one in langs for langs in languages) for one in _phrases()}
    return max(counts, key=lambda one: (counts[one], one == base))


def _between(said: str, clauses: Sequence[_Clause], first: int, last: int) -> str:
    """The text from the first to the last clause of the question, without a greeting at its front."""
    start = _greeted(clauses[first])
    if first == 0 and start == clauses[0].tokens[0].start:
        start = 0
    end = clauses[last + 1].tokens[0].start if last + 1 < len(clauses) else len(said)
    return said[start:end].strip()


def _greeted(clause: _Clause) -> int:
    """The offset of the clause behind a greeting at its front.

    A greeting is only removed before two or more words that are not all stop words: not in "good day to you".
    """
    words = tuple(token.word for token in clause.tokens)
    if clause.kind is None:
        for length in range(min(len(words) - 2, GREETING), 0, -1):
            for phrases in _phrases().values():
                said = phrases.says(words[:length])
                covered = _covered(words[:length], phrases, phrases.kinds, filled=False) if said else ()
                rest = words[length:]
                if covered and all("greeting" in kinds for kinds in covered) and not _empty().issuperset(rest):
                    return clause.tokens[length].start
    return clause.tokens[0].start


@cache
def _phrases() -> Mapping[str, _Language]:
    """Language -> its phrases, in the order of the file."""
    found = sentences("courtesies")
    pictures: dict[Words, tuple[Kind, ...]] = {(picture,): (kind,) for picture, kind in _pictures().items()}
    return {lang: _language_of(lang, found, pictures) for lang in found["greeting"]}


def _language_of(
    lang: str, found: Mapping[str, Mapping[str, str]], pictures: Mapping[Words, tuple[Kind, ...]]
) -> _Language:
    wanted = [whom.strip() for whom in found["whom"].get(lang, "").split(",")]

    def listed(name: str) -> list[Words]:
        phrases = found[name].get(lang, "").split(",")
        each = (phrase.replace("*", whom) for phrase in phrases for whom in (wanted if "*" in phrase else ("",)))
        return [words for phrase in each for words in _spellings(phrase, lang)]

    kinds: dict[Words, tuple[Kind, ...]] = dict(pictures)
    for kind in get_args(Kind):
        for words in listed(kind) if kind in found else ():
            kinds[words] = tuple(dict.fromkeys((*kinds.get(words, ()), kind)))
    # Without single letters of scripts without spaces, which are in many words.
    abuse = {words for words in (*listed("insult"), *listed("abuse")) if len("".join(words)) > 1}
    filler, target = frozenset(listed("filler")), frozenset(listed("target"))
    longest: dict[str, int] = {}
    for words in (*kinds, *filler, *abuse, *target):
        for n, word in enumerate(words):
            longest[word] = max(longest.get(word, 0), 0 if n else len(words))
    rude = frozenset(words[0] for words in abuse)
    return _Language(kinds, filler, frozenset(abuse), target, tuple(listed("address")), longest, rude)


def _spellings(phrase: str, lang: str) -> Iterator[Words]:
    """The words of a phrase in each spelling: also without umlauts, and with doubled letters once."""
    umlauts = phrase.translate(_UMLAUTS) if lang == "de" else phrase
    for spelling in dict.fromkeys((phrase, umlauts)):
        for tokens in _clauses(spelling.strip()):
            words = tuple(token.word for token in tokens)
            yield words
            if words != (squeezed := tuple(_DOUBLED.sub(r"\1", word) for word in words)):
                yield squeezed


@cache
def _pictures() -> Mapping[str, Kind]:
    """Emoji -> the kind of courtesy that it is, alone or with words."""
    pairs = (entry.split() for entry in sentences("courtesies")["picture"]["en"].split(","))
    kinds: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
    return {folded(picture): kinds[kind] for picture, kind in pairs}
