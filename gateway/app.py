"""The HTTP edge, put together. Everything it touches comes in as settings and ports.

Envelope (trace, headers, log) ─▶ SiteOrigins (CORS) ─▶ route ─▶ May(scope) ─▶ body ─▶ port
"""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.routing import BaseRoute

from gateway.agents import nlweb
from gateway.agents import pages as agent_pages
from gateway.chat import chat, conversations, search, visitors
from gateway.console import console
from gateway.content import changed, content, webhooks
from gateway.edge import metrics, openapi, problems
from gateway.edge.auth import Keys, Sessions, admin_key, token_secret
from gateway.edge.bounds import SiteOrigins
from gateway.edge.edge import Edge
from gateway.edge.envelope import Envelope, Heads
from gateway.edge.gauges import Exposition, StatusGauges
from gateway.edge.peers import Hosts
from gateway.edge.proxy_users import ProxyUsers
from gateway.edge.rates import AtOnce, Cached, DailyBudgets, InTurn, Rates, window
from gateway.edge.signed import Confirmations, EventIds, Pseudonyms
from gateway.edge.tokens import VISITOR_DAYS, VisitorTokens
from gateway.mcp import route as mcp_route
from gateway.openai import completions, refusals
from gateway.operators import (
    corrections,
    evaluation_runs,
    evaluations,
    handovers,
    keys,
    letters,
    ops,
    privacy,
    questions,
    rebuilds,
    texts,
    trials,
)
from gateway.ports import Ports
from gateway.site import assets, pages, results, widget_pages
from pipelines.conversations.conversations import Conversations
from pipelines.conversations.handovers import Handovers
from pipelines.runtime.counts import DAY
from schemas.query import HISTORY_MESSAGES
from schemas.topics import BUDGETS, RATES
from sites.content import load_site
from wiring.settings import Settings

SAMPLE_SITE = "demo"
API_VERSION = "1"
READY_KEPT = 1.0  # seconds for which the state of Kafka and Elasticsearch is cached
# Webhooks that are read before their sender is known, 8 MiB each at most; a CMS sends one after the other.
DELIVERIES, DELIVERIES_OF_ONE = 32, 8
VISITS, VISITS_OF_ONE = 64, 8  # IndexNow pushes that wait for their visits, of all connectors and of one
MESSAGES = 10  # to a person, that a visitor may leave in a day (UTC)
OPERATORS = (
    questions,
    evaluations,
    evaluation_runs,
    handovers,
    trials,
    letters,
    rebuilds,
    privacy,
    texts,
    corrections,
    keys,
    ops,
)


def create_app(settings: Settings, ports: Ports) -> FastAPI:
    """The gateway as an ASGI application. Start it with `access_log=False`: the Envelope logs without questions.

    Raises:
        SettingsError: the secrets under `home` cannot be read or made, or a package is missing.
    """
    mcp_route.check(settings)
    app = FastAPI(
        title="Pagewire",
        version=API_VERSION,
        description="Keeps a website searchable and answers its visitors' questions from its pages.",
        openapi_url=None,  # site/assets.py serves it
        docs_url=None,  # their scripts come from a CDN, which our Content-Security-Policy rightly refuses
        redoc_url=None,
        redirect_slashes=False,
        # FastAPI's own spans and logs contain query strings and refused bodies, with visitors' words; ours
        # (edge/envelope.py) do not.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    metrics.begin(settings.labels)
    secret = token_secret(settings)
    kept = max(site.retention.conversations for site in settings.sites.values())
    tokens = VisitorTokens(secret, settings.token_ttl, min(VISITOR_DAYS, kept) * DAY)
    bootstrap, _ = admin_key(settings)
    known_keys = Keys(bootstrap, settings.keys, tokens, ports.keys.known)
    gauges = StatusGauges(ports.status, ports.letters, settings.label)
    app.state.edge = Edge(
        settings=settings,
        ports=ports,
        keys=known_keys,
        tokens=tokens,
        rates=Rates(settings.visitor_rate, ports.counts(RATES, window(settings.visitor_rate)), secret),
        messages=Rates(f"{MESSAGES}/day", ports.counts(BUDGETS, DAY), secret),
        budgets=DailyBudgets(
            {name: site.chat.daily_questions for name, site in settings.sites.items()}, ports.counts(BUDGETS, DAY)
        ),
        gauges=gauges,
        conversations=Conversations(ports.conversations, ports.answers, HISTORY_MESSAGES, ports.now, ports.titles),
        handovers=Handovers(ports.handovers, ports.now),
        event_ids=EventIds(secret),
        confirmations=Confirmations(secret),
        token_secret=secret,
        pseudonyms=Pseudonyms(secret),
        sessions=Sessions(secret, known_keys),
        proxy_users=ProxyUsers(settings.proxy_sign_in),
        hosts=Hosts(settings.hosts, (origin for site in settings.sites.values() for origin in site.origins)),
        readiness=Cached(ports.status.ready, READY_KEPT),
        exposition=Exposition(gauges),
        deliveries=AtOnce(DELIVERIES, DELIVERIES_OF_ONE),
        visits=InTurn(VISITS, VISITS_OF_ONE),
    )
    problems.install(app, _refused)
    openapi.install(app)
    app.router.routes.extend(_routes(SAMPLE_SITE in settings.sites))
    app.include_router(assets.document_routes(app.openapi))
    # The last one added is the outermost.
    app.add_middleware(Heads)
    app.add_middleware(SiteOrigins, settings=settings)
    app.add_middleware(Envelope)
    return app


def _refused(request: Request, problem: problems.Problem) -> Response:
    """In the format that the path's clients expect."""
    if mcp_route.is_mcp(request.scope["path"]):
        return mcp_route.respond(problem)
    return refusals.respond(request, problem)


@cache
def _routes(with_sample: bool) -> list[BaseRoute]:
    """Of all gateways of this process: FastAPI takes a while to prepare a route, once."""
    router = APIRouter(redirect_slashes=False)
    talking = (chat, conversations, visitors, completions)
    reading = (agent_pages, nlweb, mcp_route, search, results)
    for module in (content, webhooks, changed, *talking, *reading, *OPERATORS):
        router.include_router(module.router)
    questions_asked = {}
    if with_sample:
        sample = load_site()
        router.include_router(pages.sample_routes(sample))
        questions_asked[SAMPLE_SITE] = sample.example_questions
    for made in (pages.routes(questions_asked), widget_pages.routes(), console.routes()):
        router.include_router(made)
    return router.routes
