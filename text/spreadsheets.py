"""Protects cells of CSV files against formulas in untrusted text (OWASP, CSV injection).

An apostrophe is put before possible formulas: at the beginning of a cell, and after characters that a spreadsheet may
treat as the end of a cell or line.
"""

from __future__ import annotations

import re

BOM = "\ufeff"  # Excel needs it to detect UTF-8; other programs do not
_FORMULA = r"(?='*[^\S\t\r\n]*[=+\-@＝＋－＠\t\r\n])"
_BEGINS = re.compile(rf"(^|[;\t\r\n]){_FORMULA}")
_GUARDED = re.compile(rf"(^|[;\t\r\n])'{_FORMULA}")


def guarded(cell: str) -> str:
    """The cell with apostrophes before possible formulas."""
    return _BEGINS.sub(r"\1'", cell)


def unguarded(cell: str) -> str:
    """The original cell; the inverse of `guarded`."""
    return _GUARDED.sub(r"\1", cell)
