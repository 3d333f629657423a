"""`pagewire topics`: what there must be in Kafka, and how many copies of it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from adapters.elastic.rights import ROLE
from adapters.kafka import Copying, Repaired, bootstrap_servers, ensure_topics, prefixed, repair_topics
from adapters.kafka.rights import KafkaRight, kafka_rights
from cli.output import err, explained, out, print_json, rows, table
from schemas.topics import all_topics
from wiring.addresses import addresses
from wiring.settings import Settings
from wiring.settings_file import load

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Repair = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Raise topics with fewer copies than PAGEWIRE_REPLICATION wants, and `min.insync.replicas` with them. "
        "Saves go on meanwhile. Stopped half-way, Kafka goes on copying; run it again to see it through.",
    ),
]


Acls = Annotated[
    bool,
    typer.Option(
        "--acls",
        help="Print the rights that Pagewire needs at Kafka (ACLs) and at Elasticsearch (a role), and ask no server. "
        "`run`: gateway, workers and commands; `create`: this command, besides; `repair`: `--repair`, besides.",
    ),
]


def topics(repair: Repair = False, acls: Acls = False, json: Json = False) -> None:
    """Create or check the topics, and show them; or give them the copies that they lack.

    Example: pagewire topics --repair
    """
    if acls:
        with explained():
            _print_rights(list(kafka_rights(load())), json)
        return
    with explained():
        settings = addresses(load())
        bootstrap = bootstrap_servers(settings)
        created = set(asyncio.run(ensure_topics(bootstrap, settings)))
        if repair:
            with Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=err
            ) as bars:
                repaired = asyncio.run(repair_topics(bootstrap, settings, _Bars(bars)))
            _print_repaired(repaired, settings, json)
            return
    lines = [
        {
            "topic": prefixed(settings, topic),
            "key": topic.key,
            "value": topic.value.__name__ if topic.value else "original bytes",
            "policy": _policy(topic.compacted, topic.retention_ms),
            "about": topic.about,
            "created": prefixed(settings, topic) in created,
        }
        for topic in all_topics()
    ]
    if json:
        print_json(lines)
    else:
        out.print(rows(table("topic", "key", "value", "policy", "about"), [list(line.values())[:5] for line in lines]))


def _print_rights(rights: list[KafkaRight], json: bool) -> None:
    if json:
        print_json({"kafka": [asdict(right) for right in rights], "elasticsearch": ROLE})
        return
    lines = [(right.use, right.resource, right.name, right.pattern, ", ".join(right.operations)) for right in rights]
    out.print(rows(table("for", "resource", "name", "pattern", "operations"), lines))
    out.print("\nElasticsearch, as a role or as the role descriptor of an API key:", markup=False)
    print_json(ROLE)


class _Bars:
    """A bar for each topic that is being copied."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, copying: Copying) -> None:
        if copying.topic not in self._tasks:
            self._tasks[copying.topic] = self._bars.add_task(copying.topic, total=copying.partitions)
        self._bars.update(self._tasks[copying.topic], completed=copying.done)


def _print_repaired(repaired: list[Repaired], settings: Settings, json: bool) -> None:
    if json:
        print_json({"wanted": settings.replication, "repaired": [asdict(one) for one in repaired]})
    elif not repaired:
        out.print(f"nothing to repair: every topic has {settings.replication} copies or more")
    else:
        columns = table("topic", "partitions#", "copies before#", "copies now#", "min.insync.replicas#")
        out.print(rows(columns, [list(asdict(one).values()) for one in repaired]))


def _policy(compacted: bool, retention_ms: int | None) -> str:
    if compacted:
        return "compacted"
    return "for ever" if retention_ms is None else f"{retention_ms // 3_600_000} h"
