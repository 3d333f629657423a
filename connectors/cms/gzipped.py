"""Decompresses gzip piece by piece: all members of a file (RFC 1952, 2.2), within a limit."""

from __future__ import annotations

import zlib

SLICE = 4096  # bytes a step: the bytes behind the end of a member are copied
MAGIC = b"\x1f\x8b"


class Gunzip:
    """Decompresses at most `limit` bytes, and one more to show that there are more."""

    def __init__(self, limit: int) -> None:
        self._room = limit + 1
        self._rest = b""
        self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def ended(self) -> bool:
        """Whether the data so far is complete."""
        return self._member.eof

    def feed(self, data: bytes) -> bytes:
        """The decompressed bytes of the next piece. Raises: zlib.error: it is not gzip."""
        out: list[bytes] = []
        for at in range(0, len(data), SLICE):
            piece = self._rest + data[at : at + SLICE]
            self._rest = b""
            while piece and self._room:
                if self._member.eof:
                    if len(piece) < len(MAGIC):
                        self._rest = piece
                        break
                    if not piece.startswith(MAGIC):
                        return b"".join(out)  # padding
                    self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
                out.append(self._member.decompress(piece, self._room))
                self._room -= len(out[-1])
                piece = self._member.unused_data if self._member.eof else b""
        return b"".join(out)
