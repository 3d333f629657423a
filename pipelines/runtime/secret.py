"""All about secrets: their least length, reading them from files, and creating files of our own.

Errors name the setting, the file and the length of a secret, never the secret.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import structlog
from pydantic import SecretStr

from pipelines.runtime.errors import SettingsError

log = structlog.get_logger(__name__)

MAKE = "openssl rand -base64 32"
MADE_BYTES = 32  # 256 bits: as strong as the HMAC it feeds
SHORTEST_KEY = 16  # characters of a key that grants access
SHORTEST_SIGNING = 32  # characters of a key that signs
LONGEST = 64 * 1024  # bytes of a file; a larger one, such as a disk image, is a mistake
OTHERS = 0o007  # permissions of others; Kubernetes gives its volumes those of the group


def strong(secret: SecretStr, shortest: int) -> SecretStr:
    """Raises: ValueError: it is shorter than so many characters."""
    length = len(secret.get_secret_value().strip())
    if length < shortest:
        raise ValueError(f"has {length} characters, and needs {shortest} or more: `{MAKE}` makes a good one")
    return secret


def not_empty(secret: SecretStr) -> SecretStr:
    """Raises: ValueError: it is empty."""
    if not secret.get_secret_value().strip():
        raise ValueError("is empty; leave it out where there is none")
    return secret


def read(path: Path, setting: str) -> str:
    """The secret in a file, without the line's end.

    Args:
        setting: The name of the setting that names the file.

    Raises:
        SettingsError.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
        secret = content.decode("utf-8").strip()
    except OSError as err:
        raise SettingsError(f"{setting}: {path} cannot be read: {err.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{setting}: {path} is not UTF-8 text") from None
    if not secret:
        raise SettingsError(f"{setting}: {path} is empty")
    if len(content) > LONGEST or len(secret.splitlines()) > 1:
        raise SettingsError(f"{setting}: {path} must hold the secret alone, on one line")
    return secret


def kept(path: Path, setting: str, shortest: int) -> SecretStr:
    """The secret in a file of our own; a missing file is created, readable by its owner alone.

    Args:
        setting: The name of the setting that replaces the file.

    Raises:
        SettingsError: it cannot be read or created, or the secret is too weak.
    """
    try:
        if not path.exists():
            _make(path)
        rights = path.stat().st_mode
    except OSError as err:
        raise SettingsError(f"{setting}: {path} cannot be read or made: {err.strerror}") from None
    if rights & OTHERS:
        log.warning("others than its owner can read a secret", file=str(path), remedy=f"chmod o= {path}")
    try:
        return strong(SecretStr(read(path, setting)), shortest)
    except SettingsError as err:
        why = str(err)
    except ValueError as err:
        why = f"{setting}: {path} {err}"
    raise SettingsError(f"{why}; without the file the next start makes one: rm {path}")


def _make(path: Path) -> None:
    """Write the file, then link it into place: two processes that start at once read the same secret."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(MADE_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return  # another process was faster
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names of a folder's files durable. Raises: OSError."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
