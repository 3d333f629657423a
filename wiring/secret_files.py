"""Secrets in files: `PAGEWIRE_ADMIN_KEY_FILE=/run/secrets/admin_key` instead of PAGEWIRE_ADMIN_KEY.

So the secrets of Docker, Kubernetes and agents need no environment variable, which child processes inherit and process
listings show. A file is read at start. Keys for HTTP servers are read again while the process runs, so a new key needs
no restart. Errors name the setting and the file, never the content.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from pipelines.runtime.errors import SettingsError, named
from pipelines.runtime.secret import read
from wiring.settings import Settings

SUFFIX = "_file"
LOOK_AGAIN = 5.0  # seconds


def _is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation)


# The settings that may be read from a file.
SECRETS = frozenset(name for name, field in Settings.model_fields.items() if _is_secret(field))
# Secrets that are sent with every request, or with Kafka's for every token. The others are read once: a signing secret
# must stay the same.
CHANGEABLE = frozenset(("elasticsearch_api_key", "elasticsearch_password", "openai_api_key", "kafka_password"))
FILE_SETTINGS: Mapping[str, str] = {name + SUFFIX: name for name in SECRETS}


class FileSecret(SecretStr):
    """The current content of a file; if it cannot be read or has no secret, the last one."""

    def __init__(self, path: Path, said: str) -> None:
        """`said`: as in `read`. Raises: SettingsError."""
        super().__init__(read(path, said))
        self._path, self._said = path, said
        self._looked = monotonic()

    def get_secret_value(self) -> str:
        if monotonic() - self._looked >= LOOK_AGAIN:
            self._looked = monotonic()
            try:
                self._secret_value = read(self._path, self._said)
            except SettingsError as err:
                import structlog  # here, because it loads slowly and every command reads settings

                structlog.get_logger(__name__).warning("a secret could not be read again", reason=str(err))
        return super().get_secret_value()


def put_in(values: dict[str, Any]) -> dict[str, Path]:
    """Replace each `NAME_file` by NAME with the file's content.

    Returns:
        The file of each secret that came from one.

    Raises:
        SettingsError: a file cannot be read, or has no secret.
    """
    found = {}
    for key in [key for key in values if key in FILE_SETTINGS]:
        name, given = FILE_SETTINGS[key], values.pop(key)
        said = named(key)
        if not isinstance(given, str | Path) or not str(given):
            raise SettingsError(f"{said}: must be the path of a file")
        found[name] = Path(given)
        values[name] = read(found[name], said)
    return found


def keep_fresh(settings: Settings, files: Mapping[str, Path]) -> Settings:
    """The same settings, with secrets that may change read from their files periodically.

    Raises:
        SettingsError: as `put_in`.
    """
    fresh = {name: FileSecret(path, named(name + SUFFIX)) for name, path in files.items() if name in CHANGEABLE}
    return settings.model_copy(update=fresh)
