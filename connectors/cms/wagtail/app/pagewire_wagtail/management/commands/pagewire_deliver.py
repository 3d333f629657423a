"""Delivers waiting pages, from cron or as a service with --watch: if the web server has no threads, or as a backup."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.db import connections

from pagewire_wagtail.conf import Pagewire, pagewire
from pagewire_wagtail.courier import drain, pending, work
from pagewire_wagtail.wire import Away

POLL = 1.0  # seconds between two looks at the queue
DATABASE_PAUSE = 5.0  # seconds


class Command(BaseCommand):
    help = "Deliver what waits for Pagewire. Exit code 1: something still waits, and why."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--watch", action="store_true", help="go on for ever; ends at SIGTERM or Ctrl-C")

    def handle(self, *args: Any, **options: Any) -> None:
        setting = pagewire()
        if setting is None:
            raise CommandError("PAGEWIRE is not set: nothing is sent")
        if options["watch"]:
            self._watch(setting)
            return
        try:
            drain(setting, patience=1)
        except Away as err:
            raise CommandError(f"{pending().count()} pages wait: {err}") from None
        if left := pending().count():
            raise CommandError(f"{left} pages wait: they cannot be rendered; Reports, Pagewire says why")

    def _watch(self, setting: Pagewire) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        self.stdout.write("Delivering what waits; Ctrl-C ends it.")
        self.stdout.flush()
        pause = 0.0
        while not stop.wait(pause):
            try:
                due = work(setting)
                pause = POLL if due is None else min(due, POLL)
            except DatabaseError as err:
                self.stderr.write(f"the database fails: {err}")
                connections.close_all()
                pause = DATABASE_PAUSE
