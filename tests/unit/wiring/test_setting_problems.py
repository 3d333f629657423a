"""Wrong settings as people write them: each is refused with its place, the value seen, and one that works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import SecretStr, ValidationError

from connectors.cms.settings import KINDS
from pipelines.runtime.errors import SettingsError
from wiring.setting_problems import EXAMPLES, is_secret
from wiring.settings import Settings
from wiring.settings_file import load

SITE = "sites: {town: {%s}}"
BLOG = "sites: {town: {connectors: {blog: {%s}}}}"
HEX = "ab" * 32


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(written: str, **env: str) -> str:
    Path("pagewire.yaml").write_text(written, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load(env)
    return str(caught.value)


# What is written, and all that is said of it: the place is before the colon.
MISTAKES = {
    # numbers and switches
    "port: eight": "port (pagewire.yaml): must be a whole number (it is 'eight'); for example 8000",
    "port: 8000.5": "must be a whole number (it is 8000.5); for example 8000",
    "port: 65536": "must be less than or equal to 65535 (it is 65536); for example 8000",
    "port: ${PORT}": "(it is '${PORT}'; ${...} is for the secrets of connectors alone); for example 8000",
    "llm_timeout: 30s": "must be a number (it is '30s'); for example 30",
    "llm_timeout: .inf": "must be a finite number (it is inf); for example 30",
    "gate: maybe": "must be true or false (it is 'maybe'); for example true",
    SITE % "daily_tokens: 1e6": "must be a whole number (it is '1e6'); for example 1000000",
    # choices
    "log_level: infos": "(it is 'infos'); did you mean info?",
    "judge: yes": "must be 'none', 'model' or 'reranker' (it is True); for example none",
    "embedder: bge": "embedder (pagewire.yaml): must be lite, bge-m3, bge-m3-sparse, onnx:FOLDER or openai:MODEL "
    "(it is 'bge'); for example lite",
    "steps: {anser: {}}": "steps.anser (pagewire.yaml): must be 'rephrase', 'answer', ",
    SITE % "strategy: simple": "(it is 'simple'); for example plain",
    # addresses
    SITE % "origins: [www.example.org]": "sites.town.origins.0 (pagewire.yaml): must begin with https:// or http:// "
    "(it is 'www.example.org'); for example https://www.example.org",
    SITE % "origins: [https://example.org/de]": "has no path, for browsers send none: https://example.org (it is",
    SITE % "origins: ['https://*.example.org']": "origins are named one by one: there is no `*`",
    SITE % "origins: ['null']": "must begin with https:// or http:// (it is 'null')",
    SITE % "origins: ['\"https://example.org\"']": "must begin with https:// or http://",
    SITE % "origins: ['https://a.example,https://b.example']": "must be the scheme, the host, and the port",
    SITE % "origins: [https://a.example:99999]": "is no address of a website (it is 'https://a.example:99999')",
    SITE % "origins: [https://anna:pw@a.example]": "(it is 'https://...@a.example')",
    SITE % "origins: https://a.example": "sites.town.origins (pagewire.yaml): must be a list (it is "
    "'https://a.example'); for example ['https://www.example.org']",
    "host: http://localhost": "must be an address or a name of this machine alone, without scheme and port (it is",
    "host: localhost:8000": "(it is 'localhost:8000'); for example 127.0.0.1",
    "host: 999.1.1.1": "(it is '999.1.1.1'); for example 127.0.0.1",
    "kafka: http://localhost:9092": "server 1 is not `host:port`",
    "kafka: localhost:99999": "the port of server 1 is not 1 to 65535",
    "elasticsearch: localhost:9200": "must be a URL with its port, without user and password (it is 'localhost:9200'); "
    "for example http://127.0.0.1:9200",
    "elasticsearch: http://localhost:99999": "a port is 1 to 65535",
    "elasticsearch: http://elastic:hush@localhost:9200": "(it is 'http://...@localhost:9200')",
    "elasticsearch: 'https://elastic:hu/sh,?x@es:9200'": "(it is 'https://...@es:9200')",
    "openai_base_url: localhost:8080/v1?api-key=hush": "(it is 'localhost:8080/v1?...')",
    "openai_base_url: localhost:8080": "must be a URL (it is 'localhost:8080'); for example https://api.openai.com/v1",
    "openai_base_url: https://api.example/v1/chat/completions": "without the last parts of this one",
    "hosts: [a.example, 'https://b.example/']": "hosts (pagewire.yaml): 'https://b.example/' is not a name alone; "
    "leave out scheme, port and path (it is ['a.example', 'https://b.example/']); for example [chat.example.org]",
    "forwarded_allow_ips: [proxy.internal]": "'proxy.internal' is no address, no network and not `*` (it is",
    "forwarded_allow_ips: [1]": "'1' is no address, no network",
    "forwarded_allow_ips: [10.0.0.1/8]": "10.0.0.1/8 is an address in a network: write 10.0.0.1 or 10.0.0.0/8 (it is",
    "fetch_allow: 'http://cms.internal'": "'http://cms.internal' is no host, address or network",
    "fetch_allow: 10.0.0.0/33": "for example [cms.internal, 10.1.0.0/16]",
    BLOG
    % "kind: wordpress, url: www.a.example": "sites.town.connectors.blog.url (pagewire.yaml): must be a URL with its "
    "scheme, without user and password (it is 'www.a.example'); for example https://www.example.org",
    # languages, places, names
    SITE % "languages: [English]": "languages are named by their codes (it is 'English'); did you mean en?",
    SITE % "languages: [deutsch]": "(it is 'deutsch'); for example de",
    SITE % "languages: en": "sites.town.languages (pagewire.yaml): must be a list (it is 'en'); for example [de, en]",
    SITE % "languages: [no]": "what YAML takes for something else needs quotes (it is False); for example de",
    SITE % "contact: {English: x}": "sites.town.contact.English (pagewire.yaml): languages are named by their codes",
    SITE % "timezone: Berlin": "names are those of IANA (it is 'Berlin'); did you mean Europe/Berlin?",
    "sites: {My Town: {}}": "names of sites have small letters, digits and hyphens (it is 'My Town'); for example town",
    "sites: {1: {}}": "needs quotes (it is 1); for example town",
    BLOG.replace("blog", "Blog") % "kind: folder, path: x": "names of connectors have small letters",
    # shapes
    "sites: town": "sites (pagewire.yaml): must be a mapping (it is 'town'); for example {town: {languages: [de]}}",
    "sites:\n  town:\n": "sites.town (pagewire.yaml): must be a mapping (it is empty); for example {languages: [de]}",
    SITE % "chat: off": "must be a mapping (it is False); for example {enabled: true",
    SITE % "glossary: [a]": "must be a mapping (it is ['a']); for example {bulky waste: {de: Sperrmüll}}",
    SITE % "retention: 90": "must be a mapping (it is 90); for example {conversations: 90, outcomes: 365}",
    SITE % "connectors: [{kind: folder}]": "must be a mapping; for example {wordpress: {kind: wordpress}}",
    "keys: {a: b}": "keys (pagewire.yaml): must be a list; for example [{name: cms, ",
    f"keys: [{{name: cms, sha256: {HEX}, scopes: ingest}}]": "keys.0.scopes (pagewire.yaml): must be a list (it is "
    "'ingest'); for example [ingest]",
    f"keys: [{{name: cms, sha256: {HEX}, scopes: [write]}}]": "(it is 'write'); for example ingest",
    "keys: [{name: cms, sha256: ABC, scopes: [chat]}]": "must be the key's SHA-256 in hex, `printf %s KEY ",
    "proxy_sign_in: {proxies: [proxy.internal], roles: [{group: a, scope: view}]}": "proxy_sign_in.proxies.0 "
    "(pagewire.yaml): is not a valid IPv4 or IPv6 network (it is 'proxy.internal'); for example 10.0.3.7",
    "visitor_rate: 20 per minute": "has the wrong form (it is '20 per minute'); for example 20/minute",
    "engine_kafka_heap: 320": "needs quotes (it is 320); for example 320m",
    "engine_es_port: 19092": "engine_es_port (PAGEWIRE_ENGINE_ES_PORT): 19092 is Kafka's",
    "home: ''": "home (pagewire.yaml): is empty (it is ''); for example .pagewire",
    "llm_model: ''": "is empty (it is ''); for example gpt-4.1-mini",
    # names that there are not
    "prot: 8000": "prot (pagewire.yaml): no such setting; did you mean port?",
    "site: {town: {}}": "no such setting; did you mean sites?",
    "origins: [https://a.example]": "no such setting; it is a setting of a site: sites.SITE.origins",
    SITE % "port: 8000": "sites.town.port (pagewire.yaml): no such setting; it is a setting of all sites",
    SITE % "lang: [en]": "sites.town.lang (pagewire.yaml): no such setting; did you mean languages?",
    BLOG % "kind: wordpres, url: https://a.example": "no kind 'wordpres'; there are: drupal, folder, push, "
    "sitemap, wagtail, wordpress; did you mean wordpress?",
    BLOG % "kind: sitemap, url: https://a.example, excludes: []": "no such setting; did you mean exclude?",
    BLOG % "kind: wordpress": "sites.town.connectors.blog.url (pagewire.yaml): is missing; for example https://",
    BLOG
    % "url: https://a.example": "sites.town.connectors.blog (pagewire.yaml): needs a `kind`: drupal, folder, push, ",
    BLOG % "kind: push, secret: '${NOWHERE}'": "the environment variable NOWHERE is not set, nor is NOWHERE_FILE",
    # the file itself
    "sites:\n\ttown: {}": "pagewire.yaml: a tab, where YAML is indented with spaces, at line 2, column 1",
    "<<<<<<< HEAD\nport: 1\n=======\n": "pagewire.yaml: a conflict that git has left at line 2",
    "port: 1\nport: 2": "pagewire.yaml: a key that stands twice at line 2, column 1",
    "port 8000": "pagewire.yaml: must be a mapping such as `sites: {town: {languages: [en]}}`",
    "'port: 8000": "pagewire.yaml: not YAML at line 1",
    "title: Dr. M: a dentist": "a colon in a value, which must stand in quotes then, at line 1, column 13",
    "port: 9\x00": "pagewire.yaml: cannot be read: it has control characters in it",
}


@pytest.mark.parametrize(("written", "said"), MISTAKES.items(), ids=lambda text: text[:40])
def test_a_mistake_is_told_with_what_was_seen_and_what_works(written: str, said: str) -> None:
    told = refused(written)
    assert said in told
    assert "hush" not in told
    assert "\n" not in told, "one mistake, one line"


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"PAGEWIRE_PROT": "1"}, "PAGEWIRE_PROT: no such setting; did you mean PAGEWIRE_PORT?"),
        ({"pagewire_port": "1"}, "pagewire_port: no such setting; did you mean PAGEWIRE_PORT?"),
        ({"PAGEWIRE_LLM": "x"}, "PAGEWIRE_LLM: no such setting; did you mean PAGEWIRE_LLM_MODEL?"),
        ({"PAGEWIRE_KAFKA_PASSWD_FILE": "x"}, "did you mean PAGEWIRE_KAFKA_PASSWORD_FILE?"),
        ({"PAGEWIRE_BIND": "x"}, "PAGEWIRE_BIND: no such setting"),
        ({"PAGEWIRE_PORT": '"8000"'}, "PAGEWIRE_PORT: its quotes are taken for a part of the value"),
        ({"OPENAI_API_KEY": "'hush'"}, "OPENAI_API_KEY: its quotes are taken for a part of the value"),
        (
            {"PAGEWIRE_HOSTS": "b.example:80"},
            "hosts (PAGEWIRE_HOSTS): 'b.example:80' is not a name alone; leave out scheme, port and path; for example "
            "chat.example.org",
        ),
        (
            {"FORWARDED_ALLOW_IPS": "proxy"},
            "forwarded_allow_ips (FORWARDED_ALLOW_IPS): 'proxy' is no address, no network and not `*`; for example "
            "172.16.0.0/12",
        ),
        ({"PAGEWIRE_FETCH_ALLOW": "a b"}, "; for example cms.internal,10.1.0.0/16"),
        ({"PAGEWIRE_CONFIG": "nowhere.yaml"}, "PAGEWIRE_CONFIG: no such file: nowhere.yaml"),
        ({"PAGEWIRE_ADMIN_KEY_FILE": "nowhere"}, "PAGEWIRE_ADMIN_KEY_FILE): nowhere cannot be read"),
    ],
)
def test_a_mistake_in_the_environment_is_told(env: dict[str, str], said: str) -> None:
    told = refused("", **env)
    assert said in told
    assert "hush" not in told


def test_a_file_under_another_name_is_not_passed_over(folder: Path) -> None:
    (folder / "pagewire.yml").write_text("port: 1")
    with pytest.raises(SettingsError, match=r"pagewire\.yml is not read: .*PAGEWIRE_CONFIG=pagewire\.yml"):
        load({})
    assert load({"PAGEWIRE_CONFIG": "pagewire.yml"}).port == 1


def test_all_that_is_wrong_stands_on_lines_of_its_own() -> None:
    told = refused("port: x\nshards: 0\nsites: {a: {x: 1}}")
    assert {line.partition(" ")[0] for line in told.splitlines()} == {"port", "shards", "sites.a.x"}


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (SITE % "origins: [https://www.Example.org/]", "https://www.example.org"),
        (SITE % "origins: ['HTTPS://example.org:443']", "https://example.org"),
        (SITE % "origins: ['http://localhost:80/']", "http://localhost"),
        (SITE % "origins: [' http://localhost:3000 ']", "http://localhost:3000"),
        (SITE % "origins: ['http://[::1]:8080']", "http://[::1]:8080"),
        (SITE % "origins: [https://münchen.example]", "https://xn--mnchen-3ya.example"),
        (SITE % "origins: ['capacitor://localhost']", "capacitor://localhost"),
        (SITE % "languages: [EN]", "en"),
        (SITE % "languages: [pt_br]", "pt-BR"),
        (SITE % "log_questions: off", "off"),
        (SITE % "log_questions: on", "on"),
        ("log_level: INFO", "info"),
        ("host: '[::1]'", "::1"),
        ("home: ~/pagewire", str(Path.home() / "pagewire")),
        ("home: .", "."),
        (f"keys: [{{name: cms, sha256: {HEX.upper()}, scopes: [chat]}}]", HEX),
    ],
)
def test_what_can_only_mean_one_thing_is_put_right(folder: Path, written: str, kept: str) -> None:
    (folder / "pagewire.yaml").write_text(written, encoding="utf-8")
    settings, name = load({}), written.replace(SITE[:15], "").partition(":")[0]
    site = next(iter(settings.sites.values()))
    found = getattr(site if written.startswith("sites") else settings, name)
    first = found[0] if isinstance(found, tuple) else found
    assert getattr(first, "sha256", str(first)) == kept


EXAMPLE: dict[str, Any] = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
SCHEMA = Settings.model_json_schema()


def without_example(schema: Any, examples: list[Any], place: str = "") -> Iterator[str]:
    """Settings below this one that none of the examples has."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    for each in schema.get("anyOf", ()):
        yield from without_example(each, examples, place)
    for kind, each in schema.get("discriminator", {}).get("mapping", {}).items():
        yield from without_example({"$ref": each}, [one for one in examples if one["kind"] == kind], f"{place}{kind}.")
    for name, each in schema.get("properties", {}).items():
        inner = [example[name] for example in examples if isinstance(example, dict) and name in example]
        yield from without_example(each, inner, f"{place}{name}.") if inner else [f"{place}{name}"]
    for each in (*schema.get("patternProperties", {}).values(), schema.get("additionalProperties") or {}):
        inner = [one for example in examples if isinstance(example, dict) for one in example.values()]
        yield from without_example(each, inner, place) if inner else ()
    if "items" in schema:
        yield from without_example(schema["items"], [one for example in examples for one in example], place)


def test_every_setting_has_an_example() -> None:
    assert [*without_example(SCHEMA, [EXAMPLE])] == []
    assert [*without_example(SCHEMA, [EXAMPLE | {"sites": {"town": {}}}])] != []


def test_every_example_works() -> None:
    """Each by itself; what several settings want of each other is another matter."""
    secret = "whsec_" + "A" * 40
    given = yaml.safe_load(
        EXAMPLES.read_text(encoding="utf-8").replace("${BLOG_SECRET}", secret).replace("${DESK_SECRET}", secret)
    )
    del given["sites"]["town"]["handover"]["mail"]  # there is one way to a person
    connectors = given["sites"]["town"]["connectors"]
    connectors["pushed"] = connectors.pop("push")  # called by its kind, as no connector may be
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(given)
    assert [error["loc"] for error in caught.value.errors()] == [()], "the files of TLS are not there"


def secrets(model: Any = Settings) -> Iterator[str]:
    def holds_one(annotation: Any) -> bool:
        return annotation is SecretStr or any(map(holds_one, get_args(annotation)))

    return (name for name, field in model.model_fields.items() if holds_one(field.annotation))


def test_no_secret_is_ever_shown() -> None:
    named = {*secrets(), *(name for kind in KINDS for name in secrets(kind))}
    assert {"token_secret", "kafka_password", "openai_api_key", "secret", "password"} <= named
    for name in named:
        assert is_secret((name,)), name
    assert is_secret(("keys", 0, "sha256"))
    assert not is_secret(("sites", "town", "answer_tokens"))
