"""The question gate: which questions without an answer it refuses, and what that costs of those with one.

    bench.gate_sites ─▶ samples ─┬─ pages 0-23, sample site ─▶ fit ─▶ the embedder's profile
                                 └─ all, and pages 24-47 ────▶ table, curve, calibration

XQuAD's questions repeat the words of their paragraphs, which visitors do not: a threshold chosen on it alone refuses a
third of the answerable questions of the bundled sample site. So the shipped one is low enough for that site, too.
Fitting the weights to its few questions as well was tried: at the same false refusals XQuAD lost one to three points.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
import yaml
from numpy.typing import NDArray

from adapters.elastic.bundle import Elastic
from adapters.embedders.registry import make_embedder
from bench.corpora import load
from bench.gate_sites import (
    SAMPLE,
    SAMPLE_SITES,
    Sample,
    collect,
    collect_sample,
    sample_variants,
    sites_of,
    variants,
)
from bench.report import Cross, Data, EmbedderName, Langs, names, report
from bench.servers import home, servers
from bench.website import KeptVectors, publish
from pipelines.evaluate.experiments.page import lines as lines_chart
from pipelines.query.search.ports import Calibration, Scores
from wiring.settings import Settings
from wiring.settings_file import load as load_settings

FALSE_REFUSALS = 0.10  # of answerable questions, at which refusals are reported
CHOSEN_REFUSALS = 0.08  # ... at most, by the shipped threshold, on any site of the fit
SURE = 0.01  # of the answerable questions that the quick score may refuse, and of the others that it may let through
PAGE_OUT_WEIGHT = 0.5  # these questions are easy
FEW = 20  # questions: too few to choose a threshold on
RIDGE = 1.0
QUICK = ("top", "mean", "known", "together", "hit", "rare", "letters")
FULL = (*QUICK, "sentence", "both")
FOREIGN_QUICK = ("top", "mean", "known")
FOREIGN_FULL = (*FOREIGN_QUICK, "sentence")


def main(
    data: Data,
    langs: Langs = "en,de",
    cross: Cross = "de:en",
    fit: Annotated[bool, typer.Option("--fit", help="Fit the weights and print them for the profile.")] = False,
    charts: Annotated[Path | None, typer.Option(help="Folder for the curve and the calibration, as SVG.")] = None,
    embedder: EmbedderName = "lite",
) -> None:
    """Questions that cannot be answered: how many are refused, and how many others with them."""
    pairs = names(langs) + names(cross)
    settings = load_settings()
    kept = settings.home / "bench"
    of_pages = {pair.rpartition(":")[2] for pair in pairs}
    with home([*SAMPLE_SITES, *(site for lang in of_pages for site in sites_of(lang))]) as configured:
        asyncio.run(_run(data, pairs, embedder, fit, charts, kept, configured))


async def _run(
    data: Path, pairs: Sequence[str], spec: str, fit: bool, charts_to: Path | None, kept: Path, settings: Settings
) -> None:
    corpora = {lang: load(data, lang) for pair in pairs for lang in pair.split(":")}
    samples: list[Sample] = []
    sample = sample_variants()
    async with (
        servers(settings) as configured,
        Elastic(str(configured.elasticsearch), configured) as elastic,
        KeptVectors(make_embedder(spec, configured), kept) as model,
    ):
        for lang in sorted({pair.rpartition(":")[2] for pair in pairs}):
            for site, variant in variants(corpora[lang]).items():
                await publish(elastic, site, variant.pages, model, configured)
            await elastic.es.indices.refresh(index=f"pagewire-gate-{lang}-*")
        for site, (pages, _) in sample.items():
            await publish(elastic, site, pages, model, configured)
        samples += await collect_sample(sample, elastic.search, model, configured)
        for pair in pairs:
            asked, _, pages_lang = pair.partition(":")
            samples += await collect(
                pair, corpora[asked], corpora[pages_lang or asked], elastic.search, model, configured
            )
        profile = model.profile.gate
        name = model.fingerprint
    native, other = profile.native, profile.foreign
    if fit:
        native = fitted(_native(samples), QUICK, FULL)
        other = fitted(_foreign(samples), FOREIGN_QUICK, FOREIGN_FULL)
        of_profile = {"native": _rounded(native), "foreign": _rounded(other)}
        print(yaml.safe_dump({name: each and asdict(each) for name, each in of_profile.items()}, sort_keys=False))
    if native is None:
        raise SystemExit(f"{spec} is not calibrated: run with --fit, and put what it prints into its profile")
    lines = list(rows(samples, native, other))
    columns = (
        "questions",
        "pages",
        "at 10 % false: page out",
        "at 10 % false: paragraph out",
        "shipped: false",
        "shipped: page out",
        "shipped: paragraph out",
        "sentences read",
    )
    report("gate", f"share of unanswerable questions refused, {name}", columns, lines)
    if charts_to is not None:
        _draw(samples, native, other, charts_to)


def _native(samples: Iterable[Sample]) -> list[Sample]:
    return [sample for sample in samples if not sample.foreign]


def _foreign(samples: Iterable[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.foreign]


def fitted(samples: Sequence[Sample], quick: Sequence[str], full: Sequence[str]) -> Scores | None:
    """Weights and thresholds from the training pages; None without questions of both kinds."""
    training = [sample for sample in samples if sample.training]
    articles = [sample for sample in training if sample.pair != SAMPLE]
    if len({sample.kind == "answerable" for sample in articles}) < 2:
        return None
    first, second = regression(articles, quick), regression(articles, full)
    hard = [first.score(sample.signals) for sample in training if sample.kind == "paragraph out"]
    no = _least(first, training, SURE)
    return Scores(
        quick=first,
        no=no,
        yes=max(no, float(np.quantile(hard, 1 - SURE))) if hard else 1.0,
        full=second,
        threshold=_least(second, training, CHOSEN_REFUSALS),
    )


def _least(calibration: Calibration, samples: Sequence[Sample], refused: float) -> float:
    """The score that refuses no more than this share of the answerable questions of any site."""
    answerable: dict[str, list[float]] = {}
    for sample in samples:
        if sample.kind == "answerable":
            answerable.setdefault(sample.pair, []).append(calibration.score(sample.signals))
    most = max(answerable.values(), key=len)
    return min(threshold(scores, refused) for scores in answerable.values() if len(scores) >= FEW or scores is most)


def _weights(samples: Sequence[Sample], good: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the samples; they sum to how many there are."""
    kinds = Counter(sample.kind for sample in samples)
    found = np.array(
        [(PAGE_OUT_WEIGHT if sample.kind == "page out" else 1.0) / kinds[sample.kind] for sample in samples]
    )
    each = len(samples) / 2
    weights: NDArray[np.float64] = found * np.where(
        good == 1, each / found[good == 1].sum(), each / found[good == 0].sum()
    )
    return weights


def _rounded(scores: Scores | None) -> Scores | None:
    """As it goes into a profile: more digits mean nothing."""
    if scores is None:
        return None

    def short(each: Calibration) -> Calibration:
        weights = {name: round(value, 3) for name, value in each.weights.items()}
        return Calibration(round(each.bias, 3), weights)

    return Scores(
        short(scores.quick), round(scores.no, 4), round(scores.yes, 4), short(scores.full), round(scores.threshold, 4)
    )


def threshold(answerable: Sequence[float], refused: float) -> float:
    """The score below which this share of answerable questions lies."""
    return float(np.quantile(np.asarray(answerable), refused))


def regression(samples: Sequence[Sample], names: Sequence[str]) -> Calibration:
    """`logistic` of the samples. Both answers weigh the same in all."""
    given = np.array([[sample.signals[name] for name in names] for sample in samples])
    good = np.array([sample.kind == "answerable" for sample in samples], dtype=float)
    return logistic(given, good, names, _weights(samples, good), RIDGE)


def logistic(
    given: NDArray[np.float64],
    good: NDArray[np.float64],
    names: Sequence[str],
    weights: NDArray[np.float64] | None = None,
    ridge: float = 5.0,
) -> Calibration:
    """Logistic regression with a ridge, by Newton's method.

    Args:
        given: a row a sample, a column a signal. good: 1 or 0 a sample. weights: of the samples, as a rule 1.
    """
    mean, spread = given.mean(axis=0), given.std(axis=0) + 1e-9
    scaled = np.c_[(given - mean) / spread, np.ones(len(given))]
    weigh = np.ones(len(given)) if weights is None else weights
    penalty = np.diag([ridge] * len(names) + [0.0])
    beta: NDArray[np.float64] = np.zeros(len(names) + 1)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-scaled @ beta))
        slope = scaled.T @ (weigh * (chance - good)) + penalty @ beta
        curve = (scaled * (weigh * chance * (1 - chance))[:, None]).T @ scaled + penalty
        step = np.linalg.solve(curve, slope)
        beta -= step
        if np.abs(step).max() < 1e-9:
            break
    found = beta[:-1] / spread
    return Calibration(
        float(beta[-1] - found @ mean), {name: float(value) for name, value in zip(names, found, strict=True)}
    )


@dataclass(frozen=True)
class Judged:
    """What the shipped gate makes of a sample: by its quick score alone, or after a look at the sentences."""

    sample: Sample
    score: float  # of the full regression
    refused: bool
    looked: bool


def judged(sample: Sample, native: Scores, other: Scores | None) -> Judged:
    """As pipelines.query.extractive.confidence decides."""
    scores = native if not sample.foreign else (other or native)
    quick, full = scores.quick.score(sample.signals), scores.full.score(sample.signals)
    looked = scores.no <= quick < scores.yes
    refused = full < scores.threshold if looked else quick < scores.yes
    # One scale for both kinds of question: how far above its own threshold.
    odds = np.log(full / (1 - full)) - np.log(scores.threshold / (1 - scores.threshold))
    return Judged(sample, float(odds), refused, looked)


def rows(samples: Sequence[Sample], native: Scores, other: Scores | None) -> Iterable[tuple[object, ...]]:
    """Per pair of languages, for all pages and for those that the weights have not seen."""
    for pair in dict.fromkeys(sample.pair for sample in samples):
        seen = [judged(sample, native, other) for sample in samples if sample.pair == pair]
        for pages, some in (("all", seen), ("24-47", [each for each in seen if not each.sample.training])):
            by_kind = {
                kind: [each for each in some if each.sample.kind == kind]
                for kind in ("answerable", "page out", "paragraph out")
            }
            if not by_kind["answerable"]:
                continue  # of the sample site, which is all training
            least = threshold([each.score for each in by_kind["answerable"]], FALSE_REFUSALS)
            yield (
                pair,
                pages,
                *(_share(each.score < least for each in by_kind[kind]) for kind in ("page out", "paragraph out")),
                *(_share(each.refused for each in by_kind[kind]) for kind in by_kind),
                _share(each.looked for each in by_kind["answerable"]),
            )


def _share(values: Iterable[bool]) -> float | str:
    found = list(values)
    return sum(found) / len(found) if found else "-"


def _draw(samples: Sequence[Sample], native: Scores, other: Scores | None, folder: Path) -> None:
    """The curve, refused against falsely refused, and the calibration, both on pages 24-47."""
    folder.mkdir(parents=True, exist_ok=True)
    unseen = [judged(sample, native, other) for sample in samples if not sample.training]
    curves = {}
    for pair in dict.fromkeys(each.sample.pair for each in unseen):
        own = [each for each in unseen if each.sample.pair == pair]
        good = np.array([each.score for each in own if each.sample.kind == "answerable"])
        for kind in ("page out", "paragraph out"):
            bad = np.array([each.score for each in own if each.sample.kind == kind])
            curves[f"{pair}, {kind}"] = [
                (share, float((bad < np.quantile(good, share)).mean())) for share in np.linspace(0, 0.3, 31)
            ]
    curve = lines_chart(curves, "falsely refused", "refused", (0, 0.3), (0.5, 1))
    (folder / "gate-curve.svg").write_text(curve, encoding="utf-8")
    bins: dict[str, list[tuple[float, float]]] = {}
    for pair in dict.fromkeys(each.sample.pair for each in unseen):
        pick = [s for s in samples if s.pair == pair and not s.training and s.kind != "page out"]
        chance = np.array([_chance(sample, native, other) for sample in pick])
        good = np.array([sample.kind == "answerable" for sample in pick])
        edges = np.quantile(chance, np.linspace(0, 1, 11))
        places = np.clip(np.searchsorted(edges, chance, side="right") - 1, 0, 9)
        bins[pair] = [
            (float(chance[places == n].mean()), float(good[places == n].mean()))
            for n in range(10)
            if (places == n).any()
        ]
    calibration = lines_chart(bins, "score", "answerable", (0, 1), (0, 1), diagonal=True)
    (folder / "gate-calibration.svg").write_text(calibration, encoding="utf-8")


def _chance(sample: Sample, native: Scores, other: Scores | None) -> float:
    scores = native if not sample.foreign else (other or native)
    return scores.full.score(sample.signals)
