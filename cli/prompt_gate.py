"""The gate of prompts and settings: every case of a dataset is asked as it is and with a candidate, and compared.

dataset ─▶ trials (adapters.http_site) ─▶ a run of each ─▶ not worse by the margin? ─▶ promoted

Runs are kept in PAGEWIRE_HOME, beside those of `pagewire eval run`: what was stopped goes on with the same command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from pydantic import SecretStr

from cli.evaluate import asked_with_a_bar, kept_at
from cli.output import err
from pipelines.evaluate.comparison import Comparison
from pipelines.evaluate.dataset import BadDataset, Dataset
from pipelines.evaluate.evaluation import Evaluation, against, evaluate
from pipelines.evaluate.non_inferiority import fewest_cases
from pipelines.evaluate.run import BadRun, Run, RunHead, askable
from pipelines.runtime.errors import Permanent
from schemas.trial import TrialSettings


class TooFewCases(Permanent):
    """The dataset is too small to show anything."""

    code = "too-few-cases"


@dataclass(frozen=True)
class PromptGate:
    """What a candidate is held to, and where it is asked."""

    cases: Dataset
    site: str
    url: str
    key: SecretStr
    folder: Path  # of runs
    margin: float
    measures: Sequence[str]
    at_once: int
    trial: Callable[[str | None], TrialSettings]  # of a candidate's text; None: as the site has it

    async def compare(self, live: str, candidate: str) -> tuple[Evaluation, Comparison, list[Path]]:
        """The candidate's figures, what the gate says, and the files of both runs.

        Args:
            live: the text that is live; it is asked as the site has it.

        Raises: BadDataset, TooFewCases: nothing was asked. Retryable, WrongUse.
        """
        head = RunHead.of(self.cases, self.site, self.url, datetime.now(UTC))
        if not askable(self.cases, self.site):
            raise BadDataset(f"{self.cases.label}: no case for site {self.site} that can be asked at any time")
        if head.cases < (needed := fewest_cases(self.margin)):
            raise TooFewCases(f"{head.cases} cases: {needed} needed for a margin of {self.margin:g}; nothing can pass")
        pair = self.folder / "-".join(sha256(text.encode()).hexdigest()[:12] for text in (live, candidate))
        before, after = pair / "live", pair / "candidate"
        # A live run that is whole is used on until a candidate's is, too: a day later both are asked anew.
        path = kept_at(before, head, lambda run: not run.complete or not _met(after, run))
        first = await self._asked(path, head, None)
        second = await self._asked(kept_at(after, head), head, candidate)
        comparison = against(self.cases, first, second, self.margin, self.measures)
        return evaluate(self.cases, second), comparison, [first.path, second.path]

    async def _asked(self, path: Path, head: RunHead, text: str | None) -> Run:
        from adapters.http_site import HttpTrials

        run = Run.begin(path, head)
        err.print(f"asking {'as it is' if text is None else 'with the candidate'}", markup=False)
        async with HttpTrials(head.url, head.site, self.key) as system:
            asked = system.under(self.trial(text))
            await asked_with_a_bar(self.cases, head, asked, run, self.at_once)
        return run


def _met(folder: Path, live: Run) -> bool:
    """Whether a candidate's run has been asked to its end since the live one began."""
    for path in folder.glob("*.ndjson"):
        try:
            run = Run.read(path)
        except BadRun:
            continue
        if run.complete and run.head.begun >= live.head.begun:
            return True
    return False
