"""The commands as scripts see them: help with an example, exit codes, JSON on standard output and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner, Result

from cli import main
from cli.main import app
from cli.retired import RETIRED
from pipelines.runtime import logs


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No settings, no servers, and no logging set up for the tests that follow."""
    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA", "ELASTICSEARCH", "CONFIG"):
        monkeypatch.delenv(f"PAGEWIRE_{name}", raising=False)
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(logs, "configure", lambda settings: None)
    (tmp_path / "pages.ndjson").write_text('{"id": "a", "title": "A"}\n')
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def every_command(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    children = getattr(command or typer.main.get_command(app), "commands", None)
    if children is None:
        yield path
        return
    for name, child in children.items():
        yield from every_command(child, (*path, name))


COMMANDS = list(every_command())


def test_all_commands_of_the_contract_are_there() -> None:
    engine = {("engine", name) for name in ("start", "stop", "status", "reset")}
    single = {"up", "worker", "gateway", "topics", "import", "ask", "search", "status", "receipt", "demo"}
    letters = {("dlq", name) for name in ("list", "show", "edit", "redrive", "drop")}
    evaluation = {("eval", name) for name in ("run", "compare", "sweep", "calibrate", "gaps")}
    assert engine | letters | evaluation | {(name,) for name in single} <= set(COMMANDS)


def test_short_names_are_the_commands_of_index_and_not_in_the_help() -> None:
    whole: Any = typer.main.get_command(app)
    assert {"audit", "rebuild", "rollback"} <= set(main.SHORT)  # which outside scripts rely on
    for name in main.SHORT:
        grouped = whole.commands["index"].commands[name]
        assert grouped.callback.__wrapped__ is whole.commands[name].callback.__wrapped__
    assert not set(main.SHORT) & set(main.COMMANDS)


@pytest.mark.parametrize("name", RETIRED)
def test_a_retired_command_says_what_does_the_same(name: str) -> None:
    refused = run(*name.split(), "list", "town")
    assert refused.exit_code == 2
    said = " ".join(refused.output.replace("│", " ").split())
    assert f"is no command any more: use {RETIRED[name]}" in said
    assert "Did you mean" not in said
    tried = re.findall(r"`pagewire ([a-z ]+)`", RETIRED[name])
    assert all(tuple(successor.split()) in COMMANDS or successor == "eval datasets" for successor in tried)


@pytest.mark.parametrize("line", [f"pagewire {name} " for name in RETIRED])
def test_the_completion_of_a_retired_command_does_not_fail(line: str) -> None:
    environment = {"_PAGEWIRE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
    done = CliRunner().invoke(app, [], prog_name="pagewire", env=environment)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "_arguments" in done.output


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_says_what_a_command_does_and_shows_an_example(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert f"Example: pagewire {' '.join(path)}" in " ".join(result.stdout.split())
    assert "--follow-parent" not in result.stdout


def test_the_list_of_commands_says_of_each_how_its_own_help_begins() -> None:
    whole: Any = typer.main.get_command(app)
    shown = " ".join(run("help").stdout.replace("│", " ").split())
    assert sorted(main.COMMANDS) == sorted(["help", *(name for names in main.GROUPS.values() for name in names)])
    for name, (_, said) in main.COMMANDS.items():
        command = whole.commands[name]
        assert " ".join((command.help or "").split()).startswith(said.removesuffix(".")), name
        assert name == "help" or f"{name} {said}" in shown


def test_the_first_help_has_ten_commands_and_that_of_a_group_all_of_it() -> None:
    def listed(*arguments: str) -> set[str]:
        return set(re.findall(r"^│ ([a-z-]+) ", run(*arguments).stdout, re.MULTILINE)) & set(main.COMMANDS)

    assert listed("--help") == {name for names in main.EVERYDAY.values() for name in names}
    assert len(listed("--help")) == 10
    assert listed("help", "upkeep") == set(main.GROUPS["Upkeep"])
    assert run("help", "downkeep").exit_code == 2


def test_help_of_the_whole_names_the_exit_codes() -> None:
    assert "Exit codes: 0 fine, 1 the thing asked for is not so, 2 wrong use" in " ".join(run("--help").stdout.split())


WITH_SITE = [
    ("import", "village", "pages.ndjson"),
    ("receipt", "village", "a"),
    ("receipt", "village", "a", "--lang", "en"),
    ("search", "village", "dogs"),
    ("ask", "village", "Dogs?"),
    ("ask", "village", "Dogs?", "--lang", "en"),
]


@pytest.mark.parametrize("arguments", WITH_SITE, ids=" ".join)
def test_an_unknown_site_is_wrong_use(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "unknown site 'village'; no pagewire.yaml here names any, so there is only the sample: demo" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "demo", "pages.ndjson"),
        ("receipt", "demo", "a"),
        ("search", "demo", "dogs", "--json"),
        ("ask", "demo", "Dogs?", "--json"),
        ("status", "--json"),
        ("topics", "--json"),
        ("dlq", "list", "--json"),
        ("dlq", "drop", "cms.changes/0/1"),
        ("worker", "chunk"),
    ],
    ids=" ".join,
)
def test_without_servers_the_exit_code_is_3_and_the_way_to_start_them_is_told(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 3
    assert "pagewire engine start --detach" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("search", "demo", "dogs", "--mode", "fuzzy"), "hybrid, vector or keyword"),
        (("search", "demo", "dogs", "--size", "0"), "--size"),
        (("search", "demo"), "query"),
        (("worker", "chnk"), "no such stage: chnk; stages: chunk embed"),
        (("worker", "chnk"), "; did you mean chunk?"),
        (("worker", "all", "--lane", "bulk"), "stage rephrase has no bulk lane"),
        (("worker", "ingest", "--lane", "fast"), "--lane"),
        (("import", "demo", "nowhere.ndjson"), "nowhere.ndjson: no such file or folder, nor a connector of site demo"),
        (("search", "demo", ""), "query: it is empty"),
        (("search", "demo", " \n\t", "--json"), "query: it is empty"),
        (("ask", "demo", ""), "question: it is empty"),
        (("ask", "demo", "  "), "question: it is empty"),
        (("ask", "demo", "x" * 100_000), "question: "),
        (("ask", "demo", "Dogs?", "--lang", "German"), "lang: "),
        (("no-such-command",), "no-such-command"),
        (("dlq", "list", "--topic", "answer.events"), "topic: no topic with dead letters"),
        (("dlq", "list", "--since", "soon"), "30m, 2h, 3d or an ISO 8601 time"),
        (("dlq", "redrive"), "name the letters by their ids, or give --all"),
        (("dlq", "drop", "cms.changes/0/1", "--all"), "name the letters by their ids, or give --all"),
        (("dlq", "drop", "cms.changes/0/1", "--site", "town"), "with ids there is nothing to choose"),
        (("dlq", "redrive", "--all"), "give --yes"),
        (("dlq", "edit", "cms.changes/0/1", "--file", "nowhere.json"), "nowhere.json"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_wrong_use_is_told_plainly(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_an_import_from_nowhere_names_the_connectors(empty_home: Path) -> None:
    (empty_home / "pagewire.yaml").write_text(
        "sites: {town: {connectors: {blog: {kind: folder, path: a}, docs: {kind: folder, path: b}}}}"
    )
    said = "no such file or folder, nor a connector of site town; pagewire.yaml has: blog, docs; did you mean blog?"
    result = run("import", "town", "blok")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"blok: {said}" in result.stderr
    for command in ("watch", "reconcile"):  # before they look for Kafka
        assert "has no connector 'blok'; pagewire.yaml has: blog, docs; did" in run(command, "town", "blok").stderr


def test_the_sample_has_no_connectors_and_no_file_that_names_them() -> None:
    for command in ("import", "watch", "reconcile"):
        result = run(command, "demo", "blog")
        assert result.exit_code == 2
        assert "it has none: docs/howto/connect.md" in result.stderr
        assert "pagewire.yaml" not in result.stderr


def test_a_wrong_setting_is_wrong_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEWIRE_PORT", "many")
    result = run("status")
    assert result.exit_code == 2
    assert "port (PAGEWIRE_PORT): must be a whole number (it is 'many'); for example 8000" in result.stderr


@pytest.mark.parametrize("command", ["up", "gateway"])
@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_there_is_not_is_wrong_use(command: str, port: str) -> None:
    result = run(command, f"--port={port}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value for '--port'" in result.stderr


def test_a_bad_settings_file_is_quoted_as_it_is(empty_home: Path) -> None:
    """Square brackets in a message are no markup."""
    (empty_home / "pagewire.yaml").write_text("- a list")
    assert "`sites: {town: {languages: [en]}}`" in run("status").stderr


def test_the_engine_that_does_not_run_says_so_in_json() -> None:
    result = run("engine", "status", "--json")
    assert result.exit_code == 1
    status = json.loads(result.stdout)
    assert set(status) == {"running", "kafka", "elasticsearch"}
    assert status["running"] is False
    assert {"name", "version", "running", "healthy", "url", "port", "pid", "rss_bytes"} < set(status["kafka"])


def test_stopping_an_engine_that_does_not_run_is_fine() -> None:
    result = run("engine", "stop")
    assert (result.exit_code, result.stdout) == (0, "nothing was running\n")


def test_a_reset_lets_interrupted_imports_begin_at_the_start(empty_home: Path) -> None:
    cursor = empty_home / "home" / "imports" / "x.json"
    cursor.parent.mkdir(parents=True)
    cursor.write_text('{"accepted": 5}')
    assert run("engine", "reset", "--yes").exit_code == 0
    assert not cursor.exists()


def test_a_reset_asks_first(empty_home: Path) -> None:
    result = CliRunner().invoke(app, ["engine", "reset"], input="n\n")
    assert result.exit_code == 1
    assert "Delete all topics and indexes" in result.stdout
