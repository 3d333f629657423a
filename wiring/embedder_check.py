"""What an embedder still needs on this machine: checks in the order in which to mend what they find.

setting ─▶ package ─▶ weights ─▶ load ─▶ vector ─▶ the live index of each site
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from time import perf_counter
from typing import Literal

import numpy as np

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import LiveIndex
from adapters.embedders.base import Embedder, NoVectors
from adapters.embedders.registry import ModelMismatch, make_embedder, require_same
from pipelines.runtime.embedder import embedded_query, is_sparse
from pipelines.runtime.errors import PagewireError, Retryable
from pipelines.runtime.indexes import IndexInfo, IndexUnfit
from wiring import preflight
from wiring.addresses import addresses
from wiring.settings import Settings

CHECKS = ("setting", "package", "weights", "load", "vector", "sites")
QUESTION = "When does the swimming pool open?"
SPARSE_BYTES = 9  # measured on 3,072 chunks with 81 tokens each in the middle
TOLERANCE = 0.001  # of a vector's length
SHOWN = 5  # problems of sites
State = Literal["fine", "problem", "unknown"]


@dataclass(frozen=True)
class Check:
    name: str
    state: State
    said: str  # what was found; or what is missing, and the command that mends it


@dataclass(frozen=True)
class SiteModel:
    """The vectors of a site's live index, compared with those of the embedder."""

    site: str
    index: str
    embedder: str
    model: str  # fingerprint
    dims: int
    problem: str = ""


@dataclass
class EmbedderReport:
    """Ends with the first problem: each check needs those before it."""

    embedder: str
    model: str | None = None  # fingerprint
    dims: int | None = None
    device: str | None = None
    seconds: float | None = None  # for one question
    checks: list[Check] = field(default_factory=list)
    sites: list[SiteModel] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        return all(check.state != "problem" for check in self.checks)

    def add(self, said: str, state: State = "fine") -> None:
        """The result of the next check."""
        self.checks.append(Check(CHECKS[len(self.checks)], state, said))


async def check_embedder(settings: Settings, spec: str) -> EmbedderReport:
    """Check the embedder that `spec` names (settings.embedder), up to its first problem. Loads and closes it."""
    report = EmbedderReport(spec)
    try:
        embedder = make_embedder(spec, settings)
        report.add(f"PAGEWIRE_EMBEDDER={spec}")
        found = [f"{name} {version(name)}" for name in preflight.package("embedder", spec)]
        report.add(", ".join(found) or "none besides Pagewire's own")
        report.add(str(preflight.weights("embedder", spec, settings) or "with the server"))
        try:
            await _load(report, embedder)
            await _embed(report, embedder)
            await _compare(report, embedder, settings)
        finally:
            await embedder.aclose()
    except PagewireError as err:
        report.add(str(err), "problem")
    except Exception as err:  # noqa: BLE001 - the errors of runtimes share no base class, and are what to report
        report.add(f"{type(err).__name__}: {err}", "problem")
    return report


async def _load(report: EmbedderReport, embedder: Embedder) -> None:
    start = perf_counter()
    await embedder.start()
    report.model, report.dims, report.device = embedder.fingerprint, embedder.dims, embedder.device
    report.add(f"{report.model} on {report.device}, in {perf_counter() - start:.1f} s")


async def _embed(report: EmbedderReport, embedder: Embedder) -> None:
    """Raises: NoVectors: it is no vector of length 1."""
    await embedder.query(QUESTION)  # the first one prepares the runtime
    start = perf_counter()
    made, sparse = await embedded_query(embedder, QUESTION)
    report.seconds = perf_counter() - start
    length = float(np.linalg.norm(made))
    if made.shape != (embedder.dims,) or not abs(length - 1) <= TOLERANCE:
        raise NoVectors(f"{report.embedder} answered with a vector of shape {made.shape} and length {length:.3f}")
    costs = f"about {SPARSE_BYTES} bytes of the index for each token of a chunk"
    weights = f"sparse beside it with {len(sparse)} tokens ({costs}), " if is_sparse(embedder.fingerprint) else ""
    took = f"{report.seconds * 1000:,.0f} ms for a question"
    report.add(f"{embedder.dims} dimensions, length {length:.3f}, {weights}{took}")


async def _compare(report: EmbedderReport, embedder: Embedder, settings: Settings) -> None:
    try:
        known = settings if settings.elasticsearch else addresses(settings)
        async with Elastic(known.elasticsearch or "", known) as elastic:
            await elastic.ping()
            live = await elastic.indexes.survey(settings.sites)
    except Retryable as err:
        report.add(f"not compared with the sites' indexes: {err}", "unknown")
    else:
        compare(report, embedder, live)


def compare(report: EmbedderReport, embedder: Embedder, live: Mapping[str, LiveIndex]) -> None:
    """Add the last check. An index of another embedder is no problem: its site is searched with that one."""
    for site, survey in live.items():
        if isinstance(info := survey.info, IndexInfo):
            problem = ""
            if info.embedder == report.embedder:
                try:
                    require_same(embedder, info)
                except ModelMismatch as err:
                    problem = str(err)
            report.sites.append(SiteModel(site, info.name, info.embedder, info.model, info.dims, problem))
    if problems := [each.problem for each in report.sites if each.problem]:
        more = [f"{len(problems) - SHOWN:,} more; `--json` has them"] if len(problems) > SHOWN else []
        report.add("\n".join([*problems[:SHOWN], *more]), "problem")
        return
    others = [each for each in report.sites if each.embedder != report.embedder]
    said = [f"live indexes with its vectors: {len(report.sites) - len(others):,}"]
    if others:
        names = ", ".join(sorted({each.embedder for each in others}))
        chosen = "--all" if others[1:] else others[0].site
        rebuild = f"`pagewire index rebuild {chosen} --from chunks --embedder {report.embedder} --promote`"
        said.append(f"with those of {names}, which goes on until {rebuild}: {len(others):,}")
    if unfit := sum(isinstance(each.info, IndexUnfit) for each in live.values()):
        said.append(f"unfit, see `pagewire status`: {unfit:,}")
    report.add("; ".join(said))
