"""Settings of earlier versions. One that has a successor is refused, since its value would be lost; another one is
ignored, with a warning."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.runtime.errors import SettingsError
from wiring.setting_problems import variable

log = logging.getLogger(__name__)  # at a start nothing is configured yet: Python writes it to stderr

_FIXED = "it is no setting any more"
# The place in pagewire.yaml (`*`: any name), and what to set instead.
SUCCESSORS: Mapping[str, str] = {
    "answer_tokens": "steps.answer.max_tokens",
    "attachment_folder": "sites.SITE.attachment_folder",
    "content_hits": "hits",
    "llm_small_model": "steps.rephrase.model, steps.translate.model and steps.title.model",
    "steps.*.context_chars": "context_chars",
    "sites.*.answer_tokens": "steps.answer.max_tokens of the site",
    "sites.*.judge": "judge (PAGEWIRE_JUDGE), for all sites",
    "sites.*.shards": "shards (PAGEWIRE_SHARDS); small sites share indexes by `index: shared`",
    "sites.*.steps.*.context_chars": "context_chars of the site",
    "sites.*.tool_calls": "tool_calls (PAGEWIRE_TOOL_CALLS), for all sites",
}
# Those without: why.
RETIRED: Mapping[str, str] = {
    "answers_at_once": f"{_FIXED}; llm_at_once limits the calls of a process",
    "attachment_budget": _FIXED,
    "attachment_memory": _FIXED,
    "attachment_text": _FIXED,
    "attachment_timeout": _FIXED,
    "chunk_titled": f"{_FIXED}; an index that has titles keeps them until it is rebuilt",
    "drain_timeout": _FIXED,
    "history_messages": _FIXED,
    "in_flight_bytes": f"{_FIXED}; limit the memory of the container",
    "in_flight_records": _FIXED,
    "judge_seconds": _FIXED,
    "llm_failures": _FIXED,
    "llm_rest": _FIXED,
    "llm_token_chars": _FIXED,
    "metrics_sites": _FIXED,
    "question_patience": _FIXED,
    "receipt_timeout": "use `timeout` of the request",
    "retry_for": _FIXED,
    "shared_indexes": _FIXED,
    "stall_timeout": _FIXED,
    "static_membership": "members are dynamic",
    "tracing_metrics": "let a collector read /metrics",
    "tries": _FIXED,
    "try_timeout": _FIXED,
    "window": _FIXED,
    "sites.*.chat.titles": _FIXED,
    "sites.*.connectors.*.concurrency": f"{_FIXED}; delay sets the pace",
    "sites.*.connectors.*.max_depth": f"{_FIXED}; max_pages limits a crawl",
    "sites.*.judging.again": _FIXED,
}


def without_retired(values: dict[str, Any]) -> dict[str, Any]:
    """The settings; each retired one without a successor is logged as a warning and left out.

    Raises:
        SettingsError: a setting has a successor.
    """
    for pattern, successor in SUCCESSORS.items():
        for place, _, _ in _places(values, pattern.split(".")):
            raise SettingsError(f"{_shown(place)} is no setting any more: set {successor}")
    for pattern, why in RETIRED.items():
        for place, holder, name in list(_places(values, pattern.split("."))):
            log.warning("%s is ignored: %s", _shown(place), why)
            del holder[name]
    return values


def _shown(place: str) -> str:
    return place if "." in place else f"{place} ({variable(place)})"


def _places(holder: Any, parts: list[str], above: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """The places that a pattern names: in words, their mapping, their key there."""
    first, *rest = parts
    for name in list(holder) if isinstance(holder, dict) else ():
        if first in ("*", name):
            place = f"{above}{name}"
            if rest:
                yield from _places(holder[name], rest, f"{place}.")
            else:
                yield place, holder, name
