"""Sends a signed delivery over HTTP, with the standard library only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pagewire_wagtail.conf import Pagewire
from pagewire_wagtail.signing import headers

LONGEST_ANSWER = 4 * 1024 * 1024  # bytes
LONGEST_TEXT = 8_000_000  # bytes of a page or a list as Markdown
READ_TIMEOUT = 3.0  # seconds that a visitor waits for one
LONGEST_PAUSE = 600.0  # seconds that a Retry-After may ask for


@dataclass(frozen=True)
class Taken:
    """Pagewire has accepted the delivery."""

    accepted: int
    refused: dict[int, str]  # number of a refused line, from 1 -> reason


@dataclass(frozen=True)
class Given:
    """A text that Pagewire gives everybody."""

    body: str
    etag: str  # empty: it has none


class Away(Exception):
    """The delivery was not accepted, and everything is kept. The message says why, without secrets."""

    def __init__(self, message: str, retry_after: float | None = None, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.too_large = too_large


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects, so that a signed body only goes to the configured address."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


_open = build_opener(_NoRedirect).open


def send(pagewire: Pagewire, lines: list[bytes], *, bulk: bool = False) -> Taken:
    """Deliver lines; without lines, test the connection.

    Raises:
        Away: it did not answer 200.
    """
    body = b"".join(line + b"\n" for line in lines)
    said = {"Content-Type": "application/x-ndjson", "User-Agent": "pagewire-wagtail", **headers(pagewire.keys, body)}
    if bulk:
        said["Pagewire-Lane"] = "bulk"
    request = Request(pagewire.webhook, data=body, headers=said, method="POST")  # noqa: S310  # conf.py: http(s) only
    try:
        with _open(request, timeout=pagewire.timeout) as response:
            if response.status != 200:
                raise Away(f"{pagewire.url} answered {response.status}, not 200")
            return _taken(response.read(LONGEST_ANSWER))
    except HTTPError as err:
        with err:
            raise _away(pagewire, err) from None
    except (OSError, HTTPException) as err:
        raise Away(f"{pagewire.url} does not answer: {getattr(err, 'reason', None) or err!r}") from None
    except ValueError as err:
        raise Away(f"{pagewire.url} answered with something else than Pagewire does: {err}") from None


def get(pagewire: Pagewire, path: str, known: Given | None) -> Given | None:
    """The Markdown at a path below the site; None: there is none.

    Args:
        known: an earlier answer, which is returned if it is still right.

    Raises:
        Away: Pagewire does not answer, or cannot now.
    """
    said = {"User-Agent": "pagewire-wagtail", **({"If-None-Match": known.etag} if known and known.etag else {})}
    request = Request(f"{pagewire.url}/v1/sites/{pagewire.site}/{path}", headers=said)  # noqa: S310  # http(s) only
    try:
        with _open(request, timeout=READ_TIMEOUT) as response:
            body = response.read(LONGEST_TEXT + 1)
            right = response.headers.get_content_type() == "text/markdown" and len(body) <= LONGEST_TEXT
            return Given(body.decode(), response.headers.get("ETag", "")) if right else None
    except HTTPError as err:
        with err:
            if err.code == 304:
                return known
            if err.code == 429 or err.code >= 500:
                raise Away(f"{pagewire.url} answered {err.code}") from None
            return None
    except (OSError, HTTPException) as err:
        raise Away(f"{pagewire.url} does not answer: {getattr(err, 'reason', None) or err!r}") from None
    except ValueError:
        return None


def _taken(answer: bytes) -> Taken:
    result = json.loads(answer)
    refused = {int(error["line"]): f"{error['code']}: {error['message']}" for error in result["errors"]}
    return Taken(int(result["accepted"]) + int(result["superseded"]), refused)


def _away(pagewire: Pagewire, err: HTTPError) -> Away:
    """Pagewire's error (RFC 9457), and what to do."""
    detail = ""
    try:
        problem = json.loads(err.read(LONGEST_ANSWER))
        detail = f": {problem.get('code', '')}: {problem.get('detail', '')}"[:500] if isinstance(problem, dict) else ""
    except (OSError, HTTPException, ValueError):
        pass
    todo = {
        301: "; PAGEWIRE['url'] must be the address that it redirects to",
        302: "; PAGEWIRE['url'] must be the address that it redirects to",
        308: "; PAGEWIRE['url'] must be the address that it redirects to",
        401: "; is PAGEWIRE['secret'] the one in pagewire.yaml?",
        404: "; are PAGEWIRE['site'] and PAGEWIRE['connector'] those of pagewire.yaml?",
    }.get(err.code, "")
    return Away(f"{pagewire.url} answered {err.code}{detail}{todo}", _retry_after(err), too_large=err.code == 413)


def _retry_after(err: HTTPError) -> float | None:
    said: Any = err.headers.get("Retry-After", "")
    return min(float(said[:9]), LONGEST_PAUSE) if said.isascii() and said.isdecimal() else None
