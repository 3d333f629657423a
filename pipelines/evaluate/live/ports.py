"""What the judge stage needs of the bus and of the question log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipelines.runtime.record import Record


class AnswerLog(Protocol):
    """The events of answers (adapters.kafka.log.LogReader)."""

    async def of_key(self, key: str, since_ms: int, until_ms: int | None = None) -> Sequence[Record]:
        """Records of one key written in this time (milliseconds since 1970). Raises: Retryable."""
        ...


class ForgottenQuestions(Protocol):
    """Which questions' conversations were deleted (adapters.elastic.outcomes)."""

    async def forgotten(self, site: str, request_id: str) -> bool:
        """Raises: Retryable."""
        ...
