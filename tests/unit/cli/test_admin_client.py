"""Operators' commands as clients of a gateway: with a wrong key, without a gateway, and what it refuses."""

from __future__ import annotations

import json

import httpx
import pytest

from cli import admin_client
from pipelines.runtime.errors import Retryable
from tests.edge import CHAT_ANYWHERE
from tests.fakes.ports import FakePorts
from tests.unit.cli.conftest import URL, Run

COMMANDS = (("keys", "list"), ("keys", "revoke", "webmaster"))


def test_keys_are_made_listed_and_revoked(run: Run, gateway: FakePorts) -> None:
    made = run("keys", "create", "ci", "--scope", "chat", "--site", "town", "--group", "staff", "--expires", "90d")
    assert made.stdout.startswith("pwk_")
    [key] = json.loads(run("keys", "list", "--json").stdout)
    assert (key["name"], key["scopes"], key["site"], key["created_by"]) == ("ci", ["chat"], "town", "admin")
    line = run("keys", "list").stdout.splitlines()[1].split()
    assert line[:6] == ["ci", key["id"], "chat", "town", "staff", "good"]
    assert f"revoked ci ({key['id']})" in run("keys", "revoke", "ci").stdout
    run("keys", "revoke", "ci", code=1)
    noted = [(entry.who, entry.via, entry.action, entry.outcome) for entry in gateway.audit_log.kept]
    assert ("admin", "http", "keys.revoke", "done") in noted


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_without_a_gateway_the_setting_that_names_one_is_told(
    run: Run, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAGEWIRE_URL")
    done = run(*arguments, code=3)
    assert "PAGEWIRE_URL" in done.stderr
    assert "pagewire up" in done.stderr
    assert done.stdout == ""


def test_a_gateway_that_does_not_answer_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    transport = httpx.MockTransport(away)
    monkeypatch.setattr(admin_client, "client", lambda url, key: httpx.AsyncClient(transport=transport, base_url=url))
    assert f"{URL} does not answer (ConnectError): is PAGEWIRE_URL right?" in run("keys", "list", code=3).stderr


def test_what_a_proxy_answers_in_place_of_the_gateway_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(502, text="<h1>Bad Gateway</h1>"))
    monkeypatch.setattr(admin_client, "client", lambda url, key: httpx.AsyncClient(transport=transport, base_url=url))
    assert f"{URL} answers 502" in run("keys", "list", code=3).stderr


def test_a_key_that_is_wrong_too_small_or_missing_is_wrong_use(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, said in (("a-key-that-nobody-made", "PAGEWIRE_ADMIN_KEY"), (CHAT_ANYWHERE, "needs the scope 'admin'")):
        monkeypatch.setenv("PAGEWIRE_ADMIN_KEY", key)
        done = run("keys", "list", code=2)
        assert said in done.stderr
        assert key not in done.output
    monkeypatch.delenv("PAGEWIRE_ADMIN_KEY")
    assert "another machine" in run("keys", "list", code=2).stderr
    monkeypatch.setenv("PAGEWIRE_URL", "http://127.0.0.1:9")
    assert "there is no key for http://127.0.0.1:9" in run("keys", "list", code=2).stderr


def test_what_the_gateway_cannot_do_now_may_be_tried_again(run: Run, gateway: FakePorts) -> None:
    gateway.keys.error = Retryable("Elasticsearch is away")
    assert "Elasticsearch is away" in run("keys", "list", code=3).stderr


def test_what_is_allowed_is_said_in_words(run: Run) -> None:
    for arguments, said in (
        (("keys", "create", "a b", "--scope", "chat"), "name: must be letters, digits, `.`, `_` and `-`, 64 at most"),
        (("corrections", "undo", "town", "a b"), "correction: must be letters, digits and `-`"),
        (("questions", "town", "--lang", "?"), "lang: must be a language tag such as `de` or `pt-BR`"),
    ):
        assert said in " ".join(run(*arguments, code=2).stderr.split())


def test_a_key_of_an_unknown_scope_is_refused_before_anything_is_sent(run: Run) -> None:
    assert "read is none of ingest, chat" in run("keys", "create", "reader", "--scope", "read", code=2).stderr
