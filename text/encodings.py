"""Decodes bytes of pages and files. The only place that detects encodings.

    byte order mark ─▶ the server's header ─▶ the page's meta tag ─▶ UTF-8 ─▶ two detectors that agree ─▶ refused

Wrongly decoded text would be indexed unnoticed. So text is refused where the detectors differ, unless the result of one
makes no words. Each detector alone is wrong about some 3 % of texts, both together about 1 in 600.
"""

from __future__ import annotations

import codecs
import re

import chardet
import chardetng_py
from chardet import EncodingEra

PRESCAN = 1024  # bytes that are searched for a page's encoding (HTML, 13.2.3.2)
DETECTED = 64 * 1024  # bytes that the detectors read
# The larger encodings that browsers use for some labels (WHATWG's Encoding Standard), by Python's names.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "utf-8": "utf-8-sig",
}
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), *((mark, "utf-16") for mark in UTF_16))
_NO_TEXT = [chr(code) for code in (*range(9), *range(14, 32), 0x7F, 0xFFFD)]
# Signs of a wrong encoding: "betrŠgt", "dziesi±tej"
_NO_WORD = re.compile(r"[a-zß-ÿ][À-ÞŠŒŽŸ][a-zß-ÿ]|[^\W\d_][¡-©«¬®-±¶¸»-¿×÷][^\W\d_]")
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"<(?:meta\b|\?xml\b)[^<>]*?(?:charset|encoding)\s*+=\s*+[\"']?\s*+([\w.:-]{1,40})", re.IGNORECASE)


class UnknownEncoding(ValueError):
    """The encoding is not declared and cannot be detected. The message is for editors."""


def decoded(data: bytes, said: str | None = None, *, page: bool = False) -> str:
    """The text of a page or a file.

    Args:
        said: the encoding in the server's header, in any spelling; unknown ones are ignored.
        page: the data is HTML, which may declare its encoding.

    Raises: UnknownEncoding: the data is no text, or its encoding cannot be detected.
    """
    marked = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)
    named = [marked] if marked else [_known(said), _known(_in_page(data)) if page else None, "utf-8-sig"]
    texts = [data.decode(encoding, "replace") for encoding in dict.fromkeys(filter(None, named))]
    if not marked and b"\0" in data and (wide := _utf_16(data)) is not None:
        texts.append(wide)
    for text in texts:
        # A few broken bytes are tolerated. If every tenth non-ASCII letter is broken, it is another encoding.
        if _broken(text) * 10 <= len(text) - len(text.encode("ascii", "ignore")):
            return text
    if not marked and (found := _detected(data)) is not None:
        return found
    for text in texts:
        if _broken(text) * 1_000 <= len(text):
            return text
    raise UnknownEncoding("not a text in an encoding that can be told: save it as UTF-8")


def _broken(text: str) -> int:
    return sum(map(text.count, _NO_TEXT))


def _known(label: str | None) -> str | None:
    """Python's name of a text encoding; None: it is unknown."""
    try:
        found = codecs.lookup(label or "")
        "".encode(found.name)  # fails for codecs that are no text encodings, such as `hex`
    except (LookupError, ValueError):
        return None
    return _WIDER.get(found.name, found.name)


def _in_page(data: bytes) -> str | None:
    found = _META.search(_COMMENT.sub(b"", data[:PRESCAN]))
    label = found[1].decode() if found else None
    return (
        "utf-8" if label and label.lower().startswith("utf-16") else label
    )  # it cannot be UTF-16, since the label was found as ASCII


def _utf_16(data: bytes) -> str | None:
    """The text decoded as UTF-16 without a mark. The zero bytes of its ASCII characters show the byte order."""
    big = data[0::2].count(0) > data[1::2].count(0)
    return _strictly(data, "utf-16-be" if big else "utf-16-le")


def _detected(data: bytes) -> str | None:
    beginning = data[:DETECTED]
    names = {chardetng_py.detect(beginning), chardet.detect(beginning, encoding_era=EncodingEra.MODERN_WEB)["encoding"]}
    if None in names:
        return None
    texts = {_strictly(data, _known(name)) for name in names}
    found = [text for text in texts if text is not None and not _broken(text) and not _NO_WORD.search(text)]
    return found[0] if len(found) == 1 else None


def _strictly(data: bytes, encoding: str | None) -> str | None:
    try:
        return data.decode(encoding) if encoding else None
    except UnicodeDecodeError:
        return None
