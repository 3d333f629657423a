"""`pagewire` that kills itself in the middle of a promotion: `python -m tests.acceptance.dying POINT promote SITE ...`.

held        nobody gets a receipt, the old index is live
swapped     the new index is live, and nothing says so yet
ended       all is done but the note that it is live
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from adapters.elastic.indexes import ElasticIndexes
from adapters.elastic.rebuilds import ElasticRebuilds
from schemas.rebuild import Rebuild

POINTS = ("held", "swapped", "ended")

hold, swap, put = ElasticIndexes.hold, ElasticIndexes.swap, ElasticRebuilds.put


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def hold_and_die(self: ElasticIndexes, *given: Any) -> None:
    await hold(self, *given)
    die()


async def swap_and_die(self: ElasticIndexes, *given: Any) -> None:
    await swap(self, *given)
    die()


async def put_or_die(self: ElasticRebuilds, rebuild: Rebuild) -> None:
    if rebuild.state == "live" and rebuild.promoted_at is not None and rebuild.generation == int(sys.argv[-1]):
        die()
    await put(self, rebuild)


if __name__ == "__main__":
    point = sys.argv.pop(1)
    if point == "held":
        ElasticIndexes.hold = hold_and_die  # type: ignore[assignment, method-assign]
    elif point == "swapped":
        ElasticIndexes.swap = swap_and_die  # type: ignore[assignment, method-assign]
    elif point == "ended":
        ElasticRebuilds.put = put_or_die  # type: ignore[method-assign]
    from cli.main import main

    main()
