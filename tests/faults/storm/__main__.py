"""`python -m tests.faults.storm --minutes 30 --seed 7`: the long form. Exit code 1 when anything was lost or wrong."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.faults.storm.own_engine import own_engine
from tests.faults.storm.report import histories, numbers, print_table
from tests.faults.storm.storm import storm
from tests.faults.storm.world import Shape, open_world


async def run(minutes: float, seed: str, shape: Shape, folder: Path, as_json: bool) -> int:
    console = Console(stderr=True)

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    say(f"seed {seed}; logs in {folder}")
    async with own_engine(folder / "engine") as engine, open_world(engine, folder / "world", seed, shape, say) as world:
        outcome = await storm(world, seconds=60 * minutes if minutes else None)
        if not outcome.clean:
            text = "\n".join(histories(world, outcome))
            (folder / "history.txt").write_text(text, encoding="utf-8")
            say(text)
    print_table(outcome, console)
    if as_json:
        print(json.dumps(numbers(outcome), indent=1))
    return 0 if outcome.clean else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.storm", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="0: until every fault has struck once")
    parser.add_argument("--seed", default=None, help="default: a new one, printed")
    parser.add_argument("--rate", type=float, default=Shape.rate, help="changes a second")
    parser.add_argument("--pages", type=int, default=Shape.pages)
    parser.add_argument("--keep", type=Path, default=None, help="folder for logs and data, kept afterwards")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # its outages are ours
    seed = given.seed or str(random.randrange(10**6))
    shape = Shape(rate=given.rate, pages=given.pages)
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        return asyncio.run(run(given.minutes, seed, shape, given.keep, given.json))
    with tempfile.TemporaryDirectory(prefix="pagewire-storm-", ignore_cleanup_errors=True) as folder:
        return asyncio.run(run(given.minutes, seed, shape, Path(folder), given.json))


if __name__ == "__main__":
    sys.exit(main())
