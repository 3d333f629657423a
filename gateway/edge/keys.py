"""Secrets of the edge that are made at first start and kept under `home`, readable by their owner alone."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from pipelines.runtime.secret import SHORTEST_KEY, SHORTEST_SIGNING, kept
from wiring.settings import Settings

ADMIN_KEY = "admin.key"


def admin_key(settings: Settings) -> tuple[SecretStr, Path | None]:
    """The bootstrap admin key, and the file it lies in unless it was configured.

    Raises:
        SettingsError: the file cannot be read or written, or its secret is not good enough.
    """
    if settings.admin_key is not None:
        return settings.admin_key, None
    path = settings.home / ADMIN_KEY
    return kept(path, "admin_key (PAGEWIRE_ADMIN_KEY)", SHORTEST_KEY), path


def known_admin_key(settings: Settings) -> SecretStr | None:
    """The same for who must not make one: None where nobody has yet. Raises: SettingsError."""
    there = settings.admin_key is not None or (settings.home / ADMIN_KEY).exists()
    return admin_key(settings)[0] if there else None


def token_secret(settings: Settings) -> SecretStr:
    """What visitor tokens are signed with: the same for all gateways of one home.

    Raises:
        SettingsError: the file cannot be read or written, or its secret is not good enough.
    """
    if settings.token_secret is not None:
        return settings.token_secret
    return kept(settings.home / "token.secret", "token_secret (PAGEWIRE_TOKEN_SECRET)", SHORTEST_SIGNING)
