"""A worker's metrics, for Prometheus and the console. The label `lane` is empty for stages without lanes, and `site`
where there are many sites (`LABELLED_SITES`).
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

EVENTS = Counter(
    "pagewire_events_total", "Records finished, by outcome: ok, parked or dead.", ("stage", "lane", "outcome")
)
OUTCOMES = ("ok", "parked", "dead")
RETRIES = Counter("pagewire_retries_total", "Tries that failed and were repeated.", ("stage", "lane", "code"))
DEAD_LETTERS = Counter("pagewire_dead_letters_total", "Dead letters written.", ("stage", "lane", "code"))
PAUSED = Gauge(
    "pagewire_paused",
    "1 while a stage waits for a service or a setting, by the code of what is wrong.",
    ("stage", "lane", "reason"),
)
CLOCK_AHEAD = Gauge("pagewire_clock_ahead_seconds", "How far this machine's clock is ahead of the servers'.")
IN_FLIGHT = Gauge("pagewire_in_flight", "Records being worked on.", ("stage", "lane"))
ATTACHMENT_BYTES = Gauge(
    "pagewire_attachment_bytes", "Bytes of attachments that are held: on their way to us, or not read yet."
)
SECONDS = Histogram(
    "pagewire_handler_seconds",
    "Time of one try.",
    ("stage", "lane"),
    buckets=(0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
SEARCHABLE_SECONDS = Histogram(
    "pagewire_searchable_seconds",
    "Time from when a change was accepted until it can be found. The bulk lane brings old changes again, too: repairs.",
    ("lane",),
    buckets=(0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 3600),
)
ANSWERS = Counter(
    "pagewire_answers_total",
    "Questions that have ended, by what their visitor got: answered, page, refused, courtesy or failed. Trials are not "
    "counted.",
    ("site", "became"),
)
TOOL_THREADS = Gauge(
    "pagewire_tool_threads",
    "Calls of a site's Python tool that run, those among them that were given up and do not end.",
    ("tool",),
)
HANDOVERS = Counter(
    "pagewire_handovers_total",
    "Visitors' messages to a person: kept, delivered, retried (an attempt failed), or failed (given up).",
    ("site", "state"),
)
FIRST_WORD_SECONDS = Histogram(
    "pagewire_first_word_seconds",
    "Time from when a question was asked until the first words of its answer were in the log.",
    buckets=(0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 60),
)
ANSWER_SECONDS = Histogram(
    "pagewire_answer_seconds",
    "Time from when a question was asked until all of its answer was in the log.",
    ("became",),
    buckets=(0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120),
)
MODEL_TOKENS = Counter(
    "pagewire_model_tokens_total",
    "Tokens that models have read (`in`) and written (`out`), as their server counts them, else estimated.",
    ("site", "step", "direction"),
)
TOKENS_SPENT = Gauge(
    "pagewire_tokens_spent",
    "1 where the site's `daily_tokens` are spent and its answers quote the pages until the next day (UTC); of all "
    "sites together, how many these are.",
    ("site",),
)
JUDGED_ANSWERS = Counter(
    "pagewire_judged_answers_total",
    "Answers chosen to be judged, by outcome: judged, unjudged, over-budget, or gone (their sources are no "
    "longer kept).",
    ("site", "outcome"),
)
JUDGED_FIGURES = Histogram(
    "pagewire_judged_figure",
    "What a model finds of answers, from 0 to 1: faithfulness, context relevancy.",
    ("site", "figure"),
    buckets=(0.0, 0.25, 0.5, 0.75, 0.9, 1.0),
)
# Calls of models by OpenTelemetry's conventions, names and buckets; counted while tracing is on (spans.py beside this).
# https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics/
_CALL = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")
CALL_SECONDS = Histogram(
    "gen_ai_client_operation_duration_seconds",
    "With tracing on: time of a call of a model; `error_type`, where it failed, is the code or the exception's name.",
    (*_CALL, "error_type"),
    buckets=(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
CALL_FIRST_CHUNK_SECONDS = Histogram(
    "gen_ai_client_operation_time_to_first_chunk_seconds",
    "With tracing on: time until a model's first words.",
    _CALL,
    buckets=(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10),
)
CALL_TOKENS = Histogram(
    "gen_ai_client_token_usage",
    "With tracing on: tokens of a call that its server has counted, `gen_ai_token_type` input or output.",
    (*_CALL, "gen_ai_token_type"),
    buckets=tuple(4**n for n in range(14)),
)


def begin(stage: str, lane: str) -> None:
    """Export 0 for each series: Prometheus sees the first dead letter as an increase only after a 0."""
    for outcome in OUTCOMES:
        EVENTS.labels(stage, lane, outcome)
