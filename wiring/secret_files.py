"""Secrets that stand in files: `PAGEWIRE_ADMIN_KEY_FILE=/run/secrets/admin_key` in place of PAGEWIRE_ADMIN_KEY.

So Docker's and Kubernetes' secrets, and those that an agent writes, need no environment variable, which every child
process and every look at the process would see. A file is read once, at start. Errors name setting and file, never what
is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from pipelines.runtime.errors import SettingsError
from wiring.settings import Settings

SUFFIX = "_file"
LONGEST = 64 * 1024  # bytes; a key is shorter, and whoever names a disk image should be told


def _is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation)


# The settings that may be read from a file.
SECRETS = frozenset(name for name, field in Settings.model_fields.items() if _is_secret(field))
FILE_SETTINGS: Mapping[str, str] = {name + SUFFIX: name for name in SECRETS}


def put_in(values: dict[str, Any]) -> dict[str, Path]:
    """Replace each `NAME_file` by NAME with what the file holds.

    Returns:
        The file of each secret that came from one.

    Raises:
        SettingsError: a file cannot be read, or is no secret.
    """
    found = {}
    for key in [key for key in values if key in FILE_SETTINGS]:
        name, given = FILE_SETTINGS[key], values.pop(key)
        said = f"{key} (PAGEWIRE_{key.upper()})"
        if not isinstance(given, str | Path) or not str(given):
            raise SettingsError(f"{said}: must be the path of a file")
        found[name] = Path(given)
        values[name] = read(found[name], said)
    return found


def read(path: Path, said: str) -> str:
    """The secret in a file, without the line's end.

    Args:
        said: How the setting is called that names the file.

    Raises:
        SettingsError.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
        secret = content.decode("utf-8").strip()
    except OSError as err:
        raise SettingsError(f"{said}: {path} cannot be read: {err.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{said}: {path} is not UTF-8 text") from None
    if not secret:
        raise SettingsError(f"{said}: {path} is empty")
    if len(content) > LONGEST or len(secret.splitlines()) > 1:
        raise SettingsError(f"{said}: {path} must hold the secret alone, on one line")
    return secret
