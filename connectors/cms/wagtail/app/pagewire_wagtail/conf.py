"""The setting PAGEWIRE of the Django project, read once."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

SECRET_PREFIX = "whsec_"  # noqa: S105  # by Standard Webhooks
SHORTEST_KEY = 24  # bytes, https://github.com/standard-webhooks/standard-webhooks
MOST_SECRETS = 8  # the number of signatures that Pagewire checks
NAMES = {
    "url": (str, "Pagewire's address, such as `https://pagewire.example.org`"),
    "site": (str, "the site's name in pagewire.yaml"),
    "connector": (str, "the connector's name under that site"),
    "secret": ((str, list, tuple), "the connector's secret; a list of two while it is changed"),
    "aliases": (bool, "send alias pages too (default: False)"),
    "thread": (bool, "deliver from a thread of the web server (default: True)"),
    "timeout": ((int, float), "seconds to wait for Pagewire (default: 20)"),
}
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")


class WrongSetting(ValueError):
    """PAGEWIRE is wrong. Each argument is one problem, without secrets."""


@dataclass(frozen=True)
class Pagewire:
    """The address and credentials of Pagewire."""

    url: str
    site: str
    connector: str
    keys: tuple[bytes, ...] = field(repr=False)  # the first is the newest
    aliases: bool = False
    thread: bool = True
    timeout: float = 20.0  # seconds

    @property
    def webhook(self) -> str:
        return f"{self.url}/v1/sites/{self.site}/webhooks/{self.connector}"


@cache
def pagewire() -> Pagewire | None:
    """The setting; None: it is missing or None, so nothing is recorded or sent.

    Raises:
        WrongSetting: also reported by `manage.py check`.
    """
    given = getattr(django_settings, "PAGEWIRE", None)
    return None if given is None else read(given)


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "PAGEWIRE":
        pagewire.cache_clear()


setting_changed.connect(_forget)


def read(given: Any) -> Pagewire:
    """Raises: WrongSetting."""
    if not isinstance(given, Mapping):
        raise WrongSetting("PAGEWIRE must be a dictionary, or None")
    wrong = [
        f"PAGEWIRE[{name!r}]: no such setting; there are {', '.join(NAMES)}" for name in given if name not in NAMES
    ]
    for name, (kind, what) in NAMES.items():
        if name in ("url", "site", "connector", "secret") and not given.get(name):
            wrong.append(f"PAGEWIRE[{name!r}] is missing: {what}")
        elif name in given and (
            not isinstance(given[name], kind) or (isinstance(given[name], bool) and kind is not bool)
        ):
            wrong.append(f"PAGEWIRE[{name!r}] must be {what}")
    if wrong:
        raise WrongSetting(*wrong)
    url = given["url"].rstrip("/")
    if not URL.fullmatch(url):
        wrong.append("PAGEWIRE['url'] must be http(s)://HOST, without a user, a question mark or a #")
    wrong += [
        f"PAGEWIRE[{n!r}] must be as in pagewire.yaml" for n in ("site", "connector") if not NAME.fullmatch(given[n])
    ]
    secrets = [given["secret"]] if isinstance(given["secret"], str) else list(given["secret"])
    keys = [_key(secret) for secret in secrets]
    if None in keys or not 1 <= len(keys) <= MOST_SECRETS:
        wrong.append("PAGEWIRE['secret'] must be whsec_ and the base64 of 24 bytes or more, as in pagewire.yaml")
    if given.get("timeout", 1) <= 0:
        wrong.append("PAGEWIRE['timeout'] must be seconds, more than 0")
    if wrong:
        raise WrongSetting(*wrong)
    rest = {name: given[name] for name in ("aliases", "thread", "timeout") if name in given}
    return Pagewire(url, given["site"], given["connector"], tuple(key for key in keys if key), **rest)


def _key(secret: Any) -> bytes | None:
    if not isinstance(secret, str) or not secret.startswith(SECRET_PREFIX):
        return None
    try:
        key = base64.b64decode(secret[len(SECRET_PREFIX) :], validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) >= SHORTEST_KEY else None
