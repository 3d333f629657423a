"""The network between a broker and those who talk to it: cut, cut one way, slowed.

    Pagewire ─▶ proxy ─▶ broker        other brokers ─▶ proxy ─▶ broker

A broker tells everybody the proxy's address for its own. Like a network that loses packets, a cut keeps what was sent
and delivers it once it is mended, to whoever still listens. Unlike it, it takes new connections at once, and is mute.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from infra.running import HOST

CHUNK = 64 * 1024  # bytes
WAITING = 64  # chunks on their way


class Way:
    """One direction of all connections."""

    def __init__(self) -> None:
        self.delay = 0.0  # seconds
        self._open = asyncio.Event()
        self._open.set()

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Whatever comes, and its end, in order. Raises: OSError."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING)

        async def deliver() -> None:
            while True:
                due, data = await waiting.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                await self._open.wait()
                if not data:
                    return
                writer.write(data)
                await writer.drain()

        async with asyncio.TaskGroup() as group:
            group.create_task(deliver(), name="deliver")
            data = b" "
            while data:
                try:
                    data = await reader.read(CHUNK)
                except OSError:
                    data = b""
                await waiting.put((loop.time() + self.delay, data))


class BrokerProxy:
    """`async with BrokerProxy(port, target)`; damage `to_broker` and `from_broker` at any time."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.to_broker = Way()
        self.from_broker = Way()
        self.target = target
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def ways(self) -> tuple[Way, Way]:
        return self.to_broker, self.from_broker

    async def __aenter__(self) -> BrokerProxy:
        self._server = await asyncio.start_server(self._connected, HOST, self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._between(reader, writer)
        except asyncio.CancelledError:  # asyncio's server would print it
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _between(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until either side has ended, and the other one has heard of it."""
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self.target)
        except OSError:
            return  # the broker is gone
        ways = (
            asyncio.create_task(self.to_broker.carry(reader, far_writer), name="to broker"),
            asyncio.create_task(self.from_broker.carry(far_reader, writer), name="from broker"),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*ways, return_exceptions=True)
            far_writer.transport.abort()
