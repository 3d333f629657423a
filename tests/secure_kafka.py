"""A Kafka as a provider runs it: TLS, users, ACLs. The local engine's packages, and certificates made here.

plain   PLAINTEXT, the administrator: may everything, makes users and ACLs
login   SASL_SSL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER
mutual  SSL with certificates on both sides
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trustme
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from adapters.kafka.topics import KafkaRight
from infra.engine import EngineProgress, LocalEngineSettings, jars
from infra.engine.servers import kafka_server, prepare_kafka
from infra.engine.state import any_free, kafka_serves
from infra.running import HOST
from tests.faults.storm.own_engine import OwnServer

USER, PASSWORD = "pagewire", "hush-broker"
OPERATOR = "operator"  # may make topics, too
MEMBER = "pagewire.example.org"  # in the certificate of who connects by mutual TLS
KEY_PASSWORD = "hush-key"
_RESOURCES = {"topic": 2, "group": 3, "cluster": 4}
_PATTERNS = {"literal": 3, "prefixed": 4}
_OPERATIONS = {
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Alter": 7,
    "Describe": 8,
    "DescribeConfigs": 10,
    "AlterConfigs": 11,
    "IdempotentWrite": 12,
}
ALLOW = 3


class Certificates:
    """An authority, another one that nobody trusts, and what they have signed; PEM files in a folder."""

    def __init__(self, folder: Path, host: str) -> None:
        ca, stranger = trustme.CA(), trustme.CA()
        self.ca, self.strange_ca = folder / "ca.pem", folder / "strange-ca.pem"
        ca.cert_pem.write_to_path(self.ca)
        stranger.cert_pem.write_to_path(self.strange_ca)
        self.broker = self._put(folder / "broker.pem", ca.issue_cert(host))
        self.misnamed = self._put(folder / "misnamed.pem", ca.issue_cert("other.example.org"))
        own = ca.issue_cert(MEMBER, common_name=MEMBER)
        self.own = self._put(folder / "own.pem", own)
        self.own_locked = self._put(folder / "own-locked.pem", own, KEY_PASSWORD)
        self.strange = self._put(folder / "strange.pem", stranger.issue_cert(MEMBER, common_name=MEMBER))

    def _put(self, path: Path, made: trustme.LeafCert, password: str | None = None) -> Path:
        """Key and certificates in one file; the key as PKCS#8, for Java reads no other."""
        key = load_pem_private_key(made.private_key_pem.bytes(), None)
        locked = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        parts = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked)]
        path.write_bytes(b"".join(parts + [blob.bytes() for blob in made.cert_chain_pems]))
        return path


class SecureKafka:
    """The broker, its addresses and certificates."""

    def __init__(self, home: Path, host: str) -> None:
        self.certificates = Certificates(home, host)
        taken: set[int] = set()
        for _ in range(5):
            taken.add(any_free(taken))
        plain, login, mutual, misnamed, controller = sorted(taken)
        self.plain = f"{HOST}:{plain}"
        self.login, self.mutual, self.misnamed = (f"{host}:{port}" for port in (login, mutual, misnamed))
        listeners = {"PLAIN": self.plain, "LOGIN": self.login, "MUTUAL": self.mutual, "MISNAMED": self.misnamed}
        engine = LocalEngineSettings(home=home)
        asyncio.run(jars.fetch(engine.cache, EngineProgress()))
        server = kafka_server(engine.root)
        prepare_kafka(server, engine, plain, controller)
        with (server.folder / "server.properties").open("a", encoding="ascii") as properties:
            properties.writelines(f"{k}={v}\n" for k, v in self._properties(listeners, controller))
        run = json.loads(server.run_file.read_text(encoding="utf-8"))
        run["settings"]["scram"] = "\n".join(
            f"{mechanism}=[name={user},password={PASSWORD},iterations=4096]"
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for user in (USER, OPERATOR)
        )
        server.run_file.write_text(json.dumps(run), encoding="utf-8")
        server.log.parent.mkdir(exist_ok=True)
        self.log = server.log
        self._server = OwnServer(server, self.plain, partial(kafka_serves, plain))

    def _properties(self, listeners: dict[str, str], controller: int) -> Iterator[tuple[str, str]]:
        clients = ",".join(f"{name}://{address}" for name, address in listeners.items())
        yield "listeners", f"{clients},CONTROLLER://{HOST}:{controller}"
        yield "advertised.listeners", clients
        yield (
            "listener.security.protocol.map",
            "PLAIN:PLAINTEXT,LOGIN:SASL_SSL,MUTUAL:SSL,MISNAMED:SASL_SSL,CONTROLLER:PLAINTEXT",
        )
        yield "inter.broker.listener.name", "PLAIN"
        yield "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        yield "super.users", "User:ANONYMOUS"  # who comes by PLAINTEXT: the administrator, and the broker itself
        yield "ssl.truststore.type", "PEM"
        yield "ssl.truststore.location", str(self.certificates.ca)
        yield "ssl.keystore.type", "PEM"
        yield "ssl.keystore.location", str(self.certificates.broker)
        yield "listener.name.misnamed.ssl.keystore.type", "PEM"
        yield "listener.name.misnamed.ssl.keystore.location", str(self.certificates.misnamed)
        yield "listener.name.mutual.ssl.client.auth", "required"
        yield "ssl.principal.mapping.rules", "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT"
        yield "connection.failed.authentication.delay.ms", "0"
        mechanisms = {
            "PLAIN": f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
            "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            # Takes tokens that nobody has signed: what a broker makes of signatures is its own affair.
            "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            f'unsecuredLoginStringClaim_sub="{USER}";',
        }
        for listener in ("login", "misnamed"):
            yield f"listener.name.{listener}.sasl.enabled.mechanisms", ",".join(mechanisms)
            for mechanism, module in mechanisms.items():
                yield f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config", module

    def allow(self, principal: str, rights: Iterable[KafkaRight]) -> None:
        """Give these rights, as an administrator would after `pagewire topics --acls`."""

        async def ask() -> None:
            admin: Any = AIOKafkaAdminClient(bootstrap_servers=self.plain)
            await admin.start()
            try:
                for right in rights:
                    for operation in right.operations:
                        answer = await admin._send_to_controller(
                            CreateAclsRequest(
                                _RESOURCES[right.resource],
                                right.name,
                                _PATTERNS[right.pattern],
                                f"User:{principal}",
                                "*",
                                _OPERATIONS[operation],
                                ALLOW,
                            )
                        )
                        assert not any(code for code, _ in answer.creation_responses), answer
            finally:
                await admin.close()

        asyncio.run(ask())

    def start(self) -> None:
        self._server.start()
        asyncio.run(self._server.serves())

    def close(self) -> None:
        self._server.close()


@contextmanager
def secure_kafka(home: Path, host: str = HOST) -> Iterator[SecureKafka]:
    """It serves at `host`, and its administrator on loopback, as long as the context lasts."""
    broker = SecureKafka(home, host)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()
