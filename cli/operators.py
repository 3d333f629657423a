"""Operators' acts at the running gateway: `pagewire keys`, `chat` (a site's chat, off and on), `audit-log`."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from cli.admin_client import Gateway
from cli.output import Json, Site, out, print_json, table
from cli.wired import point, point_ahead
from schemas.access_key import CreatedKey, KeyList, ListedKey, Scope
from schemas.audit_log import AuditEntry, AuditLogPage
from schemas.chat_switch import ChatList, ChatState

keys_app = typer.Typer(no_args_is_help=True, help="Keys for programs and people, made and revoked without a restart.")


@keys_app.command()
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
    ends = point_ahead("--expires", expires)
    new = {"name": name, "scopes": scope, "site": site, "groups": group or (), "expires_at": ends}
    made = Gateway().send(CreatedKey, "POST", "keys", body=new)
    print_json(made) if json else out.print(made.key, markup=False)


@keys_app.command("list")
def list_keys(json: Json = False) -> None:
    """All keys but the admin key: those of pagewire.yaml, then those that were made. The keys themselves are not kept.

    Example: pagewire keys list
    """
    found = Gateway().read(KeyList, "keys").keys
    if json:
        print_json(found)
    else:
        columns = ("name", "id", "scopes", "site", "groups", "state", "expires", "made", "by", "used")
        out.print(table(columns, [_key_line(key) for key in found]))


@keys_app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Its name or its id, as `list` shows them.")], json: Json = False
) -> None:
    """Take a key away, and with it its sessions in the console. Every gateway refuses it within ten seconds. Exit code
    1 when there is none of that name or id, or when it stands in pagewire.yaml.

    Example: pagewire keys revoke webmaster
    """
    gone = Gateway().send(ListedKey, "DELETE", "keys", key)
    print_json(gone) if json else out.print(f"revoked {gone.name} ({gone.id})", markup=False)


def _key_line(key: ListedKey) -> tuple[object, ...]:
    made = key.created_at or "in pagewire.yaml"
    what = (key.scopes, key.site or "all", key.groups)
    return (key.name, key.id, *what, key.state, key.expires_at, made, key.created_by, key.last_used_at)


chat_app = typer.Typer(no_args_is_help=True, help="The kill switch: whether a site's visitors are answered.")


@chat_app.command()
def off(site: Site, json: Json = False) -> None:
    """Switch a site's chat off: all questions are refused, and answers that are being written end.
    Every gateway and worker follows within ten seconds. It stays off until it is switched on again.

    Example: pagewire chat off town
    """
    _throw(site, json, on=False)


@chat_app.command()
def on(site: Site, json: Json = False) -> None:
    """Switch a site's chat on again. Exit code 1 where pagewire.yaml says that it is off.

    Example: pagewire chat on town
    """
    _throw(site, json, on=True)


@chat_app.command()
def show(
    site: Annotated[str | None, typer.Argument(help="Site, as in pagewire.yaml; default: all.")] = None,
    json: Json = False,
) -> None:
    """Whether the chat is on, since when, and who switched it.

    Example: pagewire chat show
    """
    found = (
        Gateway().read(ChatList, "chat").chats if site is None else (Gateway().read(ChatState, "sites", site, "chat"),)
    )
    if json:
        print_json(found)
    else:
        out.print(table(("site", "chat", "by", "since", "who"), [_chat_line(state) for state in found]))


def _throw(site: str, json: bool, *, on: bool) -> None:
    state = Gateway().send(ChatState, "PUT", "sites", site, "chat", body={"on": on})
    if json:
        print_json(state)
    else:
        out.print(f"the chat of {site} is {'on' if state.on else 'off'}", markup=False)


def _chat_line(state: ChatState) -> tuple[object, ...]:
    return (state.site, "on" if state.on else "off", state.by, state.changed_at, state.changed_by)


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
    compare an index with the change log: `pagewire index audit`.

    Example: pagewire audit-log --since 7d --action keys.revoke
    """
    asked = {"from": point("--since", since), "to": point("--until", until), "who": who, "action": action}
    found = list(Gateway().pages(AuditLogPage, "audit-log", limit=limit, **asked, site=site))
    shown = AuditLogPage(entries=tuple(entry for page in found for entry in page.entries), next=found[-1].next)
    if json:
        print_json(shown)
        return
    columns = ("at", "who", "by", "action", "site", "target", "outcome", "trace")
    out.print(table(columns, [_entry_line(entry) for entry in shown.entries]))
    if shown.next is not None:
        out.print(f"\nthe newest {len(shown.entries):,}; more with --limit", markup=False)


def _entry_line(entry: AuditEntry) -> tuple[object, ...]:
    at = f"{entry.at.astimezone():%Y-%m-%d %H:%M:%S}"
    result = entry.code or entry.outcome
    by = f"{entry.via}: {entry.client}" if entry.client else entry.via
    return (at, entry.who, by, entry.action, entry.site, entry.target, result, entry.trace_id)
