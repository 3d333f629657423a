"""An event's id is signed as it always was: visitors hold ids of the release before."""

from __future__ import annotations

import base64
import hmac

import pytest
from pydantic import SecretStr

from gateway.edge.problems import Problem
from gateway.edge.signed import EventIds
from pipelines.conversations.turns import ConversationOwner

SECRET = "s" * 32
OWNER = ConversationOwner("town", "visitor:abc")


def earlier(place: str) -> str:
    """The signature by RFC 2104, in one piece."""
    key = hmac.digest(SECRET.encode(), b"event-id", "sha256")
    signed = "\n".join((OWNER.site, OWNER.name, place)).encode()
    return base64.urlsafe_b64encode(hmac.digest(key, signed, "sha256")[:12]).decode()


def test_ids_of_earlier_releases_are_read() -> None:
    ids = EventIds(SecretStr(SECRET))
    answer = ids.of(OWNER, "request-1")
    for offset in range(3):  # signing one changes nothing for the next
        place = f"request-1:0.{offset}.1"
        assert answer.sign(f"0.{offset}.1") == f"{place}.{earlier(place)}"
        assert ids.position(OWNER, "request-1", f"{place}.{earlier(place)}") == f"0.{offset}.1"
    with pytest.raises(Problem):
        ids.position(OWNER, "request-1", f"request-1:0.9.1.{earlier('request-1:0.1.1')}")
