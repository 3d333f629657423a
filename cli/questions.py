"""`pagewire ask` and `search`: what a visitor would get."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.output import NOT_SO, Json, Site, err, out, print_json, table
from cli.wired import configure_logs, connected, load
from infra.running import running_gateway
from pipelines.runtime.errors import Retryable, WrongUse
from schemas.answer import Answered, Citation, Done, Event, Failed, QuestionRephrased, Restart, Token
from schemas.base import language_tag
from schemas.labels import Labels, parse_labels
from text.language import language_of

if TYPE_CHECKING:
    from schemas.http import SearchHit, SearchKind
    from wiring.settings import Settings

STOP_TIMEOUT = 3.0  # seconds
Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label", metavar="KEY:VALUE", help="Only pages with this label, such as kind:form; may be repeated."
    ),
]


def ask(
    site: Site,
    question: Annotated[str, typer.Argument(help="The question.")],
    lang: Annotated[str | None, typer.Option(help="Language to answer in; default: the question's.")] = None,
    label: Label = None,
    json: Json = False,
) -> None:
    """Stream an answer to the terminal; Ctrl-C stops it. Exit code 1 when no page answers it.

    Example: pagewire ask demo "What does a library card cost?"
    """
    _must_say_something("question", question)
    settings, labels = load(), _labels(label)
    answer = asyncio.run(ask_once(settings, site, question, lang, labels, quiet=json))
    if json and answer:
        print_json(answer)
    if answer is None or not any(source.cited for source in answer.sources):
        raise typer.Exit(NOT_SO)


def _must_say_something(name: str, text: str) -> None:
    """Raises: WrongUse."""
    if not text.strip():
        raise WrongUse(f"{name}: it is empty")


def _labels(written: list[str] | None) -> Labels:
    """Raises: WrongUse."""
    try:
        return parse_labels(written or ())
    except ValueError as err:
        raise WrongUse(f"--label: {err}") from None


async def ask_once(
    settings: Settings, site: str, question: str, lang: str | None, labels: Labels | None = None, quiet: bool = False
) -> Answered | None:
    """Ask and print the answer as it comes; None when there was none in time."""
    languages = settings.site(site).languages
    lang = language_tag(lang) if lang else language_of(question, languages)
    answer: Answered | None = None
    try:
        async with (
            asyncio.timeout(settings.question_timeout),
            aclosing(_events(settings, site, question, lang, labels or {})) as told,
        ):
            async for event in told:
                answer = event if isinstance(event, Answered) else answer
                if not quiet:
                    _print_event(event, question)
    except TimeoutError:
        err.print("no answer in time; does `pagewire worker query` run?")
    return answer


async def _events(
    settings: Settings, site: str, question: str, lang: str, labels: Labels
) -> AsyncGenerator[Event, None]:
    """By the gateway that runs here, which has all loaded and is connected; without one straight through Kafka."""
    from adapters.http_gateway import NotAccepted, stream_answer
    from gateway.edge.auth import known_admin_key

    url = running_gateway(settings.home)
    key = known_admin_key(settings) if url is not None else None
    if url is not None and key is not None:
        try:
            async with aclosing(stream_answer(url, site, key, question, lang, labels)) as told:
                async for event in told:
                    yield event
            return
        except NotAccepted:
            pass  # the way that follows reports what is wrong
    async with aclosing(_through_kafka(settings, site, question, lang, labels)) as told:
        async for event in told:
            yield event


async def _through_kafka(
    settings: Settings, site: str, question: str, lang: str, labels: Labels
) -> AsyncGenerator[Event, None]:
    from schemas.query import Question

    at = datetime.now(UTC)
    asked = Question(
        request_id=token_urlsafe(16),
        conversation_id=token_urlsafe(16),
        site=site,
        lang=lang,
        question=question,
        labels=labels,
        asked_at=at,
        deadline=at + timedelta(seconds=settings.question_timeout),
    )
    configure_logs(settings)
    async with connected(settings) as clients:
        asker = await clients.asker()
        try:
            async with aclosing(asker.ask(asked)) as told:
                async for followed in told:
                    yield followed.event.event
        except (asyncio.CancelledError, GeneratorExit):  # its reader is gone, so the model need not go on
            with suppress(Retryable, TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT):
                    await asker.stop(site, asked.request_id)
            raise


def _print_event(event: Event, question: str) -> None:
    match event:
        case Token(text=text):
            out.print(text, end="", markup=False, soft_wrap=True)
        case Citation(n=n):
            out.print(f"[cyan]\\[{n}][/]", end="")
        case QuestionRephrased(question=asked) if asked != question:
            err.print(f"[dim]{escape(asked)}[/]")
        case Restart():
            out.print("\n[dim]the answer starts again[/]")
        case Failed(message=message):
            err.print(f"\n[red]{escape(message)}[/]")
        case Answered(sources=sources, narrower=narrower):
            out.print("\n")
            for source in sources:
                if source.cited:
                    page = f"{escape(source.title)}  [dim]{escape(source.url)}[/]"
                    out.print(f"[cyan]\\[{source.n}][/] {page}", soft_wrap=True)
            for topic in narrower:
                out.print(f"[dim]or:[/] {escape(topic.question)}", soft_wrap=True)
        case Done() | _:
            pass


def search(
    site: Site,
    query: Annotated[str, typer.Argument(help="What to look for.")],
    mode: Annotated[str, typer.Option(help="hybrid, vector or keyword")] = "hybrid",
    size: Annotated[int, typer.Option(min=1, max=100, help="Number of hits.")] = 10,
    label: Label = None,
    json: Json = False,
) -> None:
    """Show the hits for a query. Exit code 1 when there are none.

    Example: pagewire search demo "dog tax" --size 3
    """
    kinds: dict[str, SearchKind] = {"hybrid": "hybrid", "vector": "vector", "keyword": "keyword"}
    if mode not in kinds:
        raise typer.BadParameter(f"{mode!r}: hybrid, vector or keyword", param_hint="--mode")
    _must_say_something("query", query)
    settings, labels = load(), _labels(label)
    settings.site(site)
    hits = asyncio.run(_search(settings, site, query, kinds[mode], size, labels))
    if json:
        print_json({"hits": [hit.model_dump(mode="json") for hit in hits]})
    else:
        lines = [(f"{h.score:.3f}", h.lang, h.title, h.field, " ".join(h.text.split())[:100], h.url) for h in hits]
        out.print(table(("score#", "lang", "title", "field", "text", "url"), lines))
    if not hits:
        raise typer.Exit(NOT_SO)


async def _search(
    settings: Settings, site: str, query: str, kind: SearchKind, size: int, labels: Labels
) -> list[SearchHit]:
    async with connected(settings) as clients:
        return list(await clients.searcher().search(site, query, kind=kind, size=size, labels=labels))
