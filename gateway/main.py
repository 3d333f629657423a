"""Runs the gateway: the real pipelines behind the HTTP edge."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from gateway.app import create_app
from gateway.edge.gauges import metrics_served
from gateway.edge.peers import Peers
from gateway.ports import Ports
from gateway.rebuild_runs import RebuildRuns
from gateway.reconcile_runs import ReconcileRuns
from infra.checks import bound
from infra.running import gateway_noted
from pipelines.runtime.errors import SettingsError
from wiring.clients import Clients
from wiring.settings import Settings
from wiring.titles import titles

GRACE = 5  # seconds open streams get when the gateway stops; visitors resume at another one


def listen(host: str, port: int) -> socket.socket:
    """A socket to listen with; port 0 takes a free one. Raises: SettingsError: saying which setting to change."""
    made = bound(host, port, "port")
    # Inherited by every connection. Without it each event of a stream waits 40 ms for the last one's acknowledgement.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def server_config(app: FastAPI) -> uvicorn.Config:
    """How uvicorn serves the gateway, behind proxies as well (`forwarded_allow_ips`)."""
    return uvicorn.Config(
        Peers(app, app.state.edge.settings.forwarded_allow_ips),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        lifespan="on",
        http=PlainHttp,
        ws="none",
        proxy_headers=False,  # Peers does that
    )


async def run_gateway(settings: Settings, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `on_ready` gets the URL.

    Raises:
        SettingsError, ServiceMissing, Retryable: what is missing at the start.
    """
    with listen(settings.host, settings.port) as made:
        port = made.getsockname()[1]
        if settings.metrics_port == port:
            raise SettingsError(f"metrics_port (PAGEWIRE_METRICS_PORT): {port} is the gateway's own; for example 9100")
        if settings.metrics_port is not None:  # before anything connects
            bound(settings.host, settings.metrics_port, "metrics_port").close()
        settings = settings.model_copy(update={"port": port})
        async with (
            Clients(settings) as clients,
            aclosing(RebuildRuns(clients)) as rebuilds,
            titles(settings, await clients.counts(), clients.texts()) as writing,
            AsyncExitStack() as stack,
        ):
            receipts, answers = await clients.receipts(waiting=True), await clients.asker(shared=True)
            auditor = await clients.auditor()
            audit_runs = await clients.audit_runs(auditor)
            intake, runs = await clients.intake(), await clients.connector_runs()
            reconciles = ReconcileRuns(settings, clients.changes_of, intake, runs)
            stack.push_async_callback(reconciles.aclose)
            ports = Ports(
                intake=intake,
                receipts=receipts,
                answers=answers,
                conversations=clients.conversations(),
                handovers=clients.handovers(),
                suggestions=await clients.suggestions(answers, receipts.is_importing),
                search=clients.searcher(),
                status=clients.status(),
                letters=await clients.letters(),
                audits=auditor,
                audit_runs=audit_runs,
                rebuilds=rebuilds,
                reconciles=reconciles,
                examples=clients.examples(),
                alike=clients.example_likeness(),
                texts=clients.texts(),
                correction_trials=await clients.correction_trials(),
                keys=await clients.access_keys(),
                uses=await clients.last_uses(),
                runs=runs,
                chat=await clients.chat_switches(),
                audit_log=await clients.audit_log(),
                questions=clients.questions(),
                indexed=clients.page_view(),
                gaps=await clients.gaps(),
                typeahead=clients.typeahead(),
                frequent=await clients.frequent(),
                evaluations=clients.runs(),
                evaluation_runs=await clients.evaluation_runs(),
                notes=await clients.notes(),
                now=await clients.clock(),
                counts=await clients.counts(),
                titles=writing,
            )
            host = f"[{settings.host}]" if ":" in settings.host else settings.host

            @asynccontextmanager
            async def announce(app: FastAPI) -> AsyncIterator[None]:
                made.listen()  # uvicorn does so a moment later, but a reader of the line may connect at once
                with gateway_noted(settings.home, settings.host, port):
                    on_ready(f"http://{host}:{port}")
                    yield

            app = create_app(clients.settings, ports)
            app.router.lifespan_context = announce
            config = server_config(app)
            with metrics_served(settings.host, settings.metrics_port, app.state.edge.gauges):
                await uvicorn.Server(config).serve(sockets=[made])


class PlainHttp(H11Protocol):
    """Passes over offers to speak something else, as any server may (RFC 9110, 7.8).

    By h11, not by httptools: that drops the body of a request that offers `Upgrade: h2c`, as Java's HttpClient does by
    default, answers HTTP/1.0 with chunks, and reads headers without end.
    """

    def _should_upgrade(self) -> bool:
        return False
