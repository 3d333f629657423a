"""`pagewire audit-log`: who changed what, and when."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.admin_client import Gateway
from cli.output import Json, explained, out, print_json, table
from cli.wired import point
from schemas.audit_log import AuditEntry, AuditLogPage

MAX_LISTED = 10_000


def audit_log(
    since: Annotated[str | None, typer.Option(help="Done since then: 2h, 30d, or an ISO 8601 time.")] = None,
    until: Annotated[str | None, typer.Option(help="Done before, written as `--since`.")] = None,
    who: Annotated[str | None, typer.Option(help="Only this key, `visitor`, or this user of a machine.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this, for example keys.revoke.")] = None,
    site: Annotated[str | None, typer.Option(help="Only what concerns this site alone.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LISTED, help="So many at most; the newest.")] = 100,
    json: Json = False,
) -> None:
    """Who changed what, when and with what outcome: keys, dead letters, examples, rebuilds, repairs, erasures. To
    compare an index with the change log: `pagewire audit`.

    Example: pagewire audit-log --since 7d --action keys.revoke
    """
    with explained():
        asked = {"from": point("--since", since), "to": point("--until", until), "who": who, "action": action}
        found = list(Gateway().pages(AuditLogPage, "audit-log", limit=limit, **asked, site=site))
    shown = AuditLogPage(entries=tuple(entry for page in found for entry in page.entries), next=found[-1].next)
    if json:
        print_json(shown)
        return
    columns = ("at", "who", "by", "action", "site", "target", "outcome", "trace")
    out.print(table(columns, [_line(entry) for entry in shown.entries]))
    if shown.next is not None:
        out.print(f"\nthe newest {len(shown.entries):,}; more with --limit", markup=False)


def _line(entry: AuditEntry) -> tuple[object, ...]:
    at = f"{entry.at.astimezone():%Y-%m-%d %H:%M:%S}"
    result = entry.code or entry.outcome
    by = f"{entry.via}: {entry.client}" if entry.client else entry.via
    return (at, entry.who, by, entry.action, entry.site, entry.target, result, entry.trace_id)
