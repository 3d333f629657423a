"""The errors: one base class, two branches (`Retryable`, `Permanent`), and the kinds of a stage's failures.

The kind of a failure alone decides what a stage does with the record: see the table `WAYS`. The class of an exception
gives its kind, so the code that raises it decides, and the worker knows no service.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from heapq import nsmallest
from itertools import islice


class Kind(StrEnum):
    """The cause of a failure."""

    RECORD = "record"  # the message itself: it will fail everywhere
    SERVICE = "service"  # Kafka, Elasticsearch, a model: away, overloaded, full, refusing our credentials
    SETTING = "setting"  # a wrong or missing setting; the message names it
    SITE = "site"  # one site's index, model or limit; other sites' records pass
    MOMENT = "moment"  # another writer, a promotion: affects this record alone, and only for a moment
    UNKNOWN = "unknown"  # unforeseen, or any of these


class FailureAction(StrEnum):
    """What a stage does with a record that failed."""

    BURY = "bury"  # a dead letter at once
    PAUSE = "pause"  # the whole stage waits, and tries one record at a time, with growing pauses, until one passes
    PARK = "park"  # put aside durably with the site's later ones; comes back by itself, others go on
    AGAIN = "again"  # this record alone is retried, for `retry_for` seconds; then parked
    PAUSE_THEN_BURY = "pause, then bury"  # as PAUSE; a dead letter once it failed alone, while others passed


WAYS: Mapping[Kind, FailureAction] = {
    Kind.RECORD: FailureAction.BURY,
    Kind.SERVICE: FailureAction.PAUSE,
    Kind.SETTING: FailureAction.PAUSE,
    Kind.SITE: FailureAction.PARK,
    Kind.MOMENT: FailureAction.AGAIN,
    Kind.UNKNOWN: FailureAction.PAUSE_THEN_BURY,
}


class PagewireError(Exception):
    """Base of all errors that Pagewire explains. `code` is stable, for scripts and problem documents."""

    code = "error"
    kind = Kind.UNKNOWN


class Retryable(PagewireError):
    """A service is away or busy: the same work may succeed later."""

    code = "unavailable"
    kind = Kind.SERVICE


class Permanent(PagewireError):
    """The same work will fail again: dead letter, or a refusal at the edge."""

    code = "refused"
    kind = Kind.RECORD


class WrongUse(Permanent):
    """The caller has to correct a setting, an argument or a file first."""

    code = "wrong-use"
    kind = Kind.SETTING


def named(setting: str) -> str:
    """A setting with its variable, for messages: `kafka_ca (PAGEWIRE_KAFKA_CA)`."""
    return f"{setting} (PAGEWIRE_{setting.upper()})"


# For messages about a setting that is found wrong while the process runs.
READ_AT_START = "a process reads it at its start, so restart this one when it was changed"
READ_AGAIN = READ_AT_START + "; only what stands in a file of its own (`..._FILE`) is read again by itself"


class SettingsError(WrongUse):
    """A setting is wrong; names it."""

    code = "bad-setting"


class UnknownSite(WrongUse):
    """No such site in pagewire.yaml."""

    code = "unknown-site"

    def __init__(self, message: str, site: str, known: Collection[str]) -> None:
        super().__init__(message)
        self.site = site
        self.known = known


class TooLarge(Permanent):
    """The message does not fit on the bus."""

    code = "too-large"


class TopicMismatch(Permanent):
    """A topic exists, but not as schemas/topics.py wants it, and it cannot be changed safely."""

    code = "topic-mismatch"


LIKE = 0.61  # of difflib's ratio: three letters of five match, half of the letters do not
NAMED = 20  # in a message at most
COMPARED = 5_000  # names at most: each costs some 10 microseconds


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like `name`, else the first that contains it; case is ignored."""
    by_lower = {each.lower(): each for each in islice(names, COMPARED)}
    wanted = name.strip().lower()
    close = get_close_matches(wanted, by_lower, n=1, cutoff=LIKE) or [one for one in by_lower if wanted in _parts(one)]
    return by_lower[close[0]] if close else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name; empty if no name is like it."""
    found = nearest(name, names)
    return f"; did you mean {found}?" if found else ""


def some_of(names: Collection[str]) -> str:
    """The names for a message; of many only the first, and how many more there are."""
    named = ", ".join(nsmallest(NAMED, names))
    return named if len(names) <= NAMED else f"{named} and {len(names) - NAMED:,} more"


def _parts(name: str) -> list[str]:
    return name.replace("-", "_").replace("/", "_").split("_")
