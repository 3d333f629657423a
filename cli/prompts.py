"""`pagewire prompts`: texts and settings of a site, proposed, put to use through the gate, taken back.

propose FILE ─▶ a candidate, not live ─▶ promote: asked beside what is live ─▶ not worse? ─▶ live ─▶ rollback
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from cli.admin_client import Gateway
from cli.evaluation_print import AtOnce, Deciding, Margin, Url, comparison_told, known_measures, print_evaluation
from cli.output import NOT_SO, Json, Site, out, print_json, table
from cli.prompt_gate import PromptGate
from pipelines.evaluate.dataset import load_dataset
from pipelines.evaluate.evaluator import AT_ONCE
from pipelines.evaluate.non_inferiority import MARGIN
from pipelines.query.live.text_changes import BadText, UnknownText
from pipelines.query.live.tuning import ANSWERS, read_settings
from pipelines.runtime.errors import WrongUse
from prompts.loader import PromptError
from schemas.text_version import ChangedText, SiteTexts, TextHistory, TextVersion
from schemas.trial import TrialPrompt, TrialSettings

app = typer.Typer(
    no_args_is_help=True,
    help="Prompts, settings, replies, contact and glossary of a site, changed while it runs, with a history.",
)

Text = Annotated[
    str,
    typer.Argument(
        help="A prompt (`answer`), or `settings/answers`, `canned/NAME.LANG`, `errors/CODE.LANG`, `contact/LANG`, "
        "`glossary/terms`."
    ),
]
Note = Annotated[str, typer.Option(help="Why, for the history.")]
PROMPTS: dict[str, TrialPrompt] = {f"prompts/{name}": name for name in get_args(TrialPrompt)}  # that trials can try
SETTINGS = f"settings/{ANSWERS}"


@app.command("list")
def list_(site: Site, json: Json = False) -> None:
    """The site's prompts, and its other texts that were changed while it ran: which version is live, its author
    and its time.

    Example: pagewire prompts list town
    """
    found = Gateway().read(SiteTexts, "sites", site, "texts")
    live = {f"{one.kind}/{one.name}": one for one in found.changed}
    filed = {f"prompts/{one.name}": "file" if one.own else "ours" for one in found.prompts}
    listed = [_listed(name, live.get(name), filed.get(name, "")) for name in {**filed, **live}]
    if json:
        print_json(listed)
    else:
        columns = ("text", "from", "version#", "by", "since", "note")
        out.print(table(columns, [list(one.values()) for one in listed]))


@app.command()
def show(
    site: Site,
    text: Text = "answer",
    version: Annotated[int | None, typer.Option(help="Print the words of this version, or 0: of the files.")] = None,
    json: Json = False,
) -> None:
    """What a text says now, and its versions; with --version the words of one of them. Exit code 1 when there is no
    such text or version.

    Example: pagewire prompts show town answer

    Example: pagewire prompts show town answer --version 3 > answer.yaml
    """
    found = Gateway().read(TextHistory, *_path(site, text))
    said = found.text if version is None else _words(found, version)
    if json:
        print_json(found if version is None else {"version": version, "text": said})
        return
    out.print(said or "", markup=False, soft_wrap=True)
    if version is None:
        lines = [(one.version, _state(one, found.live), one.by, one.at, one.note) for one in found.versions]
        out.print()
        out.print(table(("version#", "state", "by", "at", "note"), lines))


@app.command()
def propose(
    site: Site,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Of a prompt a file like ours; else text.")],
    text: Text = "answer",
    note: Note = "",
    json: Json = False,
) -> None:
    """Keep a candidate, which is not live: to be tried in the console, and promoted. It is held to what the site's
    files are; exit code 1 when it does not fit.

    Example: pagewire prompts propose town answer.yaml --note "names the office"

    Example: pagewire prompts propose town settings.yaml settings/answers --note "fewer hits"

    Example: pagewire prompts propose town glossary.yaml glossary/terms
    """
    new = {"text": _read(file), "note": note}
    made = Gateway().send(TextVersion, "POST", *_path(site, text), "candidates", body=new)
    print_json(made) if json else out.print(f"kept as version {made.version}, not live", markup=False)


@app.command()
def promote(
    site: Site,
    text: Text = "answer",
    version: Annotated[int | None, typer.Option(help="Which; default: the newest candidate.")] = None,
    dataset: Annotated[
        Path | None, typer.Option(exists=True, help="Dataset that the candidate and what is live are asked.")
    ] = None,
    without_gate: Annotated[bool, typer.Option("--without-gate", help="Ask nothing: put it to use.")] = False,
    margin: Margin = MARGIN,
    measure: Deciding = None,
    at_once: AtOnce = AT_ONCE,
    url: Url = None,
    key: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="File with a key of the scopes chat and edit; default: the admin key."
        ),
    ] = None,
    note: Note = "",
    json: Json = False,
) -> None:
    """Put a version to use. A prompt that answers hang on, and the settings, go through the gate: every case of the
    dataset is answered as it is and with the candidate, in trials, and only a candidate that is shown not to be worse
    goes live. Exit code 1 when it is not, or when somebody else has changed the text meanwhile; other texts take
    --without-gate.

    Stopped or killed, the same command goes on where it was.

    Example: pagewire prompts promote town answer --dataset town.yaml

    Example: pagewire prompts promote town rephrase --dataset follow-ups.yaml

    Example: pagewire prompts promote town settings/answers --dataset town.yaml

    Example: pagewire prompts promote town contact/en --without-gate

    Example: pagewire prompts promote town glossary/terms --without-gate
    """
    path = _path(site, text)
    name = "/".join(path[-2:])
    if without_gate == (dataset is not None):
        raise WrongUse("name a --dataset for the gate, or say --without-gate: one of them")
    if dataset is not None and name not in (*PROMPTS, SETTINGS):
        known = ", ".join((*PROMPTS.values(), SETTINGS))
        raise WrongUse(f"{name}: only {known} can be tried beside the live one; say --without-gate")
    measures = known_measures(measure)
    gateway, gate = Gateway(url, key), None
    if dataset is not None:
        gate = PromptGate(
            load_dataset(dataset),
            site,
            gateway.url,
            gateway.key,
            gateway.settings.home / "evaluations" / "prompts",
            margin,
            measures,
            at_once,
            lambda text: _trial(name, text),
        )
    told = _promote(gateway, path, version, gate, note)
    report, comparison = told.pop("evaluation"), told.pop("comparison")
    if json:
        print_json(
            told | {"evaluation": report and report.model_dump(mode="json"), "comparison": comparison_told(comparison)}
        )
    elif report is not None:
        print_evaluation(report, comparison, ())
    promoted = told["promoted"]
    if not json:
        said = f"version {promoted['version']} is live" if promoted else "not promoted: what was live stays live"
        out.print(said, markup=False)
    if not promoted:
        raise typer.Exit(NOT_SO)


@app.command()
def rollback(site: Site, text: Text = "answer", note: Note = "", json: Json = False) -> None:
    """Say again what was said before what is live now; again, what was said before that. Exit code 1 when there is
    nothing before.

    Example: pagewire prompts rollback town answer --note "too long"
    """
    made = Gateway().send(TextVersion, "POST", *_path(site, text), "rollback", body={"note": note})
    if json:
        print_json(made)
    else:
        what = f"the words of version {made.of} are" if made.text is not None else "the site's files are"
        out.print(f"{what} live again, as version {made.version}", markup=False)


def _promote(
    gateway: Gateway, path: tuple[str, ...], version: int | None, gate: PromptGate | None, note: str
) -> dict[str, Any]:
    """What was compared, and the version that is live by it. Raises: UnknownText; as `PromptGate.compare`."""
    found = gateway.read(TextHistory, *path)
    newest = next((one.version for one in found.versions if one.candidate), None)
    number = version if version is not None else newest
    name = f"{found.kind}/{found.name}"
    if number is None:
        raise UnknownText(f"{name} of site {found.site} has no candidate; `pagewire prompts propose` makes one")
    words = _words(found, number)
    told: dict[str, Any] = {"site": found.site, "text": name, "candidate": number, "promoted": None, "runs": []}
    told |= {"evaluation": None, "comparison": None}
    change: dict[str, Any] = {"note": note}
    if gate is not None:
        report, comparison, paths = asyncio.run(gate.compare(found.text or "", words or ""))
        told |= {"evaluation": report, "comparison": comparison, "runs": [str(path) for path in paths]}
        if not comparison.passed:
            return told
        change["over"] = found.live  # what was compared with must still be live
    made = gateway.send(TextVersion, "POST", *path, "versions", str(number), "restore", body=change)
    return told | {"promoted": made.model_dump(mode="json")}


def _trial(name: str, text: str | None) -> TrialSettings:
    """How a candidate is asked; None: what is live. Raises: BadText: settings that no release since can read."""
    if name in PROMPTS:
        return TrialSettings(prompt=text, prompt_name=PROMPTS[name])
    if text is None:
        return TrialSettings()
    try:
        # What the candidate does not say is as pagewire.yaml has it, not as what it is to take the place of.
        return TrialSettings(**read_settings(text).model_dump(), filed=True)
    except PromptError as err:
        raise BadText(str(err)) from None


def _words(found: TextHistory, version: int) -> str | None:
    """Raises: UnknownText."""
    if version == 0:
        return found.filed
    for one in found.versions:
        if one.version == version:
            return found.filed if one.text is None else one.text
    raise UnknownText(f"{found.kind}/{found.name} of site {found.site} has no version {version}")


def _path(site: str, text: str) -> tuple[str, ...]:
    """Where the gateway has a text."""
    kind, slash, name = text.partition("/")
    return ("sites", site, "texts", kind, name) if slash else ("sites", site, "texts", "prompts", text)


def _read(file: Path) -> str:
    """Raises: WrongUse."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{file}: cannot be read: {error}") from error


def _listed(name: str, live: ChangedText | None, filed: str) -> dict[str, Any]:
    if live is None:
        return {"text": name, "from": filed, "version": None, "by": "", "at": None, "note": ""}
    return {"text": name, "from": "live", "version": live.version, "by": live.by, "at": live.at, "note": live.note}


def _state(one: TextVersion, live: int) -> str:
    if one.version == live:
        return "live"
    return "candidate" if one.candidate else "files" if one.text is None else ""
