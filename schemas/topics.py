"""The map of all topics: creation, the docs table and all stages use it; no topic name is written elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.answer import AnswerEvent
from schemas.base import Message
from schemas.ingest import PageChunks, PageEmbeddings, ReceiptEvent
from schemas.outcome import OutcomeEvent, VerdictEvent
from schemas.page import PageChange
from schemas.query import Question, Rephrased, Retrieved, Stop
from schemas.rebuild import PageBuilt, PageOrder
from schemas.worker import Counts, PauseNote

HOUR = 3_600_000  # milliseconds
DAY = 24 * HOUR
MAX_MESSAGE_BYTES = 8 * 1024 * 1024  # a page of the largest content fits, and files of it
RECORD_OVERHEAD_BYTES = 1024 * 1024  # room for key, headers and framing on top of the largest value
DLQ_SUFFIX = ".dlq"
FILES = 24  # segment files per retention time, at least: records stay longer by one part in so many


@dataclass(frozen=True)
class Topic:
    """A topic: its key, its value and its retention."""

    name: str
    key: str
    value: type[Message] | None = field(repr=False)
    about: str
    compacted: bool = False
    retention_ms: int | None = None  # None: for ever
    # A change that lost to a newer revision tops its key until the index stage puts the winner back
    # (pipelines/ingest/requeue.py); the log must not be compacted before that.
    min_compaction_lag_ms: int = 0
    dead_letters: bool = True

    @property
    def config(self) -> dict[str, str]:
        """Kafka's topic settings."""
        config = {"max.message.bytes": str(MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES)}
        if self.compacted:
            config |= {"cleanup.policy": "compact", "min.compaction.lag.ms": str(self.min_compaction_lag_ms)}
        else:
            config["cleanup.policy"] = "delete"
            config["retention.ms"] = str(-1 if self.retention_ms is None else self.retention_ms)
        if self.retention_ms is not None:
            # Kafka deletes whole files, and by default writes one for a week: what visitors wrote would stay as long.
            config["segment.ms"] = str(self.retention_ms // FILES)
        return config


CHANGES = Topic(
    "cms.changes",
    "page",
    PageChange,
    "every accepted change of a page: the truth",
    compacted=True,
    min_compaction_lag_ms=7 * DAY,
)
CHUNKS = Topic("ingest.chunks", "page", PageChunks, "pages converted and cut", compacted=True)
EMBEDDINGS = Topic(
    "ingest.embeddings",
    "page#part, page#ahead (partitioned by page)",
    PageEmbeddings,
    "chunks with vectors, in parts; and what goes ahead of them",
    compacted=True,
)
RECEIPTS = Topic("ingest.receipts", "page", ReceiptEvent, "the state of each change", compacted=True)
# A topic of its own, which workers of before it do not read: what they took for a save would cost the live index an
# embedding, and the log a copy. A day: who ordered them sends on when what it sent has gone.
ORDERS = Topic("rebuild.orders", "page", PageOrder, "pages to write into a new index", retention_ms=DAY)
# An hour: the rebuild reads them at once, or starts again from its last note.
RESULTS = Topic(
    "rebuild.results", "index", PageBuilt, "the result of each order", retention_ms=HOUR, dead_letters=False
)
REQUESTS = Topic("query.requests", "conversation", Question, "visitors' questions", retention_ms=DAY)
REPHRASED = Topic("query.rephrased", "conversation", Rephrased, "self-contained questions", retention_ms=DAY)
RETRIEVED = Topic("query.retrieved", "conversation", Retrieved, "questions with their sources", retention_ms=DAY)
ANSWERS = Topic(
    "answer.events", "request", AnswerEvent, "answers, event by event", retention_ms=DAY, dead_letters=False
)
# A week: the log stage may be away over a long weekend, and what visitors wrote does not lie about for longer.
OUTCOMES = Topic(
    "query.outcomes",
    "conversation (hashed)",
    OutcomeEvent,
    "the outcome of each question, and its visitor's feedback",
    retention_ms=7 * DAY,
)
# A topic of its own beside the outcomes: it is the judge's memory of what it has judged of a day's budget.
VERDICTS = Topic(
    "query.verdicts",
    "conversation (hashed)",
    VerdictEvent,
    "what a model finds of a sample of the answers",
    retention_ms=7 * DAY,
)
# An hour: a process that starts later does without them.
RATES = Topic(
    "limits.rates",
    "process",
    Counts,
    "how often visitors did what, as each gateway counted it",
    retention_ms=HOUR,
    dead_letters=False,
)
BUDGETS = Topic(
    "limits.budgets",
    "process",
    Counts,
    "what was spent of each site's day, as each process counted it",
    retention_ms=DAY,
    dead_letters=False,
)
STOPS = Topic(
    "answer.stops", "request", Stop, "answers that visitors have stopped", retention_ms=DAY, dead_letters=False
)
PAUSES = Topic(
    "worker.pauses",
    "`stages`, `cuts`",
    PauseNote,
    "which stages wait, and for what; which messages they never got",
    retention_ms=DAY,
    dead_letters=False,
)

TOPICS: tuple[Topic, ...] = tuple(each for each in vars().values() if isinstance(each, Topic))


def dead_letter_topic(topic: Topic) -> Topic:
    """The topic of the dead letters of `topic`."""
    return Topic(
        topic.name + DLQ_SUFFIX,
        topic.key,
        None,
        f"dead letters of {topic.name}: original bytes, reason in headers",
        retention_ms=14 * DAY,
        dead_letters=False,
    )


def all_topics() -> tuple[Topic, ...]:
    """Every topic to create, dead letters included."""
    return TOPICS + tuple(dead_letter_topic(t) for t in TOPICS if t.dead_letters)
