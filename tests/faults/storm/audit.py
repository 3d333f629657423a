"""The product's own audit beside ours: both must say the same. Before it exists there is nothing to compare."""

from __future__ import annotations

from tests.faults.storm.checker import Finding
from tests.faults.storm.commands import pagewire
from tests.faults.storm.world import World


async def product_audit(world: World, *, clean: bool) -> list[Finding]:
    """A finding when `pagewire index audit` calls clean what is not, or finds drift where there is none."""
    ended = await pagewire(world, "audit", world.site)
    if ended is None:
        return []
    world.note(f"pagewire index audit: exit code {ended.code}")
    if ended.code == (0 if clean else 1):
        return []
    return [
        Finding("audit", world.site, f"exit code {ended.code}, the storm's checker says clean={clean}: {ended.said}")
    ]
