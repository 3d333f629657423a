"""How often a visitor may ask, and how much a site's visitors in a day: counted in fixed windows, by all gateways.

    ask ─▶ Rates (visitor, address), DailyBudgets (site) ─▶ SharedCounts ◀─ limits.rates, limits.budgets ─▶ others

`limits` was tried: its in-memory storage walks all visitors on every hit and starts a task or thread for it. A
fixed window needs one dict, forgets everybody when the window ends, and lets at most two windows' worth through at
a border, which is all that a guard against a runaway page has to do. What gateways count for each other is shared
half a second later (docs/decisions/024-shared-limits.md).

Also here: how much is in hand at once of what costs memory before its sender is known, and what is worked out once for
all callers.
"""

from __future__ import annotations

import asyncio
import math
from asyncio import Lock
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from ipaddress import ip_network
from time import monotonic
from typing import Generic, Literal, TypeVar

from pydantic import SecretStr

from gateway.edge.peers import address_in
from gateway.edge.problems import Problem
from pipelines.runtime.counts import SharedCounts
from pipelines.runtime.errors import PagewireError

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
ADDRESS_FACTOR = 5  # a classroom asks from one address
NETWORK = 64  # bits of an IPv6 address: its subscriber has all addresses in it (RFC 4291, 2.5.4; RFC 6177)
NAME_BYTES = 9  # of a hash: what visitors are called in a topic

What = Literal[
    "ask",
    "search",
    "suggest",
    "token",
    "stop",
    "feedback",
    "conversation",
    "erase",
    "resume",
    "models",
    "completion",
    "sign-in",
    "page",
    "mcp",
    "nlweb",
    "handover",
    "indexnow",
    "websub",
]
# As often as a question: what asks no stage costs little. A completion, MCP or NLWeb request that is a question counts
# as both. Suggestions come once for each pause in typing.
TIMES: dict[What, int] = {
    **dict.fromkeys(("conversation", "resume", "models", "completion", "page", "mcp", "nlweb"), 6),
    "suggest": 12,
}


class DailyBudgets:
    """Questions that a site's visitors may ask in a day, all together, and at whichever gateway; days are UTC's."""

    def __init__(self, limits: Mapping[str, int | None], counts: SharedCounts) -> None:
        """`limits`: by site; None is no limit."""
        self._limits = limits
        self._counts = counts
        self._open: Counter[str] = Counter()

    @contextmanager
    def question(self, site: str) -> Iterator[None]:
        """Around taking one question in. What is refused in it costs nothing.

        Raises:
            Problem: 429, with the seconds until tomorrow.
        """
        limit = self._limits.get(site)
        if limit is None:
            yield
            return
        name = f"questions {site}"
        if self._counts.of(name) + self._open[site] >= limit:
            raise Problem(
                429,
                "daily-budget",
                f"all {limit:,} questions of the day have been asked on the site {site!r}",
                headers={"Retry-After": str(int(self._counts.left()) + 1)},
            )
        self._open[site] += 1
        try:
            yield
        except BaseException as err:
            if not _refused(err):
                self._counts.add(name)
            raise
        else:
            self._counts.add(name)
        finally:
            self._open[site] -= 1


class Rates:
    """What each visitor and each address may do in a window.

    Args:
        rate: settings.visitor_rate, such as `20/minute`. counts: of its `window`.
        secret: hashes visitors and addresses, the same way at every gateway.
    """

    def __init__(self, rate: str, counts: SharedCounts, secret: SecretStr) -> None:
        self._limit = int(rate.partition("/")[0])
        self._counts = counts
        self._key = blake2b(b"rates" + secret.get_secret_value().encode()).digest()

    def count(self, what: What, address: str, visitor: str | None = None) -> None:
        """Count one act of a visitor.

        Raises:
            Problem: 429, with the seconds to wait.
        """
        allowed = self._limit * TIMES.get(what, 1)
        budgets = [(self._name(what, "address", network(address)), allowed * ADDRESS_FACTOR)]
        if visitor is not None:
            budgets.append((self._name(what, "visitor", visitor), allowed))
        if any(self._counts.of(name) >= limit for name, limit in budgets):
            wait = int(self._counts.left()) + 1
            raise Problem(
                429,
                "too-many-requests",
                f"too many requests; try again in {wait} s",
                headers={"Retry-After": str(wait)},
            )
        for name, _ in budgets:
            self._counts.add(name)

    def _name(self, *parts: str) -> str:
        return blake2b("\0".join(parts).encode(), key=self._key, digest_size=NAME_BYTES).hexdigest()


def _refused(err: BaseException) -> bool:
    """Whether the question was refused; else the answer failed, or its visitor has gone."""
    return isinstance(err, PagewireError) or (isinstance(err, Problem) and err.status < 500)


def window(rate: str) -> int:
    """Seconds in which so many acts may come."""
    return SECONDS[rate.partition("/")[2]]


def network(address: str) -> str:
    """The subscriber that an address stands for: itself, and of IPv6 the network that one subscriber has."""
    parsed = address_in(address)
    if parsed is None:  # a Unix socket has none
        return address
    return str(ip_network((int(parsed), NETWORK), strict=False)) if parsed.version == 6 else str(parsed)


WAIT = 2  # seconds until it pays to come again
T = TypeVar("T")


class AtOnce:
    """`most` of all addresses together, and a part of them of each: one address leaves the others theirs."""

    def __init__(self, most: int, of_one: int) -> None:
        self._most = most
        self._of_one = of_one
        self._in_hand: Counter[str] = Counter()

    @contextmanager
    def one(self, address: str) -> Iterator[None]:
        """Around one of them. Raises: Problem: 429."""
        name = network(address)
        if self._in_hand[name] >= self._of_one or self._in_hand.total() >= self._most:
            raise Problem(429, "too-many-requests", "too many at once; try again", headers={"Retry-After": str(WAIT)})
        self._in_hand[name] += 1
        try:
            yield
        finally:
            self._in_hand[name] -= 1
            self._in_hand += Counter()  # forgets those that have none


class InTurn(AtOnce):
    """The same for names that are no addresses; of each name, one works at a time."""

    def __init__(self, most: int, of_one: int) -> None:
        super().__init__(most, of_one)
        self.turns: defaultdict[str, Lock] = defaultdict(Lock)  # of names in the configuration only


class Cached(Generic[T]):
    """Made at most once in `seconds`, by default once; who asks while it is made waits for the same.

    Args:
        clock: in seconds.
    """

    def __init__(
        self, make: Callable[[], Awaitable[T]], seconds: float = math.inf, clock: Callable[[], float] = monotonic
    ) -> None:
        self._make = make
        self._seconds = seconds
        self._clock = clock
        self._lock = asyncio.Lock()
        self._made: tuple[float, T] | None = None

    async def get(self) -> T:
        """Raises: as `make`, which the next who asks tries again."""
        async with self._lock:
            if self._made is None or self._clock() >= self._made[0]:
                value = await self._make()
                self._made = (self._clock() + self._seconds, value)
            return self._made[1]
