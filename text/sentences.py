"""Splits text into sentences, to quote or cite them, and to cut sources at their ends.

A Markdown block that is no prose is one unit, and blocks are never joined (text.markdown).

Thai and Lao have no mark for the end of a sentence, and spaces between sentences and clauses. So a long enough piece
between spaces counts as a sentence. ICU does not help: for it a Thai paragraph is one sentence, and "z. B." is two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from text.abbreviations import ABBREVIATIONS, BEFORE_NUMBER, HOURS, LAST, STREETS, UNITS, days, months
from text.folding import fold
from text.markdown import LABEL, Block, blocks, trimmed

# Least characters of a Thai or Lao piece. Then XQuAD's paragraphs have 6.7 pieces of 100 characters (English: 4.9
# sentences of 144), and .97 of its answers are in one piece; with 60 it is .96, with 40 .95.
SPACED = 80
LONG_ITEM = 300  # characters; a longer list item is split into sentences

Sentence = Block  # or a part of a block, of the same kind

# Languages with a full stop after ordinal numbers, where "3. Oktober" is no sentence end.
_ORDINAL_DOT = re.compile(r"bs|cs|da|de|et|fi|hr|hu|is|lv|mk|nb|nn|no|pl|sk|sl|sr|tr")
# A full stop, closing marks, and white space. The full stops of East Asia, Burma and Cambodia need no white space.
_STOP = re.compile(
    # Only matches at the first of several marks, since every later start would read the rest again.
    r"(?<![.!?…؟۔।॥།։።])(?:(?P<dot>\.)|[.!?…؟۔।॥།։።]++)[\"'”’“»)\]*_]*+(?=\s)"
    r"|[。！？｡．။។៕]+[」』”’）*_]*"
    r"|(?<=[\u0e00-\u0eff])(?P<space>\s++)(?=[\u0e00-\u0eff])"
)
# Links, ends of links, and URLs in angle brackets: they contain no sentence ends. A bare URL ends at the stops of
# East Asia.
_ADDRESS = re.compile(rf"(?:\[{LABEL})?\]\((?:[^()\s]|\([^()\s]*\))*+\)|<https?://[^\s<>]*>")
_END = re.compile(r"[.!?…؟۔।॥།։።。！？｡．။។៕][\"'”’“»」』）)\]*_]*$")
_WORD = re.compile(r"\w+")
_MONTH_NUMBER = re.compile(r"\s*(?:1[0-2]|0?[1-9])\.\s*[12]\d{3}\b")
_DAY_NUMBER = re.compile(r"(?<!\d)\d\d?\.\s*\Z")
_YEAR = re.compile(r"\s*[12]\d{3}\b")
_PART = re.compile(r"[.‐‑–—/-]")
_THAI = re.compile(r"[\u0e00-\u0eff]$")
_VOWEL = re.compile("[aeiouyаеёиоуыэюяіїє]")
LONGEST_CONSONANTS = 5
_LAST_WORD = re.compile(
    r"(?:[^\s(\[\"'“„«»*_/-]|(?<=[א-ת])\"(?=[א-ת]))*$"
)  # a quotation mark may be within a word: ש"ח
_AND_SO_ON = re.compile(r"(?:^|\s)т\.\s*$")  # "и т. д."
AHEAD = 300  # characters read after a limit, so that sentences there end as in the whole text
NEXT = 24  # characters read after a full stop
LONGEST_LAST = 40  # characters read of the word before a full stop; abbreviations are shorter


def split(text: str, lang: str = "") -> list[Sentence]:
    """The sentences and other Markdown blocks of `text`, in order, without rules, table separators and fences."""
    found: list[Sentence] = []
    for block in blocks(text):
        if block.kind == "prose" or (block.kind == "item" and block.end - block.start > LONG_ITEM):
            sentences = _prose(text, block.start, block.end, lang)
            found.extend(Sentence(*sentence, block.kind, block.header) for sentence in sentences)
        else:
            found.append(block)
    return found


def cut(text: str, limit: int, lang: str = "") -> str:
    """The longest prefix of `text` of at most `limit` characters that ends with a sentence.

    Ends with a word if no sentence fits, and is empty if no word fits.
    """
    if len(text) <= limit or limit <= 0:
        return text[: max(limit, 0)]
    end = 0
    for sentence in split(text[: limit + AHEAD], lang):
        if sentence.end > limit:
            break
        end = sentence.end
    if end == 0:
        end = limit if text[limit].isspace() else max(text.rfind(mark, 0, limit) for mark in " \n\t")
    return text[: max(end, 0)].rstrip()


def last_start(text: str) -> int:
    """Where the last sentence of `text` starts; the length of `text` if it is blank."""
    sentences = split(text)
    return sentences[-1].start if sentences else len(text)


def ended(text: str) -> bool:
    """Whether the text ends with a complete sentence; otherwise it may introduce the next block."""
    return _END.search(text) is not None


def _prose(text: str, start: int, end: int, lang: str) -> Iterator[tuple[int, int]]:
    begin = start
    addresses = [found.span() for found in _ADDRESS.finditer(text, start, end)]
    for stop in _STOP.finditer(text, start, end):
        while addresses and addresses[0][1] <= stop.start():
            del addresses[0]
        if addresses and addresses[0][0] < stop.start():
            continue
        if stop.end() < end and _ends_sentence(text, begin, stop, lang):
            yield trimmed(text, begin, stop.end())
            begin = stop.end()
    if text[begin:end].strip():
        yield trimmed(text, begin, end)


def _ends_sentence(text: str, begin: int, stop: re.Match[str], lang: str) -> bool:
    if stop["space"] is not None:
        return stop.start() - begin >= SPACED
    follows = text[stop.end() : stop.end() + 8].lstrip(" -–—\n\t")[:1]  # "Pn. – pt."
    if follows.islower():
        return False
    if stop["dot"] is None:
        return True
    word = _LAST_WORD.search(text, max(begin, stop.start() - LONGEST_LAST), stop.start())
    last = word.group() if word else ""
    if last.endswith("\\"):
        return False  # "3\. Oktober": the escaped number only begins no list
    at = stop.start() - len(last)
    before, behind = text[max(begin, at - LONGEST_LAST) : at], text[stop.end() : stop.end() + NEXT]
    if _THAI.search(last) or (behind.lstrip()[:1].isdigit() and _has_no_vowel(last)):
        return False  # no Thai sentence ends with a full stop
    if last.isdigit():
        return not (_ORDINAL_DOT.fullmatch(lang.partition("-")[0]) and _counts(last, before, behind, lang))
    return not _is_abbreviation(last.casefold(), before, behind, lang)


def _has_no_vowel(word: str) -> bool:
    """Whether a word must be short for another one: "kv", "Bd"; not "DRK"."""
    return 2 <= len(word) <= LONGEST_CONSONANTS and word[1:].islower() and _VOWEL.search(fold(word)) is None


def _counts(last: str, before: str, behind: str, lang: str) -> bool:
    """Whether a number with a full stop is ordinal, and not of a room, a house, or the end of a range."""
    if len(last) > 2:
        return False
    if _MONTH_NUMBER.match(behind) or (_YEAR.match(behind) and _DAY_NUMBER.search(before)):
        return True  # "1. 5. 2026"
    following = next(iter(_WORD.findall(behind)), "").casefold()
    if any(following[:3] == month[:3] for month in months(lang)):
        return True
    *first, word = before.split() or [""]
    if word.endswith("."):  # a street or room ("Zi. 12.")
        return not (len(word) == 2 or _numbers(word[:-1].casefold(), lang))
    named = bool(first) and word[:1].isupper() and word.isalpha()  # "Linie 5."
    return not (named or before.endswith(("-", "–", ":")) or word.isdigit())


def _numbers(letters: str, lang: str) -> bool:
    return any(
        letters in some for some in (ABBREVIATIONS, BEFORE_NUMBER, days(lang), months(lang))
    ) or letters.endswith(STREETS)


def _is_abbreviation(last: str, before: str, behind: str, lang: str) -> bool:
    """Whether the full stop after `last` belongs to an abbreviation.

    Args:
        last: the word in lower case.
        before: the sentence before it, or the end of a long one.
        behind: the beginning of the following text.
    """
    following = next(iter(_WORD.findall(behind)), "").casefold()
    begins_anew = behind.lstrip()[:1].isupper()
    if last in HOURS:
        return not begins_anew or following[:3] in days(lang)
    letters = _PART.split(last)[-1]  # of "h.–p", the last day
    if letters in LAST or (letters in ("д", "п") and _AND_SO_ON.search(before)):
        return not begins_anew
    if letters in UNITS and begins_anew and before.rstrip()[-1:].isdigit():
        return False
    if (len(letters) == 1 and letters.isalpha()) or letters in ABBREVIATIONS or last in ABBREVIATIONS:
        return True
    if letters in days(lang) and (not before.strip() or following in days(lang) | ABBREVIATIONS):
        return True
    if letters == "fr" and before.rstrip()[-1:] == ".":  # "Inh. Fr. Meier"
        return before.split()[-1].rstrip(".").casefold() in ABBREVIATIONS
    return behind.lstrip()[:1].isdigit() and _numbers(letters, lang)
