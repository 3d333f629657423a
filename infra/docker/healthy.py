"""The containers' health check: exits 0 if a URL answers with 2xx, else 1. It only needs Python.

Usage: python healthy.py URL
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

TIMEOUT = 4.0  # seconds; less than Docker's own limit, so that the reason is printed


def healthy(url: str) -> str | None:
    """None: the URL is healthy; else the reason why not."""
    # A container must not use a proxy of the environment to reach itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT):  # raises for all but 2xx
            return None
    except urllib.error.HTTPError as err:
        return f"{url}: {err.code} {err.read(2000).decode(errors='replace')}"
    except OSError as err:
        return f"{url}: {err}"


if __name__ == "__main__":
    problem = healthy(sys.argv[1])
    if problem is not None:
        sys.exit(problem)
