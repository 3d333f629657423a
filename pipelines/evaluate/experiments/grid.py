"""A grid: what an experiment varies, and the arms that follow from it.

GRID.yaml ─▶ base, and each of `vary` with each other ─▶ kept by `only`, less `except` ─▶ arms; those alike are one

Each arm is what a question brings along as a trial (schemas.trial), so an experiment needs nothing but a running
system. What is in an index cannot come along with a question: an index is made for it, and named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from pydantic import AliasChoices, Field, ValidationError, field_validator

from pipelines.evaluate.dataset import Frozen
from pipelines.evaluate.measures import MEASURES
from pipelines.runtime.errors import WrongUse
from prompts.strict_yaml import load_safe
from schemas.base import SiteId, problems
from schemas.flow import FlowParts
from schemas.trial import TrialChoices, TrialSettings

MAX_ARMS = 200
BASE = "base"
DIFFERENCE = 0.05  # of the figure's scale 0..1: smaller ones are not worth a change
# What may be varied, as a grid calls it, and as a trial does.
SETTINGS = {
    **{name: name for name in FlowParts.model_fields},
    "strategy": "strategy",
    "prompt": "prompt",
    "model": "model",
    "temperature": "temperature",
    "shots": "examples",
    "order": "order",
    "shot_choice": "shot_choice",
    "short": "short",
    "self_consistency": "samples",
    "think": "think",
    "rerank": "rerank",
    "sure_threshold": "sure_threshold",
    "index": "index",
}
OF_A_MODEL = (
    *("prompt", "model", "temperature", "examples", "order", "shot_choice", "short", "samples", "think"),
    "sentence_check",
)
# What a question cannot bring along, and the command that makes an index of it.
IN_AN_INDEX = {
    "chunk_size": "pagewire index rebuild SITE --from changes --chunk-size 800",
    "chunk_mode": "pagewire index rebuild SITE --from changes --chunk-mode fixed",
    "embedder": "pagewire index rebuild SITE --from chunks --embedder NAME",
}

Rule = Mapping[str, Any]


class BadGrid(WrongUse):
    """A file cannot be used as a grid."""

    code = "bad-grid"


@dataclass(frozen=True)
class Arm:
    """The settings that a dataset is asked under."""

    name: str
    varied: Mapping[str, Any]  # as the grid writes them: a prompt by its file
    settings: TrialSettings


class Grid(Frozen, extra="forbid"):
    """What an experiment varies."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    site: SiteId
    dataset: Path  # from the grid's folder
    base: Mapping[str, Any] = {}  # what all arms are compared with; what it does not say is as the site has it
    vary: Mapping[str, tuple[Any, ...]]
    only: tuple[Rule, ...] = ()  # an arm is kept that one of these is true of
    without: tuple[Rule, ...] = Field(default=(), validation_alias=AliasChoices("except", "without"))
    measures: tuple[str, ...] = Field(default=("right",), min_length=1)  # that decide
    difference: float = Field(default=DIFFERENCE, gt=0, lt=1)  # worth knowing of

    @field_validator("base", "vary")
    @classmethod
    def _can_be_tried(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in value:
            if name in IN_AN_INDEX:
                raise ValueError(
                    f"{name} cannot come along with a question: make an index with "
                    f"`{IN_AN_INDEX[name]}`, and vary `index: [live, ITS NAME]`"
                )
            if name not in SETTINGS:
                raise ValueError(f"no setting {name!r}; there are {', '.join(SETTINGS)}")
        return value

    @field_validator("vary")
    @classmethod
    def _has_values(cls, value: Mapping[str, tuple[Any, ...]]) -> Mapping[str, tuple[Any, ...]]:
        if empty := [name for name, values in value.items() if not values]:
            raise ValueError(f"{empty[0]} has no values")
        return value

    @field_validator("measures")
    @classmethod
    def _is_measured(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = [measure.name for measure in MEASURES]
        if unknown := [name for name in value if name not in names]:
            raise ValueError(f"no measure {unknown[0]!r}; there are {', '.join(names)}")
        return value


def load_grid(path: Path) -> Grid:
    """Read a grid; its dataset is looked for beside it. Raises: BadGrid: says what is wrong."""
    try:
        document = load_safe(path.read_text(encoding="utf-8"))
        grid = Grid.model_validate(document)
    except ValidationError as err:
        raise BadGrid(f"{path}: {problems(err)}") from err
    except (OSError, ValueError, OverflowError, yaml.YAMLError) as err:  # a date like 2026-13-01 is a ValueError
        raise BadGrid(f"{path}: cannot be read as a grid: {err}") from err
    if not grid.vary:
        raise BadGrid(f"{path}: vary: nothing is varied")
    for rule in (*grid.only, *grid.without):
        if unknown := [name for name in rule if name not in SETTINGS]:
            raise BadGrid(f"{path}: a rule names {unknown[0]!r}; there are {', '.join(SETTINGS)}")
    return grid.model_copy(update={"dataset": path.parent / grid.dataset})


def arms(grid: Grid, folder: Path, fewest: int = 2) -> tuple[Arm, ...]:
    """The base first, then the others in the order of the grid; of arms that come to the same only the first.

    Args:
        folder: where prompts are looked for.

    Raises: BadGrid: a value that no trial takes, a prompt that cannot be read, no arm beside the base, too many.
    """
    made = [_arm(BASE, dict(grid.base), folder)]
    for values in product(*grid.vary.values()):
        varied = dict(zip(grid.vary, values, strict=True))
        written = {**grid.base, **varied}
        if _kept(written, grid):
            made.append(_arm(", ".join(f"{name} {_shown(value)}" for name, value in varied.items()), written, folder))
    unlike: dict[str, Arm] = {}
    for arm in made:
        unlike.setdefault(arm.settings.model_dump_json(), arm)
    if len(unlike) < fewest:
        raise BadGrid("no arm is left beside the base")
    if len(unlike) > MAX_ARMS:
        raise BadGrid(f"{len(unlike):,} arms; at most {MAX_ARMS}: leave some out with `only` and `except`")
    return tuple(unlike.values())


def can_be_tried(arms_: Sequence[Arm], choices: TrialChoices) -> None:
    """Raises: WrongUse: a site cannot apply the settings of an arm."""
    for arm in arms_:
        wanted = arm.settings
        model = wanted.strategy not in (None, "quote") or wanted.prompt or wanted.model or wanted.think or wanted.short
        if model and not choices.models:
            raise WrongUse(f"{arm.name}: no model is configured there; only `strategy: quote` can be tried")
        if wanted.model is not None and wanted.model not in choices.models:
            raise WrongUse(f"{arm.name}: pagewire.yaml names no model {wanted.model}, but {', '.join(choices.models)}")
        if wanted.rerank and not choices.reranker:
            raise WrongUse(f"{arm.name}: no reranker is configured there (PAGEWIRE_RERANKER)")
        if wanted.index not in (None, "candidate", *choices.indexes):
            there = ", ".join(choices.indexes) or "(none)"
            raise WrongUse(
                f"{arm.name}: site {choices.site} has no index {wanted.index}; there are: {there}. "
                f"`pagewire index rebuild {choices.site}` makes one, with --chunk-size or --embedder"
            )


def _kept(written: Mapping[str, Any], grid: Grid) -> bool:
    wanted = not grid.only or any(_holds(rule, written) for rule in grid.only)
    return wanted and not any(_holds(rule, written) for rule in grid.without)


def _holds(rule: Rule, written: Mapping[str, Any]) -> bool:
    """Whether each of its settings has its value, or one of them."""
    return all(written.get(name) in (value if isinstance(value, list) else [value]) for name, value in rule.items())


def _arm(name: str, written: dict[str, Any], folder: Path) -> Arm:
    given = {SETTINGS[each]: value for each, value in written.items()}
    if given.get("prompt") is not None:
        try:
            given["prompt"] = (folder / str(given["prompt"])).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as err:
            raise BadGrid(f"{name}: the prompt {given['prompt']} cannot be read: {type(err).__name__}") from err
    try:
        settings = TrialSettings.model_validate(given)
    except ValidationError as err:
        raise BadGrid(f"{name}: {problems(err)}") from err
    return Arm(name, written, _that_matter(settings))


def _that_matter(settings: TrialSettings) -> TrialSettings:
    """Without what changes nothing: no model reads what is only quoted, and fewer than two shots have one order."""
    changes: dict[str, None] = {}
    if settings.strategy == "quote":
        changes = dict.fromkeys(OF_A_MODEL)
    elif settings.examples is not None and settings.examples < 2:
        changes = dict.fromkeys(("order", "shot_choice") if settings.examples == 0 else ("order",))
    if settings.index == "live":
        changes["index"] = None
    return settings.model_copy(update=changes)


def _shown(value: Any) -> str:
    match value:
        case None:
            return "as the site"
        case bool():
            return "on" if value else "off"
        case _:
            return str(value)
