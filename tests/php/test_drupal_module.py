"""The Drupal module's outbox, sender and answers, run by real PHP over small stand-ins of Drupal (drupal.php)."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from connectors.cms.module import read
from connectors.cms.package import PACKAGES
from connectors.cms.push import Delivery, signed_headers
from tests.wordpress.receiver import SECRET, Receiver

pytestmark = pytest.mark.php

MODULE = PACKAGES["drupal"].source
STAND_INS = Path(__file__).with_name("drupal.php")


def run(code: str) -> Any:
    """What the code assigns to `$result`."""
    begin = f"const MODULE = {str(MODULE)!r}; const SECRET = '{SECRET}'; require {str(STAND_INS)!r};"
    command = [
        "php",
        "-d",
        "error_reporting=-1",
        "-d",
        "display_errors=stderr",
        "-r",
        f"{begin} {code} echo json_encode($result);",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)


FILES = sorted(
    path
    for name in ("drupal", "typo3")
    for path in PACKAGES[name].source.rglob("*")
    if path.suffix in (".php", ".module", ".install")
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_php_parses_every_file(path: Path) -> None:
    done = subprocess.run(["php", "-l", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_save_is_a_delivery_that_pagewire_takes() -> None:
    sent = run(
        "$pages->public = ['node-1 en' => 'Fähre', 'node-1 de' => 'Schiff'];"
        "$outbox->mark('node-1', ['en', 'de']); $sender->drain(5); $result = [$pagewire->requests, $rows()];"
    )
    (request,), rows = sent
    assert request["url"] == "https://pagewire.example/v1/sites/town/webhooks/drupal"
    assert (request["allow_redirects"], request["http_errors"]) == (False, False)
    receiver = Receiver()
    status, said, _ = receiver.take(request["headers"], request["body"].encode())
    assert (status, said["accepted"]) == (200, 2)
    assert {page.title for page in receiver.pages.values()} <= {"Fähre", "Schiff"}
    assert [row["waiting"] for row in rows] == [0, 0]


def test_revisions_grow_also_when_the_clock_is_put_back() -> None:
    revisions = run(
        "$outbox->mark('node-1', ['en']); $outbox->mark('node-1', []); $clock->now = 500; $outbox->mark('node-1', []);"
        "$clock->now = 2000;"
        "$a = $rows()[0]['revision']; $outbox->mark('node-1', ['en']); $result = [$a, $rows()[0]['revision']];"
    )
    assert revisions == [1002, 2000]


def test_a_save_while_the_page_is_sent_is_sent_again() -> None:
    sent = run(
        "$pages->public = ['node-1 en' => 'Old']; $outbox->mark('node-1', ['en']);"
        "$pagewire->answers = [function () use ($pages, $outbox) { $pages->public = ['node-1 en' => 'New'];"
        " $outbox->mark('node-1', ['en']); return []; }];"
        "$sender->drain(5); $result = array_column($pagewire->requests, 'body');"
    )
    assert [json.loads(body)["page"]["title"] for body in sent] == ["Old", "New"]


def test_what_is_not_public_any_more_is_deleted_and_what_never_was_is_not_named() -> None:
    bodies = run(
        "$pages->public = ['node-1 en' => 'Here']; $outbox->mark('node-1', ['en']); $sender->drain(5);"
        "$pages->public = []; $outbox->mark('node-1', []); $outbox->mark('node-2', ['en']); $sender->drain(5);"
        "$result = [array_column($pagewire->requests, 'body'), $rows()];"
    )
    lines, rows = bodies
    assert [json.loads(line)["op"] for line in lines] == ["upsert", "delete"]
    assert [(row["page_id"], row["digest"], row["waiting"]) for row in rows] == [("node-1", "", 0), ("node-2", "", 0)]


def test_a_delete_that_is_not_taken_waits_for_later() -> None:
    lines, rows = run(
        "$pages->public = ['node-1 en' => 'Here']; $outbox->mark('node-1', ['en']); $sender->drain(5);"
        "$pages->public = []; $outbox->mark('node-1', []); $pagewire->answers = [[503, []], []];"
        "$sender->drain(5); $sender->forgive(); $sender->drain(5);"
        "$result = [array_column($pagewire->requests, 'body'), $rows()];"
    )
    assert [json.loads(line)["op"] for line in lines] == ["upsert", "delete", "delete"]
    assert [(row["digest"], row["waiting"]) for row in rows] == [("", 0)]


def test_pages_and_deletes_outlast_a_long_outage() -> None:
    lines, rows, requests = run(
        "$pages->public = ['node-1 en' => 'A', 'node-2 en' => 'B']; $outbox->mark('node-1', ['en']); $sender->drain(5);"
        "unset($pages->public['node-1 en']); $outbox->mark('node-1', []); $outbox->mark('node-2', ['en']);"
        "$pagewire->answers = array_fill(0, 9, [503, []]);"
        "foreach (range(1, 10) as $n) { $sender->forgive(); $sender->drain(5); }"
        "$result = [end($pagewire->requests)['body'], $rows(), count($pagewire->requests)];"
    )
    assert {json.loads(line)["op"] for line in lines.splitlines()} == {"delete", "upsert"}
    assert [(row["waiting"], row["problem"]) for row in rows] == [(0, ""), (0, "")]
    assert requests == 11


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("[503, [], ['Retry-After' => '120']]", "cannot take anything"),
        ("[401, ['code' => 'bad-signature']]", "refuses the signature"),
        ("[404, ['code' => 'unknown-connector']]", "no such connector"),
        ("[404, NULL]", "no Pagewire"),
        ("[301, []]", "redirects"),
        ("[200, 'Welcome!']", "not Pagewire"),
        ("[200, ['accepted' => 0, 'rejected' => 0, 'superseded' => 0, 'errors' => []]]", "not Pagewire"),
        ("fn () => throw new RuntimeException('refused')", "does not answer: refused"),
    ],
)
def test_what_is_not_taken_waits_for_later(answer: str, problem: str) -> None:
    state, row, again = run(
        "$pages->public = ['node-1 en' => 'Here']; $outbox->mark('node-1', ['en']);"
        f"$pagewire->answers = [{answer}]; $sender->drain(5); $s = $sender->state(); $r = $rows()[0];"
        "$sender->drain(5); $result = [$s + ['in' => $s['until'] - time()], $r, count($pagewire->requests)];"
    )
    assert problem in state["problem"]
    assert row["waiting"] == 1
    assert again == 1  # the next try is later
    assert 100 < state["in"] <= 120 if "503" in answer else 0 <= state["in"] <= 2


def test_pages_that_are_too_large_together_go_one_by_one() -> None:
    sizes, problem = run(
        "$pages->public = ['node-1 en' => 'A', 'node-2 en' => 'B']; $outbox->mark('node-1', ['en']);"
        "$outbox->mark('node-2', ['en']); $pagewire->answers = [[413], [413], []]; $sender->drain(5);"
        "$sizes = array_map(fn ($r) => substr_count($r['body'], \"\\n\"), $pagewire->requests);"
        "$result = [$sizes, $rows()[0]['problem']];"
    )
    assert sizes == [2, 1, 1]
    assert "too large" in problem


def test_a_refused_page_and_one_that_breaks_stop_no_other() -> None:
    rows = run(
        "$pages->public = ['node-1 en' => 'A', 'node-2 en' => fn () => throw new Error('no such block'),"
        " 'node-3 en' => 'C'];"
        "foreach ([1, 2, 3] as $n) { $outbox->mark(\"node-$n\", ['en']); }"
        "$pagewire->answers = [[200, ['accepted' => 1, 'rejected' => 1, 'superseded' => 0, 'errors' => "
        "[['line' => 2, 'code' => 'bad-page', 'message' => '<b>no</b> title']]]]];"
        "$sender->drain(5); $result = $rows();"
    )
    assert [row["waiting"] for row in rows] == [0, 0, 0]
    assert [row["problem"] for row in rows] == ["", "This page cannot be rendered: no such block", "bad-page: no title"]


def test_a_page_that_ends_the_process_is_set_aside() -> None:
    row, rendered = run(
        "$pages->public = ['node-1 en' => 'A']; $outbox->mark('node-1', ['en']);"
        "foreach ([1, 2, 3] as $n) { $outbox->begin($outbox->next(1, 1)[0]); }"
        "$sender->drain(5); $result = [$rows()[0], $pages->rendered];"
    )
    assert (row["waiting"], rendered) == (0, 0)
    assert "ends the process" in row["problem"]


def test_everything_is_sent_behind_the_saves() -> None:
    lanes, ids = run(
        'foreach (range(1, 450) as $n) { $pages->public["node-$n en"] = "Page $n"; }'
        "$sender->sendEverything(); $outbox->mark('node-7', ['en']); $sender->drain(20);"
        "$ids = []; foreach ($pagewire->requests as $r) {"
        " preg_match_all('/\"id\":\"(node-\\d+)\"/', $r['body'], $m); $ids[] = $m[1]; }"
        "$result = [array_map(fn ($r) => $r['headers']['Pagewire-Lane'] ?? 'save', $pagewire->requests), $ids];"
    )
    assert lanes[0] == "save"
    assert set(lanes[1:]) == {"bulk"}
    assert sorted(id for some in ids for id in some) == sorted(f"node-{n}" for n in range(1, 451))


def test_an_inventory_is_read_and_gives_a_changed_page_a_new_revision() -> None:
    lines, again, after = run(
        "$pages->public = ['node-1 en' => 'A', 'node-2 en' => fn () => throw new Error('no')];"
        "$one = [...$survey->inventory(0)]; $clock->now = 5000; $two = [...$survey->inventory(0)];"
        "$pages->public['node-1 en'] = 'B'; $result = [$one, $two, [...$survey->inventory(0)]];"
    )
    answer = read("\n".join(json.dumps(line) for line in [{"now": 1}, *lines]).encode())
    assert [one.page_id for one in answer.listed] == ["node-1", "node-2"]
    assert answer.end
    assert lines == again
    assert after[0]["revision"] == 5000


def test_pages_are_read_by_their_ids() -> None:
    lines = run(
        "$pages->public = ['node-1 pt-BR' => 'A', 'node-2 en' => fn () => throw new Error('no')];"
        "$result = [...$survey->documents(['pt-BR:node-1', 'en:node-2', 'en:node-9', 'rubbish', ':'])];"
    )
    answer = read("\n".join(json.dumps(line) for line in [{"now": 1}, *lines]).encode())
    assert len(answer.pages) == 2
    assert (lines[0]["page"]["id"], lines[0]["page"]["lang"]) == ("node-1", "pt-BR")
    assert lines[1]["problem"]["reason"] == "no"


def test_a_page_that_a_permission_hides_gets_a_mark() -> None:
    waiting = run(
        "$pages->public = ['node-1 en' => 'A']; $outbox->mark('node-1', ['en']); $sender->drain(5);"
        "$pages->public = []; iterator_to_array($survey->inventory(0), FALSE); $result = $rows()[0]['waiting'];"
    )
    assert waiting == 1


def fault(headers: dict[str, str], content: str = "GET inventory?after=") -> str | None:
    quoted = json.dumps(headers).replace("\\", "\\\\").replace("'", "\\'")
    said: str | None = run(
        f"$given = json_decode('{quoted}', TRUE);"
        f"$result = Drupal\\pagewire\\Signature::fault(SECRET, fn ($name) => $given[$name] ?? NULL, '{content}');"
    )
    return said


def test_signatures_are_the_same_on_both_sides() -> None:
    right = signed_headers(SecretStr(SECRET), "msg_1", int(time.time()), b"GET inventory?after=")
    assert fault(right) is None
    assert fault(right | {"webhook-signature": f"v1,AAAA {right['webhook-signature']}"}) is None
    assert fault(right, "GET inventory?after=7") == "the signature is wrong"
    assert fault(right | {"webhook-id": "msg_2"}) == "the signature is wrong"
    assert fault(right | {"webhook-timestamp": "1e9"}) == "the signature is wrong"
    assert fault({}) == "the signature is missing"
    old = signed_headers(SecretStr(SECRET), "msg_1", int(time.time()) - 400, b"GET inventory?after=")
    assert "too old" in str(fault(old))
    ours = run("$result = Drupal\\pagewire\\Signature::headers(SECRET, 'body');")
    Delivery.of(ours, time.time()).verify(SecretStr(SECRET), b"body")
    for weak in ("", "whsec_", "whsec_c2hvcnQ=", "secret", "whsec_%%%"):
        assert run(f"$result = Drupal\\pagewire\\Signature::key('{weak}');") is None
