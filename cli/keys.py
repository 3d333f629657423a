"""`pagewire keys`: who may do what, changed while the system runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar, get_args

import typer

from cli.output import explained, out, print_json, table
from cli.times import point_ahead
from cli.user import noted, user
from cli.wired import configure_logs, connected, load
from pipelines.operate.last_uses import used
from schemas.access_key import CreatedKey, ListedKey, NewKey, Scope

if TYPE_CHECKING:
    from wiring.clients import Clients
    from wiring.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Keys for programs and people, made and revoked without a restart.")

Value = TypeVar("Value")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Says whose key it is; letters, digits, `.`, `_`, `-`.")],
    scope: Annotated[
        list[str],
        typer.Option(help=f"What it may do: {', '.join(get_args(Scope))}. May be repeated.", show_default=False),
    ],
    site: Annotated[str | None, typer.Option(help="The one site it is good for; default: all.")] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="Access group whose pages it may read. May be repeated.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="When its time is over: 12h, 90d, or an ISO 8601 time.")] = None,
    json: Json = False,
) -> None:
    """Make a key and print it, this once: only its hash is kept. Every gateway takes it within ten seconds.

    Example: pagewire keys create webmaster --scope admin --site town --expires 90d
    """
    with explained():
        ends = point_ahead("--expires", expires)
        given = {"name": name, "scopes": scope, "site": site, "groups": group or (), "expires_at": ends}
        new = NewKey.model_validate(given)
        settings = load()
        if site is not None:
            settings.site(site)

        async def work(clients: Clients) -> CreatedKey:
            async with noted(clients, "keys.create", site, name):
                return await (await clients.access_keys()).create(new, user())

        made = _with_clients(settings, work)
    print_json(made) if json else out.print(made.key, markup=False)


@app.command("list")
def list_(json: Json = False) -> None:
    """All keys but the admin key: those of pagewire.yaml, then those that were made. The keys themselves are not kept.

    Example: pagewire keys list
    """
    with explained():

        async def work(clients: Clients) -> list[ListedKey]:
            uses = await (await clients.last_uses()).known()
            return [used(key, uses) for key in await (await clients.access_keys()).list()]

        found = _with_clients(load(), work)
    if json:
        print_json([key.model_dump(mode="json") for key in found])
    else:
        columns = ("name", "id", "scopes", "site", "groups", "state", "expires", "made", "by", "used")
        out.print(table(columns, [_line(key) for key in found]))


@app.command()
def revoke(key: Annotated[str, typer.Argument(help="Its name or its id, as `list` shows them.")]) -> None:
    """Take a key away, and with it its sessions in the console. Every gateway refuses it within ten seconds. Exit code
    1 when there is none of that name or id, or when it stands in pagewire.yaml.

    Example: pagewire keys revoke webmaster
    """
    with explained():

        async def work(clients: Clients) -> ListedKey:
            async with noted(clients, "keys.revoke") as act:  # what was typed may be a key
                revoked = await (await clients.access_keys()).revoke(key)
                act.target = revoked.name
                return revoked

        gone = _with_clients(load(), work)
    out.print(f"revoked {gone.name} ({gone.id})", markup=False)


def _line(key: ListedKey) -> tuple[object, ...]:
    expires = f"{key.expires_at.astimezone():%Y-%m-%d %H:%M}" if key.expires_at else ""
    made = f"{key.created_at.astimezone():%Y-%m-%d %H:%M}" if key.created_at else "in pagewire.yaml"
    what = (" ".join(key.scopes), key.site or "all", " ".join(key.groups))
    last = f"{key.last_used_at.astimezone():%Y-%m-%d %H:%M}" if key.last_used_at else ""
    return (key.name, key.id, *what, key.state, expires, made, key.created_by, last)


def _with_clients(settings: Settings, work: Callable[[Clients], Awaitable[Value]]) -> Value:
    configure_logs(settings)

    async def run() -> Value:
        async with connected(settings) as clients:
            return await work(clients)

    return asyncio.run(run())
