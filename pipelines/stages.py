"""All stages by name, upstream first, and the clients they share in a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapters.elastic.bundle import Elastic
from adapters.embedders.registry import Models
from pipelines.ingest import app as ingest
from pipelines.query import app as query
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.runner import run_stages
from pipelines.runtime.services import addresses
from pipelines.runtime.settings import Settings
from pipelines.runtime.stage import Stage

INGEST = ("chunk", "embed", "index")
QUERY = ("rephrase", "retrieve", "answer")
GROUPS: dict[str, tuple[str, ...]] = {"ingest": INGEST, "query": QUERY, "all": INGEST + QUERY}


def stage_names(given: Sequence[str]) -> tuple[str, ...]:
    """Resolve `ingest`, `query`, `all` and single names, upstream first, each once.

    Raises:
        SettingsError: naming what is not a stage.
    """
    wanted: set[str] = set()
    for name in given:
        members = GROUPS.get(name, (name,))
        if unknown := set(members) - set(GROUPS["all"]):
            raise SettingsError(
                f"no such stage: {unknown.pop()}; stages: {' '.join(GROUPS['all'])}, ingest, query, all"
            )
        wanted.update(members)
    return tuple(name for name in GROUPS["all"] if name in wanted)


async def work(names: Sequence[str], settings: Settings, on_ready: Callable[[], None]) -> int:
    """Run stages until a signal; returns the process's exit code (pipelines.runtime.runner)."""
    settings = addresses(settings)
    assert settings.elasticsearch
    async with Elastic(settings.elasticsearch, settings) as elastic:
        models = Models(settings, elastic.indexes)
        try:
            return await run_stages(
                [_stage(name, settings, elastic, models) for name in names], settings, on_ready=on_ready
            )
        finally:
            await models.aclose()


def _stage(name: str, settings: Settings, elastic: Elastic, models: Models) -> Stage:
    match name:
        case "chunk":
            return ingest.chunk_stage(settings, elastic)
        case "embed":
            return ingest.embed_stage(elastic, models)
        case "index":
            return ingest.index_stage(settings, elastic)
        case "rephrase":
            return query.rephrase_stage(settings)
        case "retrieve":
            return query.retrieve_stage(settings, elastic, models)
        case "answer":
            return query.answer_stage(settings, models)
    raise SettingsError(f"no such stage: {name}")
