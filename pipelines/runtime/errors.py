"""One base, two branches: what may be tried again and what never will."""

from __future__ import annotations


class PagewireError(Exception):
    """Something Pagewire can explain. `code` is stable, for scripts and problem documents."""

    code = "error"


class Retryable(PagewireError):
    """A service is away or busy: the same work may succeed later."""

    code = "unavailable"


class Permanent(PagewireError):
    """The same work will fail again: dead letter, or a refusal at the edge."""

    code = "refused"


class WrongUse(Permanent):
    """Whoever called must put something right first: a setting, an argument, a file."""

    code = "wrong-use"


class SettingsError(WrongUse):
    """A setting is wrong; names it."""

    code = "bad-setting"


class UnknownSite(WrongUse):
    """No such site in pagewire.yaml."""

    code = "unknown-site"


class TooLarge(Permanent):
    """The message does not fit on the bus."""

    code = "too-large"


class TopicMismatch(Permanent):
    """A topic exists, but not as schemas/topics.py wants it, and it cannot be changed safely."""

    code = "topic-mismatch"
