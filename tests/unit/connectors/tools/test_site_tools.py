"""Which tools a site has: a wrong one ends the start, with its name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr, TypeAdapter, ValidationError

from connectors.cms.fetching import Fetched, SafeFetch, ServerUnavailable
from connectors.settings import OpenApiTools, SiteTool
from connectors.tools import site_tools
from connectors.tools.site_tools import GROUP, ConnectedTools, python_tool
from pipelines.runtime.errors import SettingsError
from tests.unit.connectors.tools.test_openapi import DOCUMENT

HERE = "tests.unit.connectors.tools.test_site_tools"


def double(number: int) -> int:
    """Doubles a number."""
    return 2 * number


def silent(number: int) -> int:
    return number


def point(name: str, target: str) -> EntryPoint:
    return EntryPoint(name, f"{HERE}:{target}", GROUP)


async def test_a_function_of_a_package_is_called_by_its_entry_point() -> None:
    tool = python_tool("twice_it", "sites.town.tools.0", [point("twice_it", "double")])
    assert (tool.name, tool.title, tool.description) == ("twice_it", "Twice it", "Doubles a number.")
    assert (await tool.call({"number": "4"})).text == "8"


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("missing", "AttributeError"),
        ("silent", "no docstring"),
        ("HERE", "cannot be loaded"),
    ],
)
def test_a_function_that_cannot_be_a_tool_ends_the_start(target: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=rf"sites.town.tools.0: the tool 'it' .*{complaint}"):
        python_tool("it", "sites.town.tools.0", [point("it", target)])


def test_an_unknown_name_ends_the_start() -> None:
    with pytest.raises(SettingsError, match=r"sites.town.tools.0: no installed package has a tool 'avrage'"):
        ConnectedTools({"town": ["avrage"]}, SafeFetch())


def written(folder: Path, document: Any = DOCUMENT) -> str:
    file = folder / "openapi.yaml"
    file.write_text(yaml.safe_dump(document))
    return str(file)


async def test_operations_of_a_file_are_tools(tmp_path: Path) -> None:
    settings = OpenApiTools(openapi=written(tmp_path), operations=("getFee",), secret=SecretStr("Bearer hush"))
    tools = ConnectedTools({"town": [settings]}, SafeFetch())
    [tool] = await tools.of("town")
    assert (tool.name, tool.spec.parameters["required"]) == ("get_fee", ["kind"])
    assert await tools.of("village") == []
    assert "hush" not in repr(settings) + repr(tool.spec)


async def test_tools_may_be_for_some_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_tools, "entry_points", lambda group: [point("double", "double")])
    given = [
        {"function": "double", "groups": ["staff"]},
        {"openapi": written(tmp_path), "operations": ["getFee"], "groups": ["board", "staff"]},
        {"openapi": written(tmp_path), "operations": ["make-quote"]},
    ]
    settings = TypeAdapter(Sequence[SiteTool]).validate_python(given)
    tools = {tool.name: tool for tool in await ConnectedTools({"town": settings}, SafeFetch()).of("town")}

    def for_groups(*groups: str) -> set[str]:
        return {name for name, tool in tools.items() if tool.is_for(groups)}

    assert for_groups() == {"make_quote"}
    assert for_groups("board", "guests") == {"make_quote", "get_fee"}
    assert for_groups("staff") == {"make_quote", "get_fee", "double"}


@pytest.mark.parametrize(
    ("document", "more", "complaint"),
    [
        (DOCUMENT, {"operations": ["getFees"]}, "no operation 'getFees'"),
        (DOCUMENT, {"operations": ["getFee", "getFee"]}, "two tools are called get_fee"),
        (DOCUMENT | {"servers": [{"url": "/api"}]}, {}, "no whole address"),
        (DOCUMENT | {"servers": [{"url": "https://{host}/"}]}, {}, "no whole address"),
        (DOCUMENT | {"servers": [{"url": "https://me:word@fees.example/"}]}, {}, "user and password"),
        ("just words", {}, "no OpenAPI 3 document"),
        (json.loads(json.dumps(DOCUMENT).replace("getFee", "search")), {"operations": ["search"]}, "every site has"),
    ],
)
def test_a_wrong_file_ends_the_start(tmp_path: Path, document: Any, more: dict[str, Any], complaint: str) -> None:
    given = {"openapi": written(tmp_path, document), "operations": ["getFee"]} | more
    with pytest.raises(SettingsError, match=rf"sites.town.tools.0: .*{complaint}"):
        ConnectedTools({"town": [OpenApiTools.model_validate(given)]}, SafeFetch())


async def test_dates_in_yaml_are_text(tmp_path: Path) -> None:
    (tmp_path / "openapi.yaml").write_text(json.dumps(DOCUMENT).replace('"type": "integer"', "default: 2026-01-01"))
    settings = OpenApiTools(openapi=str(tmp_path / "openapi.yaml"), operations=("getFee",))
    [tool] = await ConnectedTools({"town": [settings]}, SafeFetch()).of("town")
    assert tool.spec.parameters["properties"]["year"]["default"] == "2026-01-01"


@pytest.mark.parametrize("value", ["!!timestamp 2026-01-01", "!!binary aGk=", ".nan", r'"\ud800"'])
def test_a_description_that_no_model_can_read_ends_the_start(tmp_path: Path, value: str) -> None:
    (tmp_path / "openapi.yaml").write_text(json.dumps(DOCUMENT).replace('"type": "integer"', f"default: {value}"))
    settings = OpenApiTools(openapi=str(tmp_path / "openapi.yaml"), operations=("getFee",))
    with pytest.raises(SettingsError, match=r"operation getFee: no model can read"):
        ConnectedTools({"town": [settings]}, SafeFetch())


LEVELS = "".join(f"b{n}: &b{n} {{<<: [{', '.join([f'*b{n - 1}'] * 9)}]}}\n" for n in range(1, 12))


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "{a: " * 20_000, "a: &a [*a]", "\t- x", "\xff", "b0: &b0 {a: 1}\n" + LEVELS],
    ids=["lists", "mappings", "a circle", "a tab", "no UTF-8", "9 to the power of 11"],
)
def test_a_file_that_cannot_be_read_ends_the_start(tmp_path: Path, content: str) -> None:
    (tmp_path / "openapi.yaml").write_text(content, "latin-1")
    settings = OpenApiTools(openapi=str(tmp_path / "openapi.yaml"), operations=("a",))
    with pytest.raises(SettingsError, match=r"sites.town.tools.0: "):
        ConnectedTools({"town": [settings]}, SafeFetch())


def test_a_missing_file_ends_the_start(tmp_path: Path) -> None:
    settings = OpenApiTools(openapi=str(tmp_path / "no.yaml"), operations=("a",))
    with pytest.raises(SettingsError, match=r"no.yaml cannot be read: No such file"):
        ConnectedTools({"town": [settings]}, SafeFetch())


class Away(SafeFetch):
    """Has the document after the first request."""

    def __init__(self, *answers: bytes | Exception) -> None:
        super().__init__()
        self.answers = list(answers)

    async def get(self, url: str, **_: Any) -> Fetched:  # type: ignore[override]
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Fetched(url, 200, answer, {})


async def test_a_document_that_is_away_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    relative = json.dumps(DOCUMENT | {"servers": [{"url": "../v2"}]}).encode()
    fetch = Away(ServerUnavailable("away"), b"{}", relative)
    settings = OpenApiTools(openapi="https://fees.example/docs/openapi.json", operations=("getFee",))
    tools = ConnectedTools({"town": [settings]}, fetch)
    await tools.start()
    assert await tools.of("town") == []
    assert len(fetch.answers) == 2  # not asked again at once
    monkeypatch.setattr(site_tools, "AGAIN", 0.0)
    tools._remote["town"][0]._next = 0.0
    assert await tools.of("town") == []  # it is no OpenAPI document now
    [tool] = await tools.of("town")
    assert tool.function._server == "https://fees.example/v2"  # type: ignore[attr-defined]


async def test_a_question_goes_on_without_a_document_that_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    there = asyncio.Event()

    class Slow(Away):
        async def get(self, url: str, **_: Any) -> Fetched:  # type: ignore[override]
            await there.wait()
            return await super().get(url)

    monkeypatch.setattr(site_tools, "PATIENCE", 0.01)
    settings = OpenApiTools(openapi="https://fees.example/openapi.json", operations=("getFee",))
    content = json.dumps(DOCUMENT | {"servers": [{"url": "/v2"}]}).encode()
    tools = ConnectedTools({"town": [settings]}, Slow(content))
    assert await tools.of("town") == []
    assert await tools.of("town") == []  # one read, however many questions
    there.set()
    monkeypatch.setattr(site_tools, "PATIENCE", 60.0)
    [tool] = await tools.of("town")
    assert tool.name == "get_fee"


async def test_a_document_at_an_address_takes_no_other_tool_s_place(tmp_path: Path) -> None:
    own = OpenApiTools(openapi=written(tmp_path), operations=("getFee",))
    other = OpenApiTools(openapi="https://fees.example/openapi.json", operations=("getFee", "make-quote"))
    tools = ConnectedTools({"town": [own, other]}, Away(json.dumps(DOCUMENT | {"servers": [{"url": "/v2"}]}).encode()))
    fee, quote = await tools.of("town")
    assert [each.function._server for each in (fee, quote)] == [  # type: ignore[attr-defined]
        "https://fees.example/api/",
        "https://fees.example/v2",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        "Average",
        "a b",
        {"openapi": "x.yaml", "operations": []},
        {"openapi": "https://user:word@fees.example/x", "operations": ["a"]},
        {"openapi": "", "operations": ["a"]},
        {"openapi": "x.yaml", "operations": ["a"], "header": "X: y"},
        {"openapi": "x.yaml", "operations": ["a"], "secret": ""},
        {"openapi": "https://fees.example/api.json", "operations": ["a"], "secret": "Bearer x"},
        {"openapi": "x.yaml", "operations": ["a"], "secret": "Bearer x\n"},
        {"openapi": "x.yaml", "operations": ["a"], "secret": "Bearer \u00fc"},
        {"openapi": "x.yaml", "operations": ["a"], "method": "DELETE"},
        {"openapi": "x.yaml", "operations": ["a"], "groups": []},
        {"function": "average", "groups": []},
        {"function": "average", "group": ["staff"]},
        {"groups": ["staff"]},
        3,
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Sequence[SiteTool]).validate_python([wrong])
