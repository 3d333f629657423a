"""`pagewire examples`: how a site's questions should be rewritten and answered, added to the running system."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.admin_client import Gateway
from cli.output import Json, Site, explained, out, print_json, table
from schemas.example import ExampleList, WorkedExample

app = typer.Typer(
    no_args_is_help=True, help="Worked examples of how questions are rewritten for the search, and of good answers."
)

Question = Annotated[str, typer.Argument(help="As a visitor asks it.")]
Lang = Annotated[str | None, typer.Option(help="Language of the example; default: the site's first.")]


@app.command()
def add(
    site: Site,
    question: Question,
    output: Annotated[str, typer.Argument(help="As it should be searched; the same words where it needs nothing.")],
    before: Annotated[str, typer.Option(help="The question before, if the example leans on it.")] = "",
    answer: Annotated[str, typer.Option(help="The answer to that question.")] = "",
    lang: Lang = None,
    json: Json = False,
) -> None:
    """Add an example, or replace the one of the same question. The running system uses it within seconds, for questions
    that are like it.

    Example: pagewire examples add town "And with a dog?" "May I bring a dog into the pool?" --before "When is the
    pool open?" --answer "Daily from 9."
    """
    history = [{"question": before, "answer": answer}] if before else []
    _add(site, {"question": question, "output": output, "history": history, "lang": lang}, json)


@app.command("answer")
def add_answer(
    site: Site,
    question: Question,
    output: Annotated[str, typer.Argument(help="A good answer, which cites its sources as [1], [2], ...")],
    source: Annotated[
        list[str] | None, typer.Option(help="What it was written from: a title, a colon, the text. May be repeated.")
    ] = None,
    declines: Annotated[bool, typer.Option("--declines", help="The answer says that no page has it.")] = False,
    lang: Lang = None,
    json: Json = False,
) -> None:
    """Add an example of a good answer, or replace the one to the same question. Without a source the answer counts as
    its own.

    Example: pagewire examples answer town "What is a library card?" "12 euros a year [1]." --source "Library fees: A
    card costs 12 euros a year."
    """
    split = [text.partition(": ") for text in source or ()]
    sources = [{"title": title, "text": text} if colon else {"text": title} for title, colon, text in split]
    given = {"question": question, "output": output, "sources": sources, "declines": declines, "lang": lang}
    _add(site, given | {"kind": "answer"}, json)


def _add(site: str, given: dict[str, Any], json: bool) -> None:
    with explained():
        example = Gateway().send(WorkedExample, "POST", "sites", site, "examples", body=given)
    print_json(example) if json else out.print(f"added {example.id}", markup=False)


@app.command("list")
def list_(site: Site, json: Json = False) -> None:
    """The examples that were added, the oldest first. Those that come with Pagewire are in prompts/examples.

    Example: pagewire examples list town
    """
    with explained():
        found = Gateway().read(ExampleList, "sites", site, "examples").examples
    if json:
        print_json(found)
    else:
        lines = [(e.id, e.kind, e.lang, " / ".join(t.question for t in e.history), e.question, e.output) for e in found]
        out.print(table(("id", "kind", "lang", "before", "question", "rewritten, or answered"), lines))


@app.command()
def remove(site: Site, id: Annotated[str, typer.Argument(help="As `list` shows it.")]) -> None:
    """Remove an example. Exit code 1 when there is none of that id.

    Example: pagewire examples remove town 3q2-Fh0aPz8T
    """
    with explained():
        Gateway().act("DELETE", "sites", site, "examples", id)
