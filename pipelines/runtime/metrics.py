"""What a worker counts, for Prometheus and for the console. A stage without lanes leaves that label empty."""

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
MODEL_TOKENS = Counter(
    "pagewire_model_tokens_total",
    "Tokens that models have read (`in`) and written (`out`), as their server counts them, else estimated.",
    ("site", "step", "direction"),
)
TOKENS_SPENT = Gauge(
    "pagewire_tokens_spent",
    "1 where the site's `daily_tokens` are spent and its answers quote the pages until the next day (UTC).",
    ("site",),
)
JUDGED_ANSWERS = Counter(
    "pagewire_judged_answers_total",
    "Answers chosen to be judged, by what became of them: judged, unjudged, over-budget, or gone (their sources are no "
    "longer kept).",
    ("site", "outcome"),
)
JUDGED_FIGURES = Histogram(
    "pagewire_judged_figure",
    "What a model finds of answers, from 0 to 1: faithfulness, context relevancy.",
    ("site", "figure"),
    buckets=(0.0, 0.25, 0.5, 0.75, 0.9, 1.0),
)


def begin(stage: str, lane: str) -> None:
    """Say 0 of what has not happened yet: the first dead letter is an increase only where there was a 0 before it."""
    for outcome in OUTCOMES:
        EVENTS.labels(stage, lane, outcome)
