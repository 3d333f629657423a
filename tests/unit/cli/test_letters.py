"""`pagewire dlq` over letters in memory: what it prints, asks and answers with its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from cli import letters
from cli.main import app
from pipelines.operate.audit_log import AuditLog
from schemas.letters import DeadLetterSummary, LetterHeader, RevisionDiff
from tests.fakes.ports import FakeLetters
from tests.fakes.stores import FakeAuditLog
from tests.making import NOON, letter
from wiring.settings import Settings

FIRST, ODD = "cms.changes/0/1", "cms.changes/0/3"


@pytest.fixture
def noted() -> FakeAuditLog:
    return FakeAuditLog()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, noted: FakeAuditLog) -> Iterator[FakeLetters]:
    fake = FakeLetters(accepts=lambda value: b"corrected" in value)
    for made in (
        letter(1, message="title: too \x1b[31mred"),
        letter(2, "b", "lake", last_failed_at=NOON + timedelta(hours=1), attempts=7, redrives=2),
        letter(3, stage=None, code="unreadable", attempts=None, first_failed_at=None),
        letter(4, state="dropped", handled_at=NOON),
    ):
        fake.kept[made.letter.id] = made

    class FakeClients:
        def __init__(self, settings: Settings) -> None: ...

        async def __aenter__(self) -> FakeClients:
            return self

        async def __aexit__(self, *_: object) -> None: ...

        async def letters(self) -> FakeLetters:
            return fake

        async def audit_log(self) -> AuditLog:
            return AuditLog(noted, lambda: NOON)

    monkeypatch.setattr(letters, "connected", FakeClients)
    monkeypatch.setattr(letters, "logged", Settings)
    monkeypatch.setattr(letters, "LOOK_EVERY", 0.0)
    with capture_logs():  # else structlog, which nobody has configured here, prints
        yield fake


def run(*arguments: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["dlq", *arguments], input=answer, catch_exceptions=False)


def test_a_list_is_a_table_newest_first_or_json(kept: FakeLetters) -> None:
    lines = run("list").stdout.splitlines()
    assert lines[0].split() == ["id", "state", "failed", "at", "stage", "code", "page", "tries", "reason"]
    assert [line.split()[0] for line in lines[1:]] == [ODD, "cms.changes/0/2", FIRST]
    assert "7 (2r)" in lines[2]
    assert "too \\x1b[31mred" in lines[3]
    assert "\x1b" not in run("list").stdout  # a letter does not steer the terminal
    found = json.loads(run("list", "--site", "lake", "--json").stdout)
    assert (found["total"], [one["page_id"] for one in found["letters"]]) == (1, ["b"])
    assert json.loads(run("list", "--all", "--json").stdout)["total"] == 4
    assert json.loads(run("list", "--since", "2h", "--json").stdout)["total"] == 0
    assert json.loads(run("list", "--since", "2026-05-04T13:00Z", "--json").stdout)["total"] == 1
    some = run("list", "--limit", "1")
    assert (some.exit_code, "the newest 1 of 3" in some.stderr) == (0, True)


def test_a_letter_is_shown_with_headers_value_and_diff(kept: FakeLetters) -> None:
    kept.kept[FIRST] = kept.kept[FIRST].model_copy(
        update={
            "headers": (LetterHeader(name="own", value="1"), LetterHeader(name="none", value=None)),
            "text": "tamp\x1b]0;ered",
            "diff": RevisionDiff(last_good=1, revision=2, lines=("--- a", "+++ b", "@@ -1 +1 @@", "-old", "+new")),
        }
    )
    out = run("show", FIRST).stdout
    for part in (
        "gave up       chunk",
        "own",
        "not a PageChange v1",
        "tamp\\x1b]0;ered",
        "-old\n+new",
        "cms.changes/0/1",
    ):
        assert part in out
    assert json.loads(run("show", FIRST, "--json").stdout)["diff"]["lines"][-1] == "+new"
    kept.kept[FIRST] = kept.kept[FIRST].model_copy(update={"value": {"title": "<b>"}, "problem": None, "text": None})
    assert '"title": "<b>"' in run("show", FIRST).stdout
    unknown = run("show", "cms.changes/0/99")
    assert (unknown.exit_code, "no dead letter cms.changes/0/99" in unknown.stderr) == (1, True)


def test_letters_are_redriven_and_dropped_by_id_and_a_bad_one_keeps_nobody(kept: FakeLetters) -> None:
    mixed = run("redrive", "cms.changes/0/99", ODD, FIRST)
    assert (mixed.exit_code, mixed.stdout) == (1, f"{FIRST} redriven\n")
    assert "cms.changes/0/99" in mixed.stderr
    assert "can only be dropped" in mixed.stderr
    dropped = run("drop", ODD, "cms.changes/0/2")
    assert (dropped.exit_code, dropped.stdout) == (0, f"{ODD} dropped\ncms.changes/0/2 dropped\n")
    assert run("drop", ODD).exit_code == 1
    assert kept.sent == [(FIRST, None)]


def test_a_letter_that_fails_again_at_once_is_told(kept: FakeLetters, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "redriven" alone would sound like the end of it."""
    redrive = kept.redrive

    async def fails_again(id: str, value: bytes | None = None) -> DeadLetterSummary:
        done = await redrive(id, value)
        later = datetime.now(UTC) + timedelta(minutes=1)
        again = letter(9, redrives=1, last_failed_at=later, message="title: still \x1b[31mred")
        kept.kept[again.letter.id] = again
        return done

    monkeypatch.setattr(kept, "redrive", fails_again)
    told = run("redrive", FIRST)
    assert (told.exit_code, told.stdout) == (1, f"{FIRST} redriven\n")
    assert "town:en:fees: failed again as cms.changes/0/9, bad-message: title: still \\x1b[31mred" in told.stderr


def test_all_that_fit_are_handled_when_confirmed(kept: FakeLetters, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("redrive", "--all", "--yes", "--site", "nowhere").exit_code == 1
    some = run("redrive", "--all", "--yes")
    assert (some.exit_code, some.stdout) == (1, "2 handled, 1 can only be dropped\n")
    all = run("drop", "--all", "--yes", "--code", "unreadable")
    assert (all.exit_code, all.stdout) == (0, "1 handled\n")
    assert len(kept.sent) == 2


@pytest.mark.parametrize(("answer", "code", "sent"), [("y\n", 0, 1), ("n\n", 1, 0), ("", 1, 0)])
def test_a_person_is_asked(
    kept: FakeLetters, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, sent: int
) -> None:
    monkeypatch.setattr(letters, "_somebody_there", lambda: True)
    result = run("redrive", "--all", "--site", "lake", answer=answer)
    assert (result.exit_code, len(kept.sent)) == (code, sent)
    assert "redrive 1 dead letters?" in result.stderr


def test_an_edit_from_a_file(kept: FakeLetters, tmp_path: Path) -> None:
    file = tmp_path / "message.json"
    file.write_text("{}")
    refused = run("edit", FIRST, "--file", str(file))
    assert (refused.exit_code, kept.sent) == (2, [])
    file.write_text('"corrected"')
    done = run("edit", FIRST, "--file", str(file))
    assert (done.exit_code, done.stdout, kept.sent) == (0, f"{FIRST} edited\n", [(FIRST, b'"corrected"')])


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor that keeps what it was given and writes the next of its versions; with none left it fails."""
    program = tmp_path / "editor"
    program.write_text(
        '#!/bin/sh\nn=$(cat "$0.n" 2>/dev/null || echo 0)\ncp "$1" "$0.given.$n"\n'
        'cp "$0.$n" "$1" || exit 1\necho $((n + 1)) > "$0.n"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(program))
    monkeypatch.delenv("VISUAL", raising=False)
    return program


def test_an_edit_in_the_editor_goes_on_until_it_fits(kept: FakeLetters, editor: Path) -> None:
    value: Any = {"v": 1, "title": "ü"}
    kept.kept[FIRST] = kept.kept[FIRST].model_copy(update={"value": value, "problem": None, "text": None})
    Path(f"{editor}.0").write_text("bad")
    Path(f"{editor}.1").write_text("corrected")
    done = run("edit", FIRST, answer="y\n")
    assert done.exit_code == 0, done.stderr
    assert kept.sent == [(FIRST, b"corrected")]
    assert Path(f"{editor}.given.0").read_text() == '{\n  "v": 1,\n  "title": "ü"\n}\n'
    assert Path(f"{editor}.given.1").read_text() == "bad"


def test_giving_up_the_editor_leaves_the_letter(kept: FakeLetters, editor: Path) -> None:
    assert run("edit", FIRST).exit_code == 1  # the editor fails
    assert Path(f"{editor}.given.0").read_text() == "tampered"
    Path(f"{editor}.0").write_text("tampered")
    assert run("edit", FIRST).exit_code == 1  # nothing changed
    Path(f"{editor}.1").write_text("bad")
    assert run("edit", FIRST, answer="n\n").exit_code == 1
    assert kept.sent == []


def test_without_an_editor_a_file_is_wanted(kept: FakeLetters, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    result = run("edit", FIRST)
    assert (result.exit_code, "--file" in result.stderr) == (2, True)
    monkeypatch.setenv("VISUAL", "no-such-editor --wait")
    assert run("edit", FIRST).exit_code == 2


def test_what_changes_letters_is_noted_with_who_did_it(
    kept: FakeLetters, noted: FakeAuditLog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "alice")
    file = tmp_path / "message.json"
    file.write_text('{"corrected": true}')
    run("list")
    run("edit", FIRST, "--file", str(file))
    run("drop", ODD)
    run("drop", ODD)
    run("redrive", "--all", "--site", "lake", "--yes")
    told = [(entry.who, entry.via, entry.action, entry.site, entry.target, entry.code) for entry in noted.kept]
    assert told == [
        ("alice", "command", "letters.edit", None, FIRST, ""),
        ("alice", "command", "letters.drop", None, ODD, ""),
        ("alice", "command", "letters.drop", None, ODD, "letter-handled"),
        ("alice", "command", "letters.redrive", "lake", '{"site":"lake"}', ""),
    ]
