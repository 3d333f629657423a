"""What many large attachments at once cost a worker's memory."""

from __future__ import annotations

import asyncio
import io
import multiprocessing
import os
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from time import perf_counter

import psutil

from bench.report import report
from schemas.page import Attachment, PageDocument
from wiring.ingest import attachments_of
from wiring.settings import Settings

MIB = 2**20
EVERY = 0.01  # seconds between two looks at the memory
DOCUMENT = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r>'
    "<w:t>A dog costs 96 euros.</w:t></w:r></w:p></w:body></w:document>"
)


def main(pages: int, size: int) -> None:
    """`pages` pages at once, each with a DOCX of `size` MiB, most of it a photo; served on loopback."""
    with _server(size) as port, _Memory() as memory:
        before, began = memory.now()[0], perf_counter()
        outcomes = asyncio.run(_read(pages, port))
        seconds = perf_counter() - began
    lines = [
        ("worker before", round(before / MIB)),
        ("worker", round(memory.worker / MIB)),
        ("child", round(memory.child / MIB)),
        ("both at once", round(memory.both / MIB)),
        *outcomes.items(),
    ]
    report(
        "attachments",
        f"highest memory, {pages} pages with {size} MiB each",
        ("process", "MiB, or pages"),
        lines,
        seconds=round(seconds, 1),
        outcomes=outcomes,
    )


async def _read(pages: int, port: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    settings = Settings(
        kafka="127.0.0.1:9", elasticsearch="http://127.0.0.1:9", fetch_allow=["127.0.0.1"], attachment_text=10_000
    )
    attachments = attachments_of(settings)

    async def one(number: int) -> None:
        url = f"http://127.0.0.1:{port}/{number}.docx"
        read = await attachments.read("bench", PageDocument(id=f"p{number}", attachments=(Attachment(url=url),)))
        outcomes["read" if read.pieces else "; ".join(read.notes).partition(": ")[2]] += 1

    await asyncio.gather(*(one(number) for number in range(pages)))
    await attachments.aclose()
    return outcomes


class _Memory:
    """Looks at this process and its children, and keeps the highest."""

    def __init__(self) -> None:
        self.worker = self.child = self.both = 0
        self._others = {child.pid for child in psutil.Process().children()}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> _Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def now(self) -> tuple[int, int]:
        own = psutil.Process()
        with suppress(psutil.NoSuchProcess):
            children = sum(map(_own, (child for child in own.children() if child.pid not in self._others)))
            return _own(own), children
        return _own(own), 0

    def _look(self) -> None:
        while not self._ended.wait(EVERY):
            worker, child = self.now()
            self.worker, self.child = max(self.worker, worker), max(self.child, child)
            self.both = max(self.both, worker + child)


def _own(process: psutil.Process) -> int:
    """Bytes; what processes share, such as libraries, in equal parts."""
    return int(process.memory_full_info().pss)


@contextmanager
def _server(size: int) -> Iterator[int]:
    """In a process of its own, whose memory does not count."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, size), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve(ours: Connection, size: int) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("word/document.xml", DOCUMENT)
    photo = os.urandom(size * MIB - 64 * 1024)

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = io.BytesIO(made.getvalue())
            with zipfile.ZipFile(body, "a", zipfile.ZIP_STORED) as archive:
                archive.writestr("word/media/photo.jpg", photo)
                archive.writestr("word/media/name.txt", self.path)  # so that no two are the same
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(body.getbuffer())))
            self.end_headers()
            self.wfile.write(body.getbuffer())

        def log_message(self, *_: object) -> None:
            pass

    class Many(ThreadingHTTPServer):
        request_queue_size = 256

    with Many(("127.0.0.1", 0), Server) as server:
        ours.send(server.server_address[1])
        server.serve_forever()
