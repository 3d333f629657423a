"""Remedies: decides whether and how to retry after a model's failure.

| failure | then |
| --- | --- |
| rate limit | retry after the time that the server asks for, while the visitor waits |
| away, 5xx | retry once: another instance may answer |
| token limit before the first word | retry once with four times the limit: the model was still thinking |
| context too long | retry once with half of the sources and without history |
| silent, cut off, slow, denied, refused | no retry: the pages are quoted |
| no sentence that its sources support | no retry: the pages are quoted |
| tokens of the day or of the question spent | no retry: the pages are quoted |
| content filter | no retry: the visitor gets the error, since quoting would bypass the filter |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.query.ports import (
    ContextTooLong,
    ModelCut,
    ModelDown,
    ModelError,
    ModelSilent,
    ModelThoughtTooLong,
    RateLimited,
)
from pipelines.runtime.retry import doubled

BUSY_TRIES = 3  # more than these are a queue, not a peak
BUSY_WAIT = 1.0  # seconds, where the server does not say; doubled every time
DOWN_WAIT = 0.5  # seconds


@dataclass(frozen=True)
class Remedy:
    """Try again after `wait` seconds; with less to read if `shorter`, with more room to write if `longer`."""

    wait: float = 0.0
    shorter: bool = False
    longer: bool = False


def remedy(failures: Sequence[ModelError], seconds_left: float) -> Remedy | None:
    """The remedy for the last failure; None: no retry.

    Args:
        failures: failures of this answer, oldest first.
        seconds_left: time left for the model.
    """
    last = failures[-1]
    before = sum(type(failure) is type(last) for failure in failures) - 1
    found: Remedy | None = None
    match last:
        case RateLimited() if before < BUSY_TRIES:
            found = Remedy(last.retry_after if last.retry_after is not None else doubled(before + 1, BUSY_WAIT))
        case ModelSilent() | ModelCut():
            pass  # the visitor has waited long enough
        case ModelDown() if before == 0:
            found = Remedy(DOWN_WAIT)
        case ModelThoughtTooLong() if before == 0:
            found = Remedy(longer=True)
        case ContextTooLong() if before == 0:
            found = Remedy(shorter=True)
    # The answer itself needs its time as well.
    return found if found and found.wait <= seconds_left / 2 else None
