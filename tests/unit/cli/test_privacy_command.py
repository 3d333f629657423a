"""`pagewire privacy`: what is kept is shown, changed, asked about and undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import Result
from structlog.testing import capture_logs
from typer.testing import CliRunner

from adapters.fake_audit_log import FakeAuditLog
from adapters.fake_texts import FakeTextStore
from cli import privacy
from cli.main import app
from pipelines.operate.audit_log import AuditLog
from pipelines.query.live.privacy_changes import PrivacyChanges
from pipelines.query.live.text_changes import TextChanges
from pipelines.runtime import logs
from wiring.settings import Settings


def now() -> datetime:
    return datetime(2026, 5, 4, 12, tzinfo=UTC)


class Kept:
    """Stands where the clients would."""

    store: FakeTextStore
    log: FakeAuditLog

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def privacy_changes(self) -> PrivacyChanges:
        return PrivacyChanges(TextChanges(self.store, self.settings, now), self.settings, now)

    async def audit_log(self) -> AuditLog:
        return AuditLog(Kept.log, now)


@pytest.fixture(autouse=True)
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA", "ELASTICSEARCH", "CONFIG", "ADMIN_KEY"):
        monkeypatch.delenv(f"PAGEWIRE_{name}", raising=False)
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(logs, "configure", lambda settings: None)
    monkeypatch.setattr(privacy, "connected", Kept)
    Path("pagewire.yaml").write_text("sites: {town: {languages: [en]}}\n", encoding="utf-8")
    Kept.store, Kept.log = FakeTextStore(), FakeAuditLog()
    with capture_logs():  # which a command sends to standard error
        yield


def run(*arguments: str, code: int = 0, answer: str | None = None) -> Result:
    done = CliRunner().invoke(app, ["privacy", *arguments], catch_exceptions=False, input=answer)
    assert done.exit_code == code, done.output
    return done


def shown() -> Any:
    return json.loads(run("show", "town", "--json").stdout)


def acts() -> list[tuple[str, str]]:
    return [(entry.action, entry.outcome) for entry in Kept.log.kept]


def test_it_is_changed_and_undone() -> None:
    assert "town (pagewire.yaml): question log on, conversations 90 days" in run("show", "town").stdout
    said = run("set", "town", "--log-questions", "off", "--outcomes", "400", "--note", "as our notice says").stdout
    assert "town (version 1): question log off, conversations 90 days, logged questions 400 days" in said
    assert "as our notice says" in run("show", "town").stdout
    run("set", "town", "--log-questions", "without-text")
    assert shown()["rules"] == {"log_questions": "without-text", "conversations": 90, "outcomes": 400}
    assert "question log off" in run("undo", "town").stdout
    assert "town (pagewire.yaml): question log on" in run("reset", "town", "--yes").stdout
    run("reset", "town", code=1)
    assert [act for act in acts() if act[1] == "done"] == [
        ("privacy.put", "done"),
        ("privacy.put", "done"),
        ("privacy.rollback", "done"),
        ("privacy.remove", "done"),
    ]


def test_who_keeps_less_is_asked_and_without_anybody_there_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    less = ("set", "town", "--conversations", "30")
    refused = run(*less, code=1)
    assert "conversations whose last question is from before 2026-04-04" in refused.output
    monkeypatch.setattr(privacy, "somebody_there", lambda: True)
    run(*less, code=1, answer="n\n")
    assert Kept.store.kept == {}
    asked = run(*less, answer="y\n")
    assert "for good, not before 2026-05-04 13:00 UTC" in asked.output
    assert shown()["rules"]["conversations"] == 30
    run("set", "town", "--conversations", "20", "--yes")
    assert shown()["live"] == 2
    assert acts()[0][1] != "done"


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
def test_wrong_use_and_what_is_not_so(arguments: tuple[str, ...], code: int) -> None:
    run(*arguments, code=code)
    assert Kept.store.kept == {}
