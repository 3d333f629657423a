"""Masking: how much of what identifies a person is found, and how much of what is masked does.

bench/masking.yaml ─▶ text.masking, as the question log uses it ─▶ per kind and language: recall, precision

The set is split by a seed into a part to tune on and a hold-out, of which only sums are shown.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
import yaml

from bench.report import interval, report
from text.masking import Kind, Personal, personal, published, regions_of

CASES = Path(__file__).with_name("masking.yaml")
HOLD_OUT = 0.5
SEED = 20_261_123  # of the split
KINDS = ("e-mail", "phone", "iban", "card")
MARK = re.compile(r"\{\{(?P<kind>[a-z-]+)\|(?P<text>[^}]*)\}\}")

Part = Literal["tune", "hold-out", "all"]


@dataclass(frozen=True)
class Case:
    """A text, and what in it must be masked: kind, start, end."""

    lang: str
    text: str
    marked: tuple[Personal, ...]
    regions: tuple[str, ...]
    known: frozenset[str]


@dataclass(frozen=True)
class Judged:
    """Of one case: what was to be found and whether it was, what was masked and whether rightly."""

    case: Case
    recalled: tuple[tuple[str, bool], ...]
    precise: tuple[tuple[str, bool], ...]


def cases(file: Path = CASES) -> list[Case]:
    """All of them, in the order of the file."""
    return list(_read(yaml.safe_load(file.read_text(encoding="utf-8"))))


def _read(sites: dict[str, dict[str, str]]) -> Iterator[Case]:
    for lang, site in sites.items():
        regions = regions_of(site["timezone"], (lang,))
        known = published([site["contact"]], regions)
        for line in site["cases"].splitlines():
            text, marked = "", []
            end = 0
            for mark in MARK.finditer(line):
                text += line[end : mark.start()]
                kind: Kind = mark["kind"]  # type: ignore[assignment]  # the next line looks
                assert kind in KINDS, line
                marked.append(Personal(kind, len(text), len(text) + len(mark["text"])))
                text, end = text + mark["text"], mark.end()
            yield Case(lang, text + line[end:], tuple(marked), regions, known)


def part_of(every: Sequence[Case], part: Part) -> list[Case]:
    """The cases of one part: half of each language's, with and without marks, is held out by the seed."""
    if part == "all":
        return list(every)
    rng, held = random.Random(SEED), set()
    for lang in dict.fromkeys(case.lang for case in every):
        for with_marks in (True, False):
            places = [n for n, case in enumerate(every) if (case.lang, bool(case.marked)) == (lang, with_marks)]
            held.update(rng.sample(places, round(len(places) * HOLD_OUT)))
    return [case for n, case in enumerate(every) if (n in held) == (part == "hold-out")]


def judged(case: Case) -> Judged:
    """Found is what is masked from its first to its last character, by whatever name."""
    found = personal(case.text, case.regions, case.known)
    covered = {n for one in found for n in range(one.start, one.end)}
    return Judged(
        case,
        tuple((one.kind, covered >= set(range(one.start, one.end))) for one in case.marked),
        tuple(
            (one.kind, any(one.start < other.end and other.start < one.end for other in case.marked)) for one in found
        ),
    )


def main(
    part: Annotated[
        Part, typer.Option(help="`tune` to look at, `hold-out` to report (its single cases are not shown), or `all`.")
    ] = "tune",
    show: Annotated[bool, typer.Option("--show", help="Print the cases that were masked wrongly.")] = False,
) -> None:
    """What of visitors' words is masked before it is logged: recall and precision, per kind and language."""
    every = cases()
    results = [judged(case) for case in part_of(every, part)]
    without = [each for each in results if not each.case.marked]
    about = (
        f"{len(results)} of {len(every)} cases ({part}), {len(without)} of them with nothing to mask, "
        f"of which {sum(bool(each.precise) for each in without)} were masked"
    )
    report("masking", about, COLUMNS, _lines(results), part=part, seed=SEED)
    if show and part == "tune":
        for each in results:
            missed = [kind for kind, found in each.recalled if not found]
            wrong = [kind for kind, right in each.precise if not right]
            if missed or wrong:
                print(f"{each.case.lang}  missed {missed} wrong {wrong}  {each.case.text}")


COLUMNS = ("of", "to mask", "recall", "95 %", "masked", "precision", "95 % ")


def _lines(results: Sequence[Judged]) -> list[tuple[object, ...]]:
    lines = [_line("all", [*_flat(results, "recalled")], [*_flat(results, "precise")])]
    for kind in KINDS:
        lines.append(
            _line(
                kind,
                [one for one in _flat(results, "recalled") if one[0] == kind],
                [one for one in _flat(results, "precise") if one[0] == kind],
            )
        )
    for lang in dict.fromkeys(each.case.lang for each in results):
        own = [each for each in results if each.case.lang == lang]
        lines.append(_line(f"in {lang}", [*_flat(own, "recalled")], [*_flat(own, "precise")]))
    return lines


def _flat(results: Sequence[Judged], name: Literal["recalled", "precise"]) -> Iterator[tuple[str, bool]]:
    return (one for each in results for one in getattr(each, name))


def _line(name: str, recalled: Sequence[tuple[str, bool]], precise: Sequence[tuple[str, bool]]) -> tuple[object, ...]:
    return (name, *_share([found for _, found in recalled]), *_share([right for _, right in precise]))


def _share(flags: Sequence[bool]) -> tuple[object, object, object]:
    if not flags:
        return 0, "", ""
    mean, low, high = interval(flags)
    return len(flags), mean, f"{low:.2f}-{high:.2f}"
