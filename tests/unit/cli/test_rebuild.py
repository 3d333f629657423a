"""`pagewire index rebuild` and its like: what is refused before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.test_commands import empty_home, run

__all__ = ["empty_home"]

COMMANDS = [
    ("rebuild", "{site}", "--from", "changes"),
    ("index", "list", "{site}"),
    ("promote", "{site}"),
    ("rollback", "{site}"),
    ("discard", "{site}", "2"),
]


@pytest.fixture(autouse=True)
def _not_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.generations.give_way", lambda by: None)


def at(site: str, command: tuple[str, ...]) -> list[str]:
    return [part.format(site=site) for part in command]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_without_servers_the_exit_code_is_3_and_an_unknown_site_is_2(command: tuple[str, ...]) -> None:
    missing = run(*at("demo", command))
    assert missing.exit_code == 3, missing.output
    assert "pagewire engine start --detach" in missing.stderr
    unknown = run(*at("village", command))
    assert unknown.exit_code == 2
    assert "unknown site 'village'" in unknown.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--from"),
        (("--from", "thin-air"), "thin-air"),
        (("--from", "changes", "--chunk-size", "31"), "--chunk-size"),
        (("--from", "changes", "--chunk-size", "many"), "--chunk-size"),
        (("--from", "changes", "--chunk-mode", "odd"), "odd"),
        (("--from", "changes", "--gate", "no-such-file"), "--gate"),
        (("--from", "changes", "--gate", "pages.ndjson"), "pages.ndjson, entry 1: question"),
    ],
    ids=" ".join,
)
def test_bad_options_are_wrong_use(options: tuple[str, ...], said: str, empty_home: Path) -> None:
    result = run("rebuild", "demo", *options)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_generation_is_a_number() -> None:
    assert run("discard", "demo", "last").exit_code == 2
    assert run("promote", "demo", "--generation", "0").exit_code == 2
