"""Trials: a question is asked several times at once, each time with other settings, and the answers are compared.

    TrialOrder ─▶ a Question each, marked as a trial ─▶ query.requests ... answer.events ─▶ TrialReport

They go through the same topics and stages as visitors' questions. But no conversation stores them, and without
`logged_as` no stage of any version logs their outcome, so they are in no list, count or report of gaps.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from time import perf_counter

import structlog
from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from gateway.chat.chat import new_question, stopped, whole
from gateway.chat.sse import PeekableEvents
from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, LanguageHint, MayEdit, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem, message, problem_of
from pipelines.conversations.ask import Followed
from pipelines.evaluate.wording import most_agreed
from pipelines.query.live.site_texts import site_texts
from pipelines.query.live.tuning import NO_RERANKER
from pipelines.query.settings import QuerySettings
from pipelines.runtime.errors import PagewireError
from prompts.loader import PromptError, load, tried
from schemas.answer import Answered, Token, TrialFindings, Usage
from schemas.query import Question, Trial, Tuned
from schemas.rebuild import Rebuild
from schemas.text_version import SiteTexts
from schemas.trial import TrialChoices, TrialError, TrialOrder, TrialReport, TrialResult, TrialSettings
from wiring.settings import Settings

log = structlog.get_logger(__name__)

BODY_LIMIT = 2 * 1024 * 1024  # bytes, as of a visitor's question; here with its history and prompts
MAX_DETAIL = 1_000  # characters of a complaint about a prompt
LIVE, CANDIDATE = "live", "candidate"
FINGERPRINT = 12  # hexadecimal digits
MODEL = {"openai_base_url", "llm_model", "llm_fallback_model"}
# Settings of all sites that answers depend on.
HANGS_ON = {*QuerySettings.model_fields, *MODEL, "llm_thinking_tokens"} - {"sites"}

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.post("/trials", openapi_extra=request_body(TrialOrder))
async def try_out(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> TrialReport:
    """Ask a question with up to three settings at once, and see the steps of each answer.

    Returns after the last answer; a failure is reported in its place. Trials are not visitors' questions: no
    conversation stores them, and they are not logged or counted. Their tokens count for `daily_tokens`.
    """
    order = parse(TrialOrder, await read_body(request, BODY_LIMIT))
    return await compared(edge, request.receive, caller, site, order)


@router.get("/trials")
async def list_choices(site: str, caller: MayEdit, edge: TheEdge) -> TrialChoices:
    """What a trial of the site may name, and a fingerprint of everything else that its answers depend on.

    Files are read as this gateway finds them now; workers read them when they start. Later changes go before
    them.
    """
    settings = edge.settings
    texts = await asyncio.to_thread(site_texts, settings, site, await edge.ports.texts.live(site))
    generations = (await edge.ports.rebuilds.list(site)).generations
    live = next((each for each in generations if each.state == "live"), None)
    stages = (await edge.ports.status.status([site])).stages
    known = settings.models(site)
    return TrialChoices(
        site=site,
        models=known,
        reranker=settings.reranker != NO_RERANKER,
        live=live.index if live else None,
        indexes=tuple(each.index for each in generations),
        hits=settings.flow_of(site, texts.settings).hits,
        strategy=(texts.settings.strategy or settings.site(site).strategy) if known else "quote",
        system=_fingerprint(settings, site, texts, live),
        ingest_lag=sum(stage.lag for stage in stages if stage.lane is not None),
    )


def _fingerprint(settings: Settings, site: str, texts: SiteTexts, live: Rebuild | None) -> str:
    """Of everything that answers depend on, except the pages, which change all day."""
    answers = settings.model_dump(mode="json", include=HANGS_ON)
    index = live and [live.index, live.model, live.chunker]
    said = [version("pagewire"), answers, settings.site(site).model_dump(mode="json"), texts.dumped(), index]
    return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:FINGERPRINT]


async def compared(edge: Edge, receive: Receive, caller: Caller, site: str, order: TrialOrder) -> TrialReport:
    """Ask them all.

    Args:
        receive: of the request that waits for them.

    Raises:
        Problem: 403: the chat is off, or groups that the caller does not have; 404: no such index; 422: a model that is
            not configured, or an invalid prompt. No question was asked.
        Retryable: the indexes cannot be looked up.
    """
    with edge.admit(site, caller, LanguageHint(order.question)):
        indexes = await _indexes(edge, site, order.trials)
        questions = [_question(edge, caller, site, order.question, each, indexes) for each in order.trials]
        asked = zip(questions, order.trials, strict=True)
        log.info("a question is tried out", site=site, key=caller.name, trials=len(questions))
        results = await asyncio.gather(*(_sampled(edge, receive, caller, *each) for each in asked))
    return TrialReport(site=site, question=order.question, trials=tuple(results))


async def _sampled(
    edge: Edge, receive: Receive, caller: Caller, question: Question, settings: TrialSettings
) -> TrialResult:
    """The sample that agrees most with the others; its tokens are the sum of all."""
    ids = [question.request_id, *(edge.ports.answers.new_id() for _ in range((settings.samples or 1) - 1))]
    samples = [question.model_copy(update={"request_id": id}) for id in ids]
    results = await asyncio.gather(*(_tried(edge, receive, caller, each, settings) for each in samples))
    answered = [each for each in results if each.answer is not None]
    if len(answered) < 2:
        return (answered or results)[0]
    agreed = answered[most_agreed([each.answer.answer for each in answered if each.answer], question.lang)]
    assert agreed.answer is not None
    usages = [each.answer.usage for each in answered if each.answer]
    usage = Usage(
        prompt_tokens=sum(each.prompt_tokens for each in usages),
        completion_tokens=sum(each.completion_tokens for each in usages),
    )
    answer = agreed.answer.model_copy(update={"usage": usage})
    return agreed.model_copy(update={"answer": answer, "ms": max(each.ms for each in results)})


async def _indexes(edge: Edge, site: str, trials: Iterable[TrialSettings]) -> Mapping[str | None, str | None]:
    """The name of each index in the trials; None: the live one. Raises: Problem: 404."""
    names: dict[str | None, str | None] = {None: None, LIVE: None}
    wanted = dict.fromkeys(each.index for each in trials if each.index not in names)
    if not wanted:
        return names
    generations = (await edge.ports.rebuilds.list(site)).generations
    names |= {each.index: None if each.state == "live" else each.index for each in generations}
    verified = [each.index for each in generations if each.state == "verified"]
    if verified:
        names[CANDIDATE] = verified[-1]
    elif CANDIDATE in wanted:
        raise Problem(404, "no-such-index", f"site {site} has no candidate: no rebuilt index was verified since")
    if missing := [name for name in wanted if name not in names]:
        there = ", ".join(each.index for each in generations) or "(none)"
        raise Problem(404, "no-such-index", f"site {site} has no index {missing[0]}; there are: {there}")
    return names


def _question(
    edge: Edge, caller: Caller, site: str, text: str, wanted: TrialSettings, indexes: Mapping[str | None, str | None]
) -> Question:
    if wanted.groups is not None and not set(wanted.groups) <= set(caller.groups):
        raise Problem(403, "forbidden", "groups: only those of the key can be tried out")
    known = edge.settings.models(site)
    if wanted.model is not None and wanted.model not in known:
        raise Problem(422, "invalid", f"model: none of those that pagewire.yaml names: {', '.join(known) or '(none)'}")
    if wanted.prompt is not None:
        if not known:
            raise Problem(422, "invalid", "prompt: no model is configured that would read it")
        try:
            tried(wanted.prompt, load(wanted.prompt_name))
        except PromptError as err:
            raise Problem(422, "invalid", f"prompt: {err}"[:MAX_DETAIL]) from None
    if wanted.rerank and edge.settings.reranker == NO_RERANKER:
        raise Problem(422, "invalid", "rerank: no reranker is configured that would read the hits")
    named = {name: getattr(wanted, name) for name in Trial.model_fields}
    trial = Trial(**named | {"index": indexes[wanted.index]})
    groups = caller.groups if wanted.groups is None else wanted.groups
    question = new_question(edge, caller, site, text, wanted.lang)
    changed = {"trial": trial, "groups": groups, "history": wanted.history, "tuned": Tuned() if wanted.filed else None}
    return question.model_copy(update=changed)


@dataclass
class _Seen:
    """What an answer's events contain besides the answer."""

    began: float
    first_token_ms: float | None = None
    findings: TrialFindings | None = None

    @property
    def ms(self) -> float:
        return (perf_counter() - self.began) * 1000

    async def watch(self, events: AsyncGenerator[Followed, None]) -> AsyncGenerator[Followed, None]:
        async with aclosing(events):
            async for followed in events:
                match followed.event.event:
                    case Token() if self.first_token_ms is None:
                        self.first_token_ms = self.ms
                    case Answered(trial=findings):
                        self.findings = findings
                yield followed


async def _tried(
    edge: Edge, receive: Receive, caller: Caller, question: Question, settings: TrialSettings
) -> TrialResult:
    deadline = asyncio.get_running_loop().time() + edge.settings.question_timeout
    seen = _Seen(perf_counter())
    answer, error = None, None
    try:
        events = PeekableEvents(seen.watch(edge.ports.answers.ask(question)))
        answer = await whole(events, question, deadline, receive, partial(stopped, edge, caller, question))
    except ClientDisconnect:
        error = TrialError(code="client-left", message="nobody waits for it any more")
    except Problem as problem:
        error = TrialError(code=problem.code, message=problem.detail)
    except PagewireError as err:
        found = problem_of(err)
        error = TrialError(code=found.code, message=found.detail)
    except Exception:
        log.exception("a trial broke off")
        error = TrialError(code="internal", message=message("internal", question.lang))
    if answer and question.trial and (seen.findings and seen.findings.index) != question.trial.index:
        answer = None
        error = TrialError(code="index-not-tried", message="a worker of an earlier version searched the live index")
    return TrialResult(
        settings=settings,
        lang=question.lang,
        answer=answer,
        findings=seen.findings if answer else None,
        error=error,
        first_token_ms=seen.first_token_ms if answer else None,
        ms=seen.ms,
    )
