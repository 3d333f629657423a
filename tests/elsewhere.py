"""Both servers as a provider runs them, reached from containers and pods: a Kafka with TLS, logins and ACLs, and an
Elasticsearch with TLS, a key and a role, at an address of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.elastic.settings import ROLE
from adapters.kafka.topics import kafka_rights
from tests.engine_fixture import Servers
from tests.guarded_elastic import GuardedElastic, guarded_elastic
from tests.secure_kafka import USER, SecureKafka, secure_kafka
from wiring.settings import Settings

PREFIX = "town-"


@dataclass(frozen=True)
class Elsewhere:
    """The two; topics and groups begin with `PREFIX`."""

    kafka: SecureKafka
    elastic: GuardedElastic


@contextmanager
def elsewhere_at(host: str, engine: Servers, home: Path) -> Iterator[Elsewhere]:
    """They serve at `host` as long as the context lasts; `engine` has the Elasticsearch."""
    with ExitStack() as stack:
        kafka = stack.enter_context(secure_kafka(home, host))
        # All that is listed but what `repair` takes: `topics` makes them here.
        listed = kafka_rights(Settings(topic_prefix=PREFIX))
        kafka.allow(USER, [right for right in listed if right.use in ("run", "create")])
        guard = guarded_elastic(engine.elasticsearch, ROLE, kafka.certificates.broker, host)
        yield Elsewhere(kafka, stack.enter_context(guard))
