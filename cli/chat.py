"""`pagewire chat`: a site's chat, switched off and on while the system runs."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from cli.output import explained, out, print_json, table
from cli.user import noted, user
from cli.wired import connected, logged
from schemas.chat_switch import ChatState

app = typer.Typer(no_args_is_help=True, help="The kill switch: whether a site's visitors are answered.")

SiteName = Annotated[str, typer.Argument(help="Site, as in pagewire.yaml.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def off(site: SiteName, json: Json = False) -> None:
    """Switch a site's chat off: no question is answered any more, whoever asks, and answers that are being written end.
    Every gateway and worker follows within ten seconds. It stays off until it is switched on again.

    Example: pagewire chat off town
    """
    _throw(site, json, on=False)


@app.command()
def on(site: SiteName, json: Json = False) -> None:
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
        settings = logged()
        names = list(settings.sites) if site is None else [site]
        for name in names:
            settings.site(name)

        async def read() -> list[ChatState]:
            async with connected(settings) as clients:
                switches = await clients.chat_switches()
                return [switches.state(name) for name in names]

        found = asyncio.run(read())
    if json:
        print_json([state.model_dump(mode="json") for state in found])
    else:
        out.print(table(("site", "chat", "by", "since", "who"), [_line(state) for state in found]))


def _throw(site: str, json: bool, *, on: bool) -> None:
    with explained():
        settings = logged()
        settings.site(site)

        async def work() -> ChatState:
            async with connected(settings) as clients, noted(clients, "chat.on" if on else "chat.off", site):
                return await (await clients.chat_switches()).throw(site, on=on, by=user())

        state = asyncio.run(work())
    if json:
        print_json(state.model_dump(mode="json"))
    else:
        out.print(f"the chat of {site} is {'on' if state.on else 'off'}", markup=False)


def _line(state: ChatState) -> tuple[object, ...]:
    since = f"{state.changed_at.astimezone():%Y-%m-%d %H:%M}" if state.changed_at else ""
    return (state.site, "on" if state.on else "off", state.by, since, state.changed_by)
