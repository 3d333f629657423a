"""HEAD wherever there is GET (RFC 9110, 9.1): uptime monitors, link checkers and `curl --head` ask so."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Heads:
    """Answers HEAD with the head of what GET answers, and ends there: a stream is not waited for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        # A copy: the server goes by its own whether a body belongs to the answer.
        asked: Scope = {**scope, "method": "GET"}

        async def head(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope.update((name, asked[name]) for name in ("route", "path_params") if name in asked)
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(asked, receive, head)
