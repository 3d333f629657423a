"""How commands print and fail."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel

from adapters.embedders.registry import ModelMismatch
from cli import output
from cli.output import explained, print_json, table
from connectors.cms.documents import BadSource
from infra.engine import EngineError
from pipelines.runtime.errors import Permanent, Retryable, SettingsError, TooLarge, UnknownSite
from schemas.page import PageDocument
from wiring.addresses import ServiceMissing
from wiring.settings import Settings


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("no"), 2),
        (UnknownSite("no", "village", ()), 2),
        (Permanent("no"), 1),
        (TooLarge("no"), 1),
        (ModelMismatch("no"), 1),
        (BadSource("no"), 2),
        (Retryable("no"), 3),
        (ServiceMissing("no"), 3),
        (EngineError("no"), 3),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_have_their_exit_codes(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, explained():
        raise error
    assert caught.value.exit_code == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == ("" if code == 130 else "error no\n")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/home/anna/.pagewire"), 2, "/home/anna/.pagewire: Perm"),
        (OSError(errno.ENOSPC, "No space left on device", "/srv/x"), 3, "/srv/x: No space left on device"),
        (OSError(errno.ENOSPC, "No space left on device"), 3, "No space left on device"),
    ],
)
def test_what_the_machine_refuses_is_told_in_its_words(
    error: OSError, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught, explained():
        raise error
    assert caught.value.exit_code == code
    assert capsys.readouterr().err.startswith(f"error {said}")


def test_a_site_that_is_nearly_called_so_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), explained():
        Settings.model_validate({"sites": {"town": {}, "harbour": {}}}).site("twon")
    assert (
        capsys.readouterr().err == "error unknown site 'twon'; pagewire.yaml has: harbour, town; did you mean town?\n"
    )


def test_an_argument_its_schema_does_not_take_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, explained():
        PageDocument(id="private\n")
    assert caught.value.exit_code == 2
    said = capsys.readouterr().err
    assert said.startswith("error id: must be one line")
    assert "private" not in said


def test_what_nobody_expected_is_not_explained_away() -> None:
    for error in (ZeroDivisionError, TimeoutError, BrokenPipeError(errno.EPIPE, "Broken pipe")):
        with pytest.raises(type(error) if isinstance(error, Exception) else error), explained():
            raise error


def test_an_exit_code_set_inside_stays() -> None:
    with pytest.raises(typer.Exit) as caught, explained():
        raise typer.Exit(7)
    assert caught.value.exit_code == 7


@pytest.mark.parametrize("text", ["a [bold]b[/] c", "[/no such tag]", "[link](https://example.org)", "\\[x]"])
def test_text_of_pages_and_errors_is_printed_as_it_is(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    output.out.print(table(("text",), [(text,)]))
    output.complain(text)
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].rstrip() == text
    assert printed.err == f"error {text}\n"


def test_a_table_aligns_numbers_right_and_leaves_out_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    output.out.print(table(("name", "lag#"), [("chunk", 5), ("index", None), ("answer", 1_000)]))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["name     lag", "chunk      5", "index", "answer  1000"]


class Model(BaseModel):
    path: Path


@dataclass
class Data:
    path: Path


@pytest.mark.parametrize("make", [Model, Data, dict], ids=["model", "dataclass", "dict"])
def test_json_is_one_document_in_readable_unicode(
    make: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    print_json(make(path=Path("ü/[x]")))
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"path": "ü/[x]"}
    assert "ü/[x]" in printed
    assert printed.endswith("}\n")
