"""Strings that must be in what is read of a page, and strings that must not, as trafilatura's tests list them.

tests/evaldata.json ─▶ its pages (tests/eval, tests/cache) as a website's pages are read ─▶ which strings arrive

Rules are made on the tuned half of the pages; the other one is looked at once, after the last change.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from connectors.cms.sitemap.page import read_page
from text.html import read
from text.markdown import plain

COLUMNS = ("half", "pages", "must be there", "of", "must not and do", "of", "share")
LIST = "evaldata.json"
FOLDERS = ("eval", "cache")


def lines(folder: Path, halves: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    """In the order of `COLUMNS`."""
    counts: dict[str, Counter[str]] = {half: Counter() for half in halves}
    for url, page in json.loads((folder / LIST).read_text("utf-8")).items():
        half = half_of(page["file"])
        source = next(filter(Path.exists, (folder / each / page["file"] for each in FOLDERS)), None)
        if half not in counts or source is None:
            continue
        said = _spaced(plain(read(read_page(source.read_bytes(), url).content).markdown))
        counts[half]["pages"] += 1
        for kind in ("with", "without"):
            counts[half][f"all {kind}"] += len(page[kind])
            counts[half][kind] += sum(_spaced(string) in said for string in page[kind])
    for half, of in counts.items():
        share = of["without"] / max(of["all without"], 1)
        yield half, of["pages"], of["with"], of["all with"], of["without"], of["all without"], share


def half_of(file: str) -> str:
    return "held out" if sha256(file.encode()).digest()[-1] % 2 else "tuned"


def _spaced(text: str) -> str:
    return " ".join(text.split())
