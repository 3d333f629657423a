"""`pagewire prompts`: what is kept, what the gate lets through, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.run import AskCase
from pipelines.runtime.errors import Retryable
from prompts.loader import written
from schemas.text_version import TextVersion
from schemas.trial import TrialSettings
from tests.fakes.ports import FakePorts
from tests.unit.cli.conftest import Run
from tests.unit.evaluate.runs import as_yaml, right

WRONG = {"answer": "No idea.", "sources": (), "found": (), "grade": 4}
BETTER = written("answer").replace("{site}", "{site}, our town", 1)


class Town:
    """Stands where the running system would. `answers`: what is answered with a prompt; None: the live one. `worse`:
    with settings it knows nothing."""

    answers: Callable[[Case, str | None], Observed]
    asked: list[tuple[str, str | None]]
    named: set[str]
    tried: list[TrialSettings]
    worse: bool

    def __init__(self, url: str, site: str, key: Any) -> None:
        self.prompt: str | None = None
        self.filed = False

    def under(self, settings: TrialSettings) -> AskCase:
        self.prompt, self.filed = settings.prompt, settings.filed
        Town.named.add(settings.prompt_name)
        Town.tried.append(settings)
        return self.ask

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, case: Case) -> Observed:
        if Town.worse and self.filed:
            return right(case).model_copy(update=WRONG)
        Town.asked.append((case.id, self.prompt))
        return Town.answers(case, self.prompt)


@pytest.fixture
def town(run: Run, monkeypatch: pytest.MonkeyPatch) -> type[Town]:
    """A site with files of its own, a system that knows everything, and `town.yaml` with 150 cases."""
    monkeypatch.setattr("adapters.http_site.HttpTrials", Town)
    Path("town.yaml").write_text(as_yaml(150), encoding="utf-8")
    Path("answer.yaml").write_text(BETTER, encoding="utf-8")
    Path("contact.md").write_text("Call us.\n", encoding="utf-8")
    Town.asked, Town.answers = [], staticmethod(lambda case, prompt: right(case))
    Town.named, Town.tried, Town.worse = set(), [], False
    return Town


def kept(fakes: FakePorts, name: str = "answer") -> list[TextVersion]:
    return [one for one in fakes.texts.kept.values() if one.name == name]


def test_settings_go_live_through_the_gate_and_back(run: Run, town: type[Town], fakes: FakePorts) -> None:
    Path("settings.yaml").write_text("strategy: retrieval-gate\nhits: 4\n", encoding="utf-8")
    promote = ("prompts", "promote", "town", "settings/answers", "--dataset", "town.yaml", "--json")
    run("prompts", "propose", "town", "settings.yaml", "settings/answers", "--note", "quicker")
    assert json.loads(run(*promote).stdout)["promoted"]["version"] == 2
    # What it does not say is as pagewire.yaml has it, whatever is live.
    assert town.tried == [TrialSettings(), TrialSettings(strategy="retrieval-gate", hits=4, filed=True)]
    assert len(town.asked) == 300
    assert [(one.kind, one.text) for one in kept(fakes, "answers") if not one.candidate] == [
        ("settings", "strategy: retrieval-gate\nhits: 4")
    ]
    run("prompts", "rollback", "town", "settings/answers")
    assert "strategy: plain" in run("prompts", "show", "town", "settings/answers").stdout
    assert {(entry.action, entry.target) for entry in fakes.audit_log.kept} == {
        (f"texts.{act}", "settings/answers") for act in ("propose", "restore", "rollback")
    }


def test_settings_that_are_worse_or_none_stay_out(run: Run, town: type[Town], fakes: FakePorts) -> None:
    Path("settings.yaml").write_text("hits: 1\n", encoding="utf-8")
    run("prompts", "propose", "town", "settings.yaml", "settings/answers")
    town.worse = True
    done = run("prompts", "promote", "town", "settings/answers", "--dataset", "town.yaml", code=1)
    assert "not promoted: what was live stays live" in done.stdout
    assert [one.candidate for one in kept(fakes, "answers")] == [True]
    Path("settings.yaml").write_text("hits: many\n", encoding="utf-8")
    done = run("prompts", "propose", "town", "settings.yaml", "settings/answers", code=1)
    assert "settings: hits: Input should be a valid integer" in " ".join(done.output.split())


PROMOTE = ("prompts", "promote", "town", "answer", "--dataset", "town.yaml")


def test_a_candidate_that_is_not_worse_goes_live_and_back(run: Run, town: type[Town], fakes: FakePorts) -> None:
    assert (
        "kept as version 1, not live"
        in run("prompts", "propose", "town", "answer.yaml", "--note", "names the town").stdout
    )
    told = json.loads(run(*PROMOTE, "--json").stdout)
    assert (told["comparison"]["outcome"], told["candidate"], told["promoted"]["version"]) == ("passed", 1, 2)
    assert [prompt for _, prompt in town.asked] == [None] * 150 + [BETTER.strip()] * 150
    assert [(one.version, one.candidate, one.of) for one in kept(fakes)] == [(1, True, None), (2, False, 1)]
    [live] = [one for one in json.loads(run("prompts", "list", "town", "--json").stdout) if one["version"]]
    assert (live["text"], live["from"], live["version"]) == ("prompts/answer", "live", 2)
    assert "the site's files are live again, as version 3" in run("prompts", "rollback", "town").stdout
    run("prompts", "rollback", "town", code=1)
    assert [entry.action for entry in fakes.audit_log.kept] == [
        "texts.propose",
        "texts.restore",
        "texts.rollback",
        "texts.rollback",
    ]


def test_a_candidate_that_is_worse_stays_one(run: Run, town: type[Town], fakes: FakePorts) -> None:
    def worse(case: Case, prompt: str | None) -> Observed:
        return right(case).model_copy(update=WRONG if prompt and int(case.id[1:]) % 4 == 0 else {})

    Town.answers = staticmethod(worse)
    run("prompts", "propose", "town", "answer.yaml")
    assert "not promoted: what was live stays live" in run(*PROMOTE, code=1).stdout
    assert [one.candidate for one in kept(fakes)] == [True]


def test_what_was_stopped_goes_on(run: Run, town: type[Town], fakes: FakePorts) -> None:
    def stopped(case: Case, prompt: str | None) -> Observed:
        if prompt and len(Town.asked) > 200:
            raise Retryable("the gateway is away")
        return right(case)

    Town.answers = staticmethod(stopped)
    run("prompts", "propose", "town", "answer.yaml")
    run(*PROMOTE, "--at-once", "1", code=3)
    assert len(town.asked) == 201
    town.asked, Town.answers = [], staticmethod(lambda case, prompt: right(case))
    run(*PROMOTE)
    assert [prompt for _, prompt in town.asked] == [BETTER.strip()] * 100
    town.asked = []
    run("prompts", "propose", "town", "answer.yaml", "--note", "again")
    run("prompts", "rollback", "town")
    run(*PROMOTE, "--version", "1")
    assert len(town.asked) == 300  # both anew: the system may be another by now


def test_what_somebody_else_has_changed_meanwhile_stays(run: Run, town: type[Town], fakes: FakePorts) -> None:
    def meddling(case: Case, prompt: str | None) -> Observed:
        if not any(one.version == 2 for one in kept(fakes)):
            fakes.texts.kept["town", "prompts", "answer", 2] = kept(fakes)[0].model_copy(
                update={"version": 2, "candidate": False, "text": written("answer").strip(), "by": "ben"}
            )
        return right(case)

    run("prompts", "propose", "town", "answer.yaml")
    Town.answers = staticmethod(meddling)
    assert "was changed meanwhile" in run(*PROMOTE, code=1).output
    assert [one.by for one in kept(fakes) if not one.candidate] == ["ben"]


def test_what_questions_are_rephrased_by_goes_through_the_same_gate(
    run: Run, town: type[Town], fakes: FakePorts
) -> None:
    shorter = written("rephrase").replace("{site}", "{site}, our town", 1)
    Path("rephrase.yaml").write_text(shorter, encoding="utf-8")
    run("prompts", "propose", "town", "rephrase.yaml", "rephrase")
    told = json.loads(run("prompts", "promote", "town", "rephrase", "--dataset", "town.yaml", "--json").stdout)
    assert (told["text"], told["promoted"]["version"]) == ("prompts/rephrase", 2)
    assert [prompt for _, prompt in town.asked] == [None] * 150 + [shorter.strip()] * 150
    assert town.named == {"rephrase"}
    assert "the site's files are live again" in run("prompts", "rollback", "town", "rephrase").stdout


def test_the_gate_is_for_what_answers_hang_on_and_can_be_left_out(run: Run, town: type[Town], fakes: FakePorts) -> None:
    run("prompts", "propose", "town", "contact.md", "contact/en")
    run("prompts", "promote", "town", "contact/en", code=2)
    for text in ("contact/en", "title"):
        run("prompts", "promote", "town", text, "--dataset", "town.yaml", code=2)
    run("prompts", "promote", "town", "contact/en", "--dataset", "town.yaml", "--without-gate", code=2)
    assert "version 2 is live" in run("prompts", "promote", "town", "contact/en", "--without-gate").stdout
    assert "Call us." in run("prompts", "show", "town", "contact/en").stdout
    assert town.asked == []


def test_a_glossary_is_put_to_use_and_taken_back(run: Run) -> None:
    Path("terms.yaml").write_text("Lido: {en: [pool, baths]}\n", encoding="utf-8")
    run("prompts", "propose", "town", "terms.yaml", "glossary/terms", "--note", "asked for")
    run("prompts", "promote", "town", "glossary/terms", "--without-gate")
    assert "glossary/terms" in run("prompts", "list", "town").stdout
    assert "Lido: {en: [pool, baths]}" in run("prompts", "show", "town", "glossary/terms").stdout
    assert "the site's files are live again" in run("prompts", "rollback", "town", "glossary/terms").stdout


def test_too_few_cases_are_told_before_anything_is_asked(run: Run, town: type[Town], fakes: FakePorts) -> None:
    Path("town.yaml").write_text(as_yaml(20), encoding="utf-8")
    run("prompts", "propose", "town", "answer.yaml")
    assert "needed for a margin of 0.03" in run(*PROMOTE, code=1).output
    assert town.asked == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("promote", "town", "answer", "--dataset", "town.yaml"), 1),  # no candidate
        (("promote", "town", "--version", "7", "--without-gate"), 1),
        (("propose", "town", "contact.md"), 1),  # no prompt
        (("propose", "town", "answer.yaml", "anwser"), 1),
        (("propose", "town", "answer.yaml", "glossary/x"), 1),
        (("propose", "town", "contact.md", "glossary/terms"), 1),
        (("propose", "town", "answer.yaml", "replies/x"), 2),
        (("propose", "nowhere", "answer.yaml"), 2),
        (("show", "town", "answer", "--version", "7"), 1),
        (("rollback", "town"), 1),
    ],
)
def test_what_is_not_so_and_what_is_wrong_use(
    run: Run, town: type[Town], fakes: FakePorts, arguments: tuple[str, ...], code: int
) -> None:
    run("prompts", *arguments, code=code)
    assert kept(fakes) == []


def test_versions_are_shown(run: Run, town: type[Town], fakes: FakePorts) -> None:
    run("prompts", "propose", "town", "answer.yaml", "--note", "names the town")
    shown = run("prompts", "show", "town").stdout
    assert "names the town" in shown
    assert "candidate" in shown
    assert run("prompts", "show", "town", "--version", "1").stdout.strip() == BETTER.strip()
    assert run("prompts", "show", "town", "--version", "0").stdout.strip() == written("answer").strip()
    assert json.loads(run("prompts", "show", "town", "--json").stdout)["live"] == 0
