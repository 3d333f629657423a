"""`pagewire index audit` before it comes to any server: wrong use, missing services; and its tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import audit as command
from cli.main import app
from pipelines.operate.audit.index_diff import NATURES
from pipelines.operate.audit.report import WORDS, AuditReport, Finding, RepairReport
from pipelines.runtime import logs


@pytest.fixture(autouse=True)
def no_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA", "ELASTICSEARCH", "CONFIG"):
        monkeypatch.delenv(f"PAGEWIRE_{name}", raising=False)
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(logs, "configure", lambda settings: None)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("village",), 2, "unknown site 'village'"),
        (("demo", "--force"), 2, "--force goes with --repair"),
        (("demo", "--repair", "--index", "x"), 2, "leave out --index"),
        (("demo", "--settle", "-1"), 2, "--settle"),
        (("demo", "--json"), 3, "pagewire engine start --detach"),
        (("demo", "--repair"), 3, "pagewire engine start --detach"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_refusals(arguments: tuple[str, ...], code: int, said: str) -> None:
    result = CliRunner().invoke(app, ["audit", *arguments], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in " ".join(result.stderr.split())


def test_every_cause_has_words_and_every_kind_an_explanation() -> None:
    assert set(WORDS) == set(NATURES)
    assert set(command.ABOUT) == {nature.kind for nature in NATURES.values()}


def report(**more: object) -> AuditReport:
    values = {"site": "town", "index": "pagewire-town-000001", "pages": 3, "chunks": 9, "counts": {}, "findings": ()}
    return AuditReport.model_validate(values | {"failed": 0, "unreadable": 0, "seconds": 1.5} | more)


def test_deleted_pages_are_counted_apart_from_those_that_status_counts() -> None:
    assert command.holdings(report()) == "3 pages, 9 chunks"
    assert command.holdings(report(deleted=1)) == "3 pages and 1 deleted, 9 chunks"


def test_a_repair_that_leaves_something_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    lost = Finding(kind="extra", page_key="town:en:[a]", detail="gone", revision_expected=None, revision_found=1)
    found = report(counts={"extra": 30}, findings=[lost] * 30, failed=2, unreadable=1)
    command._print_repair(RepairReport(before=found, sent=0, deleted=0, after=found))
    said = capsys.readouterr()
    assert "3 pages, 9 chunks, 1.5 s" in said.out
    assert said.out.count("town:en:[a]") == command.SHOWN
    assert "--json tells the first 100" in said.out
    assert "2 pages are dead letters" in said.out
    assert "1 records of the change log cannot be read" in said.out
    assert "sent again" not in said.out
    assert "--force lets the log decide" in said.err
