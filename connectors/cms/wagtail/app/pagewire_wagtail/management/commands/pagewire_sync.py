"""Sends all pages: for the first time, or after a restored backup."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from pagewire_wagtail.conf import pagewire
from pagewire_wagtail.courier import drain, pending
from pagewire_wagtail.survey import mark_all
from pagewire_wagtail.wire import Away

EVERY = 2.0  # seconds between two lines of progress
PATIENCE = 6  # failures in a row, half a minute


class Command(BaseCommand):
    help = "Send all public pages to Pagewire; what editors save meanwhile goes first. To go on: pagewire_deliver."

    def handle(self, *args: Any, **options: Any) -> None:
        setting = pagewire()
        if setting is None:
            raise CommandError("PAGEWIRE is not set: nothing is sent")
        mark_all()
        total = pending().count()
        start = said = time.monotonic()

        def report() -> None:
            nonlocal said
            if time.monotonic() - said > EVERY:
                said = time.monotonic()
                done = total - pending().count()
                self.stdout.write(f"{done} of {total} pages, {done / (said - start):.0f}/s")

        try:
            drain(setting, PATIENCE, report)
        except Away as err:
            raise CommandError(f"{pending().count()} of {total} pages wait: {err}") from None
        left = pending().count()
        self.stdout.write(f"{total - left} of {total} pages looked at; Pagewire has those that are public.")
        if left:
            raise CommandError(f"{left} pages wait: they cannot be rendered; Reports, Pagewire says why")
