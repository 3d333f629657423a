"""A real Wagtail on loopback: the project in town/, SQLite, two gunicorn workers with two threads each.

    town/ + migrations ─▶ base database, made once and kept in .venv-wagtail ─▶ copied for each run

Wagtail lives in an environment of its own; what is started is one process group, and is gone at the end.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from textwrap import dedent
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import httpx

REPOSITORY = Path(__file__).parents[2]
TOWN = Path(__file__).parent / "town"
APP = REPOSITORY / "connectors/cms/wagtail/app/pagewire_wagtail"
ENVIRONMENT = REPOSITORY / ".venv-wagtail"
START_TIMEOUT = 120.0  # seconds; CI machines are shared
COMMAND_TIMEOUT = 120.0  # seconds


class Wagtail:
    """One running site."""

    def __init__(self, folder: Path, port: int, **settings: str) -> None:
        """
        Args:
            settings: TOWN_* of town/townsite/settings.py.
        """
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "wagtail.log"
        self._port = port
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PAGEWIRE_", "DJANGO_"))},
            "TOWN_DB": str(folder / "db.sqlite3"),
            "TOWN_PORT": str(port),
            **settings,
        }
        shutil.copy(_base(), folder / "db.sqlite3")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve until the end of the context."""
        command = [
            ENVIRONMENT / "bin/gunicorn",
            "--bind",
            f"127.0.0.1:{self._port}",
            "--workers",
            "2",
            "--threads",
            "2",
        ]
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [*command, "townsite.wsgi"], cwd=TOWN, env=self._environment, stderr=log, start_new_session=True
            )
        try:
            end = monotonic() + START_TIMEOUT
            while not self._answers():
                assert process.poll() is None, self.log
                assert monotonic() < end, self.log
                sleep(0.1)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    @property
    def log(self) -> str:
        """What the workers wrote."""
        return self._log.read_text() if self._log.exists() else ""

    def python(self, code: str) -> Any:
        """What the code calls `result`, run in a web worker, where the project's own code runs."""
        answer = httpx.post(f"{self.url}/python", content=PRELUDE + dedent(code), timeout=60)
        assert answer.status_code == 200, answer.json()["error"] if "json" in answer.headers["content-type"] else answer
        return answer.json()["result"]

    def manage(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """A command of manage.py, in a process of its own."""
        return subprocess.run(
            [ENVIRONMENT / "bin/python", "manage.py", *arguments],
            cwd=TOWN,
            env=self._environment | settings,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
            check=False,
        )

    def start(self, *arguments: str) -> Command:
        """A command that goes on until it is stopped, and says when it has begun."""
        command = [ENVIRONMENT / "bin/python", "manage.py", *arguments]
        return Command(subprocess.Popen(command, cwd=TOWN, env=self._environment, stdout=subprocess.PIPE))

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/admin/login/", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


class Command:
    """A running command of manage.py."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert process.stdout
        assert process.stdout.readline()

    def stop(self) -> int:
        self._process.terminate()
        self._process.communicate(timeout=COMMAND_TIMEOUT)
        return self._process.returncode


PRELUDE = """
import json
from datetime import timedelta
from django.db import transaction
from django.utils import timezone
from wagtail.models import Locale, Page, PageViewRestriction, Site
from pagewire_wagtail.models import CourierState, PageRecord
from townsite.models import ArticlePage, InternalPage, NewsPage, OwnWordsPage

def text(words):
    return [("text", f"<p>{words}</p>")]

def article(title, words="", parent=None, publish=True):
    page = ArticlePage(title=title, body=text(words), live=False)
    (parent or home()).add_child(instance=page)
    if publish:
        page.save_revision().publish()
    return ArticlePage.objects.get(pk=page.pk)

def home(code="en"):
    return ArticlePage.objects.get(depth=2, locale__language_code=code)

def named(title):
    return Page.objects.get(title=title).specific

def make_due(page):  # what was planned for later is due now
    past = timezone.now() - timedelta(seconds=5)
    Page.objects.filter(pk=page.pk, live=False).update(go_live_at=past)
    for revision in page.revisions.exclude(approved_go_live_at=None):
        revision.content["go_live_at"] = past.isoformat()
        revision.approved_go_live_at = past
        revision.save()

def key(page):
    return [str(page.translation_key), {"pt-br": "pt-BR"}.get(page.locale.language_code, page.locale.language_code)]
"""


class Editor:
    """Somebody in Wagtail's admin: reads forms, fills them in, sends them."""

    def __init__(self, wagtail: Wagtail) -> None:
        self._client = httpx.Client(base_url=wagtail.url, timeout=60)
        self._submit("/admin/login/", username="editor", password="pw")

    def close(self) -> None:
        self._client.close()

    def read(self, path: str) -> str:
        """A page of the admin."""
        return self._client.get(path).raise_for_status().text

    def publish(self, page: str, title: str, words: str, **more: str) -> None:
        """Send the form of a page that is to be added (`add/townsite/articlepage/3`) or edited (`12/edit`)."""
        self._edit(page, title, words, {"action-publish": "action-publish", **more})

    def save_draft(self, page: str, title: str, words: str) -> None:
        self._edit(page, title, words, {})

    def unpublish(self, pk: int) -> None:
        self._submit(f"/admin/pages/{pk}/unpublish/")

    def delete(self, pk: int) -> None:
        self._submit(f"/admin/pages/{pk}/delete/")

    def move(self, pk: int, parent: int) -> None:
        self._submit(f"/admin/pages/{pk}/move/{parent}/confirm/")

    def restrict(self, pk: int, kind: str) -> None:
        """`none`, `login`, or `password`."""
        self._submit(f"/admin/pages/{pk}/privacy/", restriction_type=kind, password="open sesame", ajax=True)

    def _edit(self, page: str, title: str, words: str, more: dict[str, str]) -> None:
        stream = {
            "body-count": "1",
            "body-0-deleted": "",
            "body-0-order": "0",
            "body-0-type": "text",
            "body-0-id": str(uuid4()),
            "body-0-value": DRAFTAIL % words,
        }
        self._submit(f"/admin/pages/{page}/", title=title, **stream, **more)

    def _submit(self, path: str, ajax: bool = False, **fields: str) -> None:
        form = self._client.get(path)
        assert form.status_code == 200, f"{path}: {form.status_code}"
        sent = _hidden(form.text) | fields | {"csrfmiddlewaretoken": self._client.cookies["csrftoken"]}
        answer = self._client.post(path, data=sent, headers={"Referer": str(form.url)})
        assert answer.status_code == (200 if ajax else 302), f"{path}: {answer.status_code} {_errors(answer.text)}"


DRAFTAIL = (
    '{"blocks": [{"key": "aaaaa", "text": "%s", "type": "unstyled", "depth": 0, "inlineStyleRanges": [],'
    ' "entityRanges": []}], "entityMap": {}}'
)


def _hidden(html: str) -> dict[str, str]:
    """What a browser sends without anybody filling it in."""
    from bs4 import BeautifulSoup

    fields: dict[str, str] = {}
    for tag in BeautifulSoup(html, "lxml").select("form input[name], form textarea[name], form select[name]"):
        kind = str(tag.get("type", tag.name))
        if kind in ("submit", "file", "search") or (kind in ("checkbox", "radio") and not tag.has_attr("checked")):
            continue
        fields[str(tag["name"])] = str(tag.get("value", "")) if tag.name == "input" else tag.get_text().strip()
    return fields


def _errors(html: str) -> str:
    return " ".join(re.findall(r"error-message[^>]*>\s*([^<]+)", html)) or html[:500]


def _base() -> Path:
    """The base database; made again when what it is made from changed."""
    made_from = sha256((REPOSITORY / "connectors/cms/wagtail/app/requirements.lock").read_bytes())
    for path in sorted(
        [*(APP / "migrations").glob("*.py"), *TOWN.glob("townsite/*.py"), *TOWN.glob("*/migrations/*.py")]
    ):
        made_from.update(path.read_bytes())
    base = ENVIRONMENT / f"base-{made_from.hexdigest()[:16]}.sqlite3"
    if not base.exists():
        making = base.with_suffix(f".{os.getpid()}.making")
        made = subprocess.run(
            [ENVIRONMENT / "bin/python", "-m", "townsite.base"],
            cwd=TOWN,
            env=os.environ | {"TOWN_DB": str(making)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        for old in ENVIRONMENT.glob("base-*.sqlite3"):
            old.unlink(missing_ok=True)
        making.rename(base)
    return base


if __name__ == "__main__":
    print(_base())
