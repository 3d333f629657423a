"""Describes faults of settings: the setting, its value, and a valid example. Never a secret.

    PLACE (VARIABLE or FILE): REASON (it is VALUE); did you mean NAME? | for example EXAMPLE

example.yaml in this folder has an example of each setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args
from zoneinfo import available_timezones

import yaml
from pydantic import ValidationError

from connectors.cms import settings as connectors
from pipelines.runtime.errors import did_you_mean
from prompts.loader import table
from prompts.strict_yaml import load_safe
from wiring.settings import Settings, SiteSettings

Place = tuple[str | int, ...]

PREFIX = "PAGEWIRE_"
FILE_ONLY = frozenset({"sites", "keys", "steps", "proxy_sign_in"})  # maps and lists fit into no variable
EXAMPLES = Path(__file__).with_name("example.yaml")
LONGEST, LONGEST_EXAMPLE = 80, 160  # characters of a value that are shown
SECRET = re.compile(r"(^|_)(secret|password|keys?|sha256)$")  # names of settings whose values are never shown
REFERENCE = re.compile(r"\$\{\w+\}")
KINDS = ", ".join(sorted(get_args(kind.model_fields["kind"].annotation)[0] for kind in connectors.KINDS))
# Instead of pydantic's messages, which speak of Python's types. By the begin of the error's type.
REASONS = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a finite number",
    "bool": "must be true or false",
    "string_type": "must be text: what YAML takes for something else needs quotes",
    "string_pattern": "has the wrong form",
    "tuple": "must be a list",
    "dict": "must be a mapping",
    "model": "must be a mapping",
    "path": "must be a path",
    "missing": "is missing",
}
CODES = "languages are named by their codes"
# Instead of an unreadable pattern: by the name of the setting, or by the mapping whose keys are the user's own names.
FORMS = {
    "elasticsearch": "must be a URL with its port, without user and password",
    "openai_base_url": "must be a URL",
    "url": "must be a URL with its scheme, without user and password",
    "sha256": "must be the key's SHA-256 in hex, `printf %s KEY | sha256sum`",
    "languages": CODES,
    "lang": CODES,
}
FORMS_OF_NAMES = {
    "sites": "names of sites have small letters, digits and hyphens",
    "connectors": "names of connectors have small letters, digits, hyphens and underscores",
    "contact": CODES,
    "examples": CODES,
}


def variable(setting: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + setting.upper()


def explained(
    err: ValidationError,
    given: Mapping[str, Any],
    path: Path,
    files: Mapping[str, Path],
    variables: Mapping[str, str],
) -> str:
    """A line for each setting with a fault.

    Args:
        given: the settings as they were written.
        path: of the settings' file, existing or not.
        files: of secrets, by setting.
        variables: of the environment, by the setting that they set.
    """
    found: dict[Place, list[Any]] = {}
    lines = []
    for error in err.errors(include_url=False):
        if error["loc"]:
            found.setdefault(_place(error, given), []).append(error)
        else:  # about several settings together: names them itself
            lines.append(_own_words(error))
    outer = {place[:size] for place in found for size in range(len(place))}
    for place, errors in found.items():
        if place not in outer:  # else an inner setting is the cause
            lines.append(_line(place, errors, path, files, variables))
    return "\n".join(lines)


def _place(error: Any, given: Any) -> Place:
    """The place in the given settings, without the kinds of connectors and parts of unions that pydantic adds."""
    place: list[str | int] = []
    for part in error["loc"]:
        inside = part in given if isinstance(given, Mapping) else isinstance(given, list) and isinstance(part, int)
        if inside:
            given = given[part]
            place.append(part)
    return (*place, error["loc"][-1]) if error["type"] == "missing" else tuple(place)


def _line(
    place: Place, errors: Sequence[Any], path: Path, files: Mapping[str, Path], variables: Mapping[str, str]
) -> str:
    where, error = ".".join(map(str, place)), errors[0]
    if error["type"] == "extra_forbidden":
        return f"{where} ({path}): no such setting{_instead(place, error)}"
    reason = " or ".join(dict.fromkeys(_reason(place, each) for each in errors))
    if where in files:
        return f"{where}_file ({variable(where)}_FILE): {files[where]}: {reason}"
    shown = not (is_secret(place) or error["type"] == "missing" or repr(error["input"]) in reason)
    seen = _seen(place, error) if shown else ""
    instead = _meant(place, error) or _example(place, error, in_variable=where in variables)
    return f"{where} ({variables.get(where, path)}): {reason}{seen}{instead}"


def _reason(place: Place, error: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch" and (form := _form(place, error)):
        return form
    if kind == "union_tag_invalid":
        return f"no kind {context['tag']!r}; there are: {KINDS}"
    if kind == "union_tag_not_found":
        return f"needs a `kind`: {KINDS}"
    if kind in ("too_short", "string_too_short"):
        least = context["min_length"]
        return "is empty" if least == 1 else f"must have {least} characters or more: `openssl rand -base64 32`"
    words = next((words for beginning, words in REASONS.items() if kind.startswith(beginning)), None)
    return words or re.sub(r"^(Input|String) should ", "must ", _own_words(error)).removeprefix("value ")


def _form(place: Place, error: Any) -> str | None:
    if error["loc"][-1] == "[key]":
        return FORMS_OF_NAMES.get(str(place[-2]), CODES)  # keys of a glossary's terms are languages
    return FORMS.get(_name(place))


def _name(place: Place) -> str:
    """The last part of the place that is no list index."""
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def _own_words(error: Any) -> str:
    return str(error["msg"]).removeprefix("Value error, ")


def is_secret(place: Place) -> bool:
    """Whether the value may be a secret."""
    return SECRET.search(_name(place)) is not None


def _seen(place: Place, error: Any) -> str:
    value = place[-1] if error["loc"][-1] == "[key]" else error["input"]
    parts = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(part, Mapping) for part in parts):  # there may be secrets in it
        return ""
    public = [_without_user(part) if isinstance(part, str) else part for part in parts]
    shown = "empty" if value is None else repr(public if isinstance(value, list | tuple) else public[0])
    hint = "; ${...} is for the secrets of connectors alone" if REFERENCE.search(shown) else ""
    return f" (it is {shown if len(shown) <= LONGEST else f'{shown[:LONGEST]}...'}{hint})"


def _without_user(text: str) -> str:
    """An address without the password before an @ and the query, which may contain a key."""
    user, at, host = text.rpartition("@")
    scheme, slashes, _ = user.partition("://")
    host, query, _ = host.partition("?")
    return f"{scheme if slashes else ''}{slashes}{at and '...@'}{host}{query and '?...'}"


def _meant(place: Place, error: Any) -> str:
    """The choice most like the value, if one is like it."""
    given, context = error["input"], error.get("ctx", {})
    if error["type"] == "union_tag_invalid":
        given = context["tag"]
    if not isinstance(given, str):
        return ""
    if _name(place) == "timezone":
        return did_you_mean(given, sorted(name for name in available_timezones() if "/" in name))
    if _reason(place, error) == CODES:
        codes = [code for code, name in table("languages").items() if name.lower() == given.lower()]
        return f"; did you mean {codes[0]}?" if codes else ""
    choices = str(context.get("expected") or context.get("expected_tags") or "")
    return did_you_mean(given, re.findall(r"'([^']*)'", choices))


def _instead(place: Place, error: Any) -> str:
    """The setting that an unknown name may mean."""
    *outer, name = place
    beside = _in_examples(tuple(outer), error)
    if isinstance(beside, Mapping) and (like := did_you_mean(str(name), beside)):
        return like
    if outer and name in Settings.model_fields:
        return "; it is a setting of all sites, at the beginning of a line"
    if not outer and name in SiteSettings.model_fields:
        return f"; it is a setting of a site: sites.SITE.{name}"
    return ""


def _example(place: Place, error: Any, in_variable: bool) -> str:
    """A valid example, written as in the file or as in a variable."""
    found = _in_examples(place, error)
    if error["loc"][-1] == "[key]":
        found = next(iter(_in_examples(place[:-1], error)))
    if found is None:  # of a secret
        return ""
    if in_variable and isinstance(found, list):
        return f"; for example {','.join(map(str, found))}"
    written = _flow(found)
    return f"; for example {written if len(written) <= LONGEST_EXAMPLE else _flow(_first(found))}"


def _flow(value: Any) -> str:
    """On one line."""
    written = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000, sort_keys=False)
    return written.removesuffix("...\n").strip()


def _first(value: Any) -> Any:
    """The example with the first item of each mapping and list only."""
    if isinstance(value, list):
        return value[:1]
    return {name: _first(value[name]) for name in list(value)[:1]} if isinstance(value, Mapping) else value


def _in_examples(place: Place, error: Any) -> Any:
    """The example of this setting, or of the one around it. User-defined names use the first example; connectors are
    found by their kinds, which pydantic adds to the place.
    """
    found: Any = _examples()
    if place[2:3] == ("connectors",) and place[3:] and error["loc"][4:]:
        place = (*place[:3], error["loc"][4], *place[4:])
    for part in place:
        if isinstance(found, Mapping):
            found = found[part] if part in found else next(iter(found.values()))
        elif isinstance(found, list):
            found = found[0]
    return found


@cache
def _examples() -> Any:
    return load_safe(EXAMPLES.read_text(encoding="utf-8"))
