"""Checks before the start: finds the faults that would end one of the processes a minute later.

`pagewire up` runs all checks, `pagewire worker` those of its stages, and each part checks again at its own start.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

import structlog

from adapters.elastic.bundle import Elastic
from adapters.elastic.client import ElasticsearchDown
from adapters.embedders import bge_m3, lite
from adapters.embedders.onnx import model_file
from adapters.embedders.registry import make_embedder
from adapters.kafka import bootstrap_servers, ensure_topics
from connectors.cms.settings import FolderConnector
from infra.checks import bound, usable
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.runtime.errors import PagewireError, Permanent, Retryable, SettingsError, named
from pipelines.runtime.stage import STAGES
from wiring.evaluating import judge_of_samples
from wiring.query import judging
from wiring.settings import Settings
from wiring.tools import site_tools, tools_fetch

log = structlog.get_logger(__name__)

EMBEDDING = frozenset({"embed", "rebuild", "retrieve"})
ANSWERING = frozenset({"rephrase", "retrieve", "answer"})
# The packages of models, which are optional.
BGE = ("FlagEmbedding", "bge")
PACKAGES = {"onnx": ("tokenizers", "onnx"), "bge": BGE, "bge-m3": BGE, "bge-m3-sparse": BGE}


async def whole_system(settings: Settings) -> None:
    """Whether everything can run on this machine.

    Raises:
        SettingsError: names the fault. Retryable: a configured server does not answer, or refuses us.
    """
    usable(settings.home)
    if settings.metrics_port is not None:
        raise SettingsError(
            f"metrics_port (PAGEWIRE_METRICS_PORT): {settings.metrics_port} is one port, and `pagewire up` runs four "
            "processes; leave it out: the gateway answers /metrics at its own port"
        )
    _connectors(settings)
    bound(settings.host, settings.port, "port").close()
    stages(settings, STAGES)
    await _servers(settings)
    await _models(settings)


def stages(settings: Settings, names: Collection[str]) -> None:
    """Check the files and packages of these stages. Raises: SettingsError: names the setting."""
    wanted = frozenset(names)
    if wanted & EMBEDDING:
        make_embedder(settings.embedder, settings)
        package("embedder", settings.embedder)
        weights("embedder", settings.embedder, settings)
    if wanted & {"retrieve", "answer"}:
        package("reranker", settings.reranker)
        weights("reranker", settings.reranker, settings)
    if wanted & ANSWERING:
        SitePrompts.of_settings(settings)
        judging(settings)
    if "answer" in wanted:
        site_tools(settings, tools_fetch(settings))
    if "judge" in wanted:
        judge_of_samples(settings)
    if wanted & (ANSWERING | {"judge"}) and not (settings.openai_api_key or settings.openai_base_url):
        for name in ("llm_model", "judging_model"):
            if (model := getattr(settings, name)) is not None:
                raise SettingsError(f"{named(name)}: {model} needs OPENAI_API_KEY, OPENAI_BASE_URL or both")
    if "chunk" in wanted:
        for site, folder in settings.attachment_folders.items():
            if not folder.is_dir():
                raise SettingsError(f"sites.{site}.attachment_folder: no such folder: {folder}")


def _connectors(settings: Settings) -> None:
    for site, own in settings.sites.items():
        for name, connector in own.connectors.items():
            if isinstance(connector, FolderConnector) and not connector.path.is_dir():
                raise SettingsError(f"sites.{site}.connectors.{name}.path: no such folder: {connector.path}")


def package(setting: str, spec: str) -> tuple[str, ...]:
    """The packages that run this model; none for a server's. Raises: SettingsError: one is not installed."""
    kind = spec.partition(":")[0]
    if kind == "lite":
        lite.require_packages()
        return lite.PACKAGES
    if kind not in PACKAGES:
        return ()
    name, extra = PACKAGES[kind]
    if find_spec(name) is None:
        how = f"`pip install 'pagewire[{extra}]'`, in a checkout `make setup-{extra}`"
        raise SettingsError(f"{named(setting)}: {spec} needs {name}: {how}")
    return (name,)


def weights(setting: str, spec: str, settings: Settings) -> Path | None:
    """Where this model's weights are, once its packages are there; None for a server's.

    Raises:
        SettingsError: there are none.
    """
    kind, _, folder = spec.partition(":")
    said = f"{named(setting)}: {spec}"
    if kind == "lite":
        return lite.weights_file()
    if folder and kind in PACKAGES and not Path(folder).is_dir():
        raise SettingsError(f"{said}: there is no such folder; `hf download NAME --local-dir {folder}` fills it")
    try:
        if kind == "onnx":
            return Path(folder) / model_file(Path(folder), said)
        if kind in ("bge-m3", "bge-m3-sparse"):
            return bge_m3.weights_folder(settings.bge_model, sparse=kind == "bge-m3-sparse")
    except Permanent as err:
        raise SettingsError(str(err)) from err
    return Path(folder) if kind in PACKAGES else None


async def _models(settings: Settings) -> None:
    """Warn if no model answers; only a warning, because answers then quote the pages."""
    if settings.judge_of_answers is None:
        return
    from adapters.llm.openai_chat import server_problem  # loads OpenAI's client, which not everybody needs

    if (why := await server_problem(settings)) is not None:
        log.warning("no model will answer", reason=why)


async def _servers(settings: Settings) -> None:
    """Check the configured servers; those of the local engine are not started yet."""
    if settings.kafka:
        await ensure_topics(bootstrap_servers(settings), settings)
    if settings.elasticsearch:
        async with Elastic(settings.elasticsearch, settings) as elastic:
            try:
                await elastic.time()
            except PagewireError as err:  # another kind of server may answer with a whole HTML page
                said = str(err).partition("\n")[0]
                hint = "; is it started, and the address right?" if type(err) is ElasticsearchDown else ""
                raise Retryable(f"{settings.elasticsearch} (PAGEWIRE_ELASTICSEARCH): {said}{hint}") from err
