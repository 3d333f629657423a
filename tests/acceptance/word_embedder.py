"""An embeddings endpoint whose models are `words-N`: bags of words in N dimensions. Silent on demand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.embedder import FakeEmbedder


class WordEmbedder:
    """`texts` counts what was embedded, by model."""

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()
        self.url = ""
        self.kept_waiting = 0  # requests
        self._word: str | None = None
        self._changed = threading.Condition()

    @contextmanager
    def holding(self, word: str) -> Iterator[None]:
        """Answer no request that has this word in one of its texts, as long as the context lasts."""
        with self._changed:
            self._word, self.kept_waiting = word, 0
        try:
            yield
        finally:
            with self._changed:
                self._word = None
                self._changed.notify_all()

    def wait(self, texts: list[str]) -> None:
        """Return when the request may be answered."""
        with self._changed:
            self.kept_waiting += self._held(texts)
            self._changed.wait_for(lambda: not self._held(texts))

    def _held(self, texts: list[str]) -> bool:
        return self._word is not None and any(self._word in text for text in texts)

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        model, texts = body["model"], body["input"]
        self.texts[model] += len(texts)
        vectors = asyncio.run(FakeEmbedder(int(model.partition("-")[2])).passages(texts))
        data = [{"object": "embedding", "index": i, "embedding": row.tolist()} for i, row in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "data": data, "model": model, "usage": usage}


@contextmanager
def word_embedder() -> Iterator[WordEmbedder]:
    """Serves on loopback as long as the context lasts."""
    embedder = WordEmbedder()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            embedder.wait(body["input"])
            answer = json.dumps(embedder.answer(body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that was killed."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        embedder.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        try:
            yield embedder
        finally:
            server.shutdown()
            thread.join()
