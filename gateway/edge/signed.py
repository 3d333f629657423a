"""Keyed hashes by the gateways' secret: ids of events, confirmations of acts, pseudonyms for the question log.

    id of an event, in an answer's stream and in `Last-Event-ID`: <request>:<partition.offset.attempt>.<signature>

The signature (HMAC-SHA256, 96 bits of it) covers the reader, too. So the log is never read from a place that a
caller made up, and an id in other hands leads nowhere; both are known before anything is read.

    an act that a program asks for ─▶ plan, in words ─▶ token ─▶ second call ─▶ the same plan? ─▶ done

The token stands for the caller and for the plan's words. What has changed meanwhile changes the plan, and is asked
again. Nothing is stored, so that any gateway knows the token.

A pseudonym names a conversation or an asker, and does not tell an id.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterable
from hashlib import sha256

from pydantic import SecretStr

from gateway.edge.problems import Problem
from pipelines.conversations.turns import ConversationOwner

SIGNATURE_BYTES = 12
GOOD_FOR = 300  # seconds: for a person who reads what would happen
LONGEST = 100  # characters of a token
PSEUDONYM = 32  # hex digits: 128 bits


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


class Confirmations:
    """Signs and verifies tokens; the same for all gateways with one secret. `clock`: Unix seconds."""

    def __init__(self, secret: SecretStr, clock: Callable[[], float] = time.time) -> None:
        # A key of its own, so that nothing signed here can pass as a visitor token, nor the other way round.
        self._key = hmac.digest(secret.get_secret_value().encode(), b"confirmation", sha256)
        self._clock = clock

    def token(self, who: str, plan: str) -> str:
        """Good for GOOD_FOR seconds."""
        return self._signed(who, plan, str(int(self._clock()) + GOOD_FOR))

    def confirms(self, token: str, who: str, plan: str) -> bool:
        """Whether `who` got the token for this very plan, not too long ago."""
        until = token.partition(".")[0]
        expected = self._signed(who, plan, until).encode("utf-8", "replace")
        genuine = hmac.compare_digest(expected, token.encode("utf-8", "replace"))
        return genuine and int(until) > self._clock()

    def _signed(self, who: str, plan: str, until: str) -> str:
        signed = json.dumps([who, until, plan]).encode()
        return f"{until}.{hmac.digest(self._key, signed, sha256).hex()[:32]}"


class Pseudonyms:
    """The same for all gateways that share the secret of visitor tokens. With another secret, others."""

    def __init__(self, secret: SecretStr) -> None:
        self._secret = secret

    def of(self, site: str, conversation_id: str) -> str:
        return self._hashed(f"outcomes\0{site}\0{conversation_id}".encode())

    def asker(self, site: str, visitor: str, wording: Iterable[str]) -> str:
        """Says whether a visitor has asked the same twice. Of two different questions it does not tell who asked."""
        return self._hashed("\0".join(("asker", site, visitor, *wording)).encode("utf-8", "replace"))

    def _hashed(self, said: bytes) -> str:
        return hmac.new(self._secret.get_secret_value().encode(), said, sha256).hexdigest()[:PSEUDONYM]
