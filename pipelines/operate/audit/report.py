"""The reports of audits and repairs, with findings in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, computed_field

from pipelines.operate.audit.index_diff import Cause, IndexDifference, Kind
from schemas.base import Wire


class Finding(Wire):
    """One difference at one page."""

    kind: Kind
    page_key: str
    detail: str = Field(description="In plain words.")
    revision_expected: int | None = Field(description="By the log; null: it does not know the page.")
    revision_found: int | None = Field(description="In the index; null: nothing there.")


class StoredAudit(Wire):
    """The result of an audit, as it is stored for its site."""

    index: str | None = Field(description="The index that was read; null: the site has none yet.")
    pages: int = Field(description="Pages in the log or in the index that are not deleted; as in the site's status.")
    deleted: int = Field(default=0, description="Pages that are: a record of each stays, in the log and the index.")
    chunks: int = Field(description="Chunks in the index.")
    counts: dict[Kind, int] = Field(
        description="Pages by kind of finding, complete; one may have several. Empty: all is well."
    )
    findings: tuple[Finding, ...] = Field(description="The first ones.")
    failed: int = Field(description="Pages whose last change is a dead letter: not drift, see `pagewire dlq list`.")
    unreadable: int = Field(description="Records of the site in the log that are no changes: dead letters, too.")
    seconds: float


class AuditReport(StoredAudit):
    """The result of an audit."""

    site: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def clean(self) -> bool:
        """Whether index and log agree."""
        return not self.counts

    @property
    def kept(self) -> StoredAudit:
        """Without the site."""
        return StoredAudit(**{name: getattr(self, name) for name in StoredAudit.model_fields if name != "v"})


class RepairReport(Wire):
    """The result of a repair: audit before, actions, audit after."""

    before: AuditReport
    sent: int = Field(description="Changes sent through the pipeline again.")
    deleted: int = Field(description="Documents deleted from the index.")
    after: AuditReport


class RepairOrder(Wire):
    """The request for a repair."""

    repair: Literal[True] = Field(description="Said in so many words: this changes the index and the log.")
    force: bool = Field(
        default=False,
        description="Also take away what the log does not know, and put what it has over what is newer.",
    )


WORDS: Mapping[Cause, str] = {
    "absent": "accepted as revision {expected}, but not in the index",
    "unguarded": "deleted, but the index has no record of it: an older save that comes late would bring the page back",
    "hidden": "saved again as revision {expected}, but the index still has the delete of revision {held}",
    "short": "{amount} of its chunks are not in the index (field {example})",
    "undeleted": "deleted by revision {expected}, but revision {held} is still shown",
    "unlogged": "in the index, but not in the change log",
    "older": "the index has revision {held}, the log {expected}",
    "newer": "the index has revision {held}, the log nothing after {expected}",
    "undone": "deleted by revision {held}, but the log has only revision {expected}: a rebuild from it could not know",
    "newer-chunks": "{amount} chunks are of revision {held}, the log has nothing after {expected} (such as {example})",
    "mixed": "{amount} chunks are of another revision than the page (such as {example})",
    "orphan": "{amount} chunks belong to nothing (such as {example})",
    "model": "its vectors are of another model than the index's: they compare with nothing",
    "chunker": "cut otherwise than the index says",
    "buried": "something older stands behind revision {expected} in the log: compaction would keep that instead",
}


def finding(found: IndexDifference) -> Finding:
    """A finding in plain words."""
    return Finding(
        kind=found.kind,
        page_key=found.page_key,
        detail=WORDS[found.cause].format(**found._asdict()),
        revision_expected=found.expected,
        revision_found=found.held,
    )
