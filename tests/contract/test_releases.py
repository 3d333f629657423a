"""Upgrade and rollback, both ways: the code and the messages of each release that is kept, against those of now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from schemas.base import Message, Wire
from schemas.ingest import Chunk
from schemas.topics import TOPICS
from tests.contract.keep_release import keep
from tests.contract.kept_release import KeptRelease, kept_releases
from tests.contract.messages import MESSAGES, STORED

SAMPLES: dict[str, Wire] = {**MESSAGES, **STORED}

# What a release cannot read of what is written now. No release is added here: those after 0.2.0 read what a later minor
# version writes. 864bf9f has the messages of 0.2.0; docs/howto/upgrade.md says how to get on from there.
REFUSED: dict[str, set[str]] = {
    "0.1.0-864bf9f": {
        "save",  # with words that a web page's content leaves out
        "chunks",
        "embeddings",
        "embeddings of a plain page",
        "delete ahead of embeddings",
        "question",
        "first question",
        "rephrased",
        "rephrased courtesy",
        "retrieved",
        "retrieved for a courtesy",
        "event sources",
        "event answer",
        "head",
        "head of what goes ahead",
        "conversation",
        "generation that the gate has judged",
        "example of a rewriting",
        "example of an answer",
    }
}
RELEASES = kept_releases()
each_release = pytest.mark.parametrize("release", RELEASES, ids=str)


def holds(whole: Any, part: Any) -> bool:
    """Whether everything that stands in `part` stands in `whole`, too."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and holds(whole[name], part[name]) for name in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(holds, whole, part))
    return bool(whole == part)


def read(name: str, value: Any) -> Any:
    """By the code of now, and as that passes it on. Raises: ValueError: there is a field that is no longer known."""
    kind = type(SAMPLES[name])
    if issubclass(kind, Message):
        return json.loads(kind.decode(json.dumps(value).encode(), strict=True).encode())
    return kind.model_validate(value).dumped()


@each_release
def test_what_a_release_wrote_is_read_and_goes_on_whole(release: KeptRelease) -> None:
    assert len(release.messages) > 25
    for name, value in release.messages.items():
        assert holds(read(name, value), value), name


@each_release
def test_what_is_written_now_is_read_by_a_release(release: KeptRelease) -> None:
    said = release.asked(SAMPLES)
    refused = {name: one.refused for name, one in said.items() if one.refused}
    assert set(refused) == REFUSED.get(str(release), set()), refused
    for name, one in said.items():
        if name not in refused:
            assert holds(one.read, json.loads(json.dumps(_passed_on(SAMPLES[name])))), name


def test_a_release_is_kept_that_reads_what_is_written_now() -> None:
    assert [str(release) for release in RELEASES if not REFUSED.get(str(release))]


def test_a_commit_can_be_kept_and_speaks_for_itself(tmp_path: Path) -> None:
    release = KeptRelease(keep("HEAD", tmp_path))
    kept = release.file.read_bytes()
    assert len(kept) < 200_000
    assert len(release.messages) > 25
    assert release.asked({"stop": MESSAGES["stop"]})["stop"].read == release.messages["stop"]
    assert keep("HEAD", tmp_path).read_bytes() == kept


def test_every_field_has_a_value_of_its_own_in_some_sample() -> None:
    filled: dict[type[Wire], set[str]] = {}
    for sample in SAMPLES.values():
        for value in _values(sample):
            names = {name for name, field in type(value).model_fields.items() if _is_told(value, name, field)}
            filled.setdefault(type(value), set()).update(names)
    kinds = {
        kind for root in (*(topic.value for topic in TOPICS), *map(type, STORED.values())) for kind in _kinds(root)
    }
    # `v` is the version itself, `token` is not written down, and a value's `type` cannot be another.
    missing = {
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name in set(kind.model_fields) - filled.get(kind, set())
        if name not in ("v", "token", "type")
    }
    assert missing == set()
    assert {kind for kind in kinds if kind not in filled} == set()


def _is_told(value: Wire, name: str, field: Any) -> bool:
    held = getattr(value, name)
    if field.is_required():
        return True
    default = field.get_default(call_default_factory=True)
    return type(held) is not type(default) or bool(held != default)


def _passed_on(sample: Wire) -> dict[str, Any]:
    """What must come back from a reader: all but chunks, which each stage makes anew."""
    body = sample.dumped()
    if isinstance(getattr(sample, "chunks", None), tuple):
        body["chunks"] = [
            {name: chunk[name] for name in Chunk.model_fields if name in chunk} for chunk in body["chunks"]
        ]
    return body


def _values(value: Any) -> Iterator[Wire]:
    """A value and all values in it."""
    if isinstance(value, Wire):
        yield value
        for inner in value.__dict__.values():
            yield from _values(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from _values(inner)


def _kinds(annotation: Any, seen: frozenset[Any] = frozenset()) -> set[type[Wire]]:
    """The kinds of value that a type speaks of, however deep."""
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        if annotation in seen:
            return set()
        deeper = {
            kind for field in annotation.model_fields.values() for kind in _kinds(field.annotation, seen | {annotation})
        }
        return {annotation, *deeper}
    return {kind for inner in get_args(annotation) for kind in _kinds(inner, seen)}
