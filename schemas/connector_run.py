"""The last run of a connector: times and outcome."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import SiteId, Wire

RunKind = Literal["import", "reconcile", "watch"]


class LastUse(Wire):
    """The time of a last use, to the hour."""

    at: AwareDatetime


class ConnectorRun(Wire):
    """One run of one connector."""

    site: SiteId
    connector: str
    what: RunKind
    by: str = Field(default="", description="The machine's user whose command it was, or the name of the key.")
    began_at: AwareDatetime
    ended_at: AwareDatetime | None = Field(default=None, description="Null: it is at work, or died without a word.")
    sent: int = 0
    deleted: int = 0
    left_out: int = 0
    failed: int = Field(default=0, description="Pages that could not be read, or were refused.")
    refused: bool = Field(default=False, description="So many pages were gone that nothing was deleted.")
    code: str = Field(default="", description="Why it did not come to its end, as in problem documents.")
    error: str = ""
