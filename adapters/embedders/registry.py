"""Chooses a site's embedding model: the model of its live index, else the configured one."""

from __future__ import annotations

import asyncio

from adapters.elastic.indexes import ElasticIndexes
from adapters.embedders.base import Embedder
from adapters.llm.settings import MUST_BE, EmbedderSettings
from pipelines.runtime.errors import Kind, Permanent, SettingsError
from pipelines.runtime.indexes import IndexInfo


class ModelMismatch(Permanent):
    """The live index has vectors of another model than the installed one."""

    code = "model-mismatch"
    kind = Kind.SITE


class ModelMissing(Permanent):
    """The model of a site's live index cannot be loaded here, and is not the configured one."""

    code = "model-missing"
    kind = Kind.SITE


class Models:
    """Loads each model once, at its first use. One per process; close it last."""

    def __init__(self, settings: EmbedderSettings, indexes: ElasticIndexes) -> None:
        self._settings = settings
        self._indexes = indexes
        self._loaded: dict[str, asyncio.Task[Embedder]] = {}

    async def for_site(self, site: str) -> Embedder:
        """The model of the site's live index.

        Vectors of different models cannot be compared, so a new `PAGEWIRE_EMBEDDER` applies to new indexes only.

        Raises:
            SettingsError, Permanent: the model is not installed or cannot be loaded.
            ModelMissing: the same for a model that only this site's index needs.
            ModelMismatch: the index was built with another version of the model.
        """
        return await self._of(await self._indexes.recent(site))

    async def for_new(self, site: str) -> Embedder:
        """As `for_site`, but reads the index's state anew: for writes to the index."""
        return await self._of(await self._indexes.now(site))

    async def by_name(self, spec: str) -> Embedder:
        """The model that `spec` names (settings.embedder). Raises: SettingsError, Permanent."""
        task = self._loaded.get(spec)
        if task is None or (task.done() and task.exception() is not None):
            task = asyncio.create_task(self._start(spec), name=f"load-{spec}")
            self._loaded[spec] = task
        # Shielded: the timeout of one caller must not cancel the loading for the others.
        return await asyncio.shield(task)

    async def _of(self, live: IndexInfo | None) -> Embedder:
        if live is None:
            return await self.by_name(self._settings.embedder)
        try:
            model = await self.by_name(live.embedder)
        except Permanent as err:
            if live.embedder == self._settings.embedder:
                raise  # affects every site
            raise ModelMissing(
                f"index {live.name} was built with {live.embedder}, which is not the configured "
                f"{self._settings.embedder} (PAGEWIRE_EMBEDDER) and cannot be loaded here: {err}"
            ) from err
        if model.fingerprint != live.model:
            await model.recheck()  # its service may have been broken when the model was loaded
        require_same(model, live)
        return model

    async def warm(self) -> None:
        """Load the configured model before the first message."""
        await self.by_name(self._settings.embedder)

    async def _start(self, spec: str) -> Embedder:
        embedder = make_embedder(spec, self._settings)
        await embedder.start()
        return embedder

    async def aclose(self) -> None:
        for task in self._loaded.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                await task.result().aclose()
            else:
                task.cancel()


def require_same(model: Embedder, live: IndexInfo) -> None:
    """Raises: ModelMismatch: the index has vectors of another version of this model."""
    if model.fingerprint != live.model:
        raise ModelMismatch(
            f"index {live.name} was built with {live.model}, but {live.embedder} is {model.fingerprint} here; "
            f"their vectors cannot be compared: `pagewire index rebuild {live.site} --from chunks --promote`"
        )


def make_embedder(spec: str, settings: EmbedderSettings) -> Embedder:
    """The embedder that `spec` names, not yet started.

    Imports only this embedder's packages: torch takes seconds and gigabytes.

    Raises:
        SettingsError: there is no such embedder, or a setting is missing.
    """
    kind, _, model = spec.partition(":")
    if kind == "lite" and not model:
        from adapters.embedders.lite import LiteEmbedder

        return LiteEmbedder(settings.nice)
    if kind == "bge-m3" and not model:
        from adapters.embedders.bge_m3 import BgeM3Embedder

        return BgeM3Embedder(settings.bge_model, settings.nice)
    if kind == "bge-m3-sparse" and not model:
        from adapters.embedders.bge_m3 import BgeM3SparseEmbedder

        return BgeM3SparseEmbedder(settings.bge_model, settings.nice)
    if kind == "onnx" and model:
        from adapters.embedders.onnx import OnnxEmbedder

        return OnnxEmbedder(model, settings.nice)
    if kind == "openai" and model:
        from adapters.embedders.openai_api import OpenAIEmbedder

        if settings.openai_api_key is None and settings.openai_base_url is None:
            raise SettingsError(f"embedder {spec!r} needs OPENAI_API_KEY, OPENAI_BASE_URL or both")
        return OpenAIEmbedder(model, base_url=settings.openai_base_url, api_key=settings.openai_api_key)
    raise SettingsError(f"embedder (PAGEWIRE_EMBEDDER): {MUST_BE}, not {spec!r}")
