"""One Drupal and one `pagewire up` for the whole ring; each test has its own pages."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import yaml

from infra.engine.state import any_free
from tests.acceptance.system import Instance, eventually
from tests.drupal.peer import Drupal, Editor
from tests.engine_fixture import Servers


@dataclass
class Town:
    """The site, its editor, and the Pagewire that it sends to."""

    drupal: Drupal
    editor: Editor
    instance: Instance
    pagewire: str

    def site(self) -> httpx.Client:
        return self.instance.client(self.pagewire)

    def found(self, words: str, lang: str = "en") -> list[str]:
        """Texts of contents that have the words."""
        with self.site() as site:
            answer = site.get("/search", params={"q": words, "mode": "keyword", "size": 20})
        assert answer.status_code == 200, answer.text
        return [hit["text"] for hit in answer.json()["hits"] if hit["field"] == "content" and hit["lang"] == lang]

    def shows(self, words: str, *texts: str, lang: str = "en") -> None:
        """Wait until these are found, and nothing else."""
        eventually(lambda: sorted(self.found(words, lang)) == sorted(texts), timeout=60)

    def reconcile(self) -> dict[str, Any]:
        done = self.instance.run("reconcile", self.instance.site, "drupal", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        (report,) = json.loads(done.stdout)
        return dict(report)


@pytest.fixture(scope="session")
def town(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
    drupal = Drupal(tmp_path_factory.mktemp("drupal"), any_free(set()))
    instance = Instance(tmp_path_factory.mktemp("pagewire"), engine, PAGEWIRE_FETCH_ALLOW="127.0.0.1")
    config = instance.home / "pagewire.yaml"
    said = yaml.safe_load(config.read_text())
    said["sites"][instance.site]["connectors"] = {"drupal": {"kind": "drupal", "url": drupal.url, "secret": secret}}
    config.write_text(yaml.safe_dump(said))
    drupal.install()
    with ExitStack() as up:
        up.enter_context(drupal.running())
        pagewire = up.enter_context(instance.started("up"))
        drupal.connect(pagewire.url, instance.site, secret)
        editor = Editor(drupal)
        up.callback(editor.close)
        yield Town(drupal, editor, instance, pagewire.url)
        assert not drupal.log, "the module made PHP complain"
