"""For people: the table of a storm, and the complete history of a page that went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from rich.console import Console
from rich.table import Table

from tests.faults.storm.checker import Kind
from tests.faults.storm.storm import Outcome
from tests.faults.storm.world import World

# What the closing table calls a kind of finding.
PLURALS = {
    "ghost": "ghosts",
    "orphan": "orphans",
    "counts": "wrong counts",
    "dead": "left in dead letters",
    "poison": "poison without a letter",
}
MOST_PAGES = 5  # whose history is printed in full


def numbers(outcome: Outcome) -> dict[str, Any]:
    """The outcome as JSON would have it."""
    return {
        "seed": outcome.seed,
        "seconds": round(outcome.seconds, 1),
        "changes_sent": outcome.sent,
        "changes_accepted": outcome.accepted,
        "records_in_cms_changes": outcome.logged,
        "superseded_at_the_edge": outcome.superseded,
        "unknown": outcome.unknown,
        "faults_injected": sum(outcome.faults.values()),
        "faults": dict(sorted(outcome.faults.items())),
        "poison_sent": outcome.poison,
        "dead_letters_redriven": outcome.letters,
        "ended_by_themselves": outcome.restarts,
        **{PLURALS.get(kind, kind): outcome.count(kind) for kind in get_args(Kind)},
        "findings": [str(finding) for finding in outcome.findings],
    }


def print_table(outcome: Outcome, console: Console) -> None:
    table = Table(title=f"storm, seed {outcome.seed}, {outcome.seconds:.0f} s", show_header=False)
    for name, value in numbers(outcome).items():
        if isinstance(value, list):
            value = len(value)
        if isinstance(value, dict):
            value = ", ".join(f"{fault} {count}" for fault, count in value.items())
        table.add_row(name.replace("_", " "), str(value))
    console.print(table)
    for ended in outcome.restarts:
        console.print(ended, markup=False, highlight=False)


def histories(world: World, outcome: Outcome) -> Iterator[str]:
    """What was found, then everything known of the pages concerned."""
    yield from map(str, outcome.findings)
    pages = dict.fromkeys(finding.page for finding in outcome.findings)
    yield "\nfaults and what else happened"
    yield from map(str, world.history.events)
    for page in list(pages)[:MOST_PAGES]:
        yield from history_of(world, outcome, page)


def history_of(world: World, outcome: Outcome, page: str) -> Iterator[str]:
    """One page: what was sent and answered, what the topics hold, what the index holds."""
    found = outcome.found.pages[page]
    yield f"\n=== {page}: changes as sent (seconds since the beginning)"
    yield from map(str, world.history.of(page))
    for name, records in (("cms.changes", found.changes), ("products", found.products), ("receipts", found.receipts)):
        yield f"--- {name}"
        yield from map(str, records)
    yield "--- dead letters"
    yield from map(str, found.letters)
    yield f"--- index: {found.head}"
    yield from (
        f"{chunk.field}#{chunk.ord} revision {chunk.revision} {chunk.text[:60]!r}"
        for chunk in sorted(found.chunks, key=lambda c: (c.field, c.ord))
    )
    yield f"--- searches: {found.hits}"
    yield f"--- receipt: {found.receipt}"
