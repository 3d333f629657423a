"""A real WordPress on loopback: private copies of Debian's files, MariaDB on a socket, PHP's own server with workers.

    apt packages ─▶ built once per run ─▶ tar ─▶ unpacked for each module that wants one (0.4 s), on a free port

Whatever is started is one process group each, and is gone at the end with its folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx

from connectors.cms.package import PACKAGES

SOURCE = Path("/usr/share/wordpress")
PROGRAMS = ("php", "mariadbd", "mariadb-install-db", "mariadb", "mariadb-admin")
EXTENSIONS = ("mysqli", "curl", "xml", "mbstring")
START_TIMEOUT = 120.0  # seconds; CI machines are shared
USER, PASSWORD = "admin", "pw of the tests"

CONFIG = """<?php
define('DB_NAME', 'wp'); define('DB_USER', 'root'); define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:' . getenv('WP_SOCK')); define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
foreach (array('AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE') as $k) {
    define($k . '_KEY', "key of $k for tests"); define($k . '_SALT', "salt of $k for tests");
}
define('WP_HOME', 'http://127.0.0.1:' . getenv('WP_PORT')); define('WP_SITEURL', WP_HOME);
define('WP_ENVIRONMENT_TYPE', 'local'); define('DISABLE_WP_CRON', true); define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_HTTP_BLOCK_EXTERNAL', true); define('WP_ACCESSIBLE_HOSTS', '127.0.0.1,localhost,*.invalid');
define('WP_DEBUG', true); define('WP_DEBUG_DISPLAY', false); define('WP_DEBUG_LOG', getenv('WP_LOG'));
$table_prefix = 'wp_';
if (!defined('ABSPATH')) { define('ABSPATH', __DIR__ . '/'); }
require ABSPATH . 'wp-settings.php';
"""
ROUTER = """<?php
$p = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH); $f = $_SERVER['DOCUMENT_ROOT'] . $p;
if ($p !== '/' && is_file($f)) { return false; }
if ($p !== '/' && is_file(rtrim($f, '/') . '/index.php')) {
    chdir($f); require rtrim($f, '/') . '/index.php'; return true;
}
$_SERVER['SCRIPT_NAME'] = '/index.php'; chdir($_SERVER['DOCUMENT_ROOT']); require 'index.php';
"""
THEME = """<!doctype html><html <?php language_attributes(); ?>><head><?php wp_head(); ?></head><body>
<?php while (have_posts()) { the_post(); the_title('<h1>', '</h1>'); the_content(); } wp_footer(); ?></body></html>
"""
# A kind of pages of the site's own, with a taxonomy; events may stand below each other.
KINDS = """<?php
add_action('init', function () {
    register_post_type('event', array('public' => true, 'show_in_rest' => true, 'hierarchical' => true,
        'label' => 'Events', 'supports' => array('title', 'editor', 'page-attributes', 'custom-fields')));
    register_taxonomy('venue', 'event', array('public' => true, 'show_in_rest' => true, 'label' => 'Venues'));
    register_post_type('hidden', array('public' => false, 'show_ui' => true, 'label' => 'Hidden'));
    add_shortcode('breaks', function () { throw new RuntimeException('out of biscuits'); });
});
"""
INSTALL = """define('WP_INSTALLING', true);
require ABSPATH_OF . '/wp-load.php'; require ABSPATH . 'wp-admin/includes/upgrade.php';
add_filter('pre_wp_mail', '__return_true');
wp_install('Town', 'admin', 'a@example.org', true, '', 'pw of the tests');
"""
SETUP = """global $wp_rewrite; $wp_rewrite->set_permalink_structure('/%postname%/'); flush_rewrite_rules(false);
require ABSPATH . 'wp-admin/includes/plugin.php';
$r = activate_plugin('pagewire/pagewire.php'); if (is_wp_error($r)) { echo $r->get_error_message(); exit(1); }
[$pw] = WP_Application_Passwords::create_new_application_password(1, array('name' => 'tests')); echo $pw;
"""


def installed() -> bool:
    """Whether the Debian packages are there."""
    if not (SOURCE.is_dir() and all(shutil.which(program) for program in PROGRAMS)):
        return False
    modules = subprocess.run(["php", "-m"], capture_output=True, text=True, check=False).stdout.split()
    return set(EXTENSIONS) <= set(modules)


class WordPress:
    """One running site, seen as an editor, a visitor and an administrator see it."""

    def __init__(self, folder: Path, port: int, application_password: str) -> None:
        self.folder = folder
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.application_password = application_password
        self.rest = httpx.Client(
            base_url=f"{self.url}/wp-json/wp/v2", auth=(USER, application_password), timeout=START_TIMEOUT
        )

    def php(self, code: str) -> str:
        """Run PHP inside this WordPress, in a process of its own; what it prints."""
        return _php(self.folder, self.port, "require ABSPATH_OF . '/wp-load.php';" + code)

    def sql(self, statement: str) -> str:
        """Behind everybody's back."""
        return _sql(self.folder, statement, "wp")

    def cron(self) -> None:
        """As the system's clock does it every minute."""
        httpx.get(f"{self.url}/wp-cron.php?doing_wp_cron", timeout=START_TIMEOUT).raise_for_status()

    def due(self) -> None:
        """Let the queue's clock be due now and all waiting be over."""
        self.php(
            "$s = get_option('pagewire_state', array()); $s['until'] = 0; update_option('pagewire_state', $s);"
            "wp_clear_scheduled_hook('pagewire_drain');"
            "wp_schedule_event(time() - 1, 'pagewire_minute', 'pagewire_drain');"
        )
        self.cron()

    def configure(self, **settings: object) -> None:
        """The plugin's settings, as its page would keep them; `secret` goes where secrets go."""
        secret = settings.pop("secret", None)
        if secret is not None:
            self.php(f"update_option('pagewire_secret', {_literal(secret)}, false);")
        self.php(
            f"update_option('pagewire', array_merge(get_option('pagewire', array()), {_literal(dict(settings))}));"
            "delete_option('pagewire_state');"
        )

    def create(self, kind: str = "posts", **fields: object) -> dict[str, Any]:
        """A published post, as the block editor makes it."""
        answer = self.rest.post(f"/{kind}", json={"status": "publish", **fields})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def change(self, post: Mapping[str, Any], **fields: object) -> dict[str, Any]:
        answer = self.rest.post(f"/{_route(post)}/{post['id']}", json=fields)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def remove(self, post: Mapping[str, Any], *, force: bool = False) -> None:
        """Into the trash, or for good."""
        answer = self.rest.delete(f"/{_route(post)}/{post['id']}", params={"force": str(force).lower()})
        assert answer.status_code == 200, answer.text

    def queue(self) -> list[dict[str, str]]:
        """Rows that wait, as the plugin's table has them."""
        rows = self.sql("SELECT page_id, lang, revision, queued, gone, refusal FROM wp_pagewire_pages WHERE queued > 0")
        names = ("page_id", "lang", "revision", "queued", "gone", "refusal")
        return [dict(zip(names, line.split("\t"), strict=True)) for line in rows.splitlines()]

    def log(self) -> str:
        """What our plugin made PHP complain about."""
        path = self.folder / "debug.log"
        lines = path.read_text().splitlines() if path.exists() else []
        return "\n".join(line for line in lines if "pagewire" in line.lower())

    def admin(self) -> Admin:
        return Admin(self)


class Admin:
    """wp-admin as a browser posts it: cookies, nonces, forms."""

    def __init__(self, site: WordPress, user: str = USER, password: str = PASSWORD) -> None:
        self._client = httpx.Client(base_url=site.url, timeout=START_TIMEOUT, follow_redirects=True)
        self._client.get("/wp-login.php")
        answer = self._client.post("/wp-login.php", data={"log": user, "pwd": password, "testcookie": "1"})
        assert "wp-admin-bar" in answer.text or "adminmenu" in answer.text, "not logged in"

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, path: str) -> str:
        answer = self._client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def post(self, path: str, fields: Mapping[str, object]) -> httpx.Response:
        return self._client.post(path, data=dict(fields))

    def publish(self, title: str, content: str) -> int:
        """Posts > Add New (the classic form) > Publish."""
        form = self.get("/wp-admin/post-new.php?classic-editor")
        fields = _hidden(form, "post")
        fields |= {"post_title": title, "content": content, "publish": "Publish", "post_status": "publish"}
        answer = self.post("/wp-admin/post.php", fields)
        assert answer.status_code == 200, answer.text
        return int(fields["post_ID"])

    def trash(self, post_id: int) -> None:
        """The link Bin in the list of posts."""
        listing = self.get("/wp-admin/edit.php")
        found = re.search(rf'href="([^"]*post={post_id}&amp;action=trash[^"]*)"', listing)
        assert found, "no link to trash it"
        self.get(found[1].replace("&amp;", "&").replace("&#038;", "&"))

    def settings(self) -> str:
        return self.get("/wp-admin/options-general.php?page=pagewire")

    def save_settings(self, **changes: object) -> str:
        """Settings > Pagewire > Save Changes, with all that the form holds."""
        page = self.settings()
        fields: dict[str, object] = dict(_hidden(page, "options.php"))
        for name in ("endpoint", "site", "connector", "lang", "visitors"):
            found = re.search(rf'name="pagewire\[{name}\]" value="([^"]*)"', page)
            assert found, f"no field {name}"
            fields[f"pagewire[{name}]"] = found[1]
        fields["pagewire[types][]"] = re.findall(r'name="pagewire\[types\]\[\]" value="([^"]*)"\s+checked', page)
        fields |= {"pagewire_secret" if name == "secret" else f"pagewire[{name}]": v for name, v in changes.items()}
        answer = self.post("/wp-admin/options.php", fields)
        assert answer.status_code == 200, answer.text
        return answer.text

    def press(self, action: str) -> str:
        """One of the buttons."""
        form = _hidden(self.settings(), action)
        answer = self.post("/wp-admin/admin-post.php", form)
        assert answer.status_code == 200, answer.text
        return answer.text


def _hidden(page: str, marker: str) -> dict[str, str]:
    """The hidden fields of the form that has `marker` in it."""
    forms = re.findall(r"<form.*?</form>", page, re.DOTALL)
    form = next(form for form in forms if re.search(rf'(?:action|value|name|id)="{re.escape(marker)}"', form))
    fields = {}
    for tag in re.findall(r"<input[^>]*type=['\"]hidden['\"][^>]*>", form):
        name, value = (re.search(rf"{key}=['\"]([^'\"]*)['\"]", tag) for key in ("name", "value"))
        if name:
            fields[name[1]] = value[1].replace("&amp;", "&").replace("&#038;", "&") if value else ""
    return fields


@contextmanager
def built() -> Iterator[Path]:
    """A tar of an installed site with the plugin active; None of it runs."""
    with tempfile.TemporaryDirectory(prefix="pw-wp-") as name:
        folder = Path(name) / "site"
        folder.mkdir()
        _files(folder)
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={folder / 'db'}", *_as_root()]
        _run([*install, "--auth-root-authentication-method=normal", "--skip-test-db"])
        with _database(folder):
            _sql(folder, "CREATE DATABASE wp CHARACTER SET utf8mb4")
            _php(folder, 1, INSTALL)
            _php(folder, 1, "require ABSPATH_OF . '/wp-load.php'; switch_theme('tiny');")
            password = _php(folder, 1, "require ABSPATH_OF . '/wp-load.php';" + SETUP)
            # Kinds of pages get their addresses only where pages have names already.
            _php(folder, 1, "require ABSPATH_OF . '/wp-load.php'; flush_rewrite_rules(false);")
            (folder / "application-password").write_text(password.strip().splitlines()[-1])
        packed = Path(name) / "site.tar"
        with tarfile.open(packed, "w") as tar:
            tar.add(folder, arcname=".")
        shutil.rmtree(folder)
        yield packed


@contextmanager
def running(packed: Path) -> Iterator[WordPress]:
    """A site of its own, on a free port."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pw-wp-")))
        with tarfile.open(packed) as tar:
            tar.extractall(folder, filter="tar")
        stack.enter_context(_database(folder))
        port = _free_port()
        stack.enter_context(_web(folder, port))
        site = WordPress(folder, port, (folder / "application-password").read_text())
        stack.callback(site.rest.close)
        yield site


def _files(folder: Path) -> None:
    www = folder / "www"
    shutil.copytree(SOURCE, www, ignore=shutil.ignore_patterns("wp-config.php", ".htaccess", "wp-content"))
    for part in ("plugins", "themes/tiny", "uploads", "mu-plugins"):
        (www / "wp-content" / part).mkdir(parents=True)
    (www / "wp-config.php").write_text(CONFIG)
    (www / "wp-content/themes/tiny/style.css").write_text("/* Theme Name: Tiny */")
    (www / "wp-content/themes/tiny/index.php").write_text(THEME)
    (www / "wp-content/mu-plugins/kinds.php").write_text(KINDS)
    shutil.copytree(PACKAGES["wordpress"].source, www / "wp-content/plugins/pagewire")
    (folder / "router.php").write_text(ROUTER)


def _environment(folder: Path, port: int) -> dict[str, str]:
    own = {"WP_SOCK": str(folder / "db.sock"), "WP_PORT": str(port), "WP_LOG": str(folder / "debug.log")}
    return os.environ | own | {"PHP_CLI_SERVER_WORKERS": "6"}


def _php(folder: Path, port: int, code: str) -> str:
    start = f"define('ABSPATH_OF', {str(folder / 'www')!r}); $_SERVER['HTTP_HOST'] = '127.0.0.1:{port}';"
    start += "$_SERVER['REQUEST_METHOD'] = 'GET'; $_SERVER['REQUEST_URI'] = '/';"
    # Debian's WordPress is older than its PHP: what that finds outdated is no news here.
    command = ["php", "-d", "error_reporting=8191", "-d", "display_errors=stderr", "-r", start + code]
    return _run(command, _environment(folder, port))


def _sql(folder: Path, statement: str, *database: str) -> str:
    return _run(
        ["mariadb", "--no-defaults", "-S", str(folder / "db.sock"), "-uroot", "-N", "-B", "-e", statement, *database]
    )


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _as_root() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


@contextmanager
def _database(folder: Path) -> Iterator[None]:
    sock = folder / "db.sock"
    command = ["mariadbd", "--no-defaults", f"--datadir={folder / 'db'}", f"--socket={sock}", "--skip-networking"]
    command += [f"--pid-file={folder / 'db.pid'}", "--innodb-flush-log-at-trx-commit=0", *_as_root()]
    with _group(command, folder / "db.log"):
        ping = ["mariadb-admin", "--no-defaults", "-S", str(sock), "-uroot", "ping"]
        _until(lambda: subprocess.run(ping, capture_output=True, check=False).returncode == 0, folder / "db.log")
        yield


@contextmanager
def _web(folder: Path, port: int) -> Iterator[None]:
    www = folder / "www"
    command = ["php", "-d", "opcache.enable_cli=1", "-d", "opcache.revalidate_freq=0", "-d", "max_execution_time=30"]
    command += ["-d", "error_reporting=8191", "-S", f"127.0.0.1:{port}", "-t", str(www), str(folder / "router.php")]
    with _group(command, folder / "web.log", _environment(folder, port)):
        _until(lambda: _answers(f"http://127.0.0.1:{port}/wp-json/"), folder / "web.log")
        yield


def _answers(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(url, timeout=START_TIMEOUT).status_code == 200
    return False


@contextmanager
def _group(command: list[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """A process with all its children: PHP's workers outlive their master otherwise, and keep the port."""
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, start_new_session=True)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=20)


def _until(ready: Any, log: Path) -> None:
    end = monotonic() + START_TIMEOUT
    while not ready():
        assert monotonic() < end, f"not up:\n{log.read_text()}"
        sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _route(post: Mapping[str, Any]) -> str:
    return {"post": "posts", "page": "pages"}.get(post["type"], str(post["type"]))


def _literal(value: object) -> str:
    """A PHP expression for a value."""
    quoted = json.dumps(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"json_decode('{quoted}', true)"
