"""`pagewire privacy`: what is kept is shown, changed, asked about and undone."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from cli import privacy
from tests.fake_ports import FakePorts
from tests.unit.cli.conftest import Run

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(now=lambda: NOON)


def test_it_is_changed_and_undone(run: Run, fakes: FakePorts) -> None:
    assert "town (pagewire.yaml): question log on, conversations 90 days" in run("privacy", "show", "town").stdout
    said = run(
        "privacy", "set", "town", "--log-questions", "off", "--outcomes", "400", "--note", "as our notice says"
    ).stdout
    assert "town (version 1): question log off, conversations 90 days, logged questions 400 days" in said
    assert "as our notice says" in run("privacy", "show", "town").stdout
    run("privacy", "set", "town", "--log-questions", "without-text")
    assert json.loads(run("privacy", "show", "town", "--json").stdout)["rules"] == {
        "log_questions": "without-text",
        "conversations": 90,
        "outcomes": 400,
    }
    assert "question log off" in run("privacy", "undo", "town").stdout
    assert "town (pagewire.yaml): question log on" in run("privacy", "reset", "town", "--yes").stdout
    run("privacy", "reset", "town", code=1)
    assert [entry.action for entry in fakes.audit_log.kept if entry.outcome == "done"] == [
        "privacy.put",
        "privacy.put",
        "privacy.rollback",
        "privacy.remove",
    ]


def test_who_keeps_less_is_asked_and_without_anybody_there_it_is_refused(
    run: Run, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = ("set", "town", "--conversations", "30")
    refused = run("privacy", *less, code=1)
    assert "conversations whose last question is from before 2026-04-04" in refused.output
    monkeypatch.setattr(privacy, "somebody_there", lambda: True)
    run("privacy", *less, code=1, input="n\n")
    assert fakes.texts.kept == {}
    asked = run("privacy", *less, input="y\n")
    assert "for good, not before 2026-05-04 13:00 UTC" in asked.output
    assert json.loads(run("privacy", "show", "town", "--json").stdout)["rules"]["conversations"] == 30
    run("privacy", "set", "town", "--conversations", "20", "--yes")
    assert json.loads(run("privacy", "show", "town", "--json").stdout)["live"] == 2
    assert fakes.audit_log.kept[0].code == "would-delete"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("set", "town"), 2),
        (("set", "town", "--log-questions", "sometimes"), 2),
        (("set", "town", "--conversations", "0"), 2),
        (("set", "town", "--outcomes", "400", "--note", "x" * 501), 2),
        (("set", "nowhere", "--log-questions", "off"), 2),
        (("undo", "town"), 1),
    ],
)
def test_wrong_use_and_what_is_not_so(run: Run, fakes: FakePorts, arguments: tuple[str, ...], code: int) -> None:
    run("privacy", *arguments, code=code)
    assert fakes.texts.kept == {}
