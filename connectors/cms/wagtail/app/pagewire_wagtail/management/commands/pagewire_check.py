"""Tests the connection to Pagewire and the secret."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from pagewire_wagtail.conf import pagewire
from pagewire_wagtail.courier import pending
from pagewire_wagtail.models import CourierState
from pagewire_wagtail.wire import Away, send


class Command(BaseCommand):
    help = "Test the connection to Pagewire with an empty signed delivery, and show waiting pages."

    def handle(self, *args: Any, **options: Any) -> None:
        setting = pagewire()
        if setting is None:
            raise CommandError("PAGEWIRE is not set: nothing is sent")
        try:
            send(setting, [])
        except Away as err:
            raise CommandError(str(err)) from None
        self.stdout.write(f"Pagewire answers and takes what {setting.connector!r} of site {setting.site!r} sends.")
        state = CourierState.objects.filter(pk=1).first()
        last = state.delivered_at.isoformat(timespec="seconds") if state and state.delivered_at else "never"
        self.stdout.write(f"Waiting: {pending().count()} pages. Last delivered: {last}.")
