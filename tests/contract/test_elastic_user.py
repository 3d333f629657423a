"""The container that makes our user at Elasticsearch, against a server that keeps users as Elasticsearch does."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from adapters.elastic.settings import ROLE
from infra.docker import elastic_user
from infra.docker.elastic_user import Refused, main
from infra.engine.state import any_free
from infra.running import HOST

SHORTEST = 6  # characters of a password, as Elasticsearch has it


class Security:
    """What stands of roles and users.

    The first `asleep` requests find a server that has not opened its users yet; `pagewire` is known only after so many
    times `late` that it has logged in.
    """

    def __init__(self, asleep: int = 0, late: int = 0) -> None:
        self.roles: dict[str, Any] = {}
        self.users: dict[str, Any] = {"elastic": {"password": 'first "secret": ä', "roles": ["superuser"]}}
        self.asleep = asleep
        self.late = late

    def answer(self, method: str, path: str, login: str, body: Any) -> tuple[int, str]:
        if self.asleep:
            self.asleep -= 1
            return 503, "security index is not available yet"
        name, _, password = login.partition(":")
        if name == "pagewire" and self.late:
            self.late -= 1
            return 401, "unable to authenticate user [pagewire]"
        if self.users.get(name, {}).get("password") != password:
            return 401, f"unable to authenticate user [{name}]"
        kind, _, of = path.removeprefix("/_security/").partition("/")
        if kind == "_authenticate":
            return 200, "fine"
        if method != "PUT" or "superuser" not in self.users[name]["roles"]:
            return 403, "not authorized"
        if kind == "user" and len(body["password"]) < SHORTEST:
            return 400, f"passwords must be at least [{SHORTEST}] characters long"
        {"role": self.roles, "user": self.users}[kind][of] = body
        return 200, "fine"


@pytest.fixture
def security() -> Security:
    return Security()


@pytest.fixture
def url(security: Security) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            login = b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, reason = security.answer(self.command, self.path, login, json.loads(content or b"null"))
            self.send_response(status)
            self.end_headers()
            said = {"error": {"type": "security_exception", "reason": reason}, "status": status}
            self.wfile.write(json.dumps(said if status != 200 else {}).encode())

        def do_GET(self) -> None:
            self.do_PUT()

        def log_message(self, *_: Any) -> None:
            """Silence."""

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{HOST}:{server.server_port}"
        server.shutdown()
        thread.join()


def environment(url: str, **more: str) -> dict[str, str]:
    return {
        "PAGEWIRE_ELASTICSEARCH": url,
        "PAGEWIRE_ELASTICSEARCH_USER": "pagewire",
        "PAGEWIRE_ELASTICSEARCH_PASSWORD": 'of "ours" \\ ü',
        "ELASTIC_PASSWORD": 'first "secret": ä',
        **more,
    }


def test_the_user_has_the_rights_that_the_command_lists_and_no_others(security: Security, url: str) -> None:
    for _ in range(2):  # as at every start
        assert main(environment(url)) == "the user pagewire has the rights that Pagewire needs"
    assert security.roles == {"pagewire": ROLE}
    assert security.users["pagewire"] == {"password": 'of "ours" \\ ü', "roles": ["pagewire"], "full_name": "Pagewire"}


def test_a_changed_password_is_changed(security: Security, url: str) -> None:
    main(environment(url))
    main(environment(url, PAGEWIRE_ELASTICSEARCH_PASSWORD="another one"))
    assert security.users["pagewire"]["password"] == "another one"


def test_a_server_that_is_starting_is_waited_for(security: Security, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_user, "PAUSE", 0.01)
    security.asleep, security.late = 3, 2
    main(environment(url))
    assert (security.asleep, security.late) == (0, 0)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"ELASTIC_PASSWORD": "hush-wrong"}, "ELASTIC_PASSWORD is not the password of `elastic`"),
        ({"PAGEWIRE_ELASTICSEARCH_PASSWORD": "hush"}, r"passwords must be at least \[6\] characters long"),
        ({"PAGEWIRE_ELASTICSEARCH_USER": "elastic"}, "PAGEWIRE_ELASTICSEARCH_USER: `elastic` may do everything"),
    ],
)
def test_what_is_wrong_is_told_without_a_secret(url: str, more: dict[str, str], said: str) -> None:
    with pytest.raises(Refused, match=said) as refused:
        main(environment(url, **more), patience=0)
    assert "hush" not in str(refused.value)


def test_a_server_that_is_away_is_told() -> None:
    with pytest.raises(Refused, match="Connection refused"):
        main(environment(f"http://{HOST}:{any_free(set())}"), patience=0)
