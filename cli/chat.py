"""`pagewire chat`: a site's chat, switched off and on while the system runs."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.admin_client import Gateway
from cli.output import Json, Site, explained, out, print_json, table
from schemas.chat_switch import ChatList, ChatState

app = typer.Typer(no_args_is_help=True, help="The kill switch: whether a site's visitors are answered.")


@app.command()
def off(site: Site, json: Json = False) -> None:
    """Switch a site's chat off: all questions are refused, and answers that are being written end.
    Every gateway and worker follows within ten seconds. It stays off until it is switched on again.

    Example: pagewire chat off town
    """
    _throw(site, json, on=False)


@app.command()
def on(site: Site, json: Json = False) -> None:
    """Switch a site's chat on again. Exit code 1 where pagewire.yaml says that it is off.

    Example: pagewire chat on town
    """
    _throw(site, json, on=True)


@app.command()
def show(
    site: Annotated[str | None, typer.Argument(help="Site, as in pagewire.yaml; default: all.")] = None,
    json: Json = False,
) -> None:
    """Whether the chat is on, since when, and who switched it.

    Example: pagewire chat show
    """
    with explained():
        found = (
            Gateway().read(ChatList, "chat").chats
            if site is None
            else (Gateway().read(ChatState, "sites", site, "chat"),)
        )
    if json:
        print_json(found)
    else:
        out.print(table(("site", "chat", "by", "since", "who"), [_line(state) for state in found]))


def _throw(site: str, json: bool, *, on: bool) -> None:
    with explained():
        state = Gateway().send(ChatState, "PUT", "sites", site, "chat", body={"on": on})
    if json:
        print_json(state)
    else:
        out.print(f"the chat of {site} is {'on' if state.on else 'off'}", markup=False)


def _line(state: ChatState) -> tuple[object, ...]:
    return (state.site, "on" if state.on else "off", state.by, state.changed_at, state.changed_by)
