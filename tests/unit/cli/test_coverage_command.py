"""What `pagewire coverage` prints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from cli import coverage
from cli.main import app
from pipelines.query.log.gaps import Period
from pipelines.runtime.errors import PagewireError
from schemas.coverage import CoverageCount, CoverageReport, CoverageTopic, TopicPage
from schemas.gaps import GapQuestion
from tests.asking import NOON

PERIOD = Period.of_days(30, NOON)
POOL = TopicPage(page_id="pool", lang="en", title="Pool", url="https://town.example/p", distance=0.31, cited=0)


def sample(text: str) -> GapQuestion:
    return GapQuestion(
        request_id="request-0001", question=text, lang="en", asked_at=NOON, asked=1, became="refused", missed=True
    )


RINK = CoverageTopic(
    kind="uncovered",
    label="Where is the [ice] rink?",
    pages=0,
    asked=9,
    answered=1,
    refused=7,
    distance=0.41,
    page_samples=(POOL,),
    questions=(sample("Where is the [ice] rink?"), sample("skating")),
)
CHESS = CoverageTopic(kind="unasked", label="Chess club", pages=3, asked=0, distance=None, page_samples=(POOL,))


def made(**more: Any) -> CoverageReport:
    said: dict[str, Any] = {
        "pages": 1214, "asked": 214, "uncovered": CoverageCount(topics=12, asked=40),
        "unasked": CoverageCount(topics=1, pages=3), "covered": CoverageCount(), "topics": (RINK, CHESS),
    }  # fmt: skip
    period = {"since": PERIOD.since, "until": PERIOD.until, "made_at": NOON}
    return CoverageReport(site="town", **period | said | more)


def test_topics_are_told_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    coverage._print(made(without_words=3, pages_cut=True, questions_cut=True))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1,214 pages, 214 questions since 2026-04-04")
    assert lines[0].endswith("3 have no words to group them by")
    assert "the oldest are left out" in lines[1]
    assert "1,214 were read" in lines[2]
    assert lines[4] == "asked, not covered: 12 topics, 0 pages, 40 questions"
    assert lines[5].split() == ["asked", "answered", "refused", "pages", "near", "topic", "pages"]
    assert lines[6].split()[:5] == ["9", "1", "7", "0", "0.41"]
    assert "Where is the [ice] rink?" in lines[6]
    assert "Pool https://town.example/p" in lines[6]
    assert lines[7].strip() == "skating"
    assert lines[8] == "1 of 12 topics; more with --limit"
    assert lines[10] == "covered, not asked: 1 topics, 3 pages, 0 questions"
    assert "covered and asked" not in "".join(lines)


def test_a_script_gets_json_of_the_kind_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, float]] = []

    async def report(site: str, days: float, until: object) -> CoverageReport:
        asked.append((site, round(days)))
        return made()

    monkeypatch.setattr(coverage, "_report", report)
    result = CliRunner().invoke(app, ["coverage", "town", "--since", "7d", "--kind", "unasked", "--json"])
    assert result.exit_code == 0, result.output
    assert [topic["label"] for topic in json.loads(result.stdout)["topics"]] == ["Chess club"]
    assert asked == [("town", 7)]


@pytest.mark.parametrize(
    "options",
    [["--since", "lately"], ["--since", "1d", "--until", "2d"], ["--limit", "0"], ["--limit", "501"], ["--kind", "no"]],
)
def test_wrong_use_is_told(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(*_: object) -> CoverageReport:
        raise PagewireError("must not be asked")

    monkeypatch.setattr(coverage, "_report", nobody)
    assert CliRunner().invoke(app, ["coverage", "town", *options]).exit_code == 2
