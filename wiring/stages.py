"""All stages by name, upstream first, and the clients they share in a process.

The ingest stages exist twice: for saves, and with other consumer groups for bulk work (imports, repairs; rebuilds are
bulk work only). So saves overtake bulk work at every stage, in one process or in two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime

from adapters.elastic.bundle import Elastic
from adapters.embedders.registry import Models
from pipelines.operate.chat_switches import ChatSwitches
from pipelines.query.token_budget import TokenBudget
from pipelines.runtime.errors import SettingsError, did_you_mean
from pipelines.runtime.record import LANES, Lane
from pipelines.runtime.stage import INGEST, QUERY, REBUILD, STAGES, Stage
from wiring import evaluating, ingest, query
from wiring.addresses import addresses
from wiring.settings import Settings
from wiring.shared_counts import chat_switches, token_budgets
from worker.runner import run_stages

GROUPS: dict[str, tuple[str, ...]] = {
    "ingest": tuple(stage.name for stage in (*INGEST, REBUILD)),
    "query": tuple(stage.name for stage in QUERY),
    "all": tuple(STAGES),
}


# Stages from a question to its answer: a switched-off chat stops them.
ANSWERING = frozenset({"rephrase", "retrieve", "answer"})


def stage_names(given: Sequence[str]) -> tuple[str, ...]:
    """Resolve `ingest`, `query`, `all` and single names, upstream first, each once.

    Raises:
        SettingsError: names the unknown stage.
    """
    wanted: set[str] = set()
    for name in given:
        members = GROUPS.get(name, (name,))
        if not set(members) <= set(GROUPS["all"]):
            there = (*GROUPS["all"], *GROUPS)
            raise SettingsError(f"no such stage: {name}; stages: {' '.join(there)}{did_you_mean(name, there)}")
        wanted.update(members)
    return tuple(name for name in GROUPS["all"] if name in wanted)


def in_lanes(names: Sequence[str], lanes: Sequence[Lane]) -> tuple[str, ...]:
    """The stages that exist in these lanes.

    Raises:
        SettingsError: no stage exists in them.
    """
    if "save" not in lanes and (idle := [name for name in names if not STAGES[name].lanes]):
        raise SettingsError(f"stage {idle[0]} has no bulk lane; those that have one: {' '.join(GROUPS['ingest'])}")
    busy = tuple(name for name in names if set(STAGES[name].lanes or LANES) & set(lanes))
    if not busy:
        raise SettingsError(f"stage {names[0]} does bulk work alone: it has no save lane")
    return busy


async def work(
    names: Sequence[str], settings: Settings, on_ready: Callable[[], None], lanes: Sequence[Lane] = LANES
) -> int:
    """Run stages until a signal; returns the process's exit code (worker.runner).

    Args:
        names: As `stage_names` gives them.
        lanes: Of the ingest stages; the others have none.
    """
    settings = addresses(settings)
    assert settings.elasticsearch
    async with AsyncExitStack() as stack:
        # Clients of its own for each lane: a save's write must not wait in a queue of bulk writes.
        elastic: dict[Lane, Elastic] = {}
        for lane in lanes:
            elastic[lane] = await stack.enter_async_context(Elastic(settings.elasticsearch, settings, lane))
        models = Models(settings, elastic[lanes[0]].indexes)
        stack.push_async_callback(models.aclose)
        budgets = await stack.enter_async_context(token_budgets(settings))
        token_budget = TokenBudget(settings, counts=budgets)  # shared by all stages of this process
        switch = chat_switches(settings, elastic[lanes[0]], lambda: datetime.now(UTC))
        if not ANSWERING.isdisjoint(names):
            stack.push_async_callback(switch.aclose)
            await switch.start()
        stages = [stage for name in names for stage in _stages(name, settings, elastic, models, token_budget, switch)]
        return await run_stages(stages, settings, on_ready=on_ready)


def _stages(
    name: str,
    settings: Settings,
    elastic: Mapping[Lane, Elastic],
    models: Models,
    token_budget: TokenBudget,
    switch: ChatSwitches,
) -> list[Stage]:
    match name:
        case "chunk":
            attachments = ingest.attachments_of(settings)
            return [ingest.chunk_stage(settings, own, attachments, lane) for lane, own in elastic.items()]
        case "embed":
            return [ingest.embed_stage(own, models, lane) for lane, own in elastic.items()]
        case "index":
            return [ingest.index_stage(settings, own, lane) for lane, own in elastic.items()]
        case "rebuild":
            return [ingest.rebuild_stage(settings, own, models) for lane, own in elastic.items() if lane == "bulk"]
        case "rephrase":
            return [query.rephrase_stage(settings, next(iter(elastic.values())), models, token_budget, switch)]
        case "retrieve":
            return [query.retrieve_stage(settings, next(iter(elastic.values())), models, switch)]
        case "answer":
            return [query.answer_stage(settings, next(iter(elastic.values())), models, token_budget, switch)]
        case "judge":
            return [evaluating.judge_stage(settings, next(iter(elastic.values())))]
        case "log":
            return [query.log_stage(settings, next(iter(elastic.values())))]
    raise SettingsError(f"no such stage: {name}")
