"""The audit log: who changed what, when, and the outcome. No secrets, and no words of visitors or pages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field

from schemas.base import Wire, form, optional

Via = Literal["http", "console", "command"]
ActOutcome = Literal["done", "failed"]
# All that is noted. An entry's own `action` is a plain string, so that what a later release notes can be read.
Action = Literal[
    "chat.off",
    "chat.on",
    "connectors.reconcile",
    "conversations.erase",
    "corrections.put",
    "corrections.remove",
    "corrections.restore",
    "corrections.rollback",
    "evaluations.publish",
    "evaluations.remove",
    "evaluations.start",
    "evaluations.stop",
    "examples.put",
    "examples.remove",
    "handovers.erase",
    "handovers.redeliver",
    "index.repair",
    "keys.create",
    "keys.revoke",
    "labels.put",
    "labels.settle",
    "letters.drop",
    "letters.edit",
    "letters.redrive",
    "privacy.put",
    "privacy.remove",
    "privacy.restore",
    "privacy.rollback",
    "rebuild.discard",
    "rebuild.promote",
    "rebuild.rollback",
    "rebuild.start",
    "rebuild.stop",
    "texts.promote",
    "texts.propose",
    "texts.put",
    "texts.remove",
    "texts.restore",
    "texts.rollback",
    "visitors.erase",
]
EntryId = Annotated[str, form(r"^\d{13}-[0-9a-f]{16}$", "`next` of the list before")]


class AuditEntry(Wire):
    """One act."""

    id: EntryId = Field(description="Milliseconds since 1970, and a random part: sorts by time.")
    at: AwareDatetime = Field(description="When it was over.")
    who: str = Field(description="Name of the key, `visitor`, or for a command the machine's user.")
    via: Via
    action: str = Field(description="What was done, for example `keys.revoke`.")
    site: str | None = Field(default=None, description="Null: it concerns all sites.")
    target: str = Field(default="", description="What it was done to: a key's name, a letter, a generation, ...")
    client: str = optional("", description="How the agent calls itself that did it over MCP.")
    outcome: ActOutcome
    code: str = Field(default="", description="Why it failed, as in problem documents.")
    trace_id: str = Field(default="", description="Finds the request in the logs; empty for commands.")


class AuditFilter(Wire):
    """Filters of entries; all given ones must match."""

    model_config = ConfigDict(validate_by_name=True)

    since: AwareDatetime | None = Field(default=None, alias="from", description="Done then or later.")
    until: AwareDatetime | None = Field(default=None, alias="to", description="Done before.")
    who: str | None = Field(default=None, description="Name of the key, `visitor`, or a machine's user.")
    action: str | None = Field(default=None, description="For example `keys.revoke`.")
    site: str | None = None

    def fits(self, entry: AuditEntry) -> bool:
        period = (self.since is None or self.since <= entry.at) and (self.until is None or entry.at < self.until)
        wanted = {"who": self.who, "action": self.action, "site": self.site}
        return period and all(value in (None, getattr(entry, name)) for name, value in wanted.items())


class AuditLogQuery(AuditFilter):
    """The query of `GET /v1/admin/audit-log`."""

    model_config = ConfigDict(extra="ignore")

    limit: int = Field(default=100, ge=1, le=1_000)
    after: EntryId | None = Field(default=None, description="`next` of the list before.")


class AuditLogPage(Wire):
    """A part of the audit log."""

    entries: tuple[AuditEntry, ...] = Field(description="The newest first.")
    next: EntryId | None = Field(default=None, description="Send it as `after` to go on; null: there is no more.")
