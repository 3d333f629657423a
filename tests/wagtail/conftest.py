"""One Wagtail and one `pagewire up` for the whole ring; each test has its own pages."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import yaml

from infra.engine.state import any_free
from tests.acceptance.system import Instance, Started, eventually
from tests.engine_fixture import Servers
from tests.wagtail.peer import Editor, Wagtail
from tests.wordpress.receiver import SECRET, Receiver, receiving

Key = tuple[str, str]  # translation key, language


@dataclass
class Town:
    """The site, its editor, and the Pagewire that it sends to."""

    wagtail: Wagtail
    editor: Editor
    instance: Instance
    port: int
    pagewire: Started | None = None
    _up: ExitStack = field(default_factory=ExitStack)

    def python(self, code: str) -> Any:
        return self.wagtail.python(code)

    def start_pagewire(self) -> None:
        self.pagewire = self._up.enter_context(self.instance.started("up", "--port", str(self.port)))

    def stop_pagewire(self) -> None:
        self._up.close()
        self.pagewire = None

    def site(self) -> httpx.Client:
        return self.instance.client(f"http://127.0.0.1:{self.port}")

    def delivered(self) -> None:
        """Wait until nothing waits in Wagtail."""
        waiting = "result = list(PageRecord.objects.filter(waiting=True).values_list('page_key', 'problem')[:5])"
        eventually(lambda: self.python(waiting) == [], timeout=120)

    def state(self, key: Key) -> str:
        """Of the page at Pagewire: `searchable`, `deleted`, `never` and so on."""
        with self.site() as site:
            answer = site.get(f"/pages/{key[0]}/receipt", params={"lang": key[1]})
        return "never" if answer.status_code == 404 else str(answer.json()["state"])

    def found(self, words: str, lang: str | None = None) -> list[dict[str, Any]]:
        with self.site() as site:
            answer = site.get("/search", params={"q": words, "mode": "keyword", "size": 20})
        assert answer.status_code == 200, answer.text
        return [hit for hit in answer.json()["hits"] if lang in (None, hit["lang"])]

    def agree(self, *gone: Key) -> None:
        """Pagewire holds what a visitor of Wagtail who is not logged in is shown, and nothing else.

        Args:
            gone: pages that were deleted, and so cannot be asked for at Wagtail.
        """
        self.delivered()
        pages = self.python(
            "result = [[*key(p), p.full_url, p.title, p.alias_of_id, p.specific_class.__name__] "
            "for p in Page.objects.filter(depth__gt=1)]"
        )
        expected = {(id, lang): "never" for id, lang, *_ in pages} | dict.fromkeys(gone, "deleted")
        with httpx.Client(timeout=60) as visitor:
            for id, lang, url, title, alias, kind in pages:
                shown = bool(url) and f"<h1>{title}</h1>" in visitor.get(url).text  # a password's form is a 200, too
                if shown and not alias and kind != "InternalPage":
                    expected[(id, lang)] = "searchable"
        wrong: dict[Key, tuple[str, str]] = {}

        def look() -> bool:
            wrong.clear()
            with self.site() as site:
                for key, state in expected.items():
                    answer = site.get(f"/pages/{key[0]}/receipt", params={"lang": key[1]})
                    found = "never" if answer.status_code == 404 else answer.json()["state"]
                    if found != state and {found, state} != {"never", "deleted"}:
                        wrong[key] = (state, found)
            return not wrong

        try:
            eventually(look, timeout=90, every=0.3)
        except AssertionError:
            raise AssertionError(f"(expected, found) of pages: {wrong}\n{self.wagtail.log}") from None


@pytest.fixture(scope="package")
def town(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """Both running, nothing sent yet but what Wagtail's first request sends."""
    secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
    ports = {any_free(set())}
    ports.add(any_free(ports))
    pagewire_port, wagtail_port = ports
    instance = Instance(tmp_path_factory.mktemp("pagewire"), engine, PAGEWIRE_FETCH_ALLOW="127.0.0.1")
    config = instance.home / "pagewire.yaml"
    said = yaml.safe_load(config.read_text())
    url = f"http://127.0.0.1:{wagtail_port}"
    said["sites"][instance.site]["connectors"] = {"wagtail": {"kind": "wagtail", "url": url, "secret": secret}}
    config.write_text(yaml.safe_dump(said))
    wagtail = Wagtail(
        tmp_path_factory.mktemp("wagtail"),
        wagtail_port,
        TOWN_PAGEWIRE_URL=f"http://127.0.0.1:{pagewire_port}",
        TOWN_PAGEWIRE_SITE=instance.site,
        TOWN_PAGEWIRE_SECRET=secret,
    )
    with wagtail.running():
        wagtail.python(f"Site.objects.update(port={wagtail_port}); Site.clear_site_root_paths_cache()")
        editor = Editor(wagtail)
        town = Town(wagtail, editor, instance, pagewire_port)
        try:
            town.start_pagewire()
            synced = wagtail.manage("pagewire_sync")
            assert synced.returncode == 0, synced.stdout + synced.stderr
            yield town
        finally:
            town.stop_pagewire()
            editor.close()


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def wagtail(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wagtail]:
    wagtail = Wagtail(
        tmp_path_factory.mktemp("wagtail"),
        any_free(set()),
        TOWN_PAGEWIRE_URL=receiver.url,
        TOWN_PAGEWIRE_SITE="town",
        TOWN_PAGEWIRE_SECRET=SECRET,
    )
    with wagtail.running():
        yield wagtail
