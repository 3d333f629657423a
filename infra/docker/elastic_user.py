"""Make the user that Pagewire logs in as at Elasticsearch, with the rights of adapters/elastic/rights.py and no others.

A container of docker-compose.yml runs it before any of ours connects, at each `docker compose up`: so rights that a new
version needs, and a password that was changed in `.env`, are there. It needs nothing but Python and that module.

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

from adapters.elastic.rights import ROLE

TIMEOUT = 10.0  # seconds for one answer
PATIENCE = 120.0  # seconds: an Elasticsearch that serves may not have opened its list of users yet
PAUSE = 2.0  # seconds
UNAUTHORIZED = 401
# No proxy of the environment stands between containers.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Refused(Exception):
    """What to do about it."""


def main(environment: Mapping[str, str], patience: float = PATIENCE) -> str:
    """Returns what was done. Raises: Refused: in plain words."""
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
    """Tried again while nobody answers, or the answer is that of a server that is starting."""
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
            if err.code < 500 and err.code != UNAUTHORIZED:  # the user that was just made is known in a moment
                raise Refused(f"{method} {url}: {why}") from None
        except OSError as err:
            why = str(err)
        if time.monotonic() > until:
            raise Refused(f"{method} {url}: {why}")
        time.sleep(PAUSE)


def _reason(err: urllib.error.HTTPError) -> str:
    """Elasticsearch's own, such as that a password is too short."""
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
