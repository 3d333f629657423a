"""`pagewire demo`: the sample site, imported into a running system and asked one question."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from more_itertools import partition

from cli.content import import_documents
from cli.output import NOT_SO, complain, err, out
from cli.questions import ask_once
from cli.up import System, running
from cli.wired import at_stop, configure_logs, load
from infra.supervise import ChildFailed
from pipelines.runtime.errors import SettingsError
from schemas.page import PageDocument
from sites.content import page_documents

if TYPE_CHECKING:
    from wiring.settings import Settings

SITE = "demo"
PAGES = Path(__file__).resolve().parents[1] / "sites" / SITE
QUESTION = ("What does a library card cost for adults?", "en")
ANSWERED_BY = "library"  # imported before the others


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="Stop after the answer; exit code 0 if it cites a page.")
    ] = False,
) -> None:
    """Start everything, import the sample site, ask one question, serve until Ctrl-C.

    Example: pagewire demo --once
    """
    settings = load()
    if SITE not in settings.sites:
        raise SettingsError(f"sites: the demo needs a site called {SITE!r}")
    if "log_level" not in settings.model_fields_set:
        settings = settings.model_copy(update={"log_level": "warning"})  # a demo shows itself, not its workings
    configure_logs(settings)
    try:
        cited = asyncio.run(_demo(settings, once))
    except ChildFailed as error:
        complain(error)
        raise typer.Exit(error.code) from None
    if not cited:
        raise typer.Exit(NOT_SO)


async def _demo(settings: Settings, once: bool) -> bool:
    """Whether the answer cites a page; not, when it is stopped before."""
    stop = asyncio.Event()
    async with running(settings) as system:
        # From here on Ctrl-C ends the demo in order; before, it interrupts the start.
        at_stop(stop.set)
        showing = asyncio.create_task(_show(system, once))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((showing, stopped), return_when=asyncio.FIRST_COMPLETED)
        if showing.done() and not showing.exception() and not once:
            out.print(f"\nready {system.url}")
            out.print("[dim]Ctrl-C stops everything[/]")
            await stopped
        err.print("stopping ...")
        for task in (showing, stopped):
            task.cancel()
        with suppress(asyncio.CancelledError):
            return await showing
    return False


async def _show(system: System, once: bool) -> bool:
    """Import one page and ask, then import the others unless it is asked once; whether the answer cites a page."""
    rest, first = partition(lambda page: page.id == ANSWERED_BY, sample_pages(system.url))
    await import_documents(system.settings, SITE, first)
    question, lang = QUESTION
    out.print(f"\n[bold]{question}[/]\n")
    answer = await ask_once(system.settings, SITE, question, lang)
    if not once:
        _print_urls(system)
        out.print("\n[dim]the other pages become searchable meanwhile[/]")
        await import_documents(system.settings, SITE, rest)
    return answer is not None and any(source.cited for source in answer.sources)


def sample_pages(base_url: str) -> Iterator[PageDocument]:
    """The sample site's pages, linked to where the gateway shows them."""
    return (PageDocument.model_validate(document) for document in page_documents(PAGES, f"{base_url}/site"))


def _print_urls(system: System) -> None:
    out.print(f"\nsite with chat  {system.url}/site/")
    out.print(f"chat            {system.url}/")
    from gateway.edge.auth import admin_key

    _, path = admin_key(system.settings)
    out.print(f"console         {system.url}/console/" + (f" (its key is in {path})" if path else ""))
