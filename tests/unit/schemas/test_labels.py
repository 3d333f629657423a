"""Labels: what a CMS may send, how it is kept, and how a filter reads it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.labels import (
    MAX_KEY,
    MAX_LABELS,
    MAX_VALUE,
    LabelFilter,
    have_labels,
    label_tokens,
    labels_of,
    parse_labels,
)
from schemas.page import PageDocument


def kept(labels: Any) -> dict[str, tuple[str, ...]]:
    return PageDocument.model_validate({"id": "fees", "labels": labels}).labels


def refusal(labels: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        kept(labels)
    [error, *_] = refused.value.errors(include_url=False, include_input=False)
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}"


def test_keys_and_values_are_normalised() -> None:
    given = {" Kind of  Page": ["Form ", "Form", "Opening\n hours"], "kind-of-page": "Notice", "topic": ["", " "]}
    assert kept(given) == {"kind-of-page": ("Form", "Opening hours", "Notice")}
    assert kept({"Größe": ["u\u0308ber"]}) == {"größe": ("über",)}
    assert "labels" not in PageDocument(id="fees").model_dump()


def test_a_bound_is_told_by_its_number() -> None:
    assert kept({"kind": [str(n) for n in range(MAX_LABELS)]})
    for many in ({"kind": ["x"] * 1_000}, {f"k{n}": [] for n in range(1_000)}, {f"k{n}": ["x"] for n in range(1_000)}):
        assert (
            refusal(many)
            == f"labels: Value error, 1,000 labels; at most {MAX_LABELS} are kept, the values of all keys together"
        )
    assert "at most 200 characters" in refusal({"kind": ["x" * (MAX_VALUE + 1)]})
    assert refusal({"k" * (MAX_KEY + 1): ["x"]}).startswith("labels.")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": [1]},
        {"kind": [{}]},
        {"kind": None},
        {"kind": {"a": "b"}},
        {"a:b": ["x"]},
        {"": ["x"]},
        ["kind"],
        "kind",
        {"kind": ["a\x00b"]},
    ],
)
def test_what_is_no_label_is_refused(wrong: Any) -> None:
    assert refusal(wrong).startswith("labels")


def test_a_filter_is_written_key_and_value() -> None:
    assert parse_labels(["kind:form", "Kind:notice", "topic:a:b"]) == {"kind": ("form", "notice"), "topic": ("a:b",)}
    assert parse_labels([]) == {}
    for wrong in (["form"], ["kind:"], [":form"], ["a b!:x"], ["kind:x"] * 201):
        with pytest.raises(ValueError, match=r"KEY:VALUE|must be 1 to 64 letters|at most 200"):
            parse_labels(wrong)


def test_values_of_a_key_are_alternatives_and_keys_are_not() -> None:
    page = label_tokens({"kind": ("form", "notice"), "department": ("tax",)})
    assert labels_of(page) == {"kind": ("form", "notice"), "department": ("tax",)}
    assert have_labels(page, {"kind": ("news", "form")})
    assert have_labels(page, {"kind": ("form",), "department": ("tax",)})
    assert not have_labels(page, {"kind": ("form",), "department": ("pool",)})
    assert not have_labels((), {"kind": ("form",)})
    assert have_labels((), {})


def test_a_filter_without_a_value_is_refused_not_dropped() -> None:
    filters = TypeAdapter(LabelFilter)
    assert filters.validate_python({"Kind": " form "}) == {"kind": ("form",)}
    for given in ({"kind": []}, {"kind": [""]}, {"kind": ["form"], "place": " "}):
        with pytest.raises(ValidationError, match="has no value"):
            filters.validate_python(given)
