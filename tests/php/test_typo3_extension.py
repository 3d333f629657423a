"""The TYPO3 extension's marks, outbox and sender, run by real PHP over small stand-ins of TYPO3 (typo3.php)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from connectors.cms.package import PACKAGES
from schemas.changed import ChangedOrder

pytestmark = pytest.mark.php

EXTENSION = PACKAGES["typo3"].source
STAND_INS = Path(__file__).with_name("typo3.php")
A, B, OLD = (f"https://town.example/{name}" for name in ("a", "b", "old"))


def run(code: str) -> Any:
    """What the code assigns to `$result`."""
    begin = f"const EXTENSION = {str(EXTENSION)!r}; require {str(STAND_INS)!r};"
    command = ["php", "-d", "error_reporting=-1", "-d", "display_errors=stderr", "-r"]
    done = subprocess.run(
        [*command, f"{begin} {code} echo json_encode($result);"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)


TWO = f"$pages->addresses = ['1 0' => '{A}', '2 0' => '{B}'];"


def test_changed_pages_are_one_request_that_pagewire_takes() -> None:
    request, waiting = run(
        f"{TWO} $outbox->mark(1, 0); $outbox->mark(1, 0); $outbox->mark(2, 0); $drain();"
        "$result = [$requests->requests, $outbox->length()];"
    )
    (sent,) = request
    assert sent["url"] == "https://pagewire.example/v1/sites/town/connectors/typo3/changed"
    assert (sent["headers"]["Authorization"], sent["allow_redirects"]) == ("Bearer k", False)
    assert ChangedOrder.model_validate_json(json.dumps(sent["json"])).urlList == (A, B)
    assert waiting == 0


def test_a_page_with_another_address_sends_the_one_that_it_had() -> None:
    asked = run(
        f"$pages->addresses = ['1 0' => '{OLD}']; $outbox->mark(1, 0); $drain(); {TWO} $outbox->mark(1, 0); $drain();"
        "$outbox->mark(1, 0); $drain(); $result = $asked();"
    )
    assert asked == [[OLD], [OLD, A], [A]]


def test_a_save_while_the_page_is_visited_is_sent_again() -> None:
    asked = run(
        f"{TWO} $outbox->mark(1, 0);"
        "$requests->answers = [function () use ($outbox) { $outbox->mark(1, 0); return []; }];"
        "$drain(); $result = $asked();"
    )
    assert asked == [[A], [A]]


def test_a_page_that_fails_waits_and_a_refused_one_has_its_reason() -> None:
    rows, asked = run(
        f"{TWO} $outbox->mark(1, 0); $outbox->mark(2, 0);"
        f"$requests->answers = array_fill(0, 9, ['{A}' => 'failed', '{B}' => 'refused']);"
        "$drain(); $result = [$rows(), $asked()];"
    )
    assert [(row["waiting"], row["problem"]) for row in rows] == [(1, "why"), (0, "why")]
    assert asked == [[A, B], [A]]  # no third time: nothing got through


def test_pages_that_fail_block_no_others() -> None:
    asked = run(
        'foreach (range(1, 45) as $n) { $pages->addresses["$n 0"] = "https://town.example/$n"; $outbox->mark($n, 0); }'
        "$fail = fn ($urls) => array_fill_keys($urls, 'failed'); $requests->answers = [$fail, []];"
        "$drain(); $drain(); $result = $asked();"
    )
    assert [some[0] for some in asked[:2]] == ["https://town.example/1", "https://town.example/41"]


def test_pages_that_fail_do_not_block_each_other() -> None:
    tried = run(
        'foreach (range(1, 90) as $n) { $pages->addresses["$n 0"] = "https://town.example/$n"; $outbox->mark($n, 0); }'
        "$requests->answers = array_fill(0, 300, fn ($urls) => array_fill_keys($urls, 'failed'));"
        "$pdo->exec(\"UPDATE tx_pagewire_page SET problem = 'why'\");"
        "foreach (range(1, 200) as $_) { $drain(); } $result = $asked();"
    )
    assert {len(urls) for urls in tried} <= set(range(1, 41))
    assert {url for urls in tried for url in urls} == {f"https://town.example/{n}" for n in range(1, 91)}


def test_one_page_that_failed_stops_no_others() -> None:
    asked = run(
        'foreach (range(1, 41) as $n) { $pages->addresses["$n 0"] = "https://town.example/$n"; $outbox->mark($n, 0); }'
        "$pdo->exec(\"UPDATE tx_pagewire_page SET problem = 'why' WHERE page = 1\");"
        "$drain(); $result = $asked();"
    )
    assert [len(some) for some in asked] == [40, 1]
    assert asked[1] == ["https://town.example/1"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("401", "does not know the key"),
        ("403", "may not ingest"),
        ("404", "no Pagewire"),
        ("301", "redirects"),
        ("503", "status 503"),
        ("'<html>'", "not Pagewire"),
        ("fn () => throw new RuntimeException('refused')", "does not answer: refused"),
    ],
)
def test_what_is_not_taken_waits(answer: str, problem: str) -> None:
    said, waiting = run(
        f"{TWO} $outbox->mark(1, 0); $requests->answers = [{answer}]; $said = $drain();"
        "$result = [$said, $outbox->length()];"
    )
    assert problem in said
    assert waiting == 1


def test_nothing_is_sent_without_settings_or_beside_another_process() -> None:
    said = run(
        f"{TWO} $outbox->mark(1, 0); $locks->held = TRUE; $a = $drain(); $locks->held = FALSE;"
        "$configuration->values['key'] = ''; $result = [$a, $drain(), $requests->requests];"
    )
    assert said == ["", "the extension's setting key is empty", []]


def test_saves_go_before_everything() -> None:
    asked = run(
        'foreach (range(1, 90) as $n) { $pages->addresses["$n 0"] = "https://town.example/$n";'
        " $outbox->mark($n, 0, 2); }"
        "$outbox->mark(77, 0); $drain(); $result = $asked();"
    )
    assert asked[0][0] == "https://town.example/77"
    assert sorted(len(some) for some in asked) == [10, 40, 40]


def marked(code: str) -> list[tuple[int, int]]:
    return [(row["page"], row["language"]) for row in run(f"{code} $result = $rows();")]


def test_a_cleared_cache_marks_the_page_of_the_record_in_its_languages() -> None:
    changed = "$marks->cacheCleared(['table' => 'tt_content', 'uid' => 5, 'uid_page' => 3]);"
    assert marked(f"$pages->languages = [3 => [0, 1]]; {changed}") == [(3, 0), (3, 1)]
    assert marked(f"$pages->languages = [3 => []]; {changed}") == []
    assert marked("$marks->cacheCleared(['cacheCmd' => 'all', 'tags' => []]);") == []


def test_a_record_that_moves_marks_the_page_that_it_leaves() -> None:
    assert marked("$marks->moveRecord_firstElementPostProcess('tt_content', 5, 4, ['pid' => 3], [], NULL);") == [(3, 0)]
    after = "$marks->moveRecord_afterAnotherElementPostProcess('tt_content', 5, 4, -7, ['pid' => 3], [], NULL);"
    assert marked(after) == [(3, 0)]


def test_access_and_a_move_mark_the_pages_below() -> None:
    below = "$pages->below = [3 => [4, 5]]; $handler = new TYPO3\\CMS\\Core\\DataHandling\\DataHandler();"
    after = "$marks->processDatamap_afterDatabaseOperations"
    assert marked(f"{below} {after}('update', 'pages', 3, ['fe_group' => '1'], $handler);") == [(4, 0), (5, 0)]
    assert marked(f"{below} {after}('update', 'pages', 3, ['title' => 'New'], $handler);") == []
    assert marked(f"{below} {after}('update', 'tt_content', 3, ['hidden' => 1], $handler);") == []
    assert marked(f"{below} $marks->processCmdmap_postProcess('move', 'pages', 3);") == [(4, 0), (5, 0)]


@pytest.mark.parametrize(
    ("agent", "status", "answered"),
    [("Pagewire/0.3", 403, 404), ("Mozilla/5.0", 403, 403), ("Pagewire/0.3", 200, 200), ("Pagewire/0.3", 500, 500)],
)
def test_a_page_for_members_is_gone_for_pagewire_alone(agent: str, status: int, answered: int) -> None:
    said = run(
        "class Message implements Psr\\Http\\Message\\ServerRequestInterface, Psr\\Http\\Message\\ResponseInterface,"
        " Psr\\Http\\Server\\RequestHandlerInterface { function __construct(public $agent, public $status) {}"
        " function getHeaderLine($name) { return $this->agent; } function getStatusCode() { return $this->status; }"
        " function withStatus($status) { return new self($this->agent, $status); }"
        " function handle($request): Psr\\Http\\Message\\ResponseInterface { return $this; } }"
        f"$message = new Message('{agent}', {status}); $middleware = new Pagewire\\Typo3\\Middleware\\MembersOnly();"
        "$result = $middleware->process($message, $message)->getStatusCode();"
    )
    assert said == answered
