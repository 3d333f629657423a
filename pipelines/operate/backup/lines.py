"""Lines: converts a record of a topic, or a document, to a line of JSON and back, byte for byte.

UTF-8 bytes are written as text, so that `zcat` and `jq` can read a backup; others in base64.
"""

from __future__ import annotations

import base64
from typing import Any

import orjson

from pipelines.operate.backup.ports import BackupDocument
from pipelines.runtime.record import Record


def record_line(record: Record) -> bytes:
    """Key, value, headers and time of a record; its offset means nothing in another topic."""
    return _line(
        {
            "key": _written(record.key),
            "value": _written(record.value),
            "headers": [[name, _written(value)] for name, value in record.headers],
            "timestamp_ms": record.timestamp_ms,
        }
    )


def record_of(line: bytes, topic: str) -> Record:
    """Undo `record_line`. Raises: ValueError: it is none."""
    read = orjson.loads(line)
    try:
        headers = tuple((str(name), _read(value)) for name, value in read["headers"])
        return Record(topic, -1, -1, _read(read["key"]), _read(read["value"]), headers, read["timestamp_ms"])
    except (KeyError, TypeError) as err:
        raise ValueError(f"no record of a topic: {err!r}") from err


def document_line(document: BackupDocument) -> bytes:
    return _line({"id": document.id, "source": document.source})


def document_of(line: bytes) -> BackupDocument:
    """Undo `document_line`. Raises: ValueError: it is none."""
    read = orjson.loads(line)
    try:
        return BackupDocument(str(read["id"]), dict(read["source"]))
    except (KeyError, TypeError) as err:
        raise ValueError(f"no document: {err!r}") from err


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _written(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _read(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"], validate=True)
