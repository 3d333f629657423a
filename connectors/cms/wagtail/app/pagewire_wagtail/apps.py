"""Registers signals and the checks of `manage.py check`, and starts the first delivery."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import connections, router

from pagewire_wagtail.conf import WrongSetting, pagewire


class PagewireWagtailConfig(AppConfig):
    name = "pagewire_wagtail"
    label = "pagewire_wagtail"
    verbose_name = "Pagewire"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from pagewire_wagtail import kick, signals

        checks.register(check_settings)
        checks.register(check_database)
        signals.connect()
        kick.connect()


def check_settings(**kwargs: Any) -> list[checks.CheckMessage]:
    """Check the setting PAGEWIRE."""
    from django.conf import settings

    if not hasattr(settings, "PAGEWIRE"):
        hint = (
            "Set PAGEWIRE = {'url': ..., 'site': ..., 'connector': ..., 'secret': ...}, or None to say so on purpose."
        )
        return [checks.Warning("PAGEWIRE is not set: nothing is sent to Pagewire.", hint=hint, id="pagewire.W001")]
    try:
        pagewire()
    except WrongSetting as err:
        return [checks.Error(str(problem), id="pagewire.E001") for problem in err.args]
    return []


def check_database(**kwargs: Any) -> list[checks.CheckMessage]:
    """Warn about SQLite without `IMMEDIATE` transactions, where the second of two writers fails."""
    from pagewire_wagtail.models import PageRecord

    connection = connections[router.db_for_write(PageRecord)]
    options = connection.settings_dict.get("OPTIONS", {})
    if connection.vendor != "sqlite" or options.get("transaction_mode") in ("IMMEDIATE", "EXCLUSIVE"):
        return []
    hint = "Django 5.1 and newer: 'OPTIONS': {'transaction_mode': 'IMMEDIATE', 'timeout': 20}."
    return [
        checks.Warning(
            "A delivery to Pagewire that writes at the same moment can make a save fail with 'database is locked'.",
            hint=hint,
            id="pagewire.W002",
        )
    ]
