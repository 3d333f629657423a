"""The judges that check whether sources support a model's sentences, put together from settings."""

from __future__ import annotations

from pipelines.query.answer.judging import Judge, ModelJudge, RerankerJudge
from pipelines.query.answer.ports import Entails
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import ChatModels
from pipelines.query.search.ports import Reranker
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.settings import JudgeName
from wiring.settings import Settings


def judging(settings: Settings) -> frozenset[JudgeName]:
    """The judges in use. Raises: SettingsError: it is the reranker, and none is configured."""
    if settings.llm_model is None:
        return frozenset()  # only a model's sentences are judged
    if settings.judge == "reranker" and settings.reranker == "none":
        raise SettingsError("judge (PAGEWIRE_JUDGE): `reranker` needs one, PAGEWIRE_RERANKER is none")
    return frozenset({settings.judge})


def judges(
    settings: Settings, models: ChatModels | None, reranker: Reranker | None, site_prompts: SitePrompts
) -> dict[JudgeName, Judge]:
    """The judges by name."""
    found: dict[JudgeName, Entails] = {}
    if models is not None:
        found["model"] = ModelJudge(models, site_prompts).entailed
    if reranker is not None:
        found["reranker"] = RerankerJudge(reranker).entailed
    return {name: Judge(each, settings.judge_least) for name, each in found.items()}
