"""What the HTTP reference tells besides the OpenAPI document: examples that fit it, and codes that exist."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs
import pytest

from docs.codes_page import codes
from docs.http_page import document, examples, operations
from gateway.edge.problems import STATUS_OF_CODE

OPERATIONS = operations()
PLACES = {"$S": "/v1/sites/town", "$U": ""}


def fits(value: Any, schema: dict[str, Any]) -> None:
    jsonschema_rs.validate({**schema, "components": document()["components"]}, value)


def test_every_route_is_told_and_nothing_else() -> None:
    assert set(examples()) == set(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_codes_of_a_route_exist(name: str) -> None:
    known = {code.name for code in codes()}
    assert set(examples()[name].get("problems", ())) <= known


def test_every_code_with_a_status_of_its_own_is_told_at_some_route() -> None:
    told = {code for of in examples().values() for code in of.get("problems", ())}
    assert STATUS_OF_CODE.keys() <= told


@pytest.mark.parametrize("name", [name for name, of in examples().items() if "call" in of])
def test_a_call_is_one_of_its_route(name: str) -> None:
    method, _, where = examples()[name]["call"].partition(" ")
    path = urlsplit(PLACES[where[:2]] + where[2:]).path
    route_method, _, route = name.partition(" ")
    assert method == route_method
    assert re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route)), path), path


@pytest.mark.parametrize("name", [name for name, of in examples().items() if "body" in of])
def test_a_body_fits_its_schema(name: str) -> None:
    fits(examples()[name]["body"], OPERATIONS[name]["requestBody"]["content"]["application/json"]["schema"])


@pytest.mark.parametrize("name", [name for name, of in examples().items() if "status" in of])
def test_a_status_is_one_of_the_route(name: str) -> None:
    assert str(examples()[name]["status"]) in OPERATIONS[name]["responses"]


@pytest.mark.parametrize("name", [name for name, of in examples().items() if "answer" in of])
def test_an_answer_fits_its_schema_and_has_all_of_its_fields(name: str) -> None:
    told = examples()[name]
    schema = OPERATIONS[name]["responses"][str(told["status"])]["content"]["application/json"]["schema"]
    fits(told["answer"], schema)
    fields = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
    assert set(told["answer"]) == set(fields)
