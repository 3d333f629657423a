"""`pagewire check`: the sample site's own example questions, asked of the running system."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml

from cli.demo import sample_pages
from sites.content import load_site
from tests.acceptance.conftest import System
from tests.acceptance.system import PAGEWIRE

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]  # machines are shared


def check(system: System, site: str, examples: object, *options: str) -> subprocess.CompletedProcess[str]:
    """With example questions in a pagewire.yaml of its own: what runs need not know them."""
    config = system.instance.home / "check.yaml"
    chat = {"examples": examples}
    config.write_text(yaml.safe_dump({"sites": {site: {"languages": ["de", "en"], "chat": chat}}}), "utf-8")
    environment = system.instance.environment | {"PAGEWIRE_CONFIG": str(config)}
    return subprocess.run(
        [PAGEWIRE, "check", site, *options], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_questions_that_the_sample_site_offers_are_answered_from_its_pages(system: System) -> None:
    site = system.instance.sites[2]
    with system.instance.client(system.url, site) as client:
        for page in sample_pages(system.url):
            saved = client.put(
                f"/pages/{page.id}?wait=searchable&timeout=120",
                content=page.model_dump_json(exclude_none=True),
                headers={"Content-Type": "application/json"},
            )
            assert saved.status_code == 200, saved.text
    offered = {lang: list(texts) for lang, texts in load_site().example_questions.items()}
    done = check(system, site, offered, "--json")
    report = json.loads(done.stdout)
    assert report["asked"] == sum(map(len, offered.values()))
    problems = {one["question"]: one["problem"] for one in report["questions"] if one["problem"]}
    assert (problems, done.returncode, report["failed"]) == ({}, 0, 0)

    failing = check(system, site, {"en": ["Which submarine won the opera prize on Jupiter?", *offered["en"][:1]]})
    assert failing.returncode == 1
    assert "refused" in failing.stdout
    assert "1 of 2 are answered from a page" in failing.stdout
