"""Settings of earlier versions: a start goes on without them, and says what to do instead."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.runtime.errors import SettingsError
from wiring.setting_problems import variable

log = logging.getLogger(__name__)  # at a start nothing is configured yet: Python writes it to stderr

RENAMED = {"content_hits": "hits"}  # still read, until the next release
_FIXED = "it is no setting any more"
_OF_STEPS = "use steps.answer.max_tokens"
# The place in pagewire.yaml (`*`: any name), and what to do instead.
RETIRED: Mapping[str, str] = {
    "answer_tokens": _OF_STEPS,
    "answers_at_once": f"{_FIXED}; llm_at_once limits the calls of a process",
    "attachment_budget": _FIXED,
    "attachment_folder": "use sites.SITE.attachment_folder",
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
    "llm_small_model": "use steps.rephrase.model, steps.translate.model and steps.title.model",
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
    "steps.*.context_chars": "use context_chars",
    "sites.*.answer_tokens": "use steps.answer.max_tokens of the site",
    "sites.*.chat.titles": _FIXED,
    "sites.*.connectors.*.concurrency": f"{_FIXED}; delay sets the pace",
    "sites.*.connectors.*.max_depth": f"{_FIXED}; max_pages limits a crawl",
    "sites.*.judge": "use judge (PAGEWIRE_JUDGE), for all sites",
    "sites.*.judging.again": _FIXED,
    "sites.*.shards": "use shards (PAGEWIRE_SHARDS); small sites share indexes by `index: shared`",
    "sites.*.steps.*.context_chars": "use context_chars of the site",
    "sites.*.tool_calls": "use tool_calls (PAGEWIRE_TOOL_CALLS), for all sites",
}


def without_retired(values: dict[str, Any]) -> dict[str, Any]:
    """The settings by today's names; each retired one is logged as a warning and left out.

    Raises:
        SettingsError: a setting has its earlier name and today's.
    """
    for old, new in RENAMED.items():
        if old in values and new in values:
            raise SettingsError(f"{old} is called {new} now: set one of them")
    values = {RENAMED.get(name, name): value for name, value in values.items()}
    for pattern, instead in RETIRED.items():
        for place, holder, name in list(_places(values, pattern.split("."))):
            shown = place if "." in place else f"{place} ({variable(place)})"
            log.warning("%s is ignored: %s", shown, instead)
            del holder[name]
    return values


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
