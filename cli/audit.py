"""`pagewire index audit`: does the index hold what the change log says? And `--repair`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import NOT_SO, Bars, Json, Site, complain, err, out, print_json, table
from cli.wired import connected, logged, noted
from pipelines.operate.audit import audit as audits
from pipelines.operate.audit.report import AuditReport, RepairReport
from pipelines.runtime.indexes import IndexUnfit

if TYPE_CHECKING:
    from wiring.settings import Settings

SHOWN = 20  # findings
STEPS = {"log": "change log", "index": "index", "settling": "pages under way"}
ABOUT = {
    "missing": "accepted, but not in the index",
    "extra": "in the index, but deleted or never accepted",
    "stale": "an older revision than the log has",
    "ahead": "a newer revision than the log has",
    "mixed": "chunks of several revisions",
    "orphan": "chunks that belong to nothing",
    "fingerprint": "another model or chunker than the index's",
    "log": "the log itself would lose the newest revision",
}


def audit(
    site: Site,
    repair: Annotated[bool, typer.Option("--repair", help="Put right what is found, and audit again.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="With --repair: also take away what the log does not know, and undo newer revisions."
        ),
    ] = False,
    settle: Annotated[float, typer.Option(min=0, help="Seconds to wait for what is under way.")] = audits.SETTLE,
    index: Annotated[str | None, typer.Option(help="Audit this index of the site; default: the live one.")] = None,
    json: Json = False,
) -> None:
    """Compare the index with the change log. Exit code 0 when they agree (with --repair: afterwards), 1 when not.

    Example: pagewire index audit town --repair
    """
    if force and not repair:
        raise typer.BadParameter("--force goes with --repair")
    if index is not None and repair:
        raise typer.BadParameter("--repair is for the live index; leave out --index")
    settings = logged()
    settings.site(site)
    try:
        done = asyncio.run(_run(settings, site, repair, force, settle, index))
    except IndexUnfit as error:  # a finding of the audit: no service is missing
        complain(error)
        raise typer.Exit(NOT_SO) from None
    if json:
        print_json(done)
    else:
        _print_repair(done) if isinstance(done, RepairReport) else _print_report(done)
    if not (done.after if isinstance(done, RepairReport) else done).clean:
        raise typer.Exit(NOT_SO)


async def _run(
    settings: Settings, site: str, repair: bool, force: bool, settle: float, index: str | None
) -> AuditReport | RepairReport:
    async with connected(settings) as clients:
        auditor = await clients.auditor()
        with Bars() as bars:

            def report(progress: audits.AuditProgress) -> None:
                bars.step(STEPS[progress.step], progress.done, progress.total)

            if repair:
                async with noted(clients, "index.repair", site, "force" if force else ""):
                    return await auditor.repair(site, force=force, settle=settle, report=report)
            return await auditor.audit(site, index=index, settle=settle, report=report)


def holdings(report: AuditReport) -> str:
    """What an index holds, counted as `pagewire status` counts: deleted pages apart."""
    deleted = f" and {report.deleted:,} deleted" if report.deleted else ""
    return f"{report.pages:,} pages{deleted}, {report.chunks:,} chunks"


def _print_report(report: AuditReport) -> None:
    held = f"{holdings(report)}, {report.seconds:,.1f} s"
    where = report.index or f"site {report.site} has no index yet"
    if report.clean:
        out.print(f"[green]clean[/]  {where}: {held}", soft_wrap=True)
    else:
        out.print(f"[red]drift[/]  {where}: {held}\n", soft_wrap=True)
        out.print(table(("kind", "pages#", "what"), [(k, f"{n:,}", ABOUT[k]) for k, n in report.counts.items()]))
        out.print()
        shown = report.findings[:SHOWN]
        out.print(table(("kind", "page", "finding"), [(f.kind, f.page_key, f.detail) for f in shown]))
        if len(report.findings) > SHOWN:
            out.print(f"... and more; --json tells the first {audits.KEPT}")
    if report.failed:
        out.print(f"{report.failed:,} pages are dead letters, see `pagewire dlq list --site {report.site}`")
    if report.unreadable:
        out.print(f"{report.unreadable:,} records of the change log cannot be read")


def _print_repair(done: RepairReport) -> None:
    _print_report(done.before)
    if done.sent or done.deleted:
        out.print(f"\n{done.sent:,} changes sent again, {done.deleted:,} documents deleted\n")
    if done.before != done.after:
        _print_report(done.after)
    if not done.after.clean:
        err.print("\nnot everything is right yet; what comes first: does `pagewire worker ingest` run?")
        if {"ahead", "extra"} & set(done.after.counts):
            err.print("what the log does not know is left alone; --force lets the log decide")
