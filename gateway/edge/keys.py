"""Secrets of the edge that are made at first start and kept under `home`, readable by their owner alone."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pydantic import SecretStr

from pipelines.runtime.errors import SettingsError
from wiring.settings import Settings

SECRET_BYTES = 32  # 256 bits: as strong as the HMAC it feeds


def admin_key(settings: Settings) -> tuple[SecretStr, Path | None]:
    """The bootstrap admin key, and the file it lies in unless it was configured.

    Raises:
        SettingsError: the file cannot be read or written.
    """
    if settings.admin_key is not None:
        return settings.admin_key, None
    path = settings.home / "admin.key"
    return _kept(path), path


def token_secret(settings: Settings) -> SecretStr:
    """What visitor tokens are signed with: the same for all gateways of one home.

    Raises:
        SettingsError: the file cannot be read or written.
    """
    if settings.token_secret is not None:
        return settings.token_secret
    return _kept(settings.home / "token.secret")


def _kept(path: Path) -> SecretStr:
    try:
        if not path.exists():
            _make(path)
        return SecretStr(path.read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError) as err:
        raise SettingsError(f"{path}: a secret must be readable and writable there: {err}") from err


def _make(path: Path) -> None:
    """Written whole, then linked into place: of two processes that start at once, both read one secret."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(SECRET_BYTES) + "\n")
        try:
            os.link(draft, path)
        except FileExistsError:
            return  # another process was faster
    finally:
        draft.unlink(missing_ok=True)
