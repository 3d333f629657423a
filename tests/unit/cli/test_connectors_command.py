"""`pagewire reconcile`, `watch`, and `import` of a connector, as scripts see them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from cli import connectors
from cli.main import app
from connectors.cms.reconcile import Reconciled
from connectors.cms.sync import PageFailure, SyncOutcome
from pipelines.runtime import logs
from pipelines.runtime.errors import Retryable
from tests.signing import SECRET

TOWN = {
    "shop": {"kind": "push", "secret": SECRET},
    "docs": {"kind": "folder", "path": "docs"},
    "blog": {"kind": "wordpress", "url": "https://www.town.example"},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA", "ELASTICSEARCH", "CONFIG"):
        monkeypatch.delenv(f"PAGEWIRE_{name}", raising=False)
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(logs, "configure", lambda settings: None)
    sites = {"town": {"connectors": TOWN}, "bare": {"connectors": {"shop": TOWN["shop"]}}}
    (tmp_path / "pagewire.yaml").write_text(yaml.safe_dump({"sites": sites}))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("reconcile", "village"), "unknown site 'village'"),
        (("reconcile", "bare"), "site bare has no connector that could be asked"),
        (("watch", "town", "shop"), "is of the kind push; folders are watched"),
        (("watch", "town", "blog"), "is of the kind wordpress; folders are watched"),
        (("import", "town", "shop"), "it cannot be asked for its pages"),
        (("import", "town", "none"), "none: no such file or folder"),
    ],
)
def test_wrong_use_is_named(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())


def found(**more: Any) -> Reconciled:
    numbers = (
        "listed",
        "known",
        "missing",
        "newer",
        "revived",
        "gone",
        "barred",
        "sent",
        "deleted",
        "superseded",
        "left_out",
    )
    values: dict[str, Any] = dict.fromkeys(numbers, 0)
    values |= {"site": "town", "connector": "docs", "refused": False, "dry_run": False, "failed": 0}
    values |= {"failures": [], "omitted": {}}
    return Reconciled(**(values | more))


FAILURE = PageFailure("fees", "en", "its [template] is broken")
OMITTED = {
    "https://town.example/a": "redirects to https://town.example/b",
    "https://town.example/c": "noindex",
    "https://town.example/d": "redirects to https://town.example/e",
}
CASES = [
    ({}, (), 0, ""),
    ({"missing": 3, "sent": 3}, (), 0, ""),
    ({"missing": 3, "dry_run": True}, ("--dry-run",), 1, ""),
    ({"dry_run": True}, ("--dry-run",), 0, ""),
    ({"failed": 1, "failures": [FAILURE]}, (), 1, "en fees: its [template] is broken"),
    ({"omitted": OMITTED}, (), 0, "docs: left out 2 redirects to another, 1 noindex; --json names them"),
    ({"gone": 9, "known": 10, "refused": True}, (), 1, "9 of 10 pages are not listed any more, and 0 are not shown"),
]


@pytest.mark.parametrize(("values", "options", "code", "said"), CASES)
def test_the_exit_code_says_whether_something_is_left(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], options: tuple[str, ...], code: int, said: str
) -> None:
    asked: list[Any] = []

    async def reconciled(settings: Any, site: str, names: list[str], **how: bool) -> Any:
        asked.append((names, how))
        return [found(**values)], []

    monkeypatch.setattr(connectors, "_reconcile", reconciled)
    result = run("reconcile", "town", "docs", *options)
    assert result.exit_code == code
    assert said in " ".join(result.stderr.split())
    assert "docs" in result.stdout
    assert asked == [(["docs"], {"force": False, "dry_run": "--dry-run" in options})]
    as_json = run("reconcile", "town", "docs", *options, "--json")
    assert as_json.exit_code == code
    assert json.loads(as_json.stdout)[0]["connector"] == "docs"


def test_without_a_name_all_that_can_be_asked_are(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reconciled(settings: Any, site: str, names: list[str], **how: bool) -> Any:
        return [found(connector=names[0])], [Retryable(f"{names[1]} is away")]

    monkeypatch.setattr(connectors, "_reconcile", reconciled)
    result = run("reconcile", "town")
    assert result.exit_code == 1
    assert "docs is away" in result.stderr
    assert "blog" in result.stdout


def test_watch_names_the_pages_of_a_look(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = SyncOutcome(sent=11, deleted=1, deletes=["town:en:old"])
    outcome.revisions = {f"town:de:p%2F{n}": 1 for n in range(connectors.NAMED + 3)}
    connectors._tell(outcome)
    assert capsys.readouterr().out == (
        "11 sent (" + ", ".join(f"de p/{n}" for n in range(connectors.NAMED)) + ", and 3 more), 1 deleted (en old)\n"
    )
    connectors._tell(SyncOutcome())
    assert capsys.readouterr().out == "0 sent, 0 deleted\n"


async def test_work_beside_a_watch_that_fails_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    async def fails() -> None:
        raise ValueError("no receipts")

    async with connectors._beside(fails()):
        await asyncio.sleep(0)
        assert "no receipts" in capsys.readouterr().err
