"""A reconcile that the console and the gateways see: noted at its begin and its end."""

from __future__ import annotations

from connectors.cms.reconcile import Reconciled, reconcile
from connectors.cms.settings import ConnectorsSettings
from connectors.cms.sources import opened
from connectors.cms.sync import Report
from pipelines.ingest.accept import Intake
from pipelines.operate.audit.audit import OpenLog
from pipelines.operate.connector_runs import ConnectorRunOutcome, ConnectorRuns


async def noted_reconcile(
    settings: ConnectorsSettings,
    site: str,
    name: str,
    by: str,
    runs: ConnectorRuns,
    open_log: OpenLog,
    intake: Intake,
    report: Report = lambda _: None,
    *,
    force: bool = False,
) -> Reconciled:
    """Reconcile the connector `name`. `by`: who is noted. Raises: as `reconcile`, and NoSource."""
    async with runs.run(site, name, "reconcile", by) as came, opened(settings, site, name) as source:
        done = await reconcile(source, site, name, open_log, intake, settings.home, report, force=force)
        note(came, done)
        return done


def note(came: ConnectorRunOutcome, done: Reconciled) -> None:
    """Write the outcome of a reconcile into its run's."""
    came.sent, came.deleted, came.left_out = done.sent, done.deleted, done.left_out
    came.failed, came.refused = done.failed, done.refused
