"""Keys that are made and revoked while the system runs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from pipelines.operate import access_keys
from pipelines.operate.access_keys import AccessKeys, FiledKey, KeyInFile, KeyTaken, TooManyKeys, UnknownKey
from pipelines.runtime.errors import Retryable
from schemas.access_key import NewKey, digest_of
from tests.fakes.stores import FakeKeyStore

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
CMS = FiledKey("cms", digest_of("key-of-the-cms"), ("ingest",), "town", ())


class World:
    """A store, and gateways with a clock in common."""

    def __init__(self) -> None:
        self.now = NOON
        self.store = FakeKeyStore()

    def gateway(self, *filed: FiledKey) -> AccessKeys:
        return AccessKeys(self.store, filed or (CMS,), lambda: self.now)


@pytest.fixture
def world() -> World:
    return World()


def wanted(name: str = "webmaster", **more: object) -> NewKey:
    return NewKey.model_validate({"name": name, "scopes": ("admin",)} | more)


def names(gateway: AccessKeys) -> list[str]:
    return [key.name for key in gateway.known()]


async def test_a_key_is_told_once_and_kept_as_its_hash_alone(world: World) -> None:
    keys = world.gateway()
    made = await keys.create(wanted(site="town", groups=("staff",)), "admin")
    assert len(made.key) > 40
    [kept] = world.store.kept.values()
    assert kept.sha256 == digest_of(made.key)
    assert made.key not in kept.model_dump_json()
    assert made.id == kept.sha256[:12]
    listed = await keys.list()
    assert [(key.name, key.kept_in, key.state) for key in listed] == [
        ("cms", "file", "good"),
        ("webmaster", "store", "good"),
    ]
    assert (listed[1].site, listed[1].groups, listed[1].created_by, listed[1].created_at) == (
        "town",
        ("staff",),
        "admin",
        NOON,
    )
    assert "sha256" not in listed[1].model_dump_json()


async def test_who_made_a_key_can_use_it_at_once_and_others_after_their_next_look(world: World) -> None:
    here, there = world.gateway(), world.gateway()
    made = await here.create(wanted(), "admin")
    assert (names(here), names(there)) == (["webmaster"], [])
    await there.look()
    assert names(there) == ["webmaster"]
    gone = await there.revoke(made.id)
    assert gone.name == "webmaster"
    assert (names(here), names(there)) == (["webmaster"], [])
    await here.look()
    assert names(here) == []


async def test_gateways_look_by_themselves(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_keys, "REFRESH", 0.001)
    here, there = world.gateway(), world.gateway()
    await there.start()
    try:
        await here.create(wanted(), "admin")
        async with asyncio.timeout(10):
            while names(there) != ["webmaster"]:  # noqa: ASYNC110  # nothing tells when a look is over
                await asyncio.sleep(0.001)
            for trouble in (Retryable("away"), RuntimeError("unforeseen")):
                looked, world.store.error = world.store.reads, trouble
                while world.store.reads < looked + 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            world.store.error = None
            await here.revoke("webmaster")
            while names(there):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    finally:
        await there.aclose()


async def test_keys_known_last_stay_good_while_the_store_is_away(world: World) -> None:
    keys = world.gateway()
    await keys.create(wanted(expires_at=NOON + timedelta(days=90)), "admin")
    world.store.error = Retryable("Elasticsearch does not answer")
    assert not await keys.look()
    assert names(keys) == ["webmaster"]
    with pytest.raises(Retryable):
        await keys.create(wanted("another"), "admin")
    with pytest.raises(Retryable):
        await keys.revoke("webmaster")
    # Their end needs no store.
    world.now += timedelta(days=90)
    assert names(keys) == []


async def test_a_key_ends_when_its_time_has_come(world: World) -> None:
    keys = world.gateway()
    await keys.create(wanted(expires_at=NOON + timedelta(hours=1)), "admin")
    world.now += timedelta(minutes=59)
    assert names(keys) == ["webmaster"]
    world.now += timedelta(minutes=1)
    assert names(keys) == []
    assert [key.state for key in await keys.list()] == ["good", "expired"]


@pytest.mark.parametrize("name", ["cms", "admin", "visitor", "webmaster"])
async def test_no_two_keys_have_one_name(world: World, name: str) -> None:
    keys = world.gateway()
    await keys.create(wanted(), "admin")
    with pytest.raises(KeyTaken):
        await keys.create(wanted(name), "admin")
    assert len(world.store.kept) == 1


async def test_of_two_who_make_a_key_of_one_name_at_once_one_succeeds(world: World) -> None:
    made = await asyncio.gather(*(world.gateway().create(wanted(), "admin") for _ in range(2)), return_exceptions=True)
    assert sorted(isinstance(one, KeyTaken) for one in made) == [False, True]


async def test_a_name_that_the_file_took_later_wins(world: World) -> None:
    await world.gateway().create(wanted(), "admin")
    later = world.gateway(FiledKey("webmaster", "0" * 64, ("chat",), None, ()))
    await later.look()
    assert names(later) == []
    assert [(key.kept_in, key.state) for key in await later.list()] == [("file", "good"), ("store", "shadowed")]
    # It can be taken away all the same.
    assert (await later.revoke("webmaster")).kept_in == "store"
    assert world.store.kept == {}


async def test_only_keys_that_were_made_are_revoked(world: World) -> None:
    keys = world.gateway()
    for key in ("cms", CMS.sha256[:12]):
        with pytest.raises(KeyInFile):
            await keys.revoke(key)
    for key in ("nobody", "admin", "0" * 12):
        with pytest.raises(UnknownKey):
            await keys.revoke(key)


async def test_a_name_goes_before_an_id(world: World) -> None:
    keys = world.gateway()
    first = await keys.create(wanted(), "admin")
    await keys.create(wanted(first.id), "admin")
    await keys.revoke(first.id)
    assert list(world.store.kept) == ["webmaster"]


async def test_there_is_an_end_to_their_number(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_keys, "MAX_KEYS", 1)
    keys = world.gateway()
    await keys.create(wanted(), "admin")
    with pytest.raises(TooManyKeys):
        await keys.create(wanted("another"), "admin")
