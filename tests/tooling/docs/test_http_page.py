"""What the HTTP reference tells besides the OpenAPI document: examples that fit it, and codes that exist."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs

from docs.codes_page import codes
from docs.http_page import document, examples, operations
from gateway.edge.problems import STATUS_OF_CODE

PLACES = {"$S": "/v1/sites/town", "$U": ""}


def fits(value: Any, schema: dict[str, Any]) -> None:
    jsonschema_rs.validate({**schema, "components": document()["components"]}, value)


def with_a(part: str) -> list[str]:
    """Routes whose example has this part."""
    return [name for name, of in examples().items() if part in of]


def test_every_route_is_told_and_nothing_else() -> None:
    assert set(examples()) == set(operations())


def test_the_codes_of_a_route_exist() -> None:
    known = {code.name for code in codes()}
    for name in operations():
        assert set(examples()[name].get("problems", ())) <= known, name


def test_every_code_with_a_status_of_its_own_is_told_at_some_route() -> None:
    told = {code for of in examples().values() for code in of.get("problems", ())}
    assert STATUS_OF_CODE.keys() <= told


def test_a_call_is_one_of_its_route() -> None:
    for name in with_a("call"):
        method, _, where = examples()[name]["call"].partition(" ")
        path = urlsplit(PLACES[where[:2]] + where[2:]).path
        route_method, _, route = name.partition(" ")
        assert method == route_method, name
        assert re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route)), path), path


def test_a_body_fits_its_schema() -> None:
    for name in with_a("body"):
        fits(examples()[name]["body"], operations()[name]["requestBody"]["content"]["application/json"]["schema"])


def test_a_status_is_one_of_the_route() -> None:
    for name in with_a("status"):
        assert str(examples()[name]["status"]) in operations()[name]["responses"], name


def test_an_answer_fits_its_schema_and_has_all_of_its_fields() -> None:
    for name in with_a("answer"):
        told = examples()[name]
        schema = operations()[name]["responses"][str(told["status"])]["content"]["application/json"]["schema"]
        fits(told["answer"], schema)
        fields = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
        assert set(told["answer"]) == set(fields), name
