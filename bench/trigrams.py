"""Makes `text/trigrams.txt`, by which text.plausible detects gibberish: `python -m bench.trigrams`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from babel import Locale

from prompts.loader import table
from text.plausible import LETTERS, LISTED, folded, runs_of

LANGUAGES = "en de fr es it pt nl pl ro hu cs tr sv da nb fi hr sk sl et lv lt ca eu sq vi id is ga uk ru bg sr mk be"


def listed() -> str:
    """The content of `trigrams.txt`: a line for each first letter, with the pairs that follow it."""
    counts: Counter[str] = Counter()
    for name in LANGUAGES.split():
        data = Locale.parse(name)
        texts = [*data.territories.values(), *data.languages.values(), *data.currencies.values()]
        texts += [text for part in ("months", "days", "time_zones") for text in _texts(data._data[part])]
        words = {word for text in texts for word in LETTERS.findall(folded(text)) if len(word) > 2}
        counts.update(run for word in words for run in set(runs_of(word)))
    counts.update(
        {
            run: 2
            for said in table("stopwords").values()
            for word in LETTERS.findall(folded(said))
            for run in runs_of(word)
        }
    )
    kept: dict[str, list[str]] = {}
    for run in sorted(run for run, count in counts.items() if count > 1):
        kept.setdefault(run[0], []).append(run[1:])
    return "".join(f"{first}{''.join(pairs)}\n" for first, pairs in kept.items())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
    elif hasattr(value, "values"):
        for each in value.values():
            yield from _texts(each)


if __name__ == "__main__":
    LISTED.write_text(listed(), encoding="utf-8")
