"""Every client connects by the same settings; what is wrong with them is said at the start, or in plain words later."""

from __future__ import annotations

import ast
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from pydantic import SecretStr, ValidationError

from adapters.kafka.access import KafkaDenied, TokenMissing, connection, connection_problem, denied, security
from adapters.kafka.client import from_broker
from adapters.kafka.settings import KafkaSettings
from adapters.tls import handshake_failure
from pipelines.runtime.errors import WAYS, FailureAction, Retryable, SettingsError
from worker.faust_app import credentials
from worker.settings import WorkerSettings

ROOT = Path(__file__).parents[3]
CLIENTS = {"AIOKafkaConsumer", "AIOKafkaProducer", "AIOKafkaAdminClient", "create_conn"}
SCRAM = {
    "kafka_security_protocol": "SASL_SSL",
    "kafka_sasl_mechanism": "SCRAM-SHA-512",
    "kafka_user": "us",
    "kafka_password": "hush",
}


def calls() -> Iterator[tuple[str, ast.Call]]:
    for folder in ("adapters", "pipelines", "worker", "wiring", "gateway", "cli", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if not any(client in text for client in CLIENTS):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLIENTS:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_every_client_is_given_how_to_connect_from_one_place() -> None:
    found = list(calls())
    assert {node.func.id for _, node in found if isinstance(node.func, ast.Name)} == CLIENTS
    for place, node in found:
        given = [keyword.value for keyword in node.keywords if keyword.arg is None]
        names = {one.func.id for one in given if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
        assert names & {"connection", "security"}, f"{place} does not connect by adapters.kafka.access"


def test_without_security_a_client_is_given_the_address_alone() -> None:
    settings = WorkerSettings(kafka="one:9092, two:9092")
    assert connection(settings) == {"bootstrap_servers": "one:9092,two:9092", "security_protocol": "PLAINTEXT"}
    assert credentials(settings) is None


def test_a_user_over_tls() -> None:
    settings = WorkerSettings(kafka="one:9092", **SCRAM)
    given = security(settings)
    context = given.pop("ssl_context")
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert given == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "us",
        "sasl_plain_password": "hush",
    }
    told = credentials(settings)
    assert (told.protocol.value, told.mechanism.value, told.username, told.password) == (
        "SASL_SSL",
        "SCRAM-SHA-512",
        "us",
        "hush",
    )
    assert "hush" not in repr(settings)
    assert "hush" not in repr(told)


def test_a_token_over_tls() -> None:
    oauth = {"kafka_oauth_url": "https://idp/token", "kafka_user": "us", "kafka_password": "hush"}
    settings = WorkerSettings(
        kafka="one:9092", kafka_security_protocol="SASL_SSL", kafka_sasl_mechanism="OAUTHBEARER", **oauth
    )
    first, second = security(settings), security(settings)
    # Faust's client has a loop of its own.
    assert first["sasl_oauth_token_provider"] is not second["sasl_oauth_token_provider"]
    assert credentials(settings).protocol.value == "SASL_SSL"


def test_mutual_tls(tmp_path: Path) -> None:
    ca, own = tmp_path / "ca.pem", tmp_path / "own.pem"
    authority = trustme.CA()
    authority.cert_pem.write_to_path(ca)
    authority.issue_cert("us").private_key_and_cert_chain_pem.write_to_path(own)
    settings = WorkerSettings(kafka="one:9092", kafka_security_protocol="SSL", kafka_ca=ca, kafka_certificate=own)
    context = security(settings)["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(context.get_ca_certs()) == 1  # none of the system's
    assert credentials(settings).protocol.value == "SSL"
    ca.unlink()
    with pytest.raises(SettingsError, match="PAGEWIRE_KAFKA_CA"):
        security(settings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kafka": "broker"}, "server 1 is not `host:port`"),
        ({"kafka": "one:9092;two:9092"}, "server 1 is not `host:port`"),
        ({"kafka": "us:hush@one:9092"}, "server 1 is not `host:port`"),
        ({"kafka": ","}, "must name a server"),
        (
            {"kafka_security_protocol": "SASL_SSL"},
            "PAGEWIRE_KAFKA_SASL_MECHANISM): kafka_security_protocol SASL_SSL needs",
        ),
        ({"kafka_sasl_mechanism": "PLAIN"}, "there is no login with kafka_security_protocol PLAINTEXT"),
        (SCRAM | {"kafka_password": None}, "PAGEWIRE_KAFKA_PASSWORD): kafka_sasl_mechanism SCRAM-SHA-512 needs it"),
        (
            SCRAM | {"kafka_oauth_url": "https://idp/token"},
            "PAGEWIRE_KAFKA_OAUTH_URL): kafka_sasl_mechanism SCRAM-SHA-512 does",
        ),
        ({"kafka_user": "us"}, "PAGEWIRE_KAFKA_USER): kafka_sasl_mechanism is not set"),
        ({"kafka_ca": "ca.pem"}, "PAGEWIRE_KAFKA_CA): there is no TLS with kafka_security_protocol PLAINTEXT"),
        (SCRAM | {"kafka_ca": "nowhere.pem"}, "PAGEWIRE_KAFKA_CA): nowhere.pem cannot be read: No such file"),
        (SCRAM | {"kafka_certificate_key": "key.pem"}, "PAGEWIRE_KAFKA_CERTIFICATE): there is a key"),
    ],
)
def test_settings_that_do_not_fit_are_refused_at_the_start(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        KafkaSettings(**given)
    assert said in str(refused.value.errors()[0]["msg"])
    assert "hush" not in str(refused.value.errors()[0]["msg"])


def test_a_file_that_is_not_what_it_must_be_is_named_without_its_content(tmp_path: Path) -> None:
    authority = trustme.CA()
    ca, other, key, certificate = (tmp_path / name for name in ("ca.pem", "other.pem", "key.pem", "own.pem"))
    authority.cert_pem.write_to_path(ca)
    made = authority.issue_cert("us")
    made.cert_chain_pems[0].write_to_path(certificate)
    authority.issue_cert("them").private_key_pem.write_to_path(other)
    key.write_text("hush")
    secure = {"kafka_security_protocol": "SSL"}
    for given, said in (
        ({"kafka_ca": key}, f"PAGEWIRE_KAFKA_CA): {key} holds no PEM certificate"),
        ({"kafka_certificate": certificate}, f"PAGEWIRE_KAFKA_CERTIFICATE): {certificate} must hold"),
        ({"kafka_certificate": certificate, "kafka_certificate_key": key}, f"{key} its key"),
        (
            {"kafka_certificate": certificate, "kafka_certificate_key": other},
            f"{other} is not the key of {certificate}",
        ),
    ):
        with pytest.raises(ValidationError) as refused:
            KafkaSettings(**secure, **given)
        assert said in str(refused.value)
        assert "hush" not in str(refused.value)


def distrusted(code: int) -> ssl.SSLCertVerificationError:
    err = ssl.SSLCertVerificationError()
    err.verify_code, err.verify_message = code, "said"
    return err


def alert(reason: str) -> Exception:
    """As aiokafka hands it on."""
    err = ssl.SSLError(1, reason)
    err.reason = reason
    outer = KafkaConnectionError("closed")
    outer.__cause__ = err
    return outer


@pytest.mark.parametrize(
    ("err", "setting"),
    [
        (SaslAuthenticationFailed("no"), "PAGEWIRE_KAFKA_USER, PAGEWIRE_KAFKA_PASSWORD"),
        (UnsupportedSaslMechanismError(), "PAGEWIRE_KAFKA_SASL_MECHANISM"),
        (IllegalSaslStateError(), "PAGEWIRE_KAFKA_SECURITY_PROTOCOL"),
        (TokenMissing("https://idp (PAGEWIRE_KAFKA_OAUTH_URL)"), "PAGEWIRE_KAFKA_OAUTH_URL"),
        (ValueError("Server sent wrong signature!"), "PAGEWIRE_KAFKA?"),
        (distrusted(20), "PAGEWIRE_KAFKA_CA must be"),
        (distrusted(64), "PAGEWIRE_KAFKA must name"),
        (distrusted(10), "not valid now"),
        (distrusted(24), "PAGEWIRE_KAFKA_CA"),
        (alert("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "PAGEWIRE_KAFKA_CERTIFICATE"),
        (alert("WRONG_VERSION_NUMBER"), "right port"),
        (KafkaConnectionError("closed"), "PAGEWIRE_KAFKA_SECURITY_PROTOCOL"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else str(one),
)
def test_a_refused_connection_names_the_setting(err: Exception, setting: str) -> None:
    said = connection_problem(err, KafkaSettings(**SCRAM))
    assert said is not None
    assert setting in said
    assert "hush" not in said
    assert "'us'" not in said  # `/readyz` tells everybody


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_broker_that_hangs_up_may_want_something_else(protocol: str) -> None:
    said = connection_problem(KafkaConnectionError("closed"), KafkaSettings(kafka_security_protocol=protocol))
    assert f"PAGEWIRE_KAFKA_SECURITY_PROTOCOL is {protocol}" in (said or "")


@pytest.mark.parametrize("err", [ConnectionRefusedError(), TimeoutError(), OSError("no such host")])
def test_a_broker_that_is_away_is_only_away(err: Exception) -> None:
    assert connection_problem(err, KafkaSettings(**SCRAM)) is None
    assert handshake_failure(err, "kafka", "the broker", "PAGEWIRE_KAFKA") is None


async def test_a_missing_right_is_a_services_trouble_and_says_where_the_list_is() -> None:
    async def ask() -> None:
        raise GroupAuthorizationFailedError("pagewire-embed")

    with pytest.raises(KafkaDenied, match=r"pagewire-embed.*pagewire topics --acls"):
        await from_broker(ask(), "read offsets")
    assert "pagewire topics --acls" in str(denied(29, "topic t"))  # TOPIC_AUTHORIZATION_FAILED
    assert denied(3, "topic t") is None
    assert issubclass(KafkaDenied, Retryable)
    assert WAYS[KafkaDenied.kind] is FailureAction.PAUSE
    assert KafkaDenied.code == "kafka-denied"


def test_a_secret_is_not_printed() -> None:
    assert "hush" not in repr(KafkaSettings(**SCRAM, kafka_certificate_password=None))
    assert isinstance(KafkaSettings(**SCRAM).kafka_password, SecretStr)
