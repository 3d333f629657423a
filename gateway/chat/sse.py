"""Answer events as `text/event-stream` (docs/reference/answer-stream.md; the format: WHATWG HTML).

    ports.Answers ─▶ Patient (waits without cancelling) ─▶ frames (heartbeat, deadline) ─▶ EventStream ─▶ visitor

Our own response class rather than sse-starlette's: it pulls one event at a time, so that a slow reader slows the
source instead of filling memory; it needs no ping task per visitor and no patch of uvicorn's signal handling; and a
visitor who leaves ends the source at once, also between two events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.chat.late import Late
from gateway.chat.steps import Shown, with_steps
from gateway.edge.messages import Trouble, message
from gateway.edge.metrics import OPEN_STREAMS
from gateway.ports import Followed
from pipelines.conversations.ask import UnknownAnswer
from pipelines.runtime.errors import Retryable
from schemas.answer import Accepted, Done, Event, Failed

log = structlog.get_logger(__name__)

HEARTBEAT = 10.0  # seconds of silence before a comment: proxies hang up on silence
SEND_TIMEOUT = 30.0  # seconds a reader may leave full buffers alone
LEFT_OUT = {
    "type",
    "trial",
    "found",
}  # of events: the first is told as their name, the others are of trials, and of programs that do not stream
HEADERS = {
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",  # nginx would collect the tokens
}


class Patient:
    """Takes events from a generator; giving up waiting leaves the generator as it is, ready for the next wait.

    One task pulls them, each when somebody waits for it: a task and a timer for each event would cost the gateway
    more than all else that it does with it.
    """

    def __init__(self, events: AsyncGenerator[Followed, None]) -> None:
        self._events = events
        self._pulling: asyncio.Task[None] | None = None
        self._pulled: Followed | None = None
        self._waiting: asyncio.Future[None] | None = None  # for the next one
        self._wanted: asyncio.Future[None] | None = None  # before the next is pulled
        self._closed = False
        self._late = Late(self._arrived)

    async def begin(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the first event, which stays; False when there is none at all.

        Raises: what the generator raises, while the answer can still be a status code.
        """
        try:
            if not await self.ready(timeout) or self._pulled is not None:
                return True
            await self.take()  # raises, or there is none
            return False
        except BaseException:
            await self.aclose()
            raise

    async def ready(self, timeout: float) -> bool:
        """Whether `take` will return (or raise) at once, waiting up to `timeout` seconds for it."""
        if self._here():
            return True
        self._late.set(max(timeout, 0))
        try:
            await self._wait()
        finally:
            self._late.clear()
        return self._here()

    async def take(self) -> Followed | None:
        """The next event; None at the end. Raises what the generator raises."""
        while not self._here():
            await self._wait()
        if self._pulled is None:
            assert self._pulling is not None  # it has ended
            self._pulling.result()
            return None
        followed, self._pulled = self._pulled, None
        return followed

    async def aclose(self) -> None:
        """Stop following."""
        self._closed = True
        self._late.close()
        if self._pulling is not None:
            self._pulling.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._pulling
        await self._events.aclose()

    def _here(self) -> bool:
        return self._pulled is not None or (self._pulling is not None and self._pulling.done())

    async def _wait(self) -> None:
        """Until there is one, or no more of them, or it is late."""
        self._waiting = asyncio.get_running_loop().create_future()
        if self._pulling is None:
            self._pulling = asyncio.create_task(self._pull())
            self._pulling.add_done_callback(lambda _: self._arrived())
        _wake(self._wanted)
        try:
            await self._waiting
        finally:
            self._waiting = None

    async def _pull(self) -> None:
        async for followed in self._events:
            self._pulled = followed
            self._arrived()
            if self._closed:  # a generator may lose a cancellation that comes with its next event (asyncio.wait_for)
                return
            self._wanted = asyncio.get_running_loop().create_future()
            await self._wanted

    def _arrived(self) -> None:
        _wake(self._waiting)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def frame(event: Event, id: str, *, steps: Shown = "all") -> bytes:
    """One SSE event. JSON has no raw line breaks, so one `data` line holds it.

    Args:
        steps: what the reader may see of those that led to an answer.
    """
    event, hidden = with_steps(event, steps)
    data = event.model_dump_json(exclude={*LEFT_OUT, *hidden})
    return f"id: {id}\nevent: {event.type}\ndata: {data}\n\n".encode()


async def frames(
    events: Patient,
    event_id: Callable[[str], str],
    lang: str,
    deadline: float,
    position: str = "",
    accepted: Accepted | None = None,
    heartbeat: float = HEARTBEAT,
    *,
    steps: Shown = "all",
) -> AsyncGenerator[bytes, None]:
    """The stream's bytes, to `done`; what fails on the way is told in plain words.

    Args:
        event_id: what goes into `id:` for a position.
        deadline: on the running loop's clock; after it nobody waits any more.
        position: where the reader stands before the first event.
        accepted: goes before the others, for a reader who begins anew.
        steps: as for `frame`.
    """
    now = asyncio.get_running_loop().time
    trouble: Trouble
    if accepted is not None:
        yield frame(accepted, event_id(position))
    try:
        while True:
            remaining = deadline - now()
            if not await events.ready(min(heartbeat, remaining)):
                if remaining <= heartbeat:
                    trouble = "timeout"
                    break
                yield b": still here\n\n"
                continue
            followed = await events.take()
            if followed is None:
                return
            position = followed.position
            yield frame(followed.event.event, event_id(position), steps=steps)
            if followed.event.final:
                return
    except Retryable:
        log.warning("an answer broke off: its log cannot be read")
        trouble = "unavailable"
    except UnknownAnswer as err:  # another site's, as its first event told after the stream had begun
        log.warning("an answer is not told", error=str(err))
        trouble = "internal"
    except Exception:
        log.exception("an answer broke off")
        trouble = "internal"
    # The reader keeps its place, so that it may still resume and read what came too late.
    id = event_id(position)
    yield frame(Failed(code=trouble, message=message(trouble, lang)), id)
    yield frame(Done(), id)


class EventStream(Response):
    """Sends frames until they end, the reader leaves, or it reads nothing for `SEND_TIMEOUT`."""

    media_type = "text/event-stream"

    def __init__(self, events: Patient, frames: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers=HEADERS, media_type=self.media_type)
        del self.headers["content-length"]
        self._events = events
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        OPEN_STREAMS.inc()
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await self._events.aclose()
            OPEN_STREAMS.dec()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sending = asyncio.current_task()
        assert sending is not None
        stuck = False

        def let_go() -> None:
            nonlocal stuck
            stuck = True
            sending.cancel()

        late = Late(let_go)
        try:
            async with aclosing(self._frames) as frames:
                async for data in frames:
                    late.set(SEND_TIMEOUT)
                    await send({"type": "http.response.body", "body": data, "more_body": True})
                    late.clear()
        except asyncio.CancelledError:
            if not stuck or sending.uncancel() > 0:  # the visitor left
                raise
            log.info("a reader who takes nothing is let go", seconds=SEND_TIMEOUT)
            return  # unfinished, so the server closes the connection
        finally:
            late.close()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
