"""Copied as `sitecustomize.py` where every Python of the test finds it: writes down which files it opens.

Modules are opened before they are run, and so are data files; the audit event `open` tells of both, in a process that
ends by a signal, too.
"""

from __future__ import annotations

import os
import sys

LOG = os.open(os.environ["WATCH_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str):
        os.write(LOG, f"{os.getpid()}\t{os.path.abspath(arguments[0])}\n".encode())


sys.addaudithook(watch)
