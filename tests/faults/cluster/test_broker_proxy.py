"""What the proxy lets through, and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from infra.engine.state import any_free
from infra.running import HOST
from tests.faults.cluster.broker_proxy import BrokerProxy

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
SOON = 5.0  # seconds
MOMENT = 0.1  # seconds in which nothing must happen


class Echo:
    """A broker that says what it heard."""

    def __init__(self) -> None:
        self.heard = b""
        self.gone = asyncio.Event()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            self.heard += data
            writer.write(data)
        self.gone.set()
        writer.close()


@asynccontextmanager
async def connected(echo: Echo) -> AsyncIterator[tuple[BrokerProxy, Streams]]:
    server = await asyncio.start_server(echo.answer, HOST, 0)
    target = server.sockets[0].getsockname()[1]
    try:
        async with BrokerProxy(any_free({target}), target) as proxy:
            streams = await asyncio.open_connection(HOST, proxy.port)
            try:
                yield proxy, streams
            finally:
                streams[1].close()
    finally:
        server.close()


async def said(streams: Streams, text: bytes) -> None:
    streams[1].write(text)
    async with asyncio.timeout(SOON):
        assert await streams[0].readexactly(len(text)) == text


async def mute(streams: Streams) -> bool:
    try:
        async with asyncio.timeout(MOMENT):
            await streams[0].readexactly(1)
    except TimeoutError:
        return True
    return False


async def test_what_was_sent_during_a_cut_comes_when_it_is_mended() -> None:
    echo = Echo()
    async with connected(echo) as (proxy, streams):
        await said(streams, b"hello")
        for way in proxy.ways:
            way.cut()
        streams[1].write(b"more")
        assert await mute(streams)
        assert echo.heard == b"hello"
        for way in proxy.ways:
            way.mend()
        async with asyncio.timeout(SOON):
            assert await streams[0].readexactly(4) == b"more"


@pytest.mark.parametrize("lost", ["to_broker", "from_broker"])
async def test_a_cut_of_one_way_leaves_the_other(lost: str) -> None:
    echo = Echo()
    async with connected(echo) as (proxy, streams):
        await said(streams, b"hello")
        getattr(proxy, lost).cut()
        streams[1].write(b"!")
        assert await mute(streams)
        assert (echo.heard == b"hello!") == (lost == "from_broker")


async def test_a_delay_counts_each_way_and_keeps_the_order() -> None:
    async with connected(Echo()) as (proxy, streams):
        for way in proxy.ways:
            way.delay = 0.05
        began = asyncio.get_running_loop().time()
        await said(streams, b"one")
        assert asyncio.get_running_loop().time() - began >= 0.1
        streams[1].write(b"two")
        await asyncio.sleep(0.01)  # read by now, and on its way
        proxy.to_broker.delay = 0.0
        streams[1].write(b"three")
        async with asyncio.timeout(SOON):
            assert await streams[0].readexactly(8) == b"twothree"


async def test_who_hangs_up_is_gone_for_the_other_side_when_nothing_is_cut() -> None:
    echo = Echo()
    async with connected(echo) as (proxy, streams):
        await said(streams, b"hello")
        proxy.to_broker.cut()
        streams[1].close()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(MOMENT):
                await echo.gone.wait()
        proxy.to_broker.mend()
        async with asyncio.timeout(SOON):
            await echo.gone.wait()


async def test_a_broker_that_is_gone_hangs_up() -> None:
    async with BrokerProxy(any_free(set()), any_free(set())) as proxy:
        reader, writer = await asyncio.open_connection(HOST, proxy.port)
        async with asyncio.timeout(SOON):
            assert await reader.read() == b""
        writer.close()
