"""What visitors asked, seen by whoever runs the site: with the command, by HTTP, and gone when a visitor wants it."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest

from tests.acceptance.conftest import System
from tests.acceptance.system import eventually
from tests.acceptance.test_story import put

pytestmark = pytest.mark.engine


def test_a_question_its_outcome_and_its_feedback_are_read_and_forgotten(system: System) -> None:
    site, name = system.site, system.instance.site
    began = datetime.now(UTC).isoformat()
    pages = {f"log{n}": subject for n, subject in enumerate(("market", "theatre", "museum"))}
    for n, (page_id, subject) in enumerate(pages.items()):  # of a site with one page no word tells anything
        put(site, page_id, f"<p>The {subject} opens at {n + 8} in the morning.</p>", title=subject.capitalize())
    saved = put(site, "funicular", "<p>A funicular ticket costs 6 euros for adults.</p>", title="Funicular")
    assert saved.status_code == 200, saved.text
    asked = "How much is a funicular ticket for adults?"
    answer: dict[str, Any] = site.post("/chat", json={"question": asked}).json()
    assert [source["page_id"] for source in answer["sources"] if source["cited"]] == ["funicular"], json.dumps(answer)
    request = answer["request_id"]
    rated = site.post(
        f"/answers/{request}/feedback",
        json={"rating": "down", "comment": "funicular.fan@mail.example, +49 171 2345678"},
    )
    assert rated.status_code == 204

    def listed(*options: str) -> dict[str, Any]:
        done = system.instance.run("questions", name, "--since", "1h", *options, "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    # The outcome and the feedback are two messages; either may be there first.
    eventually(lambda: listed("--disliked", "--text", "funicular")["counts"]["disliked"] == 1, every=0.5)
    [row] = listed("--text", "funicular")["questions"]
    assert row["request_id"] == request
    assert row["question"] == asked
    assert (row["feedback"], row["comment"], row["pages"]) == ("down", "[e-mail], [phone]", ["funicular"])
    assert row["became"] in ("answered", "page")
    assert row["first_token_ms"] > 0
    assert listed("--refused", "--text", "funicular")["questions"] == []

    shown = system.instance.run("questions", name, "--text", "funicular")
    assert shown.stdout.startswith("1 asked, 1 "), shown.stdout
    assert "1 disliked" in shown.stdout
    table = system.instance.run("questions", name, "--text", "funicular", "--csv")
    [line] = csv.DictReader(StringIO(table.stdout))
    # A quote before what a spreadsheet would take for a formula, as an id that begins with a dash.
    assert (line["request_id"].removeprefix("'"), line["feedback"]) == (request, "down")
    whole = json.loads(system.instance.run("questions", name, request).stdout)
    assert whole["outcome"]["hits"][0]["page_id"] == "funicular"
    assert whole["outcome"]["timings_ms"].keys() >= {"rephrase", "answer"}
    assert system.instance.run("questions", name, "request-of-nobody").returncode == 1
    assert system.instance.run("questions", "nowhere").returncode != 0
    assert system.instance.run("questions", name, "--outcome", "lost").returncode == 2

    # What is disliked is missed, and grouped by the vector that came with the outcome.
    done = system.instance.run("eval", "gaps", name, "--since", began, "--limit", "500", "--json")
    assert done.returncode == 0, done.stderr
    [group] = [
        one for one in json.loads(done.stdout)["groups"] if request in (q["request_id"] for q in one["questions"])
    ]
    # Other tests ask the same site, and what a ferry costs may mean the same: their questions are of the time before.
    assert group["disliked"] == group["asked"] == 1
    assert [page["page_id"] for page in group["pages"]][:1] == ["funicular"]
    assert "funicular" in system.instance.run("eval", "gaps", name, "--since", "1h", "--all", "--limit", "500").stdout

    assert site.delete(f"/conversations/{answer['conversation_id']}").status_code == 204
    forgotten = json.loads(system.instance.run("questions", name, request).stdout)
    assert (forgotten["erased"], forgotten["outcome"]["question"]) == (True, None)
    assert (forgotten["feedback"]["rating"], forgotten["feedback"]["comment"]) == ("down", None)
    assert "funicular.fan" not in json.dumps(forgotten).casefold()

    for page_id in (*pages, "funicular"):  # other tests ask the same site
        site.delete(f"/pages/{page_id}", params={"lang": "en", "wait": "searchable", "timeout": 60}).raise_for_status()
