"""Labels from what a CMS sorts its pages by, such as categories and tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from itertools import islice
from typing import Any

from schemas.labels import MAX_LABELS, Labels, parse_labels

LOOKED_AT = 10 * MAX_LABELS  # values of a page


def label_values(value: Any) -> list[Any]:
    """One value or a list of them; numbers and dates as text."""
    found = value if isinstance(value, list | tuple) else [value]
    return [str(each) if isinstance(each, int | float | date) else each for each in found]


def fitting_labels(given: Mapping[str, Iterable[Any]]) -> Labels:
    """The labels among them. A category is written for other purposes, so one that is no label keeps no page out."""
    pairs = ((key, value) for key, values in given.items() for value in values if isinstance(value, str))
    found: dict[str, list[str]] = {}
    count = 0
    for key, value in islice(pairs, LOOKED_AT):
        try:
            ((own, values),) = parse_labels([f"{key}:{value}"]).items()
        except ValueError:  # also where nothing is left of it
            continue
        if values[0] not in found.setdefault(own, []) and count < MAX_LABELS:
            found[own].append(values[0])
            count += 1
    return {key: tuple(values) for key, values in found.items() if values}
