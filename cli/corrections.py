"""`pagewire corrections`: what editors put right about a site's answers, in the running system."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.admin_client import Gateway
from cli.output import NOT_SO, Json, Site, out, print_json, table
from pipelines.evaluate.dataset import corrected_cases, dumped
from schemas.correction import CorrectionHistory, CorrectionList, CorrectionTrial, ListedCorrection, Reach

app = typer.Typer(
    no_args_is_help=True,
    help="Put answers right: the page that is right, the answer itself, what a word means, what is not answered.",
)

Question = Annotated[list[str], typer.Option("--question", "-q", help="As visitors ask; may be repeated.")]
Page = Annotated[str, typer.Argument(help="The page's id, or its address.")]
Text = Annotated[str, typer.Argument(help="What visitors read, as Markdown.")]
Lang = Annotated[str | None, typer.Option(help="Of the questions and of the text; default: the site's first.")]
WhichReach = Annotated[
    str,
    typer.Option(
        "--reach",
        help="Which other questions it answers: `same` none, `alike` those that ask the same in other words, `wide` "
        "those about the same thing.",
    ),
]
AllLanguages = Annotated[
    bool, typer.Option("--all-languages", help="Visitors of every language read the text, as it stands.")
]
Try = Annotated[bool, typer.Option("--try", help="Show which logged questions it would answer, and keep nothing.")]
Note = Annotated[str, typer.Option(help="Why, for the history.")]
Id = Annotated[str, typer.Argument(help="As `list` shows it.")]
ALIKE: Reach = "alike"


@app.command()
def page(
    site: Site,
    page: Page,
    question: Question,
    reach: WhichReach = ALIKE,
    lang: Lang = None,
    tries: Try = False,
    note: Note = "",
    json: Json = False,
) -> None:
    """This page is right: it comes first for a question and for those like it.

    Example: pagewire corrections page town library -q "Where can I borrow a book?"

    Example: pagewire corrections page town https://www.town.example/pool -q "Where can I swim?" --try
    """
    given = {"kind": "page", "page": page, "questions": question, "reach": reach, "lang": lang, "note": note}
    _put(site, given, tries, json)


@app.command()
def answer(
    site: Site,
    page: Page,
    text: Text,
    question: Question,
    reach: WhichReach = ALIKE,
    lang: Lang = None,
    all_languages: AllLanguages = False,
    tries: Try = False,
    note: Note = "",
    json: Json = False,
) -> None:
    """This is the answer: a fixed text, with the page that it is about. It is out of force when the page says something
    else.

    Example: pagewire corrections answer town library "A card costs 12 euros a year." -q "What is a library card?"
    """
    given = {"kind": "answer", "page": page, "text": text, "questions": question, "reach": reach, "lang": lang}
    _put(site, given | {"all_languages": all_languages, "note": note}, tries, json)


@app.command()
def refuse(
    site: Site,
    text: Text,
    question: Question,
    reach: WhichReach = ALIKE,
    lang: Lang = None,
    all_languages: AllLanguages = False,
    tries: Try = False,
    note: Note = "",
    json: Json = False,
) -> None:
    """We do not answer this: visitors read words of your own.

    Example: pagewire corrections refuse town "For legal advice please ask a lawyer." -q "Can I sue the town?"
    """
    given = {"kind": "refusal", "text": text, "questions": question, "reach": reach, "lang": lang, "note": note}
    _put(site, given | {"all_languages": all_languages}, tries, json)


@app.command()
def word(
    site: Site,
    word: Annotated[str, typer.Argument(help="What visitors say.")],
    means: Annotated[str, typer.Argument(help="What it means, in the words of the pages.")],
    both: Annotated[bool, typer.Option("--both", help="Each means the other.")] = False,
    lang: Lang = None,
    tries: Try = False,
    note: Note = "",
    json: Json = False,
) -> None:
    """This word means that: a question with the one is searched by the other as well.

    Example: pagewire corrections word town wallet "lost property"
    """
    given = {"kind": "synonym", "word": word, "means": means, "both": both, "lang": lang, "note": note}
    _put(site, given, tries, json)


def _put(site: str, given: dict[str, Any], tries: bool, json: bool) -> None:
    if not tries:
        made = Gateway().send(ListedCorrection, "POST", "sites", site, "corrections", body=given)
        said = f"put right as {made.id}, in force within ten seconds"
        print_json(made) if json else out.print(said, markup=False)
        return
    trial = Gateway().send(CorrectionTrial, "POST", "sites", site, "corrections:try", body=given)
    if json:
        print_json(trial)
    else:
        out.print(f"would answer {trial.answered} of {trial.logged} different questions of the log", markup=False)
        found = [*((one, "yes") for one in trial.questions), *((one, "no") for one in trial.beyond)]
        lines = [(answered, f"{one.likeness:.2f}", str(one.asked), one.question) for one, answered in found]
        out.print(table(("answered", "likeness#", "asked#", "question"), lines))
        for rival in trial.rivals:
            said = "is nearer and stays the answer to" if rival.wins else "gives way for"
            out.print(f"{rival.id} ({rival.names[0]}) {said}: {rival.question}", markup=False)
        if trial.refused:
            out.print(f"it would be refused: {trial.refused} {' → '.join(trial.circle)}".rstrip(), markup=False)
    if trial.refused:
        raise typer.Exit(NOT_SO)


@app.command("list")
def list_(site: Site, json: Json = False) -> None:
    """The corrections, the newest first: whether they are in force, and how often they were used. Pages for access
    groups are not named here.

    Example: pagewire corrections list town
    """
    found = Gateway().read(CorrectionList, "sites", site, "corrections")
    if json:
        print_json(found)
        return
    lines = [
        (
            one.id,
            one.correction.kind,
            " ".join((one.state, *(f"(not {lang})" for lang in one.gone_in))),
            str(one.used),
            " / ".join(one.correction.names),
            one.correction.text or (one.correction.page.page_id if one.correction.page else ""),
            one.by,
        )
        for one in found.corrections
    ]
    out.print(table(("id", "kind", "state", "used#", "question, or word", "says", "by"), lines))


@app.command()
def remove(site: Site, id: Id, note: Note = "") -> None:
    """Take a correction back. `undo` brings it back. Exit code 1 when it is not in force.

    Example: pagewire corrections remove town 3f9a1c20b7de
    """
    Gateway().act("DELETE", "sites", site, "corrections", id, query={"note": note})


@app.command()
def undo(site: Site, id: Id, note: Note = "", json: Json = False) -> None:
    """Go by what was in force before the last change of a correction; again, by what was before that. Exit code 1 when
    there is nothing before.

    Example: pagewire corrections undo town 3f9a1c20b7de
    """
    rollback = ("sites", site, "corrections", id, "rollback")
    found = Gateway().send(CorrectionHistory, "POST", *rollback, body={"note": note})
    if json:
        print_json(found)
    else:
        state = "not in force" if found.live is None else "as it was before"
        out.print(f"{id} is {state}, as version {found.versions[0].version}", markup=False)


@app.command()
def cases(site: Site) -> None:
    """The cases of evaluations that the corrections in force make, as NDJSON. `pagewire eval check` asks them, too.

    Example: pagewire corrections cases town > corrected.ndjson
    """
    found = Gateway().read(CorrectionList, "sites", site, "corrections")
    typer.echo(dumped(corrected_cases(found), ".ndjson"), nl=False)
