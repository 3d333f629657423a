"""Operators' commands over the real gateway: what they print, and their exit codes."""

from __future__ import annotations

import asyncio
import csv
import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest

from cli import admin_client
from schemas.conversation import Feedback
from schemas.outcome import Outcome, OutcomeEvent, Rated
from tests.fakes.ports import FakePorts
from tests.unit.cli.conftest import Run

NOW = datetime.now(UTC)


def log(gateway: FakePorts, n: int, became: Any = "answered", question: str = "When?", rating: Any = None) -> None:
    """A question of `n` minutes ago."""
    at = NOW - timedelta(minutes=n)
    said = Outcome(restricted=False, asked_at=at, asked_in="en", lang="en", question=question, became=became, grade=5)
    events: list[Outcome | Rated] = [said]
    if rating is not None:
        events.append(Rated(feedback=Feedback(rating=rating, comment="No.", at=NOW)))
    for event in events:
        named = OutcomeEvent(site="town", request_id=f"request-{n:04}", conversation="c1", event=event)
        asyncio.run(gateway.outcomes.put(named))


def test_questions_are_listed_filtered_shown_and_written(run: Run, gateway: FakePorts) -> None:
    log(gateway, 1)
    log(gateway, 2, "refused", "Any [sauna]?", "down")
    log(gateway, 500, "refused")
    shown = run("questions", "town").stdout
    assert shown.startswith("3 asked, 1 answered, 2 refused, 1 disliked\n")
    assert "Any [sauna]?" in shown
    assert "“No.”" in shown

    def listed(*options: str) -> list[str]:
        found = json.loads(run("questions", "town", *options, "--json").stdout)["questions"]
        return [row["request_id"][-3:] for row in found]

    assert listed("--refused", "--since", "1h") == listed("--disliked") == listed("--text", "saun") == ["002"]
    assert listed("--outcome", "refused", "--until", "1h") == ["500"]
    assert "the newest 1; more with --limit" in run("questions", "town", "--limit", "1").stdout
    assert json.loads(run("questions", "town", "request-0002").stdout)["outcome"]["became"] == "refused"
    run("questions", "town", "request-9999", code=1)
    for arguments in (("--outcome", "lost"), ("--csv", "--ndjson"), ("--since", "lately"), ("--lang", "d")):
        run("questions", "town", *arguments, code=2)


def test_long_lists_are_read_page_by_page(run: Run, gateway: FakePorts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_client, "MOST", 2)
    for n in range(5):
        log(gateway, n)
    rows = list(csv.DictReader(StringIO(run("questions", "town", "--csv").stdout)))
    assert [row["request_id"] for row in rows] == [f"request-{n:04}" for n in range(5)]
    assert len(run("questions", "town", "--ndjson", "--limit", "3").stdout.splitlines()) == 3
    assert len(json.loads(run("questions", "town", "--limit", "5", "--json").stdout)["questions"]) == 5


def test_gaps_are_of_the_period(run: Run, gateway: FakePorts) -> None:
    for n in range(1, 4):
        log(gateway, n, "refused", "Where is the ice rink?")
    log(gateway, 5_000, "refused", "Any sauna?")
    [group] = json.loads(run("eval", "gaps", "town", "--since", "1h", "--json").stdout)["groups"]
    assert (group["label"], group["missed"]) == ("Where is the ice rink?", 3)
    assert "Any sauna?" in run("eval", "gaps", "town", "--all").stdout
    run("eval", "gaps", "town", "--since", "1d", "--until", "2d", code=2)
    assert "days" in run("eval", "gaps", "town", "--since", "400d", code=2).stderr


def test_a_chat_is_switched_off_and_on_and_it_is_noted_whose_key_did(run: Run) -> None:
    assert run("chat", "off", "town").stdout == "the chat of town is off\n"
    chats = json.loads(run("chat", "show", "--json").stdout)
    assert [(one["site"], one["on"]) for one in chats] == [("other", True), ("town", False)]
    assert run("chat", "show", "town").stdout.splitlines()[1].split()[:3] == ["town", "off", "switch"]
    assert json.loads(run("chat", "on", "town", "--json").stdout)["on"] is True
    assert "did you mean town?" in run("chat", "off", "twon", code=2).stderr
    entries = json.loads(run("audit-log", "--site", "town", "--since", "1h", "--json").stdout)["entries"]
    assert [(one["action"], one["who"], one["via"]) for one in entries] == [
        ("chat.on", "admin", "http"),
        ("chat.off", "admin", "http"),
    ]
    table = run("audit-log", "--action", "chat.off", "--who", "admin").stdout
    assert "chat.off" in table
    assert "chat.on" not in table
    assert "the newest 1; more with --limit" in run("audit-log", "--limit", "1").stdout


def test_corrections_are_tried_kept_taken_back_and_brought_back(run: Run, gateway: FakePorts) -> None:
    log(gateway, 1, "refused", "Where is my wallet?")
    word = ("corrections", "word", "town", "wallet", "lost property")
    assert "questions of the log" in run(*word, "--try").stdout
    assert json.loads(run("corrections", "list", "town", "--json").stdout)["corrections"] == []
    made = json.loads(run(*word, "--json").stdout)
    assert "wallet" in run("corrections", "list", "town").stdout
    refused = run("corrections", "refuse", "town", "Please ask a lawyer.", "-q", "Can I sue?", "--reach", "same")
    assert (refused.stdout.startswith("put right as "), refused.stderr) == (True, "")
    assert json.loads(run("corrections", "cases", "town").stdout.splitlines()[-1])["expect"] == "refuse"
    run("corrections", "remove", "town", made["id"])
    assert "was taken back already" in run("corrections", "remove", "town", made["id"], code=1).stderr
    assert run("corrections", "undo", "town", made["id"]).stdout.startswith(f"{made['id']} is as it was before")
    for act in ("undo", "remove"):
        assert (
            "site town has no correction 0123456789ab" in run("corrections", act, "town", "0123456789ab", code=1).stderr
        )
    assert "page: " in run("corrections", "page", "town", "nowhere", "-q", "Where?", code=1).stderr
    run("corrections", "page", "town", "pool", "-q", "Where?", "--reach", "far", code=2)
