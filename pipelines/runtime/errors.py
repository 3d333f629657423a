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


class SettingsError(Permanent):
    """A setting is wrong; names it."""

    code = "bad-setting"


class UnknownSite(Permanent):
    """No such site in pagewire.yaml."""

    code = "unknown-site"


class TooLarge(Permanent):
    """The message does not fit on the bus."""

    code = "too-large"


class TopicMismatch(Permanent):
    """A topic exists, but not as schemas/topics.py wants it, and it cannot be changed safely."""

    code = "topic-mismatch"
