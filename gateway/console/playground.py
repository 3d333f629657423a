"""Playground: try a question under up to three settings side by side. The data is that of `/v1/admin/.../trials`.

GET ─▶ form ─▶ POST ─▶ gateway.operators.trials ─▶ the form with the results below
                                                └▶ POST example ─▶ an example of a good answer
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, get_args

import structlog
from fastapi import APIRouter, Query, Response
from pydantic import ValidationError

from gateway.console.evaluations import expected, pages_of
from gateway.console.examples import form_page
from gateway.console.view import ConsoleRoute, Editor, View, form_of
from gateway.edge.bodies import validated
from gateway.edge.problems import Problem
from gateway.operators.texts import changes
from gateway.operators.trials import compared
from pipelines.query.live.text_changes import Place
from pipelines.query.live.tuning import SiteTuning
from pipelines.runtime.errors import Retryable
from schemas.answer import Citation
from schemas.example import MAX_SOURCE, MAX_SOURCES, NewExample, WorkedExample
from schemas.flow import FlowName
from schemas.query import MAX_PROMPT, Source, Tuned
from schemas.trial import MAX_EXAMPLES, MAX_TRIALS, TrialOrder, TrialReport, TrialResult, TrialStrategy

log = structlog.get_logger(__name__)

LETTERS = "ABC"
STRATEGIES = get_args(TrialStrategy)
# The settings of a column, named as in TrialSettings. A form's field has the column's number behind the name.
SET = ("flow", "strategy", "lang", "index", "model", "temperature", "examples", "prompt")
FIELDS = (*SET, "groups", "before", "answered")
MAX_FORM = 1024 * 1024  # bytes: a question, and for each column an earlier question, its answer and a prompt
MAX_EXAMPLE_FORM = 256 * 1024  # bytes

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/playground")
async def show_form(
    view: Editor,
    again: Annotated[str, Query(max_length=64, description="Id of a logged question.")] = "",
    kept: Annotated[str, Query(pattern=r"^[\w-]{0,64}$", description="Id of the example that was kept last.")] = "",
) -> Response:
    """`again` names a logged question by its id: addresses are logged, so they must not hold words of visitors."""
    question, column = "", _fresh(view)
    if again:
        found = await view.edge.ports.questions.get(view.site, again)
        if found is None:
            raise Problem(404, "unknown-question", f"the log of site {view.site} has no question {again}")
        question, column = found.outcome.question or "", column | {"lang": found.outcome.lang}
    return await _page(view, question, [column], kept=kept)


@router.post("/playground")
async def try_out(view: Editor) -> Response:
    """Ask; or show the form with a column more or less, or with the site's prompt filled in."""
    form = await form_of(view, limit=MAX_FORM)
    question, columns = form.get("question", ""), _columns(form)
    match form.get("do"):
        case "more":
            return await _page(view, question, [*columns, columns[-1]][:MAX_TRIALS])
        case "fewer":
            return await _page(view, question, columns[:-1] or columns)
        case "prompt":
            own = (await changes(view.edge).history(Place(view.site, "prompts", "answer"))).text or ""
            return await _page(view, question, [each | {"prompt": each["prompt"] or own} for each in columns])
        case "text":  # from the screen of a prompt: the prompt in force beside the edited one
            return await _page(view, question, [_fresh(view), _fresh(view) | {"prompt": form.get("text", "")}])
    try:
        order = TrialOrder.model_validate({"question": question, "trials": [_settings(each, view) for each in columns]})
    except ValidationError as err:
        # Where a column is invalid, pydantic also reports `trials` as too short.
        wrong = [_place(each["loc"]) for each in err.errors() if each["loc"] != ("trials",)]
        return await _page(view, question, columns, 422, wrong=tuple(dict.fromkeys(wrong)))
    try:
        report = await compared(view.edge, view.request.receive, view.caller, view.site, order)
    except Problem as problem:
        return await _page(view, question, columns, problem.status, refused=problem.detail)
    return await _page(view, question, columns, report=report)


@router.post("/playground/example")
async def keep_example(view: Editor) -> Response:
    """Add the edited answer as an example. Where there are similar ones, show the form in which editors confirm."""
    form = await form_of(view, limit=MAX_EXAMPLE_FORM)
    sources = [
        {"title": form.get(f"title{n}", ""), "text": form[f"text{n}"]}
        for n in range(1, MAX_SOURCES + 1)
        if f"text{n}" in form
    ]
    given = {name: form.get(name, "") for name in ("lang", "question", "output")}
    new = validated(NewExample, {"kind": "answer", "sources": sources, **given})
    site = view.edge.settings.site(view.site)
    example = WorkedExample.of(new, view.site, site.languages[0], datetime.now(UTC))
    if (similar := await view.edge.ports.alike.like(example)).like:
        return form_page(view, "answer", form, 409, similar=similar)
    async with view.act("examples.put", example.id):
        await view.edge.ports.examples.put(example)
    return view.to("playground", kept=example.id)


@dataclass(frozen=True)
class Column:
    """The result of one column as shown. `first`: the result of column A, with which it is compared."""

    letter: str
    result: TrialResult
    first: TrialResult

    @property
    def differs(self) -> frozenset[str]:
        """The parts that differ from column A."""
        mine, others = _comparable(self.result), _comparable(self.first)
        return frozenset(name for name in mine.keys() & others.keys() if mine[name] != others[name])

    @property
    def pages(self) -> list[tuple[str, str, str, bool]]:
        """(id, title, language, cited) of each page of its sources, cited pages first."""
        answer = self.result.answer
        return pages_of(answer.sources if answer else ())

    @property
    def expect(self) -> str:
        """The `expect` of an evaluation's case for which this result is right."""
        return expected(self.result.findings.became if self.result.findings else "answered")

    @cached_property
    def example(self) -> ExampleDraft | None:
        """The answer as an example. None if it cites no passage, or more than an example can have.

        None also where the search used groups: models see examples for every visitor's question.
        """
        if self.result.settings.groups:
            return None
        answer = self.result.answer
        cited = [source for source in answer.sources if source.cited] if answer else []
        if answer is None or not 1 <= len(cited) <= MAX_SOURCES:
            return None
        numbers = {source.n: n for n, source in enumerate(cited, start=1)}
        citations = [each for each in answer.citations if each.n in numbers]
        renumbered = [each.model_copy(update={"n": numbers[each.n]}) for each in citations]
        texts = [(source.title, _around(source, citations)) for source in cited]
        return ExampleDraft(answer.rephrased, marked(answer.answer, renumbered), texts)


@dataclass(frozen=True)
class ExampleDraft:
    """An example that is not saved yet. `sources`: (title, text)."""

    question: str
    output: str
    sources: list[tuple[str, str]]


def marked(text: str, citations: Iterable[Citation]) -> str:
    """The text with `[n]` behind each part that source n supports."""
    places: dict[int, list[int]] = {}
    for each in citations:
        if each.n not in (at := places.setdefault(each.end, [])):
            at.append(each.n)
    for end, numbers in sorted(places.items(), reverse=True):
        text = f"{text[:end]} {''.join(f'[{n}]' for n in numbers)}{text[end:]}"
    return text


def _around(source: Source, citations: Iterable[Citation]) -> str:
    """The source's text. Where it is longer than an example may have, the part around its first quoted sentence."""
    if len(source.text) <= MAX_SOURCE:
        return source.text
    quotes = [each.quote for each in citations if each.n == source.n and each.quote]
    found = max(0, source.text.find(quotes[0])) if quotes else 0
    begin = max(0, min(found - MAX_SOURCE // 4, len(source.text) - MAX_SOURCE))
    return source.text[begin : begin + MAX_SOURCE]


def _comparable(result: TrialResult) -> dict[str, Any]:
    """The parts of a result to compare. Times are left out, since they always differ."""
    answer, findings = result.answer, result.findings
    if answer is None:
        return {}
    return {
        "rephrased": (answer.rephrased, answer.mode),
        "answer": (answer.answer, [(each.n, each.start, each.end) for each in answer.citations]),
        "sureness": (answer.grade, findings and findings.gate, findings and findings.sure),
        "sources": [(hit.page_id, hit.lang, hit.ord, hit.score, hit.cosine, hit.cited) for hit in answer.sources],
        "prompt": _without_fences(findings.prompt) if findings else None,
    }


def _without_fences(prompt: Iterable[Any]) -> list[tuple[str, str]]:
    """(role, text) of each message, without the random ids of the fences around sources."""
    return [(each.role, re.sub(r"(</?source-)\w+", r"\1", each.text)) for each in prompt]


def _fresh(view: View) -> dict[str, str]:
    """A column without settings of its own: the site's settings, and all groups of the key."""
    return dict.fromkeys(FIELDS, "") | {"groups": ", ".join(view.caller.groups)}


def _columns(form: Mapping[str, str]) -> list[dict[str, str]]:
    """The form's columns, at least one."""
    given = form.get("columns", "")
    count = int(given) if re.fullmatch(f"[1-{MAX_TRIALS}]", given, re.ASCII) else 1
    return [{name: form.get(f"{name}{n}", "").strip() for name in FIELDS} for n in range(1, count + 1)]


def _settings(column: Mapping[str, str], view: View) -> dict[str, Any]:
    """A column as input of TrialSettings. An earlier answer without its question makes `history` None, which fails."""
    given: dict[str, Any] = {name: column[name] for name in SET if column[name]}
    if view.caller.groups:
        given["groups"] = [group.strip() for group in column["groups"].split(",") if group.strip()]
    if column["before"]:
        given["history"] = [{"question": column["before"], "answer": column["answered"]}]
    elif column["answered"]:
        given["history"] = None
    return given


def _place(loc: tuple[int | str, ...]) -> tuple[str, str]:
    """(the letter of a column or "", the name of the wrong field)."""
    match loc:
        case ("trials", int(n), str(name), *_):
            return LETTERS[n], name
    return "", str(loc[0])


async def _other_indexes(view: View) -> dict[str, str]:
    """The site's indexes that are not live with their states, the newest first; none while Elasticsearch is away."""
    try:
        generations = (await view.edge.ports.rebuilds.list(view.site)).generations
    except Retryable as err:
        log.warning("the indexes of a site cannot be listed", site=view.site, error=str(err))
        return {}
    return {each.index: each.state for each in reversed(generations) if each.state != "live"}


async def _live_settings(view: View) -> Tuned:
    """The settings in force; those of pagewire.yaml where the promoted ones cannot be read."""
    tuning = SiteTuning(view.edge.settings)
    try:
        tuning.take(await view.edge.ports.texts.live(view.site))
    except Retryable as err:
        log.warning("the live settings of a site cannot be read", site=view.site, error=str(err))
    return tuning.of(view.site) or Tuned()


async def _page(
    view: View,
    question: str,
    columns: list[dict[str, str]],
    status: int = 200,
    *,
    report: TrialReport | None = None,
    wrong: tuple[tuple[str, str], ...] = (),
    refused: str = "",
    kept: str = "",
) -> Response:
    site, live = view.edge.settings.site(view.site), await _live_settings(view)
    results = report.trials if report else ()
    return view.page(
        "playground.html",
        status,
        question=question,
        columns=list(zip(LETTERS, columns, strict=False)),
        shown=[Column(letter, each, results[0]) for letter, each in zip(LETTERS, results, strict=False)],
        wrong=wrong,
        refused=refused,
        kept=kept,
        flows=get_args(FlowName),
        flow=view.edge.settings.flow_of(view.site, live).flow,
        strategies=STRATEGIES,
        strategy=live.strategy or site.strategy,
        languages_of_site=dict.fromkeys([*site.languages, *(each["lang"] for each in columns if each["lang"])]),
        models=view.edge.settings.models(view.site),
        indexes=await _other_indexes(view),
        groups=view.caller.groups,
        seconds=view.number(view.edge.settings.question_timeout),
        most=MAX_TRIALS,
        most_examples=MAX_EXAMPLES,
        most_of_prompt=MAX_PROMPT,
    )
