"""A real TYPO3 on loopback: a copy of the Composer project that TYPO3 names, SQLite, PHP's own server with workers.

The files of that project stay as they are; what is started is one process group, and is gone at the end.
"""

from __future__ import annotations

import json
import os
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

from connectors.cms.package import pack

START_TIMEOUT = 120.0  # seconds
TYPOSCRIPT = """page = PAGE
page.5 = TEXT
page.5.field = title
page.5.wrap = <h1>|</h1>
page.10 = CONTENT
page.10.table = tt_content
page.10.select.orderBy = sorting
page.10.renderObj = TEXT
page.10.renderObj.field = bodytext
page.10.renderObj.wrap = <p>|</p>
page.10.wrap = <main>|</main>
"""
# DataHandler is what the backend's forms call; the user is TYPO3's own for command lines, an administrator.
BOOT = """
use TYPO3\\CMS\\Core\\Core\\Bootstrap; use TYPO3\\CMS\\Core\\Core\\SystemEnvironmentBuilder;
use TYPO3\\CMS\\Core\\Utility\\GeneralUtility; use TYPO3\\CMS\\Core\\DataHandling\\DataHandler;
use TYPO3\\CMS\\Core\\Authentication\\CommandLineUserAuthentication;
use TYPO3\\CMS\\Core\\Localization\\LanguageServiceFactory;
$loader = require 'vendor/autoload.php';
SystemEnvironmentBuilder::run(0, SystemEnvironmentBuilder::REQUESTTYPE_CLI);
Bootstrap::init($loader);
Bootstrap::initializeBackendUser(CommandLineUserAuthentication::class);
Bootstrap::initializeBackendAuthentication();
$GLOBALS['LANG'] = GeneralUtility::makeInstance(LanguageServiceFactory::class)->create('en');
function handle($data, $commands = []) {
  $handler = GeneralUtility::makeInstance(DataHandler::class);
  $handler->start($data, $commands); $handler->process_datamap(); $handler->process_cmdmap();
  if ($handler->errorLog) { throw new RuntimeException(implode("\\n", $handler->errorLog)); }
  return $handler->substNEWwithIDs;
}
$result = NULL;
"""


def given() -> Path | None:
    """The project that TYPO3 names, if there is one."""
    root = Path(os.environ.get("TYPO3") or "/nowhere")
    there = (root / "vendor/bin/typo3").exists() and shutil.which("php") and shutil.which("composer")
    return root if there else None


class Typo3:
    """One running site."""

    def __init__(self, folder: Path, port: int) -> None:
        self.root = folder / "project"
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "web.log"
        own = shutil.ignore_patterns("var", "config", ".git")
        shutil.copytree(given() or Path("/nowhere"), self.root, copy_function=shutil.copy2, ignore=own, symlinks=True)
        with ZipFile(pack("typo3", folder)) as packed:
            packed.extractall(folder / "extension")
        self._run("composer", "config", "repositories.pagewire", "path", str(folder / "extension"))
        self._run("composer", "require", "--no-interaction", "pagewire/pagewire-typo3:@dev")

    def install(self) -> None:
        """A site in English and German with a home page that shows texts."""
        self.typo3("setup", "--no-interaction", "--force", "--server-type=other", f"--create-site={self.url}/")
        config = self.root / "config/sites/main/config.yaml"
        german = (
            "  -\n    title: German\n    enabled: true\n    languageId: 1\n    base: /de/\n    locale: de_DE.UTF-8\n"
            "    navigationTitle: Deutsch\n    flag: de\n    fallbackType: strict\n"
        )
        config.write_text(config.read_text().replace("rootPageId:", f"{german}rootPageId:"))
        self.php(
            "handle(['sys_template' => ['NEW1' => ['pid' => 1, 'title' => 'Town', 'root' => 1, 'clear' => 3,"
            f" 'config' => {_literal(TYPOSCRIPT)}]]]);"
        )
        self.typo3("extension:setup")
        self.typo3("cache:flush")

    def connect(self, url: str, site: str, key: str) -> None:
        """The extension's settings, as the backend keeps them."""
        settings = {"url": url, "site": site, "connector": "typo3", "key": key}
        self.php(
            "\\TYPO3\\CMS\\Core\\Utility\\GeneralUtility::makeInstance(\\TYPO3\\CMS\\Core\\Configuration\\"
            f"ExtensionConfiguration::class)->set('pagewire', {_literal(settings)});"
        )

    def page(self, title: str, words: str, **more: object) -> tuple[int, int]:
        """A visible page with one text; their numbers."""
        page = {"pid": 1, "title": title, "slug": f"/{title.lower()}", "hidden": 0, "doktype": 1, **more}
        text = {"pid": "NEW1", "CType": "text", "bodytext": words, "colPos": 0}
        new = self.php(f"$result = handle({_literal({'pages': {'NEW1': page}, 'tt_content': {'NEW2': text}})});")
        return int(new["NEW1"]), int(new["NEW2"])

    def change(self, table: str, number: int, **fields: object) -> None:
        self.php(f"handle({_literal({table: {str(number): fields}})});")

    def command(self, table: str, number: int, **command: object) -> None:
        """`delete=1`, `move=3`, `localize=1`."""
        self.php(f"handle([], {_literal({table: {str(number): command}})});")

    def php(self, code: str) -> Any:
        """Run PHP inside this TYPO3; what it assigns to `$result`."""
        said = self._run("php", "-r", f'{BOOT}{code} echo "\\nRESULT " . json_encode($result);')
        return json.loads(said.rpartition("RESULT ")[2])

    def typo3(self, *arguments: str, ok: bool = True) -> str:
        return self._run("php", "vendor/bin/typo3", *arguments, ok=ok)

    def send(self) -> None:
        """As cron does it."""
        self.typo3("pagewire:send", "-v")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve until the end of the context."""
        command = [
            "php",
            "-d",
            "max_execution_time=60",
            "-S",
            f"127.0.0.1:{self.port}",
            "-t",
            "public",
            "public/index.php",
        ]
        environment = os.environ | {"PHP_CLI_SERVER_WORKERS": "4"}
        with self._log.open("ab") as out:
            process = subprocess.Popen(
                command, cwd=self.root, env=environment, stdout=out, stderr=out, start_new_session=True
            )
        try:
            end = monotonic() + START_TIMEOUT
            while not self._answers():
                assert process.poll() is None, self._log.read_text()
                assert monotonic() < end, self._log.read_text()
                sleep(0.2)
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=20)

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(self.url, timeout=60).status_code == 200
        return False

    def _run(self, *command: str, ok: bool = True) -> str:
        own = {
            "COMPOSER_ALLOW_SUPERUSER": "1",
            "TYPO3_DB_DRIVER": "sqlite",
            "TYPO3_SETUP_ADMIN_USERNAME": "admin",
            "TYPO3_SETUP_ADMIN_PASSWORD": "Pw-of-the-tests-1",
            "TYPO3_SETUP_ADMIN_EMAIL": "a@example.org",
            "TYPO3_PROJECT_NAME": "Town",
        }
        done = subprocess.run(
            command, cwd=self.root, env=os.environ | own, capture_output=True, text=True, timeout=300, check=False
        )
        assert not ok or done.returncode == 0, f"{command[:4]}:\n{done.stdout}\n{done.stderr}"
        return done.stdout


def _literal(value: object) -> str:
    """A PHP expression for a value."""
    quoted = json.dumps(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"json_decode('{quoted}', TRUE)"
