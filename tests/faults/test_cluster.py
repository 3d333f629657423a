"""The cluster's short form: topics get their copies, servers fail under saves, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

from tests.faults.cluster.faults import lanes, repair
from tests.faults.cluster.servers import running_cluster
from tests.faults.cluster.shape import shape, unclear
from tests.faults.storm.report import histories, numbers
from tests.faults.storm.storm import storm
from tests.faults.storm.world import open_world

SEED = "4"


async def test_every_fault_of_a_cluster_once_and_nothing_is_lost(tmp_path: Path) -> None:
    async with (
        running_cluster(tmp_path / "cluster") as cluster,
        open_world(cluster.engine, tmp_path / "world", SEED, shape(pages=20, rate=6), print) as world,
    ):
        outcome = await storm(world, first=[repair(cluster)], lanes=lanes(cluster, long=False))
        print(numbers(outcome))
        assert outcome.clean, "\n".join(histories(world, outcome))
        assert unclear(world.history) == []
        assert outcome.accepted > 100
        assert sum(outcome.faults.values()) == 6
        assert outcome.letters == 0
        assert outcome.restarts == []
