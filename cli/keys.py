"""`pagewire keys`: who may do what, changed while the system runs."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from cli.admin_client import Gateway
from cli.output import Json, explained, out, print_json, table
from cli.wired import point_ahead
from schemas.access_key import CreatedKey, KeyList, ListedKey, Scope

app = typer.Typer(no_args_is_help=True, help="Keys for programs and people, made and revoked without a restart.")


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
    if unknown := [each for each in scope if each not in get_args(Scope)]:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(get_args(Scope))}", param_hint="--scope")
    with explained():
        ends = point_ahead("--expires", expires)
        new = {"name": name, "scopes": scope, "site": site, "groups": group or (), "expires_at": ends}
        made = Gateway().send(CreatedKey, "POST", "keys", body=new)
    print_json(made) if json else out.print(made.key, markup=False)


@app.command("list")
def list_(json: Json = False) -> None:
    """All keys but the admin key: those of pagewire.yaml, then those that were made. The keys themselves are not kept.

    Example: pagewire keys list
    """
    with explained():
        found = Gateway().read(KeyList, "keys").keys
    if json:
        print_json(found)
    else:
        columns = ("name", "id", "scopes", "site", "groups", "state", "expires", "made", "by", "used")
        out.print(table(columns, [_line(key) for key in found]))


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Its name or its id, as `list` shows them.")], json: Json = False
) -> None:
    """Take a key away, and with it its sessions in the console. Every gateway refuses it within ten seconds. Exit code
    1 when there is none of that name or id, or when it stands in pagewire.yaml.

    Example: pagewire keys revoke webmaster
    """
    with explained():
        gone = Gateway().send(ListedKey, "DELETE", "keys", key)
    print_json(gone) if json else out.print(f"revoked {gone.name} ({gone.id})", markup=False)


def _line(key: ListedKey) -> tuple[object, ...]:
    made = key.created_at or "in pagewire.yaml"
    what = (key.scopes, key.site or "all", key.groups)
    return (key.name, key.id, *what, key.state, key.expires_at, made, key.created_by, key.last_used_at)
