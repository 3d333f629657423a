"""`pagewire eval check` and `eval run`: the sample site's own questions, asked of the running system."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml

from bench.visitors import LANGUAGES, part_of
from bench.visitors import cases as visitors
from cli.demo import sample_pages
from sites.content import load_site
from tests.acceptance.conftest import System
from tests.acceptance.system import PAGEWIRE, save

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def site(system: System) -> str:
    """A site that has the sample site's pages."""
    site = system.instance.sites[2]
    with system.instance.client(system.url, site) as client:
        for page in sample_pages(system.url):
            save(client, page)
    return site


def check(system: System, site: str, examples: object, *options: str) -> subprocess.CompletedProcess[str]:
    """With example questions in a pagewire.yaml of its own: what runs need not know them."""
    config = system.instance.home / "check.yaml"
    chat = {"examples": examples}
    config.write_text(yaml.safe_dump({"sites": {site: {"languages": ["de", "en"], "chat": chat}}}), "utf-8")
    environment = system.instance.environment | {"PAGEWIRE_CONFIG": str(config)}
    return subprocess.run(
        [PAGEWIRE, "eval", "check", site, *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_questions_that_the_sample_site_offers_are_answered_from_its_pages(system: System, site: str) -> None:
    offered = {lang: list(texts) for lang, texts in load_site().example_questions.items()}
    done = check(system, site, offered, "--json")
    report = json.loads(done.stdout)
    assert report["asked"] == sum(map(len, offered.values()))
    problems = {one["question"]: one["problem"] for one in report["questions"] if one["problem"]}
    assert (problems, done.returncode, report["failed"]) == ({}, 0, 0)

    failing = check(system, site, {"en": ["Which submarine won the opera prize on Jupiter?", *offered["en"][:1]]})
    assert failing.returncode == 1
    assert "refused" in failing.stdout
    assert "1 of 2 are answered as they should be" in failing.stdout


def test_a_dataset_is_evaluated_over_http_and_compared_with_an_earlier_run(system: System, site: str) -> None:
    dataset, live = system.instance.home / "library.yaml", system.instance.home / "live.ndjson"
    price = "What does a library card cost for adults?"
    cases = [
        {"question": price, "lang": "en", "page": "library", "facts": ["18"]},
        {"question": price, "lang": "en", "history": ["Hello there"], "page": "library", "tags": ["after a greeting"]},
        {"question": "Which submarine won the opera prize on Jupiter?", "lang": "en", "answerable": False},
        {"question": "Hello there", "lang": "en", "expect": "courtesy"},
    ]
    dataset.write_text(yaml.safe_dump({"name": "library", "version": 1, "cases": cases}), "utf-8")
    command = ("eval", "run", site, "--dataset", str(dataset), "--url", system.url, "--json")
    done = system.instance.run(*command, "--run", str(live), "--least", "right=1", "--least", "hit@5=1")
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)["report"]["groups"]["all"]
    assert (figures["right"]["cases"], figures["hit@5"]["cases"], figures["refusal"]["mean"]) == (4, 2, 1)
    with system.instance.client(system.url, site) as client:
        kept = client.get("/conversations").json()
    assert not any(kept.values()), kept  # what is asked for an evaluation is not kept

    again = system.instance.run(*command, "--against", str(live), "--margin", "0.5")
    assert again.returncode == 1, again.stderr
    told = json.loads(again.stdout)["comparison"]
    assert (told["outcome"], told["needed"]) == ("too few cases", 5)


def test_the_gold_set_of_the_sample_site_is_answered_about_as_well_as_it_is_known_to_be(
    system: System, site: str
) -> None:
    """The part that is tuned on, without a model. The bars are below what is measured, in both halves of its cases."""
    dataset = system.instance.home / "gold.ndjson"
    cases = [case for case in part_of(visitors(), "tune") if case.now is None and case.lang in LANGUAGES]
    assert len(cases) >= 200
    dataset.write_text("".join(f"{case.model_dump_json(exclude_defaults=True)}\n" for case in cases), "utf-8")
    done = system.instance.run(
        "eval", "run", site, "--dataset", str(dataset), "--url", system.url, "--json",
        "--least", "right=0.5", "--least", "hit@1=0.65", "--least", "hit@5=0.85",
        timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    groups = json.loads(done.stdout)["report"]["groups"]
    assert groups["all"]["right"]["cases"] == len(cases)
