"""An embeddings endpoint whose models are `words-N`: bags of words in N dimensions. Slow, if wanted; it counts."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from adapters.embedders.fake import FakeEmbedder


class WordEmbedder:
    """`texts` counts what was embedded, by model; `delay` is in seconds a request."""

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()
        self.delay = 0.0
        self.url = ""

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
            time.sleep(embedder.delay)
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
