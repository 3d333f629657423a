"""What `pagewire status --watch` shows: the stages, the sites, and the newest changes as they come in."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from cli.output import rows, table
from schemas.http import SystemStatus
from schemas.ingest import ReceiptEvent

NEWEST = 12  # changes shown
WIDTH = 60  # looks that a sparkline goes back
BARS = "▁▂▃▄▅▆▇█"
COLOURS = {"searchable": "green", "deleted": "cyan", "failed": "red", "queued": "yellow", "superseded": "dim"}


class Trail:
    """The last values of a figure, drawn as a line of bars."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=WIDTH)

    def add(self, value: float) -> None:
        self._values.append(value)

    def __str__(self) -> str:
        top = max(self._values, default=0.0) or 1.0
        return "".join(BARS[round(value / top * (len(BARS) - 1))] for value in self._values)


def stages(found: SystemStatus) -> RenderableType:
    """One line per stage and lane."""
    lines = [
        (s.stage, s.lane, s.topic, f"{s.lag:,}", f"{s.rate:,.1f}/s", s.members, s.dead_letters) for s in found.stages
    ]
    return rows(table("stage", "lane", "reads", "lag#", "rate#", "workers#", "dead letters#"), lines)


def sites(found: SystemStatus) -> RenderableType:
    """One line per site."""
    lines = [
        (
            s.site,
            f"{s.pages:,}",
            f"{s.chunks:,}",
            duration(s.freshness_p50_ms),
            duration(s.freshness_p95_ms),
            s.embedder,
        )
        for s in found.sites
    ]
    return rows(table("site", "pages#", "chunks#", "fresh p50#", "fresh p95#", "embedder"), lines)


def changes(newest: Sequence[ReceiptEvent]) -> RenderableType:
    """The newest changes: what became of them, how long it took, what it cost."""
    made = table("at", "page", "revision#", "", "took#", "embedded#", "reused#", "removed#")
    for event in newest:
        took = (event.at - event.change.accepted_at).total_seconds() * 1000
        made.add_row(
            f"{event.at.astimezone():%H:%M:%S}",
            Text(event.change.page_key),
            str(event.change.revision),
            Text(event.state, style=COLOURS[event.state]),
            duration(None if event.state == "queued" else took),
            *(str(n) for n in (event.chunks.embedded, event.chunks.reused, event.chunks.removed)),
        )
        if event.error is not None:
            made.add_row("", Text(f"{event.error.stage}: {event.error.reason}", style="red"))
    return made


class Watch:
    """The view, with what it has seen so far."""

    def __init__(self) -> None:
        self._lag: dict[str, Trail] = {"save": Trail(), "bulk": Trail()}

    def view(self, found: SystemStatus, newest: Sequence[ReceiptEvent]) -> RenderableType:
        """Everything, for one look."""
        for lane, trail in self._lag.items():
            trail.add(sum(s.lag for s in found.stages if s.lane == lane))
        trails = Text("\n".join(f"lag, {lane} lane  {trail}" for lane, trail in self._lag.items()), style="dim")
        away = [
            Text(f"{name} does not answer", style="red")
            for name, there in (("Kafka", found.kafka), ("Elasticsearch", found.elasticsearch))
            if not there
        ]
        return Group(*away, stages(found), trails, "", sites(found), "", changes(newest))


def duration(milliseconds: float | None) -> str:
    """For people: `76 ms`, `12.3 s`."""
    if milliseconds is None:
        return ""
    return f"{milliseconds:,.0f} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:,.1f} s"
