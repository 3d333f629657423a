"""What every route needs: the settings, the ports, who is calling. Built once by `app.create_app`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated, NamedTuple, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import SecretStr

from gateway.edge.auth import VISITOR_SCOPES, Caller, Keys, Sessions
from gateway.edge.bounds import Bound
from gateway.edge.gauges import Exposition, StatusGauges
from gateway.edge.peers import Hosts
from gateway.edge.problems import Problem, message
from gateway.edge.proxy_users import ProxyUsers
from gateway.edge.rates import AtOnce, Cached, DailyBudgets, InTurn, Rates, What
from gateway.edge.signed import Confirmations, EventIds, Pseudonyms
from gateway.edge.tokens import VisitorTokens
from gateway.ports import Ports
from pipelines.conversations.conversations import Conversations
from pipelines.conversations.handovers import Handovers
from pipelines.conversations.turns import ConversationOwner
from pipelines.operate.audit_log import Act
from pipelines.operate.states import of_key
from pipelines.query.log.frequent import is_understood_alone, wording_of
from pipelines.query.log.readable import ReadableQuestions
from schemas.access_key import Scope
from schemas.audit_log import Action, Via
from schemas.query import Question
from text.language import language_of
from wiring.settings import Settings


class LanguageHint(NamedTuple):
    """The text of a question, which shows its language. `lang`: the one that was named."""

    text: str = ""
    lang: str | None = None


@dataclass(frozen=True)
class Edge:
    """Nothing in here belongs to one visitor, except counts in `rates`."""

    settings: Settings
    ports: Ports
    keys: Keys
    tokens: VisitorTokens
    rates: Rates
    messages: Rates  # to a person
    budgets: DailyBudgets
    gauges: StatusGauges
    conversations: Conversations
    handovers: Handovers
    event_ids: EventIds
    confirmations: Confirmations
    token_secret: SecretStr
    pseudonyms: Pseudonyms
    sessions: Sessions
    proxy_users: ProxyUsers
    hosts: Hosts
    readiness: Cached[tuple[bool, dict[str, str]]]
    exposition: Exposition
    deliveries: AtOnce
    visits: InTurn  # of a website's addresses, by site and connector

    def admit(self, site: str, caller: Caller, asked: LanguageHint = LanguageHint()) -> AbstractContextManager[None]:
        """A question for `site` comes in: everybody heeds its switch, visitors its budget for the day. Visitors
        of a chat that is off read so in their language.

        What is refused in the context costs nothing of the budget.

        Raises:
            UnknownSite. Problem: 403 or 429.
        """
        known = self.settings.site(site)
        if not known.chat.enabled or self.ports.chat.off(site):
            told = language_of(asked.text, known.languages) if asked.text else known.languages[0]
            raise Problem(403, "chat-off", message("chat-off", asked.lang or told, known.prompts))
        return nullcontext() if caller.visitor is None else self.budgets.question(site)

    def used(self, caller: Caller) -> None:
        """A program's or a person's key was used, whatever becomes of it."""
        if caller.visitor is None:
            self.ports.uses.note(of_key(caller.name))

    def count(self, what: What, request: Request, caller: Caller) -> None:
        """Count one act, if a visitor's. Raises: Problem: 429, with the seconds to wait."""
        if caller.visitor is not None:
            self.rates.count(what, address_of(request), caller.visitor or None)

    def act(
        self,
        caller: Caller,
        action: Action,
        site: str | None = None,
        target: str = "",
        via: Via = "http",
        *,
        client: str = "",
    ) -> AbstractAsyncContextManager[Act]:
        """What is done in the context is noted in the audit log, whatever comes of it. `client`: the agent's name."""
        who = "visitor" if caller.visitor else caller.name
        return self.ports.audit_log.act(who, via, action, site, target, client)

    def questions(self, caller: Caller) -> ReadableQuestions:
        """The question log, without pages that the caller may not read."""
        return ReadableQuestions(self.ports.questions, self.ports.indexed.readable, frozenset(caller.groups))

    def logged(self, question: Question, caller: Caller) -> Question:
        """The question as it is sent: the log knows its conversation, and its visitor, under other names."""
        site = question.site
        names = {"logged_as": self.pseudonyms.of(site, question.conversation_id)}
        shareable = not caller.groups and self.ports.frequent.shown(site) and is_understood_alone(question)
        if caller.visitor and shareable:
            names["asker"] = self.pseudonyms.asker(site, caller.visitor, wording_of(question.question))
        return question.model_copy(update=names)


async def edge_of(request: Request) -> Edge:
    """The app's Edge. Async, because FastAPI hands plain functions to a thread."""
    return cast(Edge, request.app.state.edge)


def address_of(request: Request) -> str:
    """The caller's address; behind a proxy, the one that it names (peers.py)."""
    return request.client.host if request.client else "unknown"


def owner_of(caller: Caller, site: str) -> ConversationOwner:
    """Whose conversations a caller's are: a visitor's own, or those of the program with this key."""
    name = f"visitor:{caller.visitor}" if caller.visitor else f"key:{caller.name}"
    return ConversationOwner(site, name, caller.groups)


bearer_scheme = HTTPBearer(
    auto_error=False, description="A key with the scope the route needs; for chat and search also a visitor token."
)


@dataclass(frozen=True)
class May:
    """A dependency that lets callers with `scope` (for the path's site) through, and counts what visitors do.

    Routes read their body only after it: a stranger's megabytes are not looked at.

    Args:
        counts: what a visitor's call counts as. Said of every scope that visitors have, and of no other.
        any_site: the site is not in the path, so the route itself looks at whose site it is.
    """

    scope: Scope
    counts: What | None = None
    any_site: bool = False

    def __post_init__(self) -> None:
        assert self.visitors == (self.counts is not None), f"{self.scope}: visitors are counted"

    @property
    def visitors(self) -> bool:
        return self.scope in VISITOR_SCOPES

    @property
    def of_all(self) -> bool:
        return not self.any_site  # where the path has no site

    @property
    def bound(self) -> Bound:
        return "visitor" if self.visitors else "key"

    async def __call__(
        self,
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer_scheme)],
        edge: Annotated[Edge, Depends(edge_of)],
    ) -> Caller:
        """
        Raises:
            Problem: 401 without a valid bearer value, 403 without the right, 429.
            UnknownSite: the caller may, but there is no such site.
        """
        if credentials is None:
            raise _unauthorized("send `Authorization: Bearer KEY`", "Bearer")
        caller = caller_of(edge, credentials)
        request.state.caller = caller
        edge.used(caller)
        site = request.path_params.get("site")
        allow(caller, self.scope, caller.site if self.any_site else site)
        if site is not None:
            edge.settings.site(site)
        if self.counts is not None:
            edge.count(self.counts, request, caller)
        return caller


def allow(caller: Caller, scope: Scope, site: str | None) -> None:
    """Let a caller with `scope` for `site` (None: something that is of no site) pass. Raises: Problem: 403."""
    if not caller.may(scope):
        raise _forbidden(f"needs the scope {scope!r}", scope)
    if caller.site is not None and caller.site != site:
        raise _forbidden(f"this key is for the site {caller.site!r}", scope)


def caller_of(edge: Edge, credentials: HTTPAuthorizationCredentials) -> Caller:
    """Raises: Problem: 401."""
    caller = edge.keys.caller(credentials.credentials)
    if caller is None:
        raise _unauthorized("this key or token is not known, or over", 'Bearer error="invalid_token"')
    return caller


def _unauthorized(detail: str, challenge: str) -> Problem:
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": challenge})


def _forbidden(detail: str, scope: Scope) -> Problem:
    challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
    return Problem(403, "forbidden", detail, headers={"WWW-Authenticate": challenge})


TheEdge = Annotated[Edge, Depends(edge_of)]
# `scopes` only tells the OpenAPI document what `May` insists on.
MayAsk = Annotated[Caller, Security(May("chat", "ask"), scopes=("chat",))]
MaySearch = Annotated[Caller, Security(May("chat", "search"), scopes=("chat",))]
MaySuggest = Annotated[Caller, Security(May("chat", "suggest"), scopes=("chat",))]
MayResume = Annotated[Caller, Security(May("chat", "resume"), scopes=("chat",))]
MayStop = Annotated[Caller, Security(May("chat", "stop"), scopes=("chat",))]
MayRate = Annotated[Caller, Security(May("chat", "feedback"), scopes=("chat",))]
# Counted by the route, once the message is known to fit: a visitor who mistypes an address loses none of ten a day.
MayHandOver = Annotated[Caller, Security(May("chat", "conversation"), scopes=("chat",))]
MayConverse = Annotated[Caller, Security(May("chat", "conversation"), scopes=("chat",))]
MayErase = Annotated[Caller, Security(May("chat", "erase"), scopes=("chat",))]
MayAskSomewhere = Annotated[Caller, Security(May("chat", "completion", any_site=True), scopes=("chat",))]
MayListSites = Annotated[Caller, Security(May("chat", "models", any_site=True), scopes=("chat",))]
MayIngest = Annotated[Caller, Security(May("ingest"), scopes=("ingest",))]
MayView = Annotated[Caller, Security(May("view"), scopes=("view",))]
MayViewSomewhere = Annotated[Caller, Security(May("view", any_site=True), scopes=("view",))]
MayEditSomewhere = Annotated[Caller, Security(May("edit", any_site=True), scopes=("edit",))]
MayEdit = Annotated[Caller, Security(May("edit"), scopes=("edit",))]
MayAdmin = Annotated[Caller, Security(May("admin"), scopes=("admin",))]  # where the path has no site: of all sites
