"""Kafka and Elasticsearch as providers run them: TLS, users, tokens, certificates, and the rights that we list.

The whole way of a page and of a question goes through them with these rights alone; and who is refused is told why.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from adapters.elastic.client import ElasticsearchDenied
from adapters.elastic.settings import ROLE
from adapters.kafka import KafkaDenied, KafkaSender, broker, ensure_topics, repair_topics
from adapters.kafka.log import KafkaLogReader, KafkaLogTail
from adapters.kafka.scan import KafkaLogScan
from adapters.kafka.topics import kafka_rights
from pipelines.runtime.errors import WAYS, FailureAction, Retryable
from schemas.topics import CHANGES, all_topics
from tests.acceptance.system import Instance, eventually
from tests.engine_fixture import Servers
from tests.guarded_elastic import KEY, GuardedElastic, guarded_elastic
from tests.secure_kafka import KEY_PASSWORD, MEMBER, OPERATOR, PASSWORD, USER, SecureKafka, secure_kafka
from wiring.clients import Clients
from wiring.settings import Settings

pytestmark = pytest.mark.engine

PREFIX = "town-"
OF_SITE = (
    *("questions", "evaluations", "gaps"),
    *("pages", "trials", "audit-run", "rebuilds", "chat", "privacy", "examples", "texts"),
)
PAGE = {
    "id": "pool",
    "lang": "en",
    "url": "https://town.example/pool",
    "name": "pool",
    "title": "Swimming pool",
    "content": "<h2>Prices</h2><p>A swim in the harbour pool costs 4 euros for adults.</p>",
}


@dataclass(frozen=True)
class Managed:
    """Both servers, and how to reach them."""

    kafka: SecureKafka
    elastic: GuardedElastic

    def settings(self, **more: Any) -> Settings:
        """Those that are right, and what a test changes of them; None takes one away."""
        given = {
            "kafka": self.kafka.login,
            "kafka_security_protocol": "SASL_SSL",
            "kafka_sasl_mechanism": "SCRAM-SHA-512",
            "kafka_user": USER,
            "kafka_password": PASSWORD,
            "kafka_ca": self.kafka.certificates.ca,
            "elasticsearch": self.elastic.url,
            "elasticsearch_ca": self.kafka.certificates.ca,
            "elasticsearch_api_key": KEY,
            "topic_prefix": PREFIX,
            "partitions": 1,
        }
        return Settings(**{name: value for name, value in (given | more).items() if value is not None})

    def mutual(self, **more: Any) -> Settings:
        """By certificate."""
        nobody = dict.fromkeys(("kafka_sasl_mechanism", "kafka_user", "kafka_password"))
        own = {"kafka": self.kafka.mutual, "kafka_certificate": self.kafka.certificates.own}
        return self.settings(**(nobody | own | {"kafka_security_protocol": "SSL"} | more))


@pytest.fixture(scope="module")
def managed(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    with ExitStack() as stack:
        kafka = stack.enter_context(secure_kafka(tmp_path_factory.mktemp("managed")))
        elastic = stack.enter_context(guarded_elastic(engine.elasticsearch, ROLE, kafka.certificates.broker))
        servers = Managed(kafka, elastic)
        rights = list(kafka_rights(servers.settings()))
        kafka.allow(OPERATOR, rights)
        for principal in (USER, MEMBER):
            kafka.allow(principal, [right for right in rights if right.use == "run"])
        # Made by who may make them; everybody else only finds them.
        made = asyncio.run(ensure_topics(kafka.login, servers.settings(kafka_user=OPERATOR)))
        assert len(made) == len(all_topics())
        yield servers


@pytest.fixture
def token_endpoint() -> Iterator[str]:
    """Gives everybody a token of our user: signed by nobody, which the test's broker takes."""

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            now = time.time()
            parts = {"alg": "none"}, {"sub": USER, "iat": now, "exp": now + 600}
            token = ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"access_token": f"{token}.", "expires_in": 600}).encode())

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


async def refusal(ask: Callable[[], Awaitable[object]]) -> KafkaDenied:
    """What the broker refuses; one that is busy is asked again."""
    async with asyncio.timeout(120):
        while True:
            try:
                await ask()
            except KafkaDenied as err:
                return err
            except Retryable:
                await asyncio.sleep(1)
            else:
                pytest.fail("not refused")


async def refused(settings: Settings) -> str:
    denied = await refusal(lambda: ensure_topics(settings.kafka or "", settings))
    assert WAYS[denied.kind] is FailureAction.PAUSE
    assert PASSWORD not in str(denied)
    return str(denied)


async def test_every_way_to_log_in(managed: Managed, token_endpoint: str) -> None:
    oauth = {"kafka_oauth_url": token_endpoint, "kafka_user": "us", "kafka_password": "hush"}
    locked = {
        "kafka_certificate": managed.kafka.certificates.own_locked,
        "kafka_certificate_password": KEY_PASSWORD,
    }
    for settings in (
        managed.settings(),
        managed.settings(kafka_sasl_mechanism="SCRAM-SHA-256"),
        managed.settings(kafka_sasl_mechanism="PLAIN"),
        managed.settings(kafka_sasl_mechanism="OAUTHBEARER", **oauth),
        managed.settings(kafka=f"127.0.0.1:9,{managed.kafka.login}"),  # the first one is away
        managed.mutual(),
        managed.mutual(**locked),
    ):
        assert await ensure_topics(settings.kafka or "", settings) == []
        async with KafkaSender(settings):
            pass


async def test_who_is_refused_is_told_which_setting_to_look_at(managed: Managed) -> None:
    certificates = managed.kafka.certificates
    nobody = dict.fromkeys(("kafka_sasl_mechanism", "kafka_user", "kafka_password"))
    for settings, said in (
        (managed.settings(kafka_password="x"), "refuses our user or its password: PAGEWIRE_KAFKA_USER"),
        (managed.settings(kafka_user="x"), "refuses our user or its password: PAGEWIRE_KAFKA_USER"),
        (managed.settings(kafka_ca=certificates.strange_ca), "PAGEWIRE_KAFKA_CA must be the file"),
        (managed.settings(kafka_ca=None), "PAGEWIRE_KAFKA_CA must be the file"),
        (managed.settings(kafka=managed.kafka.misnamed), "PAGEWIRE_KAFKA must name the server as its certificate does"),
        (managed.settings(**nobody, kafka_security_protocol="SSL"), "PAGEWIRE_KAFKA_SECURITY_PROTOCOL is SSL"),
        (
            managed.settings(**nobody, kafka_ca=None, kafka_security_protocol="PLAINTEXT"),
            "does it want TLS? PAGEWIRE_KAFKA_SECURITY_PROTOCOL is PLAINTEXT",
        ),
        (managed.settings(kafka=managed.kafka.plain), "PAGEWIRE_KAFKA_SECURITY_PROTOCOL is SASL_SSL"),
        (managed.mutual(kafka_certificate=None), "PAGEWIRE_KAFKA_CERTIFICATE"),
        (managed.mutual(kafka_certificate=certificates.strange), "PAGEWIRE_KAFKA_CERTIFICATE"),
    ):
        assert said in await refused(settings)


async def test_every_client_tells_it(managed: Managed) -> None:
    wrong = managed.settings(kafka_password="x")

    async def told(doing: Awaitable[object]) -> None:
        with pytest.raises(KafkaDenied, match="PAGEWIRE_KAFKA_PASSWORD"):
            await doing

    for client in (KafkaSender(wrong), broker(wrong), KafkaLogScan(wrong, CHANGES)):
        await told(client.__aenter__())
    await told(repair_topics(managed.kafka.login, wrong))
    async with KafkaLogReader(wrong, CHANGES) as reader:
        await told(reader.read(0, 0))
        await told(reader.of_key("k", 0))
    async with aclosing(KafkaLogTail(wrong, CHANGES, lambda record: None)) as tail:
        await told(tail.start())


async def test_a_missing_right_is_named(managed: Managed) -> None:
    assert "`pagewire topics --acls`" in await refused(managed.settings(topic_prefix="stranger-"))
    assert "topics --acls" in str(await refusal(lambda: repair_topics(managed.kafka.login, managed.settings())))
    assert await repair_topics(managed.kafka.login, managed.settings(kafka_user=OPERATOR)) == []
    async with broker(managed.settings()) as client:
        said = str(await refusal(lambda: client.committed("stranger")))
        assert re.search("of stranger: .*topics --acls", said), said


async def test_elasticsearch_is_trusted_by_its_authority_and_asked_by_a_key(managed: Managed) -> None:
    async with Clients(managed.settings()) as clients:
        await clients.elastic.ping()
    several = f"https://127.0.0.1:9,{managed.elastic.url}"
    async with Clients(managed.settings(elasticsearch=several)) as clients:
        for _ in range(4):  # whichever node is asked first
            await clients.elastic.ping()
    for settings, said in (
        (managed.settings(elasticsearch_api_key="x"), "PAGEWIRE_ELASTICSEARCH_API_KEY"),
        (managed.settings(elasticsearch_ca=None), "PAGEWIRE_ELASTICSEARCH_CA must be the file"),
        (managed.settings(elasticsearch_ca=managed.kafka.certificates.strange_ca), "PAGEWIRE_ELASTICSEARCH_CA must be"),
    ):
        async with Clients(settings) as clients:
            with pytest.raises(ElasticsearchDenied, match=said) as caught:
                await clients.elastic.ping()
        assert WAYS[caught.value.kind] is FailureAction.PAUSE
        assert "hush" not in str(caught.value)


def operate(client: httpx.Client, url: str, site: str, answer: dict[str, Any]) -> None:
    """What operators look at and change while the system runs, all but what commands do."""
    asked, admin, of_site = answer["request_id"], f"{url}/v1/admin", f"{url}/v1/admin/sites/{site}"
    eventually(lambda: client.get(f"{of_site}/questions/{asked}").status_code == 200)
    for write in (
        client.post(f"/answers/{asked}/feedback", json={"rating": "up"}),
        client.put(f"{of_site}/chat", json={"on": True}),
        client.put(f"{of_site}/privacy", json={"conversations": 400}),
        client.post(f"{of_site}/examples", json={"question": "And with a dog?", "output": "May I bring a dog?"}),
        client.put(f"{of_site}/texts/contact/en", json={"text": "Call us."}),
        client.post(f"{of_site}/audit-run", json={}),
        client.post(f"{admin}/keys", json={"name": site, "scopes": ["view"], "site": site}),
    ):
        assert write.is_success, f"{write.url}: {write.text}"
    for name in OF_SITE:
        assert (read := client.get(f"{of_site}/{name}")).is_success, f"{name}: {read.text}"
    for name in ("dlq", "evaluations", "audit-log", "keys"):
        assert (read := client.get(f"{admin}/{name}")).is_success, f"{name}: {read.text}"
    [made] = [key["id"] for key in client.get(f"{admin}/keys").json()["keys"] if key["name"] == site]
    assert client.delete(f"{admin}/keys/{made}").is_success
    assert client.get("/conversations").json()["today"]
    assert client.delete(f"{of_site}/questions/{asked}/conversation").is_success


def test_a_page_is_found_and_a_question_answered_with_the_listed_rights_alone(managed: Managed, tmp_path: Path) -> None:
    for name, secret in (("kafka", PASSWORD), ("elastic", KEY)):
        (tmp_path / name).write_text(f"{secret}\n")
    instance = Instance(
        tmp_path,
        None,
        PAGEWIRE_KAFKA=managed.kafka.login,
        PAGEWIRE_KAFKA_SECURITY_PROTOCOL="SASL_SSL",
        PAGEWIRE_KAFKA_SASL_MECHANISM="SCRAM-SHA-512",
        PAGEWIRE_KAFKA_USER=USER,
        PAGEWIRE_KAFKA_PASSWORD_FILE=str(tmp_path / "kafka"),
        PAGEWIRE_KAFKA_CA=str(managed.kafka.certificates.ca),
        PAGEWIRE_ELASTICSEARCH=managed.elastic.url,
        PAGEWIRE_ELASTICSEARCH_API_KEY_FILE=str(tmp_path / "elastic"),
        PAGEWIRE_ELASTICSEARCH_CA=str(managed.kafka.certificates.ca),
        PAGEWIRE_TOPIC_PREFIX=PREFIX,
        PAGEWIRE_PARTITIONS="1",
    )
    with ExitStack() as stack:
        stack.enter_context(instance.started("worker", "all"))
        gateway = stack.enter_context(instance.started("gateway"))
        with instance.client(gateway.url) as client:
            waiting = {"wait": "searchable", "timeout": 60}
            saved = client.put("/pages/pool", params=waiting, json=PAGE)
            assert saved.status_code == 200, saved.text
            answer = client.post("/chat", json={"question": "What does a swim in the harbour pool cost?"}).json()
            assert "4 euros" in answer["answer"], answer
            assert client.get(f"/answers/{answer['request_id']}/events").status_code == 200
            operate(client, gateway.url, instance.site, answer)
            status = client.get(f"{gateway.url}/v1/admin/status").json()
            assert (status["kafka"], status["elasticsearch"]) == (True, True), status
            for command in (
                ("audit", instance.site),
                ("rebuild", instance.site, "--from", "changes", "--promote"),
                ("backup", str(tmp_path / "monday"), "--site", instance.site),
                ("restore", str(tmp_path / "monday")),
            ):
                done = instance.run(*command)
                assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            # Into a shared index and out again, its former place given up.
            for kind, former in (("shared", 2), ("own", 3)):
                instance.environment["PAGEWIRE_SITE_INDEX"] = kind
                for command in (
                    ("rebuild", instance.site, "--from", "embeddings", "--promote"),
                    ("discard", instance.site, str(former)),
                ):
                    done = instance.run(*command)
                    assert done.returncode == 0, f"{kind}, {command}: {done.stdout}{done.stderr}"
            managed.elastic.key = "hush-new"  # and a save is taken meanwhile
            try:
                saved = client.put(
                    "/pages/pool", json=PAGE | {"content": PAGE["content"].replace("4 euros", "5 euros")}
                )
                assert saved.status_code == 202, saved.text
                eventually(lambda: not client.get(f"{gateway.url}/v1/admin/status").json()["elasticsearch"])
                (tmp_path / "elastic").write_text("hush-new\n")
                receipt = "/pages/pool/receipt?lang=en"
                eventually(lambda: client.get(receipt).json().get("searchable_revision") == saved.json()["revision"])
                answer = client.post("/chat", json={"question": "What does a swim in the harbour pool cost?"}).json()
                assert "5 euros" in answer["answer"], answer
                assert client.get(f"{gateway.url}/v1/admin/dlq").json()["total"] == 0
                assert client.delete("/pages/pool", params=waiting | {"lang": "en"}).status_code == 200
            finally:
                managed.elastic.key = KEY
    assert managed.elastic.refused == []
