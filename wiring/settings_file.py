"""Reading the settings: `pagewire.yaml`, then the environment, which wins. A wrong one fails here, by its name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from connectors.cms.settings import KINDS, variables
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.secret import read
from prompts.strict_yaml import DoubledKey, UniqueKeys
from wiring import secret_files
from wiring.secret_files import FILE_SETTINGS, SUFFIX
from wiring.settings import Settings

PREFIX = "PAGEWIRE_"
# Read by the names that the openai client and uvicorn have for them, so that a user's existing environment works.
OTHER_NAMES = {
    "OPENAI_API_KEY": "openai_api_key",
    "OPENAI_API_KEY_FILE": "openai_api_key_file",
    "OPENAI_BASE_URL": "openai_base_url",
    "FORWARDED_ALLOW_IPS": "forwarded_allow_ips",
}
# Maps and lists have no sensible form in one environment variable.
FILE_ONLY = frozenset({"sites", "keys", "steps", "proxy_sign_in"})


def load(env: Mapping[str, str] | None = None) -> Settings:
    """Read `pagewire.yaml` and the environment.

    Raises:
        SettingsError: naming the setting and what it must be.
    """
    env = os.environ if env is None else env
    path = Path(env.get(PREFIX + "CONFIG") or "pagewire.yaml")
    values: dict[str, Any] = {}
    if path.exists():
        values = _read_yaml(path)
    elif env.get(PREFIX + "CONFIG"):
        raise SettingsError(f"PAGEWIRE_CONFIG: no such file: {path}")
    named = _fill_in(values, env, path)
    others = {OTHER_NAMES[name]: value for name, value in env.items() if name in OTHER_NAMES and value}
    values = _over(_over(others, values), _from_environment(env, named, path))
    files = secret_files.put_in(values)
    try:
        return secret_files.keep_fresh(Settings.model_validate(values), files)
    except ValidationError as err:
        raise SettingsError("; ".join(_problem(e, path, files) for e in err.errors(include_url=False))) from None


def _from_environment(env: Mapping[str, str], named: Set[str], path: Path) -> dict[str, Any]:
    """What the variables say. `named`: those that the file asks for. Raises: SettingsError."""
    values: dict[str, Any] = {}
    for name, value in env.items():
        if not name.startswith(PREFIX) or name == PREFIX + "CONFIG":
            continue
        key = name.removeprefix(PREFIX).lower()
        if key in FILE_ONLY:
            raise SettingsError(f"{name}: {key} are set in {path}, they do not fit into one variable")
        if key not in Settings.model_fields and key not in FILE_SETTINGS:
            if name in named:
                continue
            close = _close(key)
            raise SettingsError(f"{name}: no such setting" + (f"; did you mean {_variable(close)}?" if close else ""))
        if value:
            values[key] = value
    return values


def _over(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Both; where both say something of a setting, be it itself or the file of a secret, what `upper` says.

    Raises:
        SettingsError: one of them says a secret in both ways.
    """
    for values in (lower, upper):
        for file, name in FILE_SETTINGS.items():
            if file in values and name in values:
                raise SettingsError(f"{name} and {file} ({_variable(name)}, {_variable(file)}): give one of them")
    said = {FILE_SETTINGS.get(key, key) for key in upper}
    return {key: value for key, value in lower.items() if FILE_SETTINGS.get(key, key) not in said} | upper


def _fill_in(values: dict[str, Any], env: Mapping[str, str], path: Path) -> set[str]:
    """Put in the secrets that the file names as `${NAME}`, from NAME or the file that NAME_FILE names.

    Returns:
        The names of these variables.

    Raises:
        SettingsError.
    """
    named = set()
    for where, connector, key, variable in variables(values):
        said, file = f"{'.'.join(where)} ({path})", variable + SUFFIX.upper()
        if env.get(variable):
            connector[key] = env[variable]
        elif env.get(file):
            connector[key] = read(Path(env[file]), f"{said}: {file}")
        else:
            raise SettingsError(f"{said}: the environment variable {variable} is not set, nor is {file}")
        named |= {variable, file}
    return named


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        loaded = yaml.load(path.read_text(encoding="utf-8"), UniqueKeys)  # noqa: S506
    except yaml.MarkedYAMLError as err:
        # Without the words of the parser, which quote the line: it may hold a key.
        mark = err.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = "a key that stands twice" if isinstance(err, DoubledKey) else "not YAML"
        raise SettingsError(f"{path}: {what}{where}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as err:
        raise SettingsError(f"{path}: cannot be read: {err}") from err
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise SettingsError(f"{path}: must be a mapping such as `sites: {{town: {{languages: [en]}}}}`")
    return {str(key): value for key, value in loaded.items()}


def _problem(error: Any, path: Path, files: Mapping[str, Path]) -> str:
    said = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:  # about several settings together: names them itself
        return str(said)
    # Pydantic names the kind of a connector as if it were a key below its name.
    place = [part for at, part in enumerate(error["loc"]) if (at, error["loc"][2:3]) != (4, ("connectors",))]
    where = ".".join(str(part) for part in place)
    if error["type"] == "extra_forbidden":
        close = _close(where)
        return f"{where} ({path}): no such setting" + (f"; did you mean {close}?" if close else "")
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return f"{where} ({path}): {_kind(error['ctx'].get('tag'))}"
    if where in files:
        return f"{where + SUFFIX} ({_variable(where + SUFFIX)}): {files[where]}: {said}"
    settable = where in Settings.model_fields and where not in FILE_ONLY
    return f"{where} ({f'{_variable(where)} or ' if settable else ''}{path}): {said}"


def _kind(given: str | None) -> str:
    """What is wrong with a connector's `kind`."""
    kinds = sorted(get_args(one.model_fields["kind"].annotation)[0] for one in KINDS)
    if given is None:
        return f"needs a `kind`: {', '.join(kinds)}"
    close = next(iter(difflib.get_close_matches(given, kinds, n=1)), None)
    return f"no kind {given!r}; there are: {', '.join(kinds)}" + (f"; did you mean {close}?" if close else "")


def _variable(setting: str) -> str:
    return PREFIX + setting.upper()


def _close(name: str) -> str | None:
    return next(iter(difflib.get_close_matches(name, Settings.model_fields, n=1)), None)
