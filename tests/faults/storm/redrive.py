"""What an operator does when the storm is over: put the dead letters back, once their cause is gone."""

from __future__ import annotations

from aiokafka import TopicPartition

from schemas.topics import CHANGES
from tests.faults.storm import topics
from tests.faults.storm.commands import pagewire
from tests.faults.storm.evidence import Letter
from tests.faults.storm.readback import letters, settle
from tests.faults.storm.world import World

ROUNDS = 4
MODEL_MISMATCH = "model-mismatch"  # its vectors are of another model: the page must be embedded again


async def redrive(world: World, limit: float) -> int:
    """Put back every letter but the poison, again when it comes back; how many there were.

    The system is at rest afterwards.
    """
    done: set[tuple[str, tuple[int, int]]] = set()
    total = 0
    for _ in range(ROUNDS):
        await settle(world, limit)
        poison = {(one.topic, one.key, one.value) for one in world.history.poison}
        fresh = [
            letter
            for letter in await letters(world)
            if (letter.topic, letter.key, letter.value) not in poison and (letter.topic, letter.place) not in done
        ]
        if not fresh:
            return total
        total += len(fresh)
        done |= {(letter.topic, letter.place) for letter in fresh}
        codes = sorted({letter.code for letter in fresh})
        ended = await pagewire(world, "dlq", "redrive", "--all", "--yes")
        assert ended is None or ended.code == 0, f"pagewire dlq redrive: {ended}"
        by_command = ended is not None
        world.note(f"redrive {len(fresh)} dead letters ({', '.join(codes)}){' by command' if by_command else ''}")
        if not by_command:
            await _by_hand(world, fresh)
    await settle(world, limit)
    return total


async def _by_hand(world: World, fresh: list[Letter]) -> None:
    changes = {}
    if any(letter.code == MODEL_MISMATCH for letter in fresh):
        for message in await topics.read(world, [world.prefix + CHANGES.name]):
            changes[message.key] = message
    async with topics.writer(world) as producer:
        for letter in fresh:
            change = changes.get((letter.page or "").encode())
            if letter.code == MODEL_MISMATCH and change is not None:
                await producer.send_and_wait(change.topic, change.value, change.key, partition=change.partition)
                continue
            at = TopicPartition(world.prefix + letter.topic, letter.partition)
            await producer.send_and_wait(
                at.topic, letter.value, letter.key, partition=at.partition, headers=list(letter.headers)
            )
