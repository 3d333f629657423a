"""Exit 0 when a URL answers with 2xx, else 1: the containers' health check, which must need nothing but Python.

Usage: python healthy.py URL
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

TIMEOUT = 4.0  # seconds; less than the health check's own, so that the reason is still printed


def healthy(url: str) -> str | None:
    """None, or why not."""
    # No proxy of the environment stands between a container and itself.
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
