"""A real Drupal on loopback: a copy of the project that DRUPAL names, SQLite, PHP's own server with workers.

    DRUPAL (a Composer project with Drush) ─▶ hard links in our own folder ─▶ installed anew, with the packed module

The files of that project stay as they are; what is started is one process group, and is gone at the end.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from zipfile import ZipFile

import httpx
from bs4 import BeautifulSoup

from connectors.cms.package import pack

START_TIMEOUT = 120.0  # seconds
USER, PASSWORD = "admin", "pw of the tests"


def given() -> Path | None:
    """The project that DRUPAL names, if there is one."""
    root = Path(os.environ.get("DRUPAL") or "/nowhere")
    return root if (root / "web/core/lib/Drupal.php").exists() and shutil.which("php") else None


PRELUDE = """use Drupal\\node\\Entity\\Node; use Drupal\\workspaces\\Entity\\Workspace;
use Drupal\\taxonomy\\Entity\\Term;
function text($words) { return ['value' => "<p>$words</p>", 'format' => 'basic_html']; }
function article($title, $words, $more = []) {
  return Node::create($more + ['type' => 'article', 'title' => $title, 'status' => 1, 'body' => text($words)]);
}
function titled($title) {
  return current(\\Drupal::entityTypeManager()->getStorage('node')->loadByProperties(['title' => $title]));
}
"""


class Drupal:
    """One running site, seen as an editor, a visitor and an administrator see it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.root = folder / "project"
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "web.log"
        _copy(given() or Path("/nowhere"), self.root)
        (self.root / "web/modules").mkdir(exist_ok=True)
        with ZipFile(pack("drupal", folder)) as packed:
            packed.extractall(self.root / "web/modules")

    def install(self) -> None:
        """Drupal's standard profile in English and German, with the module."""
        database = "sqlite://sites/default/files/.ht.sqlite"
        self.drush(
            "site:install", "standard", f"--db-url={database}", f"--account-name={USER}", f"--account-pass={PASSWORD}"
        )
        self.drush("pm:install", "pagewire", "language", "content_translation", "workspaces")
        self.php(
            "\\Drupal\\language\\Entity\\ConfigurableLanguage::createFromLangcode('de')->save();"
            "\\Drupal::service('content_translation.manager')->setEnabled('node', 'article', TRUE);"
        )

    def connect(self, url: str, site: str, secret: str) -> None:
        """The module's settings, as its form keeps them."""
        settings = {"url": url, "site": site, "connector": "drupal", "website": self.url, "types": []}
        self.php(
            "$c = \\Drupal::configFactory()->getEditable('pagewire.settings');"
            f"foreach ({_literal(settings)} as $k => $v)"
            f" {{ $c->set($k, $v); }} $c->save(); \\Drupal::state()->set('pagewire.secret', {_literal(secret)});"
            "\\Drupal::service('pagewire.sender')->forgive();"
        )

    def drush(self, *arguments: str, ok: bool = True) -> str:
        """A command of Drush, in a process of its own; what it prints."""
        command = ["php", "-d", "memory_limit=1G", "vendor/bin/drush", f"--root={self.root / 'web'}", "-y", *arguments]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=300, check=False)
        assert not ok or done.returncode == 0, f"{arguments[0]}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def php(self, code: str) -> Any:
        """Run PHP inside this Drupal; what it assigns to `$result`."""
        said = self.drush(
            "php:eval", f'{PRELUDE}$result = NULL; {code} echo "\\nRESULT " . json_encode($result) . "\\n";'
        )
        return json.loads(said.rpartition("RESULT ")[2])

    def waiting(self) -> list[str]:
        """Pages that are not delivered yet."""
        found: list[str] = self.php(
            "$result = \\Drupal::database()->query("
            "'SELECT page_id FROM {pagewire_page} WHERE waiting <> 0')->fetchCol();"
        )
        return found

    @property
    def log(self) -> str:
        """What the web server wrote besides requests."""
        lines = self._log.read_text().splitlines()
        return "\n".join(line for line in lines if re.search(r"PHP [A-Z][a-z ]+:", line))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve until the end of the context."""
        command = ["php", "-d", "max_execution_time=60", "-S", f"127.0.0.1:{self.port}", ".ht.router.php"]
        environment = os.environ | {"PHP_CLI_SERVER_WORKERS": "4"}
        with self._log.open("ab") as out:
            process = subprocess.Popen(
                command, cwd=self.root / "web", env=environment, stdout=out, stderr=out, start_new_session=True
            )
        try:
            end = monotonic() + START_TIMEOUT
            while not self._answers():
                assert process.poll() is None, self._log.read_text()
                assert monotonic() < end, self._log.read_text()
                sleep(0.1)
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=20)

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(self.url, timeout=60).status_code == 200
        return False


class Editor:
    """A person who is logged in: reads forms, fills them in, sends them."""

    def __init__(self, drupal: Drupal) -> None:
        self._client = httpx.Client(base_url=drupal.url, timeout=60, follow_redirects=True)
        self.submit("/user/login", **{"name": USER, "pass": PASSWORD, "op": "Log in"})

    def close(self) -> None:
        self._client.close()

    def publish(self, path: str, title: str, words: str, **more: str) -> int:
        """Save the form of an article that is added (`/node/add/article`) or edited; the number of its node."""
        answer = self.submit(path, **{"title[0][value]": title, "body[0][value]": words, "op": "Save", **more})
        node = BeautifulSoup(answer.text, "lxml").select_one(
            "link[rel=shortlink], link[rel=canonical], [data-history-node-id]"
        )
        shown = answer.text.partition("/node/")[2][:20]
        assert node is not None, answer.text[:2000]
        return int("".join(ch for ch in shown.partition('"')[0].partition("/")[0] if ch.isdigit()))

    def submit(self, path: str, **fields: str) -> httpx.Response:
        """Send a form of a page, with what a browser sends of it unasked."""
        page = self._client.get(path).raise_for_status()
        form = next(
            form
            for form in BeautifulSoup(page.text, "lxml").select("form")
            if form.select_one(f"[name='op'][value='{fields['op']}']") or form.select_one(f"[value='{fields['op']}']")
        )
        sent = _filled(form) | fields
        answer = self._client.post(str(form.get("action") or path), data=sent)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        assert "messages--error" not in answer.text, BeautifulSoup(answer.text, "lxml").select_one(".messages--error")
        return answer


def _filled(form: Any) -> dict[str, str]:
    fields: dict[str, str] = {}
    for tag in form.select("input[name], textarea[name], select[name]"):
        kind = str(tag.get("type", tag.name))
        if kind in ("submit", "file", "image") or (kind in ("checkbox", "radio") and not tag.has_attr("checked")):
            continue
        if tag.name == "select":
            chosen = tag.select_one("option[selected]") or tag.select_one("option")
            fields[str(tag["name"])] = str(chosen.get("value", "")) if chosen else ""
        else:
            fields[str(tag["name"])] = str(tag.get("value", "")) if tag.name == "input" else tag.get_text()
    return fields


def _copy(source: Path, target: Path) -> None:
    """Hard links to everything but the site's own files."""
    left_out = shutil.ignore_patterns(".git", "node_modules")
    shutil.copytree(source, target, copy_function=os.link, ignore=left_out, symlinks=True)
    site = target / "web/sites/default"
    site.chmod(0o755)
    for path in site.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in ("default.settings.php", "default.services.yml"):
        shutil.copy(target / f"web/core/assets/scaffold/files/{name}", site / name)
    shutil.rmtree(target / "web/modules", ignore_errors=True)


def _literal(value: object) -> str:
    """A PHP expression for a value."""
    quoted = json.dumps(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"json_decode('{quoted}', TRUE)"
