"""Which answers are judged: by chance, and the same ones at every replay."""

from __future__ import annotations

import hashlib

from schemas.outcome import Outcome, OutcomeEvent

DIGITS = 16  # hexadecimal, of a hash: 64 bits
# What cites no page can neither be unfaithful to one nor lack a better one for certain: nobody knows what was there.
JUDGED = frozenset({"answered", "page"})


def chosen(event: OutcomeEvent, share: float) -> bool:
    """Whether an answer is one of the share: its id alone decides."""
    return _place("judge", event) < share * float(16**DIGITS)


def chosen_again(event: OutcomeEvent, share: float) -> bool:
    """Whether one that is judged is judged twice: the same, and of all shares of the others alike."""
    return _place("judge again", event) < share * float(16**DIGITS)


def _place(what: str, event: OutcomeEvent) -> int:
    digest = hashlib.sha256(f"{what} {event.site} {event.request_id}".encode()).hexdigest()
    return int(digest[:DIGITS], 16)


def readable(outcome: Outcome) -> bool:
    """Whether it has something for a judge to read: the words of some are not kept, and some are broken off."""
    words = (outcome.question or "").strip() and (outcome.answer or "").strip()
    return outcome.became in JUDGED and bool(words) and not outcome.stopped
