"""`python -m tests.faults.cluster --minutes 30 --seed 7`: the long form. Exit code 1 when anything was wrong."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from rich.console import Console

from tests.faults.cluster.faults import chosen, lanes, repair
from tests.faults.cluster.questions import Questions
from tests.faults.cluster.servers import running_cluster
from tests.faults.cluster.shape import shape, unclear
from tests.faults.storm.report import histories, numbers, print_table
from tests.faults.storm.storm import storm
from tests.faults.storm.world import open_world


async def run(minutes: float, seed: str, folder: Path, as_json: bool, only: Collection[str]) -> int:
    console = Console(stderr=True)

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    say(f"seed {seed}; logs in {folder}")
    async with (
        running_cluster(folder / "cluster") as cluster,
        open_world(cluster.engine, folder / "world", seed, shape(), say) as world,
    ):
        seconds = 60 * minutes if minutes else None
        asked = Questions()
        await asked.open(world)
        outcome = await storm(
            world,
            seconds=seconds,
            first=[repair(cluster)],
            lanes=chosen(cluster, only) if only else lanes(cluster, long=True),
            beside=[asked.ask],
        )
        if not outcome.clean:
            text = "\n".join(histories(world, outcome))
            (folder / "history.txt").write_text(text, encoding="utf-8")
            say(text)
        said_nothing_clear = unclear(world.history)
        for sent in said_nothing_clear:
            say(f"neither accepted nor refused with 503: {sent}")
    print_table(outcome, console)
    say(f"questions, by their end: {dict(asked.ended)}; the slowest took {asked.slowest:.0f} s")
    for each in asked.endless:
        say(f"a stream without an end: {each}")
    if as_json:
        refused = sum(sent.detail.startswith("503 ") for sent in world.history.sent)
        print(
            json.dumps(
                numbers(outcome)
                | {"refused_with_503": refused, "unclear": len(said_nothing_clear)}
                | {"questions": dict(asked.ended), "endless": asked.endless, "slowest": round(asked.slowest, 1)},
                indent=1,
            )
        )
    return 0 if outcome.clean and not said_nothing_clear and not asked.endless else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.cluster", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="0: until every fault has struck once")
    parser.add_argument("--seed", default=None, help="default: a new one, printed")
    parser.add_argument("--keep", type=Path, default=None, help="folder for logs and data, kept afterwards")
    parser.add_argument("--only", nargs="*", default=(), metavar="FAULT", help="these alone, by name")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # its outages are ours
    seed = given.seed or str(random.randrange(10**6))
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        return asyncio.run(run(given.minutes, seed, given.keep, given.json, given.only))
    with tempfile.TemporaryDirectory(prefix="pagewire-cluster-", ignore_cleanup_errors=True) as folder:
        return asyncio.run(run(given.minutes, seed, Path(folder), given.json, given.only))


if __name__ == "__main__":
    sys.exit(main())
