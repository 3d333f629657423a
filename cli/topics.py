"""`pagewire topics`: what there must be in Kafka, and how many copies of it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from adapters.elastic.settings import ROLE
from adapters.kafka import (
    Copying,
    Growth,
    PartitionCounts,
    Repaired,
    add_partitions,
    bootstrap_servers,
    broker,
    ensure_topics,
    plan_partitions,
    prefixed,
    repair_topics,
)
from adapters.kafka.topics import KafkaRight, kafka_rights
from cli.output import Bars, Json, err, out, print_json, table
from cli.wired import load
from schemas.topics import all_topics

if TYPE_CHECKING:
    from wiring.settings import Settings

Repair = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Raise topics with fewer copies than PAGEWIRE_REPLICATION wants, and `min.insync.replicas` with them. "
        "Saves go on meanwhile. Stopped half-way, Kafka goes on copying; run it again to see it through.",
    ),
]
Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partitions",
        metavar="[TOPIC=]N",
        help="Raise topics that have fewer partitions to N, all of them or the named one, whose dead letters go "
        "along; may be repeated. Saves and answers go on meanwhile. Partitions cannot be taken away again.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Acls = Annotated[
    bool,
    typer.Option(
        "--acls",
        help="Print the rights that Pagewire needs at Kafka (ACLs) and at Elasticsearch (a role), and ask no server. "
        "`run`: gateway, workers and commands; `create`: this command, besides; `repair`: `--repair`, besides; "
        "`partitions`: `--partitions`, besides.",
    ),
]


def topics(
    repair: Repair = False,
    partitions: Partitions = None,
    yes: Yes = False,
    acls: Acls = False,
    json: Json = False,
) -> None:
    """Create or check the topics, and show them; or give them the copies or the partitions that they lack.

    Example: pagewire topics --repair

    Example: pagewire topics --partitions 12

    Example: pagewire topics --partitions query.retrieved=24
    """
    if acls:
        _print_rights(list(kafka_rights(load())), json)
        return
    if partitions:
        _grow(partitions, yes, json)
        return
    settings = _addressed()
    bootstrap = bootstrap_servers(settings)
    created = set(asyncio.run(ensure_topics(bootstrap, settings)))
    if repair:
        with Bars() as bars:

            def report(copying: Copying) -> None:
                bars.step(copying.topic, copying.done, copying.partitions)

            repaired = asyncio.run(repair_topics(bootstrap, settings, report))
        _print_repaired(repaired, settings, json)
        return
    counts = asyncio.run(_partitions(settings))
    lines = [
        {
            "topic": prefixed(settings, topic),
            "key": topic.key,
            "value": topic.value.__name__ if topic.value else "original bytes",
            "policy": _policy(topic.compacted, topic.retention_ms),
            "partitions": counts.get(prefixed(settings, topic), settings.partitions),
            "about": topic.about,
            "created": prefixed(settings, topic) in created,
        }
        for topic in all_topics()
    ]
    if json:
        print_json(lines)
    else:
        columns = ("topic", "key", "value", "policy", "partitions#", "about")
        out.print(table(columns, [list(line.values())[:6] for line in lines]))
        if any(count < settings.partitions for count in counts.values()):
            wanted = settings.partitions
            err.print(
                f"Some have fewer than the {wanted} partitions that PAGEWIRE_PARTITIONS wants: "
                f"`pagewire topics --partitions {wanted}` adds them",
                soft_wrap=True,
            )


async def _partitions(settings: Settings) -> dict[str, int]:
    """Of our topics. Raises: Retryable."""
    names = {prefixed(settings, topic) for topic in all_topics()}
    async with broker(settings) as client:
        return {name: len(numbers) for name, numbers in (await client.topics()).items() if name in names}


def _grow(partitions: list[str], yes: bool, json: bool) -> None:
    settings = _addressed()
    wanted = PartitionCounts.parse(partitions, settings.topic_prefix)
    bootstrap = bootstrap_servers(settings)
    asyncio.run(ensure_topics(bootstrap, settings))
    growths = asyncio.run(plan_partitions(bootstrap, settings, wanted))
    if growths and not (json and yes):
        columns = ("topic", "partitions now#", "then#")
        (err if json else out).print(table(columns, [(one.topic, one.partitions, one.wanted) for one in growths]))
    if growths and not yes:
        err.print(
            "Kafka cannot take them away again. Saves and questions go on; what comes into a new partition waits until "
            "the workers have shared them out, some ten seconds.",
            soft_wrap=True,
        )
        typer.confirm(f"Add partitions to {len(growths)} topics?", abort=True, err=True)
    if growths:
        asyncio.run(add_partitions(bootstrap, settings, growths))
    _print_grown(growths, wanted, settings, json)


def _addressed() -> Settings:
    from wiring.addresses import addresses

    return addresses(load())


def _print_grown(growths: list[Growth], wanted: PartitionCounts, settings: Settings, json: bool) -> None:
    if json:
        print_json({"grown": [asdict(one) for one in growths]})
    elif not growths:
        out.print("nothing to add: every topic has as many partitions or more")
    else:
        out.print(f"{len(growths)} topics have their partitions; `pagewire status` shows the workers take them up")
    if wanted.every is not None and wanted.every > settings.partitions:
        err.print(
            f"Set PAGEWIRE_PARTITIONS={wanted.every}, too (now {settings.partitions}): topics that a later release "
            "brings are made with it",
            soft_wrap=True,
        )


def _print_rights(rights: list[KafkaRight], json: bool) -> None:
    if json:
        print_json({"kafka": [asdict(right) for right in rights], "elasticsearch": ROLE})
        return
    lines = [(right.use, right.resource, right.name, right.pattern, ", ".join(right.operations)) for right in rights]
    out.print(table(("for", "resource", "name", "pattern", "operations"), lines))
    out.print("\nElasticsearch, as a role or as the role descriptor of an API key:", markup=False)
    print_json(ROLE)


def _print_repaired(repaired: list[Repaired], settings: Settings, json: bool) -> None:
    if json:
        print_json({"wanted": settings.replication, "repaired": [asdict(one) for one in repaired]})
    elif not repaired:
        out.print(f"nothing to repair: every topic has {settings.replication} copies or more")
    else:
        columns = ("topic", "partitions#", "copies before#", "copies now#", "min.insync.replicas#")
        out.print(table(columns, [list(asdict(one).values()) for one in repaired]))


def _policy(compacted: bool, retention_ms: int | None) -> str:
    if compacted:
        return "compacted"
    return "for ever" if retention_ms is None else f"{retention_ms // 3_600_000} h"
