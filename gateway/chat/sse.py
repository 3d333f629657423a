"""Answer events as `text/event-stream` (docs/reference/answer-stream.md; the format: WHATWG HTML).

    ports.Answers ─▶ PeekableEvents (wait for the first) ─▶ AnswerWriter (events as bytes) ─▶ EventStream ─▶ visitor

Our own response class rather than sse-starlette's: it pulls one event at a time, so that a slow reader slows the
source instead of filling memory; it needs no ping task per visitor and no patch of uvicorn's signal handling; and a
client that disconnects ends the source at once, also between two events.

One task takes an event and sends it: no other task is woken between the log and the socket. A second one checks every
few seconds how long the reader or the source has been silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Literal, Protocol, TypeVar, cast

import structlog
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.edge.auth import Caller
from gateway.edge.metrics import OPEN_STREAMS
from gateway.edge.problems import Trouble, message
from pipelines.conversations.ask import Followed, UnknownAnswer
from pipelines.runtime.errors import Retryable
from schemas.answer import Accepted, Answered, Done, Event, Failed, Step, WrittenToken
from schemas.http import ChatResponse
from wiring.settings import Settings

Shown = Literal["all", "looks", "none"]
LOOKS = {"search", "lookup", "tool"}  # kinds of steps; prompts and replies of models are for operators

Reply = TypeVar("Reply", bound=BaseModel)


def steps_for(caller: Caller, settings: Settings, site: str) -> Shown:
    """The kinds of steps that this caller sees on a site."""
    if caller.visitor is None:
        return "all"
    return "looks" if settings.site(site).chat.show_steps else "none"


def with_steps(reply: Reply, shown: Shown) -> tuple[Reply, set[str]]:
    """The reply with the steps that may be seen, and the fields to leave out when it is written."""
    if shown == "all" or not isinstance(reply, Answered | ChatResponse):
        return reply, set()
    if shown == "none":
        return reply, {"trace"}
    looks = tuple(Step(kind=step.kind, asked=step.asked) for step in reply.trace if step.kind in LOOKS)
    return cast(Reply, reply.model_copy(update={"trace": looks})), set()


log = structlog.get_logger(__name__)

HEARTBEAT = 10.0  # seconds of silence before a comment: proxies hang up on silence
SEND_TIMEOUT = 30.0  # seconds a reader may leave full buffers alone
STILL_HERE = b": still here\n\n"
LEFT_OUT = {
    "type",
    "trial",
    "found",
}  # of events: the first becomes the SSE event's name, the others belong to trials and to clients that do not stream
HEADERS = {
    "Cache-Control": "no-cache, no-transform",  # a proxy that compresses would collect the tokens, too
    "X-Accel-Buffering": "no",  # nginx would collect the tokens
}


class PeekableEvents:
    """Takes events from a generator. The first can be awaited with a timeout, and is taken later."""

    def __init__(self, events: AsyncGenerator[Followed, None]) -> None:
        self._events = events
        self._first: asyncio.Task[Followed | None] | None = None

    async def begin(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the first event, which stays; False when there is none at all.

        Raises: what the generator raises, while the answer can still be a status code.
        """
        self._first = asyncio.create_task(self._next())
        try:
            await asyncio.wait({self._first}, timeout=timeout)
            if not self._first.done() or self._first.result() is not None:
                return True
        except BaseException:
            await self.aclose()
            raise
        await self.aclose()
        return False

    async def take(self) -> Followed | None:
        """The next event; None at the end. Raises what the generator raises."""
        if self._first is not None:
            first, self._first = self._first, None
            return await first
        return await anext(self._events, None)

    async def aclose(self) -> None:
        """Stop following. No `take` may be running."""
        if self._first is not None:
            self._first.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._first
        await self._events.aclose()

    async def _next(self) -> Followed | None:
        return await anext(self._events, None)


class AnswerWriter(Protocol):
    """An answer's events as bytes, for one reader."""

    def begin(self) -> bytes:
        """What goes before the first event."""
        ...

    def event(self, followed: Followed) -> bytes: ...

    def trouble(self, trouble: Trouble) -> bytes:
        """The last bytes of a stream that cannot continue."""
        ...

    async def reader_left(self) -> None:
        """The reader did not get the end."""
        ...


def frame(event: Event, id: str, *, steps: Shown = "all") -> bytes:
    """One SSE event. JSON has no raw line breaks, so one `data` line holds it.

    Args:
        steps: kinds of steps that the reader may see.
    """
    event, hidden = with_steps(event, steps)
    data = event.model_dump_json(exclude={*LEFT_OUT, *hidden})
    return f"id: {id}\nevent: {event.type}\ndata: {data}\n\n".encode()


class Frames:
    """Events as they are, each with the id to resume from.

    Args:
        event_id: what goes into `id:` for a position.
        position: where the reader stands before the first event.
        accepted: sent first to a reader that starts from the beginning.
        steps: as for `frame`.
    """

    def __init__(
        self,
        event_id: Callable[[str], str],
        lang: str,
        position: str = "",
        accepted: Accepted | None = None,
        *,
        steps: Shown = "all",
    ) -> None:
        self._event_id = event_id
        self._lang = lang
        self._position = position
        self._accepted = accepted
        self._steps = steps

    def begin(self) -> bytes:
        return b"" if self._accepted is None else frame(self._accepted, self._event_id(self._position))

    def event(self, followed: Followed) -> bytes:
        self._position = followed.position
        id, event = self._event_id(followed.position), followed.event
        if isinstance(event, WrittenToken):
            return f"id: {id}\nevent: token\ndata: {event.data}\n\n".encode()
        return frame(event.event, id, steps=self._steps)

    def trouble(self, trouble: Trouble) -> bytes:
        # The reader keeps its position, so it can still resume.
        id = self._event_id(self._position)
        return frame(Failed(code=trouble, message=message(trouble, self._lang)), id) + frame(Done(), id)

    async def reader_left(self) -> None:
        """The answer is written to its end, and kept."""


class EventStream(Response):
    """Sends events until they end, the reader leaves, or it reads nothing for `SEND_TIMEOUT`.

    Args:
        deadline: on the running loop's clock; the stream ends then.
    """

    media_type = "text/event-stream"

    def __init__(self, events: PeekableEvents, writer: AnswerWriter, deadline: float) -> None:
        super().__init__(headers=HEADERS, media_type=self.media_type)
        del self.headers["content-length"]
        self._events = events
        self._writer = writer
        self._deadline = deadline
        self._now = asyncio.get_running_loop().time
        self._since = self._now()  # when something was sent last, or its sending began
        self._sending = True  # else we wait for the next event
        self._late = False  # the deadline has passed
        self._over = False  # nothing more is to be sent
        self._told = False  # the end, or that there is none

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        OPEN_STREAMS.inc()
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(client_left(receive))
        try:
            await self._watch(sending, leaving, send)
            if sending.done():
                sending.result()
        finally:
            self._over = True
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await self._events.aclose()
            OPEN_STREAMS.dec()
            if not self._told:
                await self._writer.reader_left()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        self._sending = False
        async with aclosing(self._pieces()) as pieces:
            async for data in pieces:
                self._since, self._sending = self._now(), True
                await send({"type": "http.response.body", "body": data, "more_body": True})
                self._sending = False
        self._since, self._sending = self._now(), True
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """The stream's bytes, to its end. Events that are available together are sent together. A failure
        becomes an event in plain words.
        """
        if begin := self._writer.begin():
            yield begin
        held: list[bytes] = []
        trouble: Trouble = "timeout"
        try:
            while not self._late:
                followed = await self._events.take()
                if followed is None:
                    self._told = True
                    return
                if self._over:  # a generator may lose a cancellation that comes with its next event (asyncio.wait_for)
                    return
                held.append(self._writer.event(followed))
                if followed.more:
                    continue
                self._told = followed.event.final
                if piece := b"".join(held):
                    yield piece
                if self._told:
                    return
                held.clear()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._over or not self._late or task is None or task.uncancel() > 0:
                raise
        except Retryable:
            log.warning("an answer broke off: its log cannot be read")
            trouble = "unavailable"
        except UnknownAnswer as err:  # of another site, as its first event shows after the stream has begun
            log.warning("an answer is not told", error=str(err))
            trouble = "internal"
        except Exception:
            log.exception("an answer broke off")
            trouble = "internal"
        yield b"".join((*held, self._writer.trouble(trouble)))

    async def _watch(self, sending: asyncio.Task[None], leaving: asyncio.Task[None], send: Send) -> None:
        """Sends comments during silence, and ends the stream at the deadline; returns once it is over."""
        while True:
            until = self._since + (SEND_TIMEOUT if self._sending else HEARTBEAT)
            now = self._now()
            if not self._late and (now < self._deadline or not self._sending):
                until = min(until, self._deadline)
            patience = min(HEARTBEAT, max(0.0, until - now))
            await asyncio.wait({sending, leaving}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() or leaving.done():
                return
            silent = self._now() - self._since
            if self._sending:
                if silent >= SEND_TIMEOUT:
                    break
            elif self._now() >= self._deadline and not self._late:
                self._late = True
                sending.cancel()
            elif silent >= HEARTBEAT:
                self._since = self._now()
                try:
                    async with asyncio.timeout(SEND_TIMEOUT):
                        await send({"type": "http.response.body", "body": STILL_HERE, "more_body": True})
                except TimeoutError:
                    break
        log.info("a reader who takes nothing is let go", seconds=SEND_TIMEOUT)  # the server closes the connection


async def client_left(receive: Receive) -> None:
    """Returns when the client has disconnected. Its request must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
