"""Secrets in files: each of them, read at the start; whatever is wrong names the setting and the file alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipelines.runtime.errors import SettingsError
from wiring.secret_files import CHANGEABLE, FILE_SETTINGS, put_in
from wiring.settings import Settings
from wiring.settings_file import load

SECRETS = {
    "admin_key",
    "token_secret",
    "openai_api_key",
    "elasticsearch_api_key",
    "elasticsearch_password",
    "kafka_password",
    "kafka_certificate_password",
}
PUSH = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a secret, beside an empty working directory."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    path = tmp_path / "secret"
    path.write_text("hush-from-a-file\n")
    return path


def refused(**env: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(env)
    assert "hush" not in str(caught.value)
    return str(caught.value)


def value(secret: SecretStr | None) -> str:
    assert secret is not None
    return secret.get_secret_value()


def test_every_secret_may_stand_in_a_file(secret: Path) -> None:
    assert set(FILE_SETTINGS.values()) == SECRETS  # one more: does it stand in the reference of settings?
    for setting, name in FILE_SETTINGS.items():
        values: dict[str, object] = {setting: str(secret)}
        assert put_in(values) == {name: secret}
        assert values == {name: "hush-from-a-file"}
    assert not set(FILE_SETTINGS) & set(Settings.model_fields)


def test_it_is_read_from_the_environment_and_from_the_settings_file(secret: Path) -> None:
    assert value(load({"PAGEWIRE_ADMIN_KEY_FILE": str(secret)}).admin_key) == "hush-from-a-file"
    assert value(load({"OPENAI_API_KEY_FILE": str(secret)}).openai_api_key) == "hush-from-a-file"
    Path("pagewire.yaml").write_text(f"admin_key_file: {secret}")
    assert value(load({}).admin_key) == "hush-from-a-file"


def test_the_environment_wins_in_either_form(secret: Path) -> None:
    Path("pagewire.yaml").write_text("admin_key: in-the-yaml-file")
    assert value(load({"PAGEWIRE_ADMIN_KEY_FILE": str(secret)}).admin_key) == "hush-from-a-file"
    Path("pagewire.yaml").write_text(f"admin_key_file: {secret}")
    assert value(load({"PAGEWIRE_ADMIN_KEY": "in-the-environment"}).admin_key) == "in-the-environment"
    Path("pagewire.yaml").write_text("openai_api_key: in-yaml")
    assert value(load({"OPENAI_API_KEY_FILE": str(secret)}).openai_api_key) == "in-yaml"


def test_a_secret_that_is_given_twice_is_refused(secret: Path) -> None:
    said = refused(PAGEWIRE_ADMIN_KEY="hush", PAGEWIRE_ADMIN_KEY_FILE=str(secret))
    assert said == "admin_key and admin_key_file (PAGEWIRE_ADMIN_KEY, PAGEWIRE_ADMIN_KEY_FILE): give one of them"
    assert "give one" in refused(OPENAI_API_KEY="hush", OPENAI_API_KEY_FILE=str(secret))
    Path("pagewire.yaml").write_text(f"token_secret: hush\ntoken_secret_file: {secret}")
    assert "give one" in refused()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"hush\nhush\n", "must hold the secret alone, on one line"),
        (b"hush" * 20_000, "must hold the secret alone, on one line"),
        (b"hush\xff", "is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_secret_is_named_without_its_content(secret: Path, content: bytes, said: str) -> None:
    secret.write_bytes(content)
    where = "kafka_password_file (PAGEWIRE_KAFKA_PASSWORD_FILE)"
    assert refused(PAGEWIRE_KAFKA_PASSWORD_FILE=str(secret)) == f"{where}: {secret} {said}"


def test_a_file_that_cannot_be_read_is_named(secret: Path) -> None:
    secret.unlink()
    assert f"{secret} cannot be read: No such file" in refused(PAGEWIRE_ADMIN_KEY_FILE=str(secret))
    secret.mkdir()
    assert f"{secret} cannot be read: Is a directory" in refused(PAGEWIRE_ADMIN_KEY_FILE=str(secret))
    if os.geteuid():  # root reads everything
        secret.rmdir()
        secret.touch(0)
        assert "Permission denied" in refused(PAGEWIRE_ADMIN_KEY_FILE=str(secret))
    Path("pagewire.yaml").write_text("admin_key_file: [hush]")
    assert "must be the path of a file" in refused()


def test_a_secret_of_a_file_that_does_not_fit_names_the_file(secret: Path) -> None:
    said = refused(PAGEWIRE_TOKEN_SECRET_FILE=str(secret))
    assert said.startswith(f"token_secret_file (PAGEWIRE_TOKEN_SECRET_FILE): {secret}: ")


def test_what_is_no_secret_is_read_from_no_file(secret: Path) -> None:
    assert "no such setting" in refused(PAGEWIRE_PORT_FILE=str(secret))


def test_a_connectors_secret_may_stand_in_a_file(secret: Path) -> None:
    secret.write_text(PUSH + "\n")
    Path("pagewire.yaml").write_text(
        "sites: {town: {connectors: {cms: {kind: push, secret: '${PAGEWIRE_CMS_SECRET}'}}}}"
    )
    settings = load({"PAGEWIRE_CMS_SECRET_FILE": str(secret)})
    assert value(settings.sites["town"].connectors["cms"].secret) == PUSH  # type: ignore[union-attr]
    said = refused()
    assert "PAGEWIRE_CMS_SECRET is not set, nor is PAGEWIRE_CMS_SECRET_FILE" in said
    secret.unlink()
    assert f"PAGEWIRE_CMS_SECRET_FILE: {secret} cannot be read" in refused(PAGEWIRE_CMS_SECRET_FILE=str(secret))


def test_what_is_said_with_every_request_is_read_again(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("wiring.secret_files.monotonic", lambda: now)
    env = {f"PAGEWIRE_{name.upper()}_FILE": str(secret) for name in ("elasticsearch_api_key", "admin_key")}
    settings = load(env)
    secret.write_text("hush-and-new\n")
    assert value(settings.elasticsearch_api_key) == "hush-from-a-file"  # no look at the disk for each request
    now = 5.0
    assert value(settings.elasticsearch_api_key) == "hush-and-new"
    assert value(settings.admin_key) == "hush-from-a-file"
    for broken in (b"", b"\xff", b"two\nlines"):
        secret.write_bytes(broken)
        now += 5
        assert value(settings.elasticsearch_api_key) == "hush-and-new"
    secret.unlink()
    now += 5
    assert value(settings.elasticsearch_api_key) == "hush-and-new"
    assert "hush" not in repr(settings)


def test_only_secrets_are_read_again() -> None:
    assert CHANGEABLE < SECRETS
