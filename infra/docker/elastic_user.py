"""Creates Pagewire's user at Elasticsearch, with the privileges of adapters/elastic/settings.py only.

A container of docker-compose.yml runs this at each `docker compose up`, before Pagewire connects. So new privileges and
a changed password in `.env` are applied. It only needs Python and that module.

    ELASTIC_PASSWORD ─▶ PUT /_security/role, /_security/user ─▶ may the user log in?
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from adapters.elastic.settings import ROLE

TIMEOUT = 10.0  # seconds for one answer
PATIENCE = 120.0  # seconds: a ready Elasticsearch may not have loaded its users yet
PAUSE = 2.0  # seconds
UNAUTHORIZED = 401
# Containers must not use a proxy of the environment.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Refused(Exception):
    """Elasticsearch refuses a request. The message says what to do."""


def main(environment: Mapping[str, str], patience: float = PATIENCE) -> str:
    """Create role and user. Returns a sentence about the result. Raises: Refused."""
    url = environment["PAGEWIRE_ELASTICSEARCH"].rstrip("/")
    user, password = environment["PAGEWIRE_ELASTICSEARCH_USER"], environment["PAGEWIRE_ELASTICSEARCH_PASSWORD"]
    superuser = ("elastic", environment["ELASTIC_PASSWORD"])
    if user == superuser[0]:
        raise Refused(
            "PAGEWIRE_ELASTICSEARCH_USER: `elastic` may do everything, and is not made here; take another name"
        )
    until = time.monotonic() + patience
    role = {"cluster": ROLE["cluster"], "indices": ROLE["indices"]}
    _asked(until, "PUT", f"{url}/_security/role/{user}", superuser, role)
    wanted = {"password": password, "roles": [user], "full_name": "Pagewire"}
    _asked(until, "PUT", f"{url}/_security/user/{user}", superuser, wanted)
    _asked(until, "GET", f"{url}/_security/_authenticate", (user, password))
    return f"the user {user} has the rights that Pagewire needs"


def _asked(until: float, method: str, url: str, login: tuple[str, str], body: Any = None) -> None:
    """Send a request. Retries while the server does not answer or is starting. Raises: Refused."""
    headers = {"Authorization": f"Basic {b64encode(':'.join(login).encode()).decode()}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    data = None if body is None else json.dumps(body).encode()
    while True:
        try:
            with OPENER.open(urllib.request.Request(url, data, headers, method=method), timeout=TIMEOUT):  # noqa: S310
                return
        except urllib.error.HTTPError as err:
            with err:
                why = f"{err.code} {_reason(err)}"
            if err.code == UNAUTHORIZED and login[0] == "elastic":
                raise Refused(
                    f"{url}: ELASTIC_PASSWORD is not the password of `elastic`: it is taken at the first start alone, "
                    "so put the first one back, or change it by Elasticsearch's own API"
                ) from None
            if err.code < 500 and err.code != UNAUTHORIZED:  # the new user may not be known at once
                raise Refused(f"{method} {url}: {why}") from None
        except OSError as err:
            why = str(err)
        if time.monotonic() > until:
            raise Refused(f"{method} {url}: {why}")
        time.sleep(PAUSE)


def _reason(err: urllib.error.HTTPError) -> str:
    """Elasticsearch's reason, such as a too short password."""
    try:
        return str(json.loads(err.read(10_000))["error"]["reason"])
    except (ValueError, KeyError, TypeError):
        return str(err.reason)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{main(os.environ)}\n")
    except KeyError as missing:
        sys.exit(f"{missing.args[0]} is not set")
    except Refused as refused:
        sys.exit(str(refused))
