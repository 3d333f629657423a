"""Static files, read once at start and served from memory, and the OpenAPI document, made on first use."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.edge.bounds import bounded
from gateway.edge.rates import Cached

MEDIA_TYPES = {
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "woff2": "font/woff2",
    "json": "application/json",
}


COMPRESSED = frozenset({"js", "css", "svg", "json"})  # the others are already


@dataclass(frozen=True)
class Asset:
    """One file, compressed once where that helps."""

    content: bytes
    gzipped: bytes | None
    media_type: str
    etag: str  # weak: the same for both encodings

    @classmethod
    def read(cls, path: Traversable) -> Asset:
        """Raises: KeyError: a kind of file that we do not serve."""
        return cls.of(path.read_bytes(), path.name.rpartition(".")[2])

    @classmethod
    def of(cls, content: bytes, kind: str) -> Asset:
        """A file of the kind that names with this ending have. Raises: KeyError: one that we do not serve."""
        gzipped = gzip.compress(content, mtime=0) if kind in COMPRESSED else None
        return cls(content, gzipped, MEDIA_TYPES[kind], f'W/"{sha256(content).hexdigest()[:20]}"')

    def response(self, request: Request) -> Response:
        """The file, or 304. Always revalidated, so that an upgrade reaches every page at once."""
        headers = {
            "ETag": self.etag,
            "Cache-Control": "no-cache",
            "Access-Control-Allow-Origin": "*",  # public, and a module script on a foreign page needs it
            "Cross-Origin-Resource-Policy": "cross-origin",  # a page with COEP asks for it
            "Vary": "Accept-Encoding",
        }
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        content = self.content
        if self.gzipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            content = self.gzipped
        return Response(content, headers=headers, media_type=self.media_type)


def add_assets(router: APIRouter, folder: Traversable, prefix: str = "") -> None:
    """A route for every file of `folder` that is not a page itself."""
    for path in folder.iterdir():
        if path.is_file() and not path.name.endswith(".html"):
            _add(router, f"{prefix}/{path.name}", Asset.read(path))


def _add(router: APIRouter, url: str, asset: Asset) -> None:
    @router.get(url)
    @bounded("memory")
    async def serve(request: Request) -> Response:
        return asset.response(request)


def document_routes(document: Callable[[], dict[str, Any]]) -> APIRouter:
    """`document` makes it, in some hundred milliseconds."""
    router = APIRouter(include_in_schema=False)
    made = Cached(lambda: asyncio.to_thread(lambda: Asset.of(json.dumps(document()).encode(), "json")))

    @router.get("/openapi.json")
    @bounded("kept")
    async def serve(request: Request) -> Response:
        return (await made.get()).response(request)

    return router
