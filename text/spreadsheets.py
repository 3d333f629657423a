"""Cells of CSV files that spreadsheets open: what strangers wrote must not be a formula there (OWASP, CSV injection).

An apostrophe stands before what looks like one: at the beginning of a cell, and behind what a spreadsheet may take for
the end of a cell or of a line.
"""

from __future__ import annotations

import re

BOM = "\ufeff"  # by which Excel knows UTF-8; programs want none
_FORMULA = r"(?='*[^\S\t\r\n]*[=+\-@＝＋－＠\t\r\n])"
_BEGINS = re.compile(rf"(^|[;\t\r\n]){_FORMULA}")
_GUARDED = re.compile(rf"(^|[;\t\r\n])'{_FORMULA}")


def guarded(cell: str) -> str:
    """The cell with apostrophes before its formulas."""
    return _BEGINS.sub(r"\1'", cell)


def unguarded(cell: str) -> str:
    """What `guarded` was given."""
    return _GUARDED.sub(r"\1", cell)
