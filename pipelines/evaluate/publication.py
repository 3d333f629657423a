"""What is published of a run: its report, and of each case what people need to see what went wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pipelines.evaluate.dataset import Case, Dataset
from pipelines.evaluate.evaluation import Evaluation
from pipelines.evaluate.judged.report import Judged
from pipelines.evaluate.measures import Observed, measured
from pipelines.evaluate.run import BadRun, Run, askable
from pipelines.runtime.errors import Permanent
from schemas.evaluation import (
    MAX_RESULTS,
    MAX_SHOWN,
    CaseResult,
    JudgedRunFigure,
    ListedRun,
    NewRun,
    PublishedRun,
    RunFigure,
)

MAX_RUNS = 500  # of a site, that are listed


class UnknownRun(Permanent):
    """The site has no published run of this id: it was taken away, or is too old."""

    code = "unknown-run"


class RunStore(Protocol):
    """Keeps published runs (adapters.elastic.evaluations). All raise Retryable."""

    async def put(self, run: PublishedRun) -> None:
        """Keep it, in place of the one of its id; readers see it at once."""
        ...

    async def of_site(self, site: str, dataset: str | None = None) -> Sequence[ListedRun]:
        """The newest first, at most `MAX_RUNS`; of one dataset, by its name, or all."""
        ...

    async def get(self, site: str, id: str) -> PublishedRun | None: ...

    async def remove(self, site: str, id: str) -> bool:
        """False: there is none."""
        ...

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Delete those that began earlier than their site's time. Returns: how many, by site."""
        ...


ID = 16  # hexadecimal digits
CUT = "…"


def publication(dataset: Dataset, run: Run, report: Evaluation, note: str = "", judged: Judged | None = None) -> NewRun:
    """Of a run and its report. Long answers are cut.

    Args:
        judged: what a judge says of it; None: none was asked.

    Raises:
        BadRun: it has more cases than can be published.
    """
    cases = [case for case in askable(dataset, run.head.site) if case.id in run.observed]
    if len(cases) > MAX_RESULTS:
        raise BadRun(f"{run.path}: {len(cases):,} cases; at most {MAX_RESULTS:,} can be published")
    head = run.head
    return NewRun(
        dataset=head.dataset,
        version=head.version,
        fingerprint=head.fingerprint,
        url=head.url,
        begun=head.begun,
        cases=head.cases,
        asked=report.asked,
        groups={
            group: {name: RunFigure.model_validate(figure.model_dump()) for name, figure in figures.items()}
            for group, figures in report.groups.items()
        },
        judge=judged.judge if judged else "",
        judged=_figures(judged) if judged else {},
        failed=dict(report.failed),
        latency_ms=dict(report.latency_ms),
        tokens=dict(report.tokens),
        note=note,
        results=tuple(_result(case, run.observed[case.id]) for case in cases),
    )


def _figures(judged: Judged) -> dict[str, dict[str, JudgedRunFigure]]:
    """By group and name, of all measures."""
    found: dict[str, dict[str, JudgedRunFigure]] = {}
    for part in judged.parts:
        for name, group in part.groups.items():
            for figure, told in group.figures.items():
                said = told.model_dump() | {"judged": group.judged, "of": group.of}
                found.setdefault(name, {})[figure] = JudgedRunFigure.model_validate(said)
    return found


def _result(case: Case, observed: Observed) -> CaseResult:
    return CaseResult(
        case=case.id,
        question=case.question,
        lang=case.lang,
        tags=case.tags,
        expect=case.expect,
        pages=case.pages,
        reference=_cut(case.answers[0] if case.answers else ""),
        answer=_cut(observed.answer),
        cited=observed.cited,
        failed=observed.failed,
        figures=measured(case, observed),
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - len(CUT)] + CUT


def published(new: NewRun, site: str, by: str, at: datetime) -> PublishedRun:
    """A run as it is kept. The same run has the same id, however often it is published."""
    said = f"{site} {new.fingerprint} {new.url} {new.begun.isoformat()}"
    told = {"id": hashlib.sha256(said.encode()).hexdigest()[:ID], "site": site, "published_by": by, "published_at": at}
    return PublishedRun.model_validate(new.model_dump() | told)
