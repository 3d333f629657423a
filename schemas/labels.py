"""Labels of pages: any keys with values that a CMS has for them, such as `kind: [form]`, to filter searches by."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter, ValidationError, WithJsonSchema

from schemas.base import form, message

NO_LABELS: Mapping[str, tuple[str, ...]] = {}
MAX_LABELS = 200  # of a page, or of a filter: values of all keys together
MAX_KEY = 64  # characters
MAX_VALUE = 200  # characters
LOOKED_AT = 10 * MAX_LABELS  # values of a page

LabelKey = Annotated[
    str,
    form(rf"^[\w.-]{{1,{MAX_KEY}}}$", f"1 to {MAX_KEY} letters, digits, `_`, `-` and `.`"),
    WithJsonSchema({"type": "string"}),  # else `patternProperties`, which not every assistant's client understands
]
LabelValue = Annotated[str, form(r"^[^\x00-\x1f\x7f]+$", "one line", max_length=MAX_VALUE)]


def _key(written: str) -> str:
    return "-".join(unicodedata.normalize("NFC", written).lower().split())


def _value(written: str) -> str:
    return " ".join(unicodedata.normalize("NFC", written).split())


def _normalised(given: Any) -> Any:
    """A string stands for a list of one; repeated values and keys without a value are left out.

    Raises: ValueError: there are too many values, before any of them is looked at.
    """
    if not isinstance(given, Mapping):
        return given
    count = len(given)
    if count <= MAX_LABELS:  # a million keys are not worth a second of everybody's time
        listed = {key: values if isinstance(values, list | tuple) else [values] for key, values in given.items()}
        count = max(count, sum(map(len, listed.values())))
    if count > MAX_LABELS:
        raise ValueError(f"{count:,} labels; at most {MAX_LABELS} are kept, the values of all keys together")
    if not all(isinstance(each, str) for key, values in listed.items() for each in (key, *values)):
        return listed
    found: dict[str, dict[str, None]] = {}
    for key, values in listed.items():
        if kept := dict.fromkeys(filter(None, map(_value, values))):
            found.setdefault(_key(key), {}).update(kept)
    return {key: tuple(values) for key, values in found.items()}


def _filtering(given: Any) -> Any:
    """Raises: ValueError: a key without a value, which would filter nothing."""
    found = _normalised(given)
    if isinstance(found, Mapping) and isinstance(given, Mapping):
        kept = set(found)
        if lacking := next((key for key in given if isinstance(key, str) and _key(key) not in kept), None):
            raise ValueError(f"{lacking} has no value")
    return found


Labels = Annotated[dict[LabelKey, tuple[LabelValue, ...]], BeforeValidator(_normalised)]
LabelFilter = Annotated[dict[LabelKey, tuple[LabelValue, ...]], BeforeValidator(_filtering)]
_LABELS: TypeAdapter[Labels] = TypeAdapter(Labels)


def label_tokens(labels: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """As the index has them: `kind:form`."""
    return tuple(f"{key}:{value}" for key, values in labels.items() for value in values)


def labels_of(tokens: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Undo `label_tokens`: a key has no colon."""
    found: dict[str, list[str]] = {}
    for token in tokens:
        key, _, value = token.partition(":")
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def parse_labels(written: Iterable[str]) -> Labels:
    """Labels from `KEY:VALUE`, as options and addresses have them. Raises: ValueError."""
    tokens = list(written)
    if any(not all(map(str.strip, token.partition(":"))) for token in tokens):  # a blank value would filter nothing
        raise ValueError("a label is written KEY:VALUE, for example kind:form")
    try:
        return _LABELS.validate_python(labels_of(tokens))
    except ValidationError as err:
        error = err.errors(include_input=False, include_url=False)[0]
        raise ValueError(message(error)) from None


def fitting_labels(given: Mapping[str, Iterable[Any]]) -> Labels:
    """The labels among them. What a CMS or a page has for other purposes keeps no page out."""
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


def have_labels(tokens: Collection[str], wanted: Mapping[str, Iterable[str]]) -> bool:
    """Whether a page with these labels is among the wanted ones: of each key it has one of the values."""
    return all(any(f"{key}:{value}" in tokens for value in values) for key, values in wanted.items())
