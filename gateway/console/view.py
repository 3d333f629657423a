"""What all screens of the console share: the caller, the site, the language, forms and error pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, cast
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from babel.dates import format_datetime
from babel.numbers import format_decimal
from fastapi import Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import ValidationError

from gateway.console.words import LANGUAGES, Say, seen
from gateway.edge.auth import Caller
from gateway.edge.bodies import read_body
from gateway.edge.bounds import bounded
from gateway.edge.edge import Edge, allow
from gateway.edge.peers import peer_of
from gateway.edge.problems import REFUSALS, Problem, field_problems, problem_from
from gateway.edge.proxy_users import ProxyUser
from gateway.site.pages import preferred
from pipelines.operate.audit_log import Act
from pipelines.runtime.record import trace_id
from schemas.access_key import Scope
from schemas.audit_log import Action

HOME = "/console/"
SIGN_IN = "/console/sign-in"
SESSION_COOKIE = "pagewire_console"
LANGUAGE_COOKIE = "pagewire_console_lang"
YEAR = 365 * 86_400  # seconds
MAX_FORM = 16 * 1024  # bytes
# No scripts. Style sheet, pictures and targets of forms are on this host.
CSP = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Screen:
    """An entry of the navigation. `all_sites`: only operators of all sites see it."""

    name: str  # in words.yaml
    path: str
    all_sites: bool = False
    scope: Scope = "view"  # the scope that the screen needs


# Role (its name in words.yaml) -> screens.
NAVIGATION = {
    "for-editors": (
        Screen("overview", HOME),
        Screen("questions", "/console/questions"),
        Screen("gaps", "/console/gaps"),
        Screen("corrections", "/console/corrections"),
        Screen("handovers", "/console/handovers", scope="admin"),
        Screen("pages", "/console/page"),
        Screen("texts", "/console/texts"),
        Screen("playground", "/console/playground", scope="edit"),
    ),
    "for-operators": (
        Screen("evaluations", "/console/evaluations"),
        Screen("examples", "/console/examples"),
        Screen("indexes", "/console/indexes", scope="admin"),
        Screen("sites", "/console/sites", scope="admin"),
        Screen("dead-letters-title", "/console/dlq", all_sites=True),
        Screen("keys", "/console/keys", all_sites=True),
        Screen("audit-log", "/console/audit-log", all_sites=True),
    ),
}


class SignInFirst(Exception):
    """The request has no session."""


@dataclass(frozen=True)
class View:
    """One request to the console.

    `holder`: the caller's rights; None without a session. `site`: the shown site, or "". `user`: the user that a proxy
    has signed in; `holder` then has the user's rights at `site`, or at the first of their sites. `refusal`: why a user
    that a proxy has named is not signed in.
    """

    request: Request
    edge: Edge
    say: Say
    holder: Caller | None
    cookie: str
    site: str = ""
    user: ProxyUser | None = None
    refusal: Problem | None = None

    @property
    def caller(self) -> Caller:
        """The signed-in caller. Raises: SignInFirst."""
        if self.holder is None:
            raise SignInFirst
        return self.holder

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that the caller may see."""
        if self.holder is None:
            return ()
        if self.user is not None:
            return self.user.sites(self.edge.settings.sites)
        return tuple(self.edge.settings.sites) if self.caller.site is None else (self.caller.site,)

    @property
    def navigation(self) -> dict[str, list[Screen]]:
        """Role -> the screens that the caller may see."""
        return {role: found for role, screens in NAVIGATION.items() if (found := [*filter(self._shows, screens)])}

    def _shows(self, screen: Screen) -> bool:
        caller = self.holder
        return caller is not None and caller.may(screen.scope) and (caller.operates or not screen.all_sites)

    @property
    def form_token(self) -> str:
        sessions = self.edge.sessions
        return sessions.user_form_token(self.user.name) if self.user else sessions.form_token(self.cookie)

    def sent_by_us(self, token: str) -> bool:
        """Whether a form's token belongs to this session."""
        sessions = self.edge.sessions
        if self.user is not None:
            return sessions.sent_by_user(self.user.name, token)
        return sessions.sent_by_us(self.cookie, token)

    def on(self, site: str) -> View:
        """This view of a site. Raises: Problem: 403. UnknownSite."""
        caller = self._caller_at(site)
        allow(caller, "view", site)
        self.edge.settings.site(site)
        return replace(self, site=site, holder=caller)

    def on_all(self) -> View:
        """This view of all sites. Raises: Problem: 403: the caller is no operator."""
        caller = self._caller_at(None)
        allow(caller, "admin", None)
        return replace(self, holder=caller)

    def act(self, action: Action, target: str = "") -> AbstractAsyncContextManager[Act]:
        """A context that writes its action to the audit log, under the site, or under all sites where none is shown."""
        return self.edge.act(self.caller, action, self.site or None, target, via="console")

    def to(self, screen: str, **parameters: str) -> Response:
        """A redirect to a screen of the site, for the end of a form."""
        return RedirectResponse(f"{HOME}{screen}?{urlencode({'site': self.site} | parameters)}", 303)

    def here(self, **changes: str | None) -> str:
        """The address of this screen with other parameters; None and "" remove one."""
        parameters = dict(self.request.query_params) | changes
        return "?" + urlencode({name: value for name, value in parameters.items() if value})

    def edit_link(self, page_id: str, lang: str, url: str) -> str:
        """The address at which the CMS edits a page; empty without the setting `edit_link`."""
        link = self.edge.settings.site(self.site).edit_link
        for name, value in (("{id}", page_id), ("{lang}", lang), ("{url}", url)):
            link = link.replace(name, quote(value, safe=""))
        return link

    def author_mail(self, title: str, url: str, asked: str) -> str:
        """A `mailto:` link to the pages' author; empty without the setting `author_mail`."""
        to = self.edge.settings.site(self.site).author_mail
        if not to:
            return ""
        subject, body = self.say("mail-subject", title=title), self.say("mail-body", asked=asked, title=title, url=url)
        return f"mailto:{quote(to, safe='@')}?{urlencode({'subject': subject, 'body': body}, quote_via=quote)}"

    def at(self, when: datetime) -> str:
        """A time in the site's time zone, or in UTC where no site is shown."""
        return format_datetime(self._local(when), self.say("pattern-of-times"), locale=self.say.locale)

    def number(self, value: float, digits: int = 0) -> str:
        pattern = "#,##0" + ("." + "0" * digits if digits else "")
        return format_decimal(value, pattern, locale=self.say.locale)

    def milliseconds(self, value: float) -> str:
        """A duration such as `76 ms` or `12.3 s`."""
        return f"{self.number(value)} ms" if value < 10_000 else f"{self.number(value / 1000, 1)} s"

    def page(self, template: str, status: int = 200, *, again: int = 0, **context: Any) -> Response:
        """A rendered template. `again`: seconds until the browser reloads it; 0: never."""
        common = {"view": self, "say": self.say, "languages": LANGUAGES}
        common["may_edit"] = self.holder is not None and self.holder.may("edit")
        html = _templates().get_template(template).render(common | context)
        response = HTMLResponse(html, status, headers={"Content-Security-Policy": CSP})
        if again:
            response.headers["Refresh"] = str(again)
        if self.request.query_params.get("ui") in LANGUAGES:
            response.set_cookie(
                LANGUAGE_COOKIE,
                self.say.lang,
                max_age=YEAR,
                path=HOME,
                secure=self.secure,
                httponly=True,
                samesite="strict",
            )
        return response

    @property
    def secure(self) -> bool:
        """Whether the browser speaks TLS, as far as uvicorn knows (behind a proxy: its `--forwarded-allow-ips`)."""
        return self.request.url.scheme == "https"

    def _caller_at(self, site: str | None) -> Caller:
        return self.user.at(site) if self.user else self.caller

    def _local(self, when: datetime) -> datetime:
        return when.astimezone(self.edge.settings.site(self.site).zone if self.site else UTC)


@bounded("memory")
async def view_of(request: Request) -> View:
    """The view of a request, with or without a session. Raises: Problem: 403: a user named by a proxy has no role."""
    view = _unchecked_view(request)
    if view.refusal is not None:
        raise view.refusal
    return view


def _unchecked_view(request: Request) -> View:
    """A view that may hold a `refusal`. A user named by a proxy goes before a session, so the audit log names them."""
    edge = cast(Edge, request.app.state.edge)
    cookie = request.cookies.get(SESSION_COOKIE, "")
    chosen = (request.query_params.get("ui"), request.cookies.get(LANGUAGE_COOKIE))
    accepted = preferred(request.headers.get("accept-language", ""), tuple(LANGUAGES))
    lang = next((lang for lang in chosen if lang in LANGUAGES), accepted)
    view = View(request, edge, Say(lang), None, cookie)
    try:
        user = edge.proxy_users.user(peer_of(request.scope), request.headers.raw)
    except Problem as problem:
        return replace(view, refusal=problem)
    if user is None:
        caller = edge.sessions.caller(cookie)
        if caller is not None:
            edge.used(caller)
        return replace(view, holder=caller)
    if not edge.hosts.knows(request.headers.get("host", "")):  # against DNS rebinding by another website
        return replace(view, refusal=Problem(421, "unknown-host", "the gateway does not know itself by this name"))
    sites = user.sites(edge.settings.sites)
    if not sites:
        return replace(view, refusal=Problem(403, "no-role", "no role in proxy_sign_in.roles is this user's"))
    return replace(view, user=user, holder=user.at(sites[0]))


@bounded("session", "view")
async def signed_in(view: Annotated[View, Depends(view_of)]) -> View:
    """Raises: SignInFirst."""
    if view.holder is None:
        raise SignInFirst
    return view


async def on_site(
    view: Annotated[View, Depends(signed_in)],
    site: Annotated[str, Query(description="Default: the first site that the key may see.")] = "",
) -> View:
    """Raises: SignInFirst. Problem: 403. UnknownSite."""
    return view.on(site or view.sites[0])


@bounded("session", "edit")
async def editor(view: Annotated[View, Depends(on_site)]) -> View:
    """The view of a caller with the scope `edit`. Raises: SignInFirst. Problem: 403. UnknownSite."""
    allow(view.caller, "edit", view.site)
    return view


@bounded("session", "admin")
async def administrator(view: Annotated[View, Depends(on_site)]) -> View:
    """The view of a caller with the scope `admin`. Raises: SignInFirst. Problem: 403. UnknownSite."""
    allow(view.caller, "admin", view.site)
    return view


@bounded("session", "admin", of_all=True)
async def operator(view: Annotated[View, Depends(signed_in)]) -> View:
    """The view of a caller with the scope `admin` on all sites. Raises: SignInFirst. Problem: 403."""
    return view.on_all()


AnyView = Annotated[View, Depends(view_of)]
SignedIn = Annotated[View, Depends(signed_in)]
OnSite = Annotated[View, Depends(on_site)]
Editor = Annotated[View, Depends(editor)]
Administrator = Annotated[View, Depends(administrator)]
Operator = Annotated[View, Depends(operator)]


async def form_of(view: View, *, before_sign_in: bool = False, limit: int = MAX_FORM) -> Mapping[str, str]:
    """The fields of a form that was sent from one of our pages, with line breaks as `\\n`.

    Against forged requests: the browser's headers name the page that sent the form, and the token in the form belongs
    to the session.

    Args:
        limit: bytes.

    Raises:
        Problem: 403 `foreign-form`; 413; 408.
    """
    headers = view.request.headers
    fetched = headers.get("sec-fetch-site")  # missing without TLS
    origin = headers.get("origin", "")
    ours = fetched == "same-origin" if fetched else view.edge.hosts.is_own_page(origin, headers.get("host", ""))
    if not ours:
        raise _foreign()
    body = await read_body(view.request, limit)
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100)
    form = {name: values[-1].replace("\r\n", "\n") for name, values in fields.items()}
    if not before_sign_in and not view.sent_by_us(form.get("token", "")):
        raise _foreign()
    return form


async def confirmed(view: View, what: str) -> Mapping[str, str]:
    """The fields of a form whose confirmation box is ticked. Raises: Problem: 422; as `form_of`."""
    form = await form_of(view)
    if form.get("sure") != "yes":
        raise Problem(422, "not-confirmed", f"sure: tick the box {what}")
    return form


def version_shown(form: Mapping[str, str]) -> int:
    """The version that was in force when the form was shown. Raises: Problem: 422."""
    if not form.get("over", "").isdecimal():
        raise Problem(422, "invalid", "over: the version that was in force when the form was shown")
    return int(form["over"])


def mark_of(text: str) -> str:
    """A checksum by which the second POST proves that the editor saw the preview of this very text."""
    return sha256(text.encode()).hexdigest()[:16]


def wrong_fields(err: ValidationError) -> list[str]:
    """Problems with a form's fields, for the page that shows the form again with the typed values."""
    return [f"{each.field}: {each.message}" for each in field_problems(err.errors(include_input=False))]


def _foreign() -> Problem:
    return Problem(403, "foreign-form", "this form was not sent from a page of this session")


class ConsoleRoute(APIRoute):
    """A route that shows errors as pages of the console."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except SignInFirst:
                return RedirectResponse(f"{SIGN_IN}?to={quote(_return_address(request))}", 303)
            except REFUSALS as error:
                found = problem_from(error)
            view = _unchecked_view(request)
            response = view.page("problem.html", found.status, problem=found, trace=trace_id.get())
            response.headers.update(found.headers)
            return response

        return shown


def _return_address(request: Request) -> str:
    """The address to open after the sign-in."""
    if request.method != "GET":
        return HOME
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def inside(address: str) -> str:
    """The address if it is one of the console, else the console's first screen."""
    parts = urlsplit(address)
    return address if address.startswith(HOME) and not parts.netloc and "\\" not in address else HOME


def web_address(url: str) -> str:
    """A page's address if it is safe as a link, else "": the CMS sends addresses, and could send `javascript:`."""
    ours = url.startswith("/") and not url.startswith(("//", "/\\"))
    return url if ours or urlsplit(url).scheme in ("http", "https") else ""


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("gateway.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["web_address"] = web_address
    made.globals["seen"] = seen
    return made
