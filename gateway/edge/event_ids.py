"""Signed event ids: what goes into `id:` of an answer's stream and comes back as `Last-Event-ID`.

    <request id>:<partition.offset.attempt>.<signature>

The signature (HMAC-SHA256, 96 bits of it) covers the reader, too. So nobody can have the log read from a place that
they made up, and an id that came into other hands leads nowhere; both are known before anything is read.
"""

from __future__ import annotations

import base64
import hmac
from hashlib import sha256

from pydantic import SecretStr

from gateway.edge.problems import Problem
from pipelines.conversations.turns import ConversationOwner

SIGNATURE_BYTES = 12


class AnswerIds:
    """Signs the ids of one answer's events for one reader; what is the same in all of them is hashed once."""

    def __init__(self, key: bytes, signed: str, begin: str) -> None:
        """`begin`: of each id; `signed`: what is signed before the position."""
        self._signed = hmac.new(key, _encoded(signed), sha256)
        self._begin = begin

    def sign(self, position: str) -> str:
        signed = self._signed.copy()
        signed.update(_encoded(position))
        return f"{self._begin}{position}.{_written(signed.digest())}"


class EventIds:
    """Signs and reads event ids; the same for all gateways with one secret."""

    def __init__(self, secret: SecretStr) -> None:
        # A key of its own, so that nothing signed here can pass as a visitor token, nor the other way round.
        self._key = hmac.digest(secret.get_secret_value().encode(), b"event-id", sha256)

    def of(self, owner: ConversationOwner, request_id: str) -> AnswerIds:
        """For the events of an answer that `owner` asked for."""
        begin = f"{request_id}:"
        return AnswerIds(self._key, _signed(owner, begin), begin)

    def position(self, owner: ConversationOwner, request_id: str, event_id: str) -> str:
        """The position in an id that was given to `owner` for this answer. Raises: Problem: 400."""
        place, _, signature = event_id.rpartition(".")
        given, _, position = place.partition(":")
        expected = _written(hmac.digest(self._key, _encoded(_signed(owner, place)), sha256))
        genuine = hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))
        if not genuine or given != request_id:
            raise Problem(400, "bad-position", "Last-Event-ID: not an event of this answer that you were sent")
        return position


def _signed(owner: ConversationOwner, place: str) -> str:
    return "\n".join((owner.site, owner.name, place))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _written(signature: bytes) -> str:
    return base64.urlsafe_b64encode(signature[:SIGNATURE_BYTES]).decode()
