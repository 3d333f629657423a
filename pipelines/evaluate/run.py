"""A run: every case of a dataset asked of a site; questions, answers and verdicts kept in a file, line by line.

dataset ─▶ asked, a few side by side ─▶ NAME.ndjson: dataset, site and arm, then a line for each case ─▶ figures
                     judged, where a judge is asked (evaluator.py) ─▶ a line for each verdict ─┘

All figures follow from the file: a run that was killed goes on where it was and ends with the same report, and a run of
last month can be compared with one of today.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.evaluate.dataset import Case, Dataset, Frozen, of_site
from pipelines.evaluate.measures import Observed
from pipelines.runtime.errors import WrongUse


class VerdictKey(NamedTuple):
    """A case, a measure and its judge. Another model, or another wording of a prompt, is another judge."""

    case: str
    measure: str
    judge: str
    prompts: str
    repeat: int


class CaseVerdict(Frozen):
    """A judge's word on one answer, or why there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    case: str
    measure: str
    judge: str  # the model
    prompts: str  # their fingerprints
    repeat: int = 0  # the same asked again, to see whether the judge agrees with itself
    figures: Mapping[str, float] = {}  # each between 0 and 1
    reason: str = ""
    unjudged: str | None = None  # the code of what went wrong; then there are no figures

    @property
    def key(self) -> VerdictKey:
        return VerdictKey(self.case, self.measure, self.judge, self.prompts, self.repeat)


class BadRun(WrongUse):
    """A file is no run, or one of something else."""

    code = "bad-run"


# Asks a running system a case, after the visitor's questions before it. Raises: Retryable: it is away; Permanent: it
# refuses us.
AskCase = Callable[[Case], Awaitable[Observed]]


class RunHead(BaseModel):
    """Dataset, site and arm of a run: its first line."""

    dataset: str
    version: str = ""
    fingerprint: str
    site: str
    url: str
    begun: datetime
    cases: int
    left_out: int = 0  # of the dataset's cases for this site: they hang on a time of their own
    under: Mapping[str, Any] = {}  # of an experiment: what each question brought along
    system: str = ""  # of an experiment: fingerprint of what else its answers hang on

    @classmethod
    def of(cls, dataset: Dataset, site: str, url: str, begun: datetime) -> Self:
        """Of a run that begins now."""
        cases = of_site(dataset.cases, site)
        askable = sum(case.now is None for case in cases)
        return cls(
            dataset=dataset.name,
            version=dataset.version,
            fingerprint=dataset.fingerprint,
            site=site,
            url=url,
            begun=begun,
            cases=askable,
            left_out=len(cases) - askable,
        )

    def same(self, other: RunHead) -> bool:
        """Whether both are about the same questions to the same system, whenever they were asked."""
        about = {"begun", "dataset", "version"}
        return self.model_dump(exclude=about) == other.model_dump(exclude=about)


def askable(dataset: Dataset, site: str) -> list[Case]:
    """The cases of a site that can be asked at any time."""
    return [case for case in of_site(dataset.cases, site) if case.now is None]


class _Judged(Frozen, extra="forbid"):
    """A line with a verdict. Of the same verdict the last line counts."""

    verdict: CaseVerdict


class Run:
    """What came of each case, and what judges said of it, in memory and in its file."""

    def __init__(self, path: Path, head: RunHead, lines: Sequence[Observed | CaseVerdict] = ()) -> None:
        self.path = path
        self.head = head
        self.observed = {line.case: line for line in lines if isinstance(line, Observed)}
        self.verdicts = {line.key: line for line in lines if isinstance(line, CaseVerdict)}
        self._file: IO[str] | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises: BadRun."""
        try:
            lines = list(_whole_lines(path.read_bytes()))
            if not lines:
                raise BadRun(f"{path}: it is empty")
            return cls(path, RunHead.model_validate_json(lines[0]), [_line(one) for one in lines[1:]])
        except (OSError, ValidationError) as err:
            raise BadRun(f"{path}: cannot be read as a run: {type(err).__name__}") from err

    @classmethod
    def begin(cls, path: Path, head: RunHead) -> Self:
        """A new file, or one of the same run that goes on. Raises: BadRun: it is of another."""
        if path.exists() and path.stat().st_size:
            found = cls.read(path)
            if not found.head.same(head):
                raise BadRun(
                    f"{path}: a run of {found.head.dataset} ({found.head.fingerprint}, {found.head.cases} cases) on "
                    f"{found.head.site} at {found.head.url}, not of this ({head.cases} cases); name another file"
                )
            return found
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head.model_dump_json() + "\n", encoding="utf-8")
        return cls(path, head)

    @classmethod
    def in_memory(cls, head: RunHead) -> Self:
        """A run without a file."""
        return cls(Path(os.devnull), head)

    def check(self, dataset: Dataset) -> None:
        """Raises: BadRun: it is of another dataset."""
        if self.head.fingerprint != dataset.fingerprint:
            raise BadRun(f"{self.path}: of {self.head.dataset} ({self.head.fingerprint}), not of {dataset.label}")

    @property
    def complete(self) -> bool:
        return len(self.observed) >= self.head.cases

    def add(self, observed: Observed) -> None:
        """Keep what came of a case: it is in the file when this returns."""
        self._write(observed)
        self.observed[observed.case] = observed

    def keep(self, verdict: CaseVerdict) -> None:
        """Keep what a judge said: it is in the file when this returns."""
        self._write(_Judged(verdict=verdict))
        self.verdicts[verdict.key] = verdict

    def _write(self, line: BaseModel) -> None:
        assert self._file, "within `with run:`"
        self._file.write(line.model_dump_json() + "\n")
        self._file.flush()

    def __enter__(self) -> Self:
        written = self.path.read_bytes()
        whole = b"".join(line + b"\n" for line in _whole_lines(written))
        if whole != written:  # the line that was being written when it was killed
            self.path.write_bytes(whole)
        self._file = self.path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()


def _line(written: bytes) -> Observed | CaseVerdict:
    judged = written.startswith(b'{"verdict":')
    return _Judged.model_validate_json(written).verdict if judged else Observed.model_validate_json(written)


def _whole_lines(written: bytes) -> Iterator[bytes]:
    """Those that were written to their end."""
    *lines, last = written.split(b"\n")
    yield from lines
    if last:
        try:
            json.loads(last)
        except ValueError:
            return
        yield last
