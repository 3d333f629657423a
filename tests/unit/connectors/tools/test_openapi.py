"""Operations of a web service as tools, from documents of any quality."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from pydantic import ValidationError

from connectors.tools.openapi import BadDocument, Operation, operations

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "servers": [{"url": "https://fees.example/api/"}],
    "paths": {
        "/fees/{kind}": {
            "parameters": [{"$ref": "#/components/parameters/Kind"}],
            "get": {
                "operationId": "getFee",
                "summary": "Says what a service\n costs.",
                "description": "For residents.",
                "parameters": [
                    {"name": "year", "in": "query", "schema": {"type": "integer"}, "description": "The year."},
                    {"name": "tag[x]", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "flat", "in": "query", "explode": False, "schema": {"type": "array"}},
                    {"name": "X-Debug", "in": "header", "schema": {"type": "string"}},
                ],
            },
            "delete": {"operationId": "dropFee", "summary": "Deletes a fee."},
        },
        "/quotes": {
            "post": {
                "operationId": "make-quote",
                "summary": "Works out a quote.",
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}},
                },
            }
        },
    },
    "components": {
        "parameters": {"Kind": {"name": "kind", "in": "path", "required": True, "schema": {"enum": ["dog", "cat"]}}},
        "schemas": {
            "Order": {
                "type": "object",
                "required": ["persons"],
                "properties": {"persons": {"type": "integer"}, "note": {"type": ["string", "null"]}},
            }
        },
    },
}


def one(id: str, document: Any = DOCUMENT) -> Operation:
    [found] = operations(document, [id])
    return found


def test_parameters_become_one_schema() -> None:
    fee = one("getFee")
    assert (fee.name, fee.title, fee.method) == ("get_fee", "Says what a service costs.", "GET")
    assert fee.description == "Says what a service costs. For residents."
    assert fee.schema == {
        "type": "object",
        "properties": {
            "kind": {"enum": ["dog", "cat"]},
            "year": {"type": "integer", "description": "The year."},
            "tag[x]": {"type": "array", "items": {"type": "string"}},
            "flat": {"type": "array"},
        },
        "required": ["kind"],
    }


def test_arguments_are_checked_by_it() -> None:
    arguments = one("getFee").arguments
    checked = arguments.model_validate({"kind": "dog", "year": "2026"})
    assert [getattr(checked, name) for name in arguments.model_fields] == ["dog", 2026, None, None]
    for wrong in ({"kind": "bird"}, {"kind": "dog", "year": "soon"}, {}):
        with pytest.raises(ValidationError):
            arguments.model_validate(wrong)


def test_requests_are_written_from_them() -> None:
    fee, server = one("getFee"), "https://fees.example/api/"
    request = fee.request(server, {"kind": "a/b?c#é", "year": 2026, "tag[x]": ["p", "q&r"], "flat": [1, 2]})
    assert request.method == "GET"
    assert request.url == (
        "https://fees.example/api/fees/a%2Fb%3Fc%23%C3%A9?year=2026&tag%5Bx%5D=p&tag%5Bx%5D=q%26r&flat=1%2C2"
    )
    assert request.body is None
    request = one("make-quote").request(server, {"persons": 3, "note": None})
    assert (request.method, request.url, request.body) == ("POST", f"{server}quotes", b'{"persons": 3}')


@pytest.mark.parametrize("value", [".", "..", ""])
def test_no_argument_leaves_its_place_in_the_path(value: str) -> None:
    with pytest.raises(ValueError, match="is no value"):
        one("getFee").request("https://fees.example", {"kind": value})


def at(path: str, *names: str, **schema: Any) -> dict[str, Any]:
    """A document with one operation at a path."""
    parameters = [{"name": each, "in": "path", "required": True, "schema": schema} for each in names]
    operation = {"operationId": "getIt", "summary": "Gets it.", "parameters": parameters}
    return {"openapi": "3.0.0", "paths": {path: {"get": operation}}}


@pytest.mark.parametrize(
    ("path", "values", "asked"),
    [
        ("/v1/{a}.{b}", {"a": "x", "b": "y/z"}, "/v1/x.y%2Fz"),
        ("/v1/{a}.{b}", {"a": "x-1 ü", "b": 2}, "/v1/x-1%20%C3%BC.2"),
        ("/{a}...{b}/c", {"a": "v1.0", "b": "v1.1"}, "/v1.0...v1.1/c"),
        ("/{y}-{m}-{d}", {"y": 2026, "m": "05", "d": "06"}, "/2026-05-06"),
        ("/{a}.json", {"a": "b.json"}, "/b.json.json"),
        ("/v{a}:cancel", {"a": "1:2"}, "/v1%3A2:cancel"),
        ("/{a}/{b}", {"a": "1.2", "b": "..."}, "/1.2/..."),
    ],
)
def test_a_segment_has_several_values(path: str, values: dict[str, Any], asked: str) -> None:
    assert one("getIt", at(path, *values)).request("https://it.example/", values).url == f"https://it.example{asked}"


@pytest.mark.parametrize(
    ("path", "values", "complaint"),
    [
        ("/v1/{a}.{b}", {"a": "x.y", "b": "z"}, "a: '.' cannot be in 'x.y': it parts a and b"),
        ("/v1/{a}.{b}", {"a": "x", "b": "y.z"}, "b: '.' cannot be in"),
        ("/v1/{a}.{b}", {"a": ".", "b": "."}, "a: '.' is no value"),
        ("/{a}...{b}", {"a": "x.", "b": "y"}, "a: '...' cannot be in"),
        ("/{a}...{b}", {"a": "x", "b": ".y"}, "b: '...' cannot be in"),
        ("/{y}-{m}-{d}", {"y": 2026, "m": -5, "d": 6}, "m: '-' cannot be in"),
        ("/{a}.json", {"a": ".."}, "is no value"),
    ],
)
def test_values_that_would_be_read_as_others_are_refused(path: str, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        one("getIt", at(path, *values)).request("https://it.example", values)


@pytest.mark.parametrize("schema", [{"default": "v1"}, {"const": "v1"}, {"enum": ["v1"]}])
def test_a_value_that_the_schema_gives_need_not_be_given(schema: dict[str, Any]) -> None:
    operation = one("getIt", at("/{version}", "version", **schema))
    assert "required" not in operation.schema
    checked = dict(operation.arguments.model_validate({}))
    assert operation.request("https://it.example", operation.named(checked)).url == "https://it.example/v1"


def test_a_default_of_another_type_is_not_sent() -> None:
    operation = one("getIt", at("/{year}", "year", type="integer", default="soon"))
    with pytest.raises(ValidationError):
        operation.arguments.model_validate({})
    assert dict(operation.arguments.model_validate({"year": "2026"})) == {"p0": 2026}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    document = deepcopy(DOCUMENT)
    node: Any = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = to
    return document


GET = ("paths", "/fees/{kind}", "get")
ROUND = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Order"}}}
WIDE: dict[str, Any] = {f"l{n}": {"properties": {i: {"$ref": f"#/x/l{n + 1}"} for i in "abcdefgh"}} for n in range(9)}


def test_a_required_header_that_is_sent_along_anyway_is_no_argument() -> None:
    headers = [{"name": name, "in": "header", "required": True} for name in ("X-KEY", "Authorization")]
    document = changed(*GET, "parameters", to=headers)
    [operation] = operations(document, ["getFee"], "X-Key")
    assert [each.name for each in operation.parameters] == ["kind"]
    with pytest.raises(BadDocument, match="parameter X-KEY goes into a header"):
        operations(document, ["getFee"])


@pytest.mark.parametrize(
    ("id", "document", "complaint"),
    [
        ("getFee", None, "no OpenAPI 3 document"),
        ("getFee", {"swagger": "2.0"}, "no OpenAPI 3 document"),
        ("getFee", {"openapi": "3.1.0", "paths": ["/"]}, "no operation 'getFee'; there are: none"),
        ("getfee", DOCUMENT, "no operation 'getfee'; there are: dropFee, getFee, make-quote"),
        ("dropFee", DOCUMENT, "DELETE changes things"),
        ("getFee", changed(*GET, "summary", to=None) | {}, None),
        ("getFee", changed(*GET, "parameters", to=[{"in": "query"}]), "a parameter has no name"),
        ("getFee", changed(*GET, "parameters", to=[{"name": "t", "in": "header", "required": True}]), "into a header"),
        ("getFee", changed(*GET, "parameters", to=[{"name": "t", "in": "cookie", "required": True}]), "into a cookie"),
        ("getFee", changed(*GET, "parameters", to=[{"$ref": "https://evil.example/p.json"}]), "in another document"),
        ("getFee", changed(*GET, "parameters", to=[{"$ref": "#/components/nothing"}]), "is not in the document"),
        ("getFee", changed("paths", "/fees/{kind}", "parameters", to=[]), "do not fit"),
        ("getIt", at("/v1/{a}{b}", "a", "b"), "nothing parts two parameters in its path '/v1/{a}{b}'"),
        ("getIt", at("/v1/{a/b}", "a/b"), "do not fit"),
        ("getIt", at("/v1?kind={a}", "a"), "do not fit"),
        ("getIt", at("/v1/{a", "a"), "do not fit"),
        ("make-quote", changed("components", "schemas", "Order", to=ROUND), "refer in a circle"),
        ("make-quote", changed("components", "schemas", "Order", to={"$ref": "#/x/l0"}) | {"x": WIDE}, "too large"),
        ("make-quote", changed("components", "schemas", "Order", to={"type": "array"}), "no JSON object"),
        ("getFee", changed(*GET, to={"operationId": "getFee"}), "no summary or description"),
        ("1", changed(*GET, "operationId", to="1"), "cannot be the name of a tool"),
    ],
)
def test_documents_that_do_not_fit_are_refused(id: str, document: Any, complaint: str | None) -> None:
    if complaint is None:
        assert one(id, document).description == "For residents."
        return
    with pytest.raises(BadDocument, match=re.escape(complaint)):
        operations(document, [id])


def test_properties_may_be_called_as_words_of_openapi_are() -> None:
    properties = {name: {"type": "string", "example": "x"} for name in ("example", "xml", "properties")}
    document = changed("components", "schemas", "Order", to={"type": "object", "properties": properties})
    assert one("make-quote", document).schema["properties"] == {name: {"type": "string"} for name in properties}


def test_descriptions_inside_schemas_are_short_enough_for_a_prompt() -> None:
    described = {"type": "object", "properties": {"note": {"type": "string", "description": "x" * 500_000}}}
    assert len(json.dumps(one("make-quote", changed("components", "schemas", "Order", to=described)).schema)) < 5_000


def test_a_document_is_data() -> None:
    """Whatever stands where something else is expected, it is an error of ours and no other."""
    for path in [("paths",), (*GET,), (*GET, "parameters"), ("components",), ("servers",), (*GET, "parameters", 0)]:
        for junk in (None, 3, "x", [], {}, [[]], {"$ref": 7}):
            document = changed(*path, to=junk)
            with suppress(BadDocument):
                json.dumps(one("getFee", document).schema)
