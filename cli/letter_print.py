"""Dead letters on a terminal. Their text is anybody's: it is printed without control characters."""

from __future__ import annotations

import json
from textwrap import shorten

from rich.markup import escape
from rich.syntax import Syntax
from rich.text import Text

from cli.output import err, out, table
from schemas.letters import DeadLetterDetail, DeadLetterList, DeadLetterSummary, RevisionDiff

COLOURS = {"+": "green", "-": "red", "@": "cyan"}  # of a diff's lines
MAX_REASON = 300  # characters in a list


def print_list(found: DeadLetterList) -> None:
    """A table, one letter a row."""
    columns = ("id", "state", "failed at", "stage", "code", "page", "tries#", "reason")
    out.print(table(columns, [_line(letter) for letter in found.letters]))
    if len(found.letters) < found.total:
        err.print(f"the newest {len(found.letters):,} of {found.total:,}; more with --limit")


def _line(letter: DeadLetterSummary) -> list[object]:
    return [
        letter.id,
        letter.state,
        f"{letter.last_failed_at:%Y-%m-%d %H:%M:%S}",
        printable(letter.stage or ""),
        printable(letter.code),
        printable(letter.key or ""),
        "" if letter.attempts is None else f"{letter.attempts}" + (f" ({letter.redrives}r)" if letter.redrives else ""),
        shorten(printable(letter.message), MAX_REASON, placeholder=" …"),
    ]


def print_detail(found: DeadLetterDetail) -> None:
    """All of it."""
    letter = found.letter
    at = f" at {letter.handled_at:%Y-%m-%d %H:%M:%S}" if letter.handled_at else ""
    out.print(f"[bold]{letter.id}[/]  {letter.state}{at}")
    stood_at = (letter.topic, found.source_partition, found.source_offset)
    facts = {
        "page": letter.key,
        "gave up": letter.stage,
        "reason": f"{letter.code}: {letter.message}",
        "error": found.error_class,
        "tries": letter.attempts and f"{letter.attempts}, redriven {letter.redrives} times before",
        "first failed": letter.first_failed_at and f"{letter.first_failed_at:%Y-%m-%d %H:%M:%S}",
        "last failed": f"{letter.last_failed_at:%Y-%m-%d %H:%M:%S}",
        "stood at": found.source_offset is not None and "/".join(map(str, stood_at)),
    }
    for name, fact in facts.items():
        if fact:
            out.print(f"  {name:<12}  {escape(printable(str(fact)))}", soft_wrap=True)
    out.print("\n[bold]headers[/]")
    out.print(table(("name", "value"), [(printable(h.name), printable(h.value or "")) for h in found.headers]))
    out.print(f"\n[bold]value[/]  {letter.size:,} bytes")
    if found.problem is None:
        value = printable(json.dumps(found.value, ensure_ascii=False, indent=2))
        # Into a file or a pipe as it is: Syntax fills its lines up with spaces.
        out.print(Syntax(value, "json", word_wrap=True) if out.is_terminal else Text(value), soft_wrap=True)
    else:
        out.print(f"[red]{escape(printable(found.problem))}[/]", soft_wrap=True)
        out.print(Text(printable(found.text or "")), soft_wrap=True)
    if found.diff is not None:
        _print_diff(found.diff)


def _print_diff(diff: RevisionDiff) -> None:
    out.print("\n[bold]against the last good revision[/]")
    if diff.note:
        out.print(Text(printable(diff.note)), soft_wrap=True)
    elif not diff.lines:
        out.print("no difference in the page's fields")
    for line in diff.lines:
        out.print(Text(printable(line), style=COLOURS.get(line[:1], "")), soft_wrap=True)


def printable(text: str) -> str:
    """Without control characters: a letter's text must not steer the operator's terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)
