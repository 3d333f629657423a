"""Reads the settings: `pagewire.yaml`, then the environment, which wins. A fault ends the start, with its name.

Settings of earlier versions: one that has a successor is refused, since its value would be lost; another one is
ignored, with a warning.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from connectors.cms.settings import variables
from pipelines.runtime.errors import SettingsError, nearest
from pipelines.runtime.secret import read
from prompts.strict_yaml import DoubledKey, UniqueKeys
from wiring import secret_files
from wiring.secret_files import FILE_SETTINGS, SUFFIX
from wiring.setting_problems import FILE_ONLY, PREFIX, explained, variable
from wiring.setting_problems import variable as variable_of
from wiring.settings import Settings

log = logging.getLogger(__name__)  # at a start nothing is configured yet: Python writes it to stderr

_FIXED = "it is no setting any more"
_CHECKED = f"{_FIXED}; a certificate must name the host"
# The place in pagewire.yaml (`*`: any name), and what to set instead.
SUCCESSORS: Mapping[str, str] = {
    "answer_tokens": "steps.answer.max_tokens",
    "attachment_folder": "sites.SITE.attachment_folder",
    "content_hits": "hits",
    "kafka_oauth_client": "kafka_user (PAGEWIRE_KAFKA_USER)",
    "kafka_oauth_secret": "kafka_password (PAGEWIRE_KAFKA_PASSWORD)",
    "kafka_oauth_secret_file": "kafka_password_file (PAGEWIRE_KAFKA_PASSWORD_FILE)",
    "llm_temperature": "temperature of the steps, such as steps.answer.temperature",
    "llm_small_model": "steps.rephrase.model, steps.translate.model and steps.title.model",
    "steps.*.context_chars": "context_chars",
    "sites.*.answer_tokens": "steps.answer.max_tokens of the site",
    "sites.*.judge": "judge (PAGEWIRE_JUDGE), for all sites",
    "sites.*.shards": "shards (PAGEWIRE_SHARDS); small sites share indexes by `index: shared`",
    "sites.*.steps.*.context_chars": "context_chars of the site",
    "sites.*.tool_calls": "tool_calls (PAGEWIRE_TOOL_CALLS), for all sites",
}
# Those without: why.
RETIRED: Mapping[str, str] = {
    "answers_at_once": _FIXED,
    "attachment_budget": _FIXED,
    "attachment_memory": _FIXED,
    "attachment_text": _FIXED,
    "attachment_timeout": _FIXED,
    "chunk_overlap": f"{_FIXED}; an index keeps its own until it is rebuilt",
    "chunk_titled": f"{_FIXED}; an index that has titles keeps them until it is rebuilt",
    "clock": "a file `clock` in the folder `home` does it",
    "drain_timeout": _FIXED,
    "history_messages": _FIXED,
    "elasticsearch_check_hostname": _CHECKED,
    "in_flight_bytes": f"{_FIXED}; limit the memory of the container",
    "in_flight_records": _FIXED,
    "judge_seconds": _FIXED,
    "kafka_check_hostname": _CHECKED,
    "llm_at_once": _FIXED,
    "llm_failures": _FIXED,
    "llm_rest": _FIXED,
    "llm_token_chars": _FIXED,
    "metrics_sites": _FIXED,
    "question_patience": _FIXED,
    "question_timeout": "it is three times llm_timeout",
    "receipt_timeout": "use `timeout` of the request",
    "retry_for": _FIXED,
    "shared_indexes": _FIXED,
    "stall_timeout": _FIXED,
    "static_membership": "members are dynamic",
    "tracing": "traces are sent where OTEL_EXPORTER_OTLP_ENDPOINT names a collector",
    "tracing_metrics": "let a collector read /metrics",
    "tries": _FIXED,
    "try_timeout": _FIXED,
    "visitor_days": "it is a month, or retention.conversations where that is shorter",
    "window": _FIXED,
    "sites.*.chat.titles": _FIXED,
    "sites.*.connectors.*.concurrency": f"{_FIXED}; delay sets the pace",
    "sites.*.connectors.*.max_depth": f"{_FIXED}; max_pages limits a crawl",
    "sites.*.judging.again": _FIXED,
}


def without_retired(values: dict[str, Any]) -> dict[str, Any]:
    """The settings; each retired one without a successor is logged as a warning and left out.

    Raises:
        SettingsError: a setting has a successor.
    """
    for pattern, successor in SUCCESSORS.items():
        for place, _, _ in _places(values, pattern.split(".")):
            raise SettingsError(f"{_shown(place)} is no setting any more: set {successor}")
    for pattern, why in RETIRED.items():
        for place, holder, name in list(_places(values, pattern.split("."))):
            log.warning("%s is ignored: %s", _shown(place), why)
            del holder[name]
    return values


def _shown(place: str) -> str:
    return place if "." in place else f"{place} ({variable(place)})"


def _places(holder: Any, parts: list[str], above: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """The places that a pattern names: in words, their mapping, their key there."""
    first, *rest = parts
    for name in list(holder) if isinstance(holder, dict) else ():
        if first in ("*", name):
            place = f"{above}{name}"
            if rest:
                yield from _places(holder[name], rest, f"{place}.")
            else:
                yield place, holder, name


NAME = "pagewire.yaml"
# Also read by the openai client's and uvicorn's names, so that a user's existing environment works.
OTHER_NAMES = {
    "OPENAI_API_KEY": "openai_api_key",
    "OPENAI_API_KEY_FILE": "openai_api_key_file",
    "OPENAI_BASE_URL": "openai_base_url",
    "FORWARDED_ALLOW_IPS": "forwarded_allow_ips",
}
MISNAMED = ("pagewire.yml", "Pagewire.yaml", "pagewire.yaml.txt")  # names that are not read
COLON = "a colon in a value, which must stand in quotes then,"
_COLON = re.compile(r"\s*[\w-]+:\s+[^\s'\"\[{|>&*!#].*:(\s|$)")
TAB = "a tab, where YAML is indented with spaces,"
CONFLICT = "a conflict that git has left"


def load(env: Mapping[str, str] | None = None) -> Settings:
    """Read `pagewire.yaml` and the environment.

    Raises:
        SettingsError: names the setting and what it must be.
    """
    env = os.environ if env is None else env
    path = Path(env.get(PREFIX + "CONFIG") or NAME)
    values: dict[str, Any] = {}
    if path.exists():
        values = _read_yaml(path)
    elif env.get(PREFIX + "CONFIG"):
        raise SettingsError(f"PAGEWIRE_CONFIG: no such file: {path}")
    elif found := next((name for name in MISNAMED if Path(name).exists()), None):
        raise SettingsError(f"{found} is not read: call it {NAME}, or name it by PAGEWIRE_CONFIG={found}")
    named = _fill_in(values, env, path)
    others = {key: _unquoted(name, env[name]) for name, key in OTHER_NAMES.items() if env.get(name)}
    ours = _from_environment(env, named, path)
    said = {key: name for name, key in OTHER_NAMES.items() if key in others and key not in values}
    said |= {key: variable_of(key) for key in ours}
    values = _over(_over(others, values), ours)
    values = without_retired(values)
    files = secret_files.put_in(values)
    try:
        return secret_files.keep_fresh(Settings.model_validate(values), files)
    except ValidationError as err:
        raise SettingsError(explained(err, values, path, files, said)) from None


def _from_environment(env: Mapping[str, str], named: Set[str], path: Path) -> dict[str, Any]:
    """The settings of the variables. `named`: variables that the file refers to. Raises: SettingsError."""
    values: dict[str, Any] = {}
    known = {*Settings.model_fields, *FILE_SETTINGS, *RETIRED, *SUCCESSORS}
    for name, value in env.items():
        if not name.upper().startswith(PREFIX) or name == PREFIX + "CONFIG":
            continue
        key = name[len(PREFIX) :].lower()
        if key in FILE_ONLY:
            raise SettingsError(f"{name}: {key} are set in {path}, they do not fit into one variable")
        if name != variable_of(key) or key not in known:
            if name in named:
                continue
            close = nearest(key, [*Settings.model_fields, *FILE_SETTINGS])
            raise SettingsError(f"{name}: no such setting" + (f"; did you mean {variable_of(close)}?" if close else ""))
        if value:
            values[key] = _unquoted(name, value)
    return values


def _unquoted(name: str, value: str) -> str:
    """The value. Raises: SettingsError: it has quotes from a file that no shell has read."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        raise SettingsError(f"{name}: its quotes are taken for a part of the value: write {name}=VALUE without them")
    return value


def _over(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Merge both; `upper` wins, also for a secret that one gives itself and the other by its file.

    Raises:
        SettingsError: one of them gives a secret in both ways.
    """
    for values in (lower, upper):
        for file, name in FILE_SETTINGS.items():
            if file in values and name in values:
                raise SettingsError(f"{name} and {file} ({variable_of(name)}, {variable_of(file)}): give one of them")
    said = {FILE_SETTINGS.get(key, key) for key in upper}
    return {key: value for key, value in lower.items() if FILE_SETTINGS.get(key, key) not in said} | upper


def _fill_in(values: dict[str, Any], env: Mapping[str, str], path: Path) -> set[str]:
    """Replace `${NAME}` in the file by the secret, from NAME or the file that NAME_FILE names.

    Returns:
        The names of these variables.

    Raises:
        SettingsError.
    """
    named = set()
    for where, connector, key, of_env in variables(values):
        said, file = f"{'.'.join(where)} ({path})", of_env + SUFFIX.upper()
        if env.get(of_env):
            connector[key] = env[of_env]
        elif env.get(file):
            connector[key] = read(Path(env[file]), f"{said}: {file}")
        else:
            raise SettingsError(f"{said}: the environment variable {of_env} is not set, nor is {file}")
        named |= {of_env, file}
    return named


def _read_yaml(path: Path) -> dict[str, Any]:
    """The parsed file. Raises: SettingsError: names the line, never its content, which may be a key."""
    try:
        text = path.read_text(encoding="utf-8")
        loaded = yaml.load(text, UniqueKeys)  # noqa: S506
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SettingsError(f"{path}: {_not_yaml(err, text)}{where}") from None
    except yaml.YAMLError:  # from the reader: a control character
        raise SettingsError(f"{path}: cannot be read: it has control characters in it") from None
    except (OSError, UnicodeDecodeError) as err:
        raise SettingsError(f"{path}: cannot be read: {err}") from err
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise SettingsError(f"{path}: must be a mapping such as `sites: {{town: {{languages: [en]}}}}`")
    return {str(key): value for key, value in loaded.items()}


def _not_yaml(err: yaml.MarkedYAMLError, text: str) -> str:
    """The probable fault, from frequent ones. YAML reports the line itself or the next one."""
    if isinstance(err, DoubledKey):
        return "a key that stands twice"
    at = err.problem_mark.line if err.problem_mark else 0
    lines = text.splitlines()[max(0, at - 1) : at + 1]
    if any("\t" in line[: len(line) - len(line.lstrip())] for line in lines):
        return TAB
    if any(line.startswith(("<<<<<<<", "=======", ">>>>>>>")) for line in lines):
        return CONFLICT
    return COLON if _COLON.match(lines[-1] if lines else "") else "not YAML"
