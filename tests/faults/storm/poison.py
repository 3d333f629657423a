"""Bytes that got into a topic by a mistake or on purpose, and that no stage can work on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from random import Random

from schemas.keys import page_key, part_key
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, MAX_MESSAGE_BYTES, RECEIPTS, Topic
from tests.faults.storm.history import Poison
from tests.faults.storm.world import World

TOPICS = (CHANGES, CHUNKS, EMBEDDINGS, RECEIPTS)


def _key(world: World, topic: Topic, random: Random) -> bytes:
    """A key of its own; in the derived topics also that of a real page, whose neighbours must not suffer."""
    name = f"poison/{random.randrange(10**9)}"
    if topic is not CHANGES and random.random() < 0.5:
        key = random.choice(world.drafts).key
    else:
        key = page_key(world.site, "en", name)
    return (part_key(key, random.randint(0, 1)) if topic is EMBEDDINGS else key).encode()


def noise(world: World, random: Random) -> Poison:
    topic = random.choice(TOPICS)
    return Poison(topic.name, _key(world, topic, random), b"\xff\x00" + random.randbytes(200), "noise")


def cut_off(world: World, random: Random) -> Poison:
    """JSON that ends too early."""
    topic = random.choice(TOPICS)
    value = json.dumps({"v": 1, "op": "upsert", "site": world.site, "salt": random.randrange(10**9)}).encode()[:-9]
    return Poison(topic.name, _key(world, topic, random), value, "cut off")


def of_the_future(world: World, random: Random) -> Poison:
    """A schema version that this software does not know."""
    topic = random.choice(TOPICS)
    value = json.dumps({"v": 2, "site": world.site, "salt": random.randrange(10**9)}).encode()
    return Poison(topic.name, _key(world, topic, random), value, "of an unknown version")


def huge(world: World, random: Random) -> Poison:
    """Nearly as large as a message may be, and random, so that compression does not help."""
    topic = random.choice((CHANGES, CHUNKS, EMBEDDINGS))
    value = b"\xff" + os.urandom(MAX_MESSAGE_BYTES - 1)
    return Poison(topic.name, _key(world, topic, random), value, "of 8 MiB")


POISONS: tuple[Callable[[World, Random], Poison], ...] = (noise, noise, cut_off, of_the_future, huge)
