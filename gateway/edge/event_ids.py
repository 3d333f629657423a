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


class EventIds:
    """Signs and reads event ids; the same for all gateways with one secret."""

    def __init__(self, secret: SecretStr) -> None:
        # A key of its own, so that nothing signed here can pass as a visitor token, nor the other way round.
        key = hmac.digest(secret.get_secret_value().encode(), b"event-id", sha256)
        self._begun = hmac.new(key, digestmod=sha256)  # half of the work for each event is the key's

    def sign(self, owner: ConversationOwner, request_id: str, position: str) -> str:
        """The id of the event at `position` of an answer that `owner` asked for."""
        place = f"{request_id}:{position}"
        return f"{place}.{self._signature(owner, place)}"

    def position(self, owner: ConversationOwner, request_id: str, event_id: str) -> str:
        """The position in an id that was given to `owner` for this answer. Raises: Problem: 400."""
        place, _, signature = event_id.rpartition(".")
        given, _, position = place.partition(":")
        genuine = hmac.compare_digest(self._signature(owner, place).encode(), signature.encode("utf-8", "replace"))
        if not genuine or given != request_id:
            raise Problem(400, "bad-position", "Last-Event-ID: not an event of this answer that you were sent")
        return position

    def _signature(self, owner: ConversationOwner, place: str) -> str:
        signed = "\n".join((owner.site, owner.name, place)).encode("utf-8", "replace")
        signature = self._begun.copy()
        signature.update(signed)
        return base64.urlsafe_b64encode(signature.digest()[:SIGNATURE_BYTES]).decode()
