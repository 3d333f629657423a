"""A thread that delivers after a save, so that the save does not wait.

The first kick after a commit starts it. It works until nothing waits, also through outages of Pagewire, and ends. A
process that ends waits GRACE for it, so that `manage.py publish_scheduled` delivers the pages that it has published.
Interrupted deliveries wait in the database for the next kick of any process.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from typing import Any

from django.core.signals import request_started
from django.db import Error as DatabaseError
from django.db import connections

from pagewire_wagtail.conf import WrongSetting, pagewire

log = logging.getLogger(__name__)

PAUSE = 0.05  # seconds before the first delivery, so that the save can finish, and its marks are sent together
GRACE = 5.0  # seconds at the end of the process
DATABASE_PAUSE = 5.0  # seconds after the database failed

_lock = threading.Lock()
_stop = threading.Event()
_kicked = threading.Event()
_thread: threading.Thread | None = None


def connect() -> None:
    """Deliver records of earlier processes at the first request. Call once a process."""
    request_started.connect(_first_request)
    atexit.register(_end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def kick() -> None:
    """Start a delivery of waiting records. Never blocks, never raises."""
    try:
        setting = pagewire()
    except WrongSetting:
        return
    if setting is None or not setting.thread or _stop.is_set():
        return
    global _thread
    with _lock:
        _kicked.set()
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_run, name="pagewire", daemon=True)
            _thread.start()


def _run() -> None:
    global _thread
    try:
        pause: float | None = PAUSE
        while pause is not None:
            if _stop.wait(pause) and pause > PAUSE:
                return  # the process ends: do not wait for a pause
            _kicked.clear()
            pause = _step()
            if pause is None:
                with _lock:
                    if not _kicked.is_set():
                        _thread = None
                    else:
                        pause = 0
    finally:
        connections.close_all()  # this thread's own


def _step() -> float | None:
    from pagewire_wagtail import courier

    setting = pagewire()
    if setting is None:
        return None
    try:
        return courier.work(setting)
    except DatabaseError as err:
        log.warning("delivery to Pagewire waits for the database: %s", err)
        connections.close_all()
        return DATABASE_PAUSE
    except Exception:
        log.exception("delivery to Pagewire failed; it is tried again")
        return DATABASE_PAUSE


def _first_request(**kwargs: Any) -> None:
    request_started.disconnect(_first_request)
    kick()


def _end() -> None:
    thread = _thread
    _stop.set()
    if thread is not None:
        thread.join(GRACE)


def _after_fork() -> None:
    """A forked child has no thread, and the lock may be held by the parent's thread for ever."""
    global _lock, _stop, _kicked, _thread
    _lock, _stop, _kicked, _thread = threading.Lock(), threading.Event(), threading.Event(), None
