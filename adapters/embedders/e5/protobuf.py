"""Writes messages in protobuf's wire format without compiled schemas.

See https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import struct

_VARINT, _LENGTH, _FLOAT = 0, 2, 5  # wire types


def message(*fields: tuple[int, int | float | str | bytes]) -> bytes:
    """A message of (number, value) fields. Give a repeated field several times, and a nested message as bytes."""
    return b"".join(part for number, value in fields for part in _field(number, value))


def _field(number: int, value: int | float | str | bytes) -> tuple[bytes, ...]:
    if isinstance(value, float):
        return _varint(number << 3 | _FLOAT), struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT), _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _LENGTH), _varint(len(data)), data


def _varint(value: int) -> bytes:
    """Raises: ValueError: negative."""
    made = []
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])
