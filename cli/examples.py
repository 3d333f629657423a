"""`pagewire examples`: how a site's questions should be rewritten, added to the running system."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Annotated, TypeVar

import typer

from adapters.elastic.examples import ElasticExamples
from cli.output import NOT_SO, complain, explained, out, print_json, rows, table
from schemas.base import language_tag
from schemas.example import RephraseExample
from schemas.query import Turn
from wiring.clients import Clients
from wiring.settings_file import load

app = typer.Typer(no_args_is_help=True, help="Worked examples of how questions are rewritten for the search.")

Value = TypeVar("Value")
Site = Annotated[str, typer.Argument(help="Site, as in pagewire.yaml.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def add(
    site: Site,
    question: Annotated[str, typer.Argument(help="As a visitor asks it.")],
    output: Annotated[str, typer.Argument(help="As it should be searched; the same words where it needs nothing.")],
    before: Annotated[str, typer.Option(help="The question before, if the example leans on it.")] = "",
    answer: Annotated[str, typer.Option(help="The answer to that question.")] = "",
    lang: Annotated[str | None, typer.Option(help="Language of the example; default: the site's first.")] = None,
    json: Json = False,
) -> None:
    """Add an example. The running system uses it within seconds, for questions that are like it.

    Example: pagewire examples add town "And with a dog?" "May I bring a dog into the pool?" --before "When is the
    pool open?" --answer "Daily from 9."
    """

    async def put(store: ElasticExamples, languages: tuple[str, ...]) -> RephraseExample:
        example = RephraseExample(
            id=token_urlsafe(9),
            site=site,
            lang=language_tag(lang or languages[0]),
            history=(Turn(question=before, answer=answer),) if before else (),
            question=question,
            output=output,
            added_at=datetime.now(UTC),
        )
        await store.put(example)
        return example

    example = _with_store(site, put)
    print_json(example) if json else out.print(f"added {example.id}", markup=False)


@app.command("list")
def list_(site: Site, json: Json = False) -> None:
    """The examples that were added, the oldest first. Those that come with Pagewire are in prompts/examples.

    Example: pagewire examples list town
    """
    found = _with_store(site, lambda store, _: store.of_site(site))
    if json:
        print_json([example.model_dump(mode="json") for example in found])
    else:
        lines = [(e.id, e.lang, " / ".join(t.question for t in e.history), e.question, e.output) for e in found]
        out.print(rows(table("id", "lang", "before", "question", "rewritten"), lines))


@app.command()
def remove(site: Site, id: Annotated[str, typer.Argument(help="As `list` shows it.")]) -> None:
    """Remove an example. Exit code 1 when there is none of that id.

    Example: pagewire examples remove town 3q2-Fh0aPz8T
    """
    if not _with_store(site, lambda store, _: store.remove(site, id)):
        complain(f"site {site} has no example {id}")
        raise typer.Exit(NOT_SO)


def _with_store(site: str, work: Callable[[ElasticExamples, tuple[str, ...]], Awaitable[Value]]) -> Value:
    async def run() -> Value:
        settings = load()
        languages = settings.site(site).languages
        async with Clients(settings) as clients:
            return await work(ElasticExamples(clients.elastic.es, clients.elastic.indexes), languages)

    with explained():
        return asyncio.run(run())
