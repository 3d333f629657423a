"""Registers checks and signals, and starts the first delivery."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks


class PagewireWagtailConfig(AppConfig):
    name = "pagewire_wagtail"
    label = "pagewire_wagtail"
    verbose_name = "Pagewire"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from pagewire_wagtail import kick, signals
        from pagewire_wagtail.checks import check_database, check_settings

        checks.register(check_settings)
        checks.register(check_database)
        signals.connect()
        kick.connect()
