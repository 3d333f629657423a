"""Playground: a question is tried out under up to three settings side by side. What is shown is what
`/v1/admin/.../trials` has.

    GET ─▶ form ─▶ POST ─▶ gateway.operators.trials ─▶ the same form, with what came of it below
                                                    └▶ POST example ─▶ an answer that others shall be like
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
# What can be set in a column: as fields of the form they have its number behind their name.
SET = ("flow", "strategy", "lang", "index", "model", "temperature", "examples", "prompt")  # as a trial calls it
FIELDS = (*SET, "groups", "before", "answered")
MAX_FORM = 1024 * 1024  # bytes: a question, and for each column one before it with its answer, and a prompt
MAX_EXAMPLE_FORM = 256 * 1024  # bytes

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/playground")
async def show_form(
    view: Editor,
    again: Annotated[str, Query(max_length=64, description="Id of a logged question.")] = "",
    kept: Annotated[str, Query(pattern=r"^[\w-]{0,64}$", description="Id of the example that was kept last.")] = "",
) -> Response:
    """The question of the log goes into the form by its id: addresses are logged, and hold no words of visitors."""
    question, column = "", _fresh(view)
    if again:
        found = await view.edge.ports.questions.get(view.site, again)
        if found is None:
            raise Problem(404, "unknown-question", f"the log of site {view.site} has no question {again}")
        question, column = found.outcome.question or "", column | {"lang": found.outcome.lang}
    return await _page(view, question, [column], kept=kept)


@router.post("/playground")
async def try_out(view: Editor) -> Response:
    """Ask, or show the form with a column more or less, or with the site's prompt in them to begin with."""
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
        case "text":  # from the page of the prompt: as it is, beside as it would be
            return await _page(view, question, [_fresh(view), _fresh(view) | {"prompt": form.get("text", "")}])
    try:
        order = TrialOrder.model_validate({"question": question, "trials": [_settings(each, view) for each in columns]})
    except ValidationError as err:
        # Where columns are wrong, they are told to be too few as well.
        wrong = [_place(each["loc"]) for each in err.errors() if each["loc"] != ("trials",)]
        return await _page(view, question, columns, 422, wrong=tuple(dict.fromkeys(wrong)))
    try:
        report = await compared(view.edge, view.request.receive, view.caller, view.site, order)
    except Problem as problem:  # what was typed is not lost
        return await _page(view, question, columns, problem.status, refused=problem.detail)
    return await _page(view, question, columns, report=report)


@router.post("/playground/example")
async def keep_example(view: Editor) -> Response:
    """Keep an answer, as it was edited, as an example of a good one, unless there are others like it."""
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
    if (told := await view.edge.ports.alike.like(example)).like:
        return form_page(view, "answer", form, 409, told=told)  # where it can be meant all the same
    async with view.act("examples.put", example.id):
        await view.edge.ports.examples.put(example)
    return view.to("playground", kept=example.id)


@dataclass(frozen=True)
class Column:
    """What came of one column, as it is shown. `first`: the one that it is compared with."""

    letter: str
    result: TrialResult
    first: TrialResult

    @property
    def differs(self) -> frozenset[str]:
        """The parts that are not as in the first column."""
        mine, others = _told(self.result), _told(self.first)
        return frozenset(name for name in mine.keys() & others.keys() if mine[name] != others[name])

    @property
    def pages(self) -> list[tuple[str, str, str, bool]]:
        """Id, title, language and whether it is cited, of the pages of its sources, the cited ones first."""
        answer = self.result.answer
        return pages_of(answer.sources if answer else ())

    @property
    def expect(self) -> str:
        """What a case of an evaluation would expect, if this is right."""
        return expected(self.result.findings.became if self.result.findings else "answered")

    @cached_property
    def example(self) -> WouldBe | None:
        """The answer as an example; None: it cites nothing, or more than an example can have.

        None also of what was found with groups: examples are shown to models whoever asks.
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
        return WouldBe(answer.rephrased, marked(answer.answer, renumbered), texts)


@dataclass(frozen=True)
class WouldBe:
    """An example that is not kept yet. `sources`: title and text."""

    question: str
    output: str
    sources: list[tuple[str, str]]


def marked(text: str, citations: Iterable[Citation]) -> str:
    """The text with `[n]` behind what source n supports."""
    places: dict[int, list[int]] = {}
    for each in citations:
        if each.n not in (at := places.setdefault(each.end, [])):
            at.append(each.n)
    for end, numbers in sorted(places.items(), reverse=True):
        text = f"{text[:end]} {''.join(f'[{n}]' for n in numbers)}{text[end:]}"
    return text


def _around(source: Source, citations: Iterable[Citation]) -> str:
    """The source's text, or, where an example has no room for it, what stands around its first quoted sentence."""
    if len(source.text) <= MAX_SOURCE:
        return source.text
    quotes = [each.quote for each in citations if each.n == source.n and each.quote]
    found = max(0, source.text.find(quotes[0])) if quotes else 0
    begin = max(0, min(found - MAX_SOURCE // 4, len(source.text) - MAX_SOURCE))
    return source.text[begin : begin + MAX_SOURCE]


def _told(result: TrialResult) -> dict[str, Any]:
    """The parts of a column that can be compared; times never are the same."""
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
    """The marks between which sources stand are other ones for each question."""
    return [(each.role, re.sub(r"(</?source-)\w+", r"\1", each.text)) for each in prompt]


def _fresh(view: View) -> dict[str, str]:
    """A column in which nothing is set: as the site's visitors are answered, with all that the key may read."""
    return dict.fromkeys(FIELDS, "") | {"groups": ", ".join(view.caller.groups)}


def _columns(form: Mapping[str, str]) -> list[dict[str, str]]:
    """Those of the form, one at least."""
    given = form.get("columns", "")
    count = int(given) if re.fullmatch(f"[1-{MAX_TRIALS}]", given, re.ASCII) else 1
    return [{name: form.get(f"{name}{n}", "").strip() for name in FIELDS} for n in range(1, count + 1)]


def _settings(column: Mapping[str, str], view: View) -> dict[str, Any]:
    """A column as TrialSettings want it. An answer to nothing is no history: it is refused as one."""
    given: dict[str, Any] = {name: column[name] for name in SET if column[name]}
    if view.caller.groups:
        given["groups"] = [group.strip() for group in column["groups"].split(",") if group.strip()]
    if column["before"]:
        given["history"] = [{"question": column["before"], "answer": column["answered"]}]
    elif column["answered"]:
        given["history"] = None
    return given


def _place(loc: tuple[int | str, ...]) -> tuple[str, str]:
    """The letter of a column, or "", and the name of what is wrong there."""
    match loc:
        case ("trials", int(n), str(name), *_):
            return LETTERS[n], name
    return "", str(loc[0])


async def _others(view: View) -> dict[str, str]:
    """The site's indexes that are not live, the newest first, with their states; none where nobody can tell."""
    try:
        generations = (await view.edge.ports.rebuilds.list(view.site)).generations
    except Retryable as err:
        log.warning("the indexes of a site cannot be listed", site=view.site, error=str(err))
        return {}
    return {each.index: each.state for each in reversed(generations) if each.state != "live"}


async def _live(view: View) -> Tuned:
    """By which the site's visitors are answered; as pagewire.yaml has it where nobody can tell what was made live."""
    tuning = SiteTuning(view.edge.settings)
    try:
        tuning.take(await view.edge.ports.texts.live(view.site))
    except Retryable as err:
        log.warning("what was made live of a site cannot be read", site=view.site, error=str(err))
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
    site, live = view.edge.settings.site(view.site), await _live(view)
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
        indexes=await _others(view),
        groups=view.caller.groups,
        seconds=view.number(view.edge.settings.question_timeout),
        most=MAX_TRIALS,
        most_examples=MAX_EXAMPLES,
        most_of_prompt=MAX_PROMPT,
    )
