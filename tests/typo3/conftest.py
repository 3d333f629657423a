"""One TYPO3 and one `pagewire up` for the whole ring; each test has its own pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from infra.engine.state import any_free
from tests.acceptance.system import Instance, eventually
from tests.engine_fixture import Servers
from tests.typo3.peer import Typo3


@dataclass
class Town:
    """The site, and the Pagewire that it sends to."""

    typo3: Typo3
    instance: Instance
    pagewire: str

    def site(self) -> httpx.Client:
        return self.instance.client(self.pagewire)

    def found(self, words: str, lang: str = "en") -> list[str]:
        """Texts of contents that have the words."""
        with self.site() as site:
            answer = site.get("/search", params={"q": words, "mode": "keyword", "size": 20})
        if answer.status_code == 503:
            return ["the search is not there yet"]
        assert answer.status_code == 200, answer.text
        return [hit["text"] for hit in answer.json()["hits"] if hit["field"] == "content" and hit["lang"] == lang]

    def shows(self, words: str, *texts: str, lang: str = "en") -> None:
        """Send what waits, and wait until these texts are found and nothing else."""
        self.typo3.send()
        eventually(lambda: sorted(self.found(words, lang)) == sorted(texts), timeout=60)


@pytest.fixture(scope="session")
def town(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    typo3 = Typo3(tmp_path_factory.mktemp("typo3"), any_free(set()))
    instance = Instance(tmp_path_factory.mktemp("pagewire"), engine, PAGEWIRE_FETCH_ALLOW="127.0.0.1")
    config: Path = instance.home / "pagewire.yaml"
    said = yaml.safe_load(config.read_text())
    connector = {"kind": "sitemap", "url": typo3.url, "crawl": True, "delay": 0}
    said["sites"][instance.site]["connectors"] = {"typo3": connector}
    config.write_text(yaml.safe_dump(said))
    typo3.install()
    with ExitStack() as up:
        up.enter_context(typo3.running())
        pagewire = up.enter_context(instance.started("up"))
        typo3.connect(pagewire.url, instance.site, "key-of-the-acceptance-ring")
        yield Town(typo3, instance, pagewire.url)
