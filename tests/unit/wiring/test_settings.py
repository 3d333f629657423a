"""Settings: a wrong one fails at start and is named; a secret is never said."""

from __future__ import annotations

import copy
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.runtime.errors import SettingsError, UnknownSite
from pipelines.runtime.settings import StepSettings
from schemas.ingest import Chunker
from wiring import addresses as services
from wiring.addresses import ServiceMissing, addresses
from wiring.setting_problems import EXAMPLES, FILE_ONLY
from wiring.settings import Settings
from wiring.settings_file import load, without_retired

SECRETS = {
    "admin_key": "hush-admin-hush-admin",
    "openai_api_key": "hush-openai",
    "elasticsearch_password": "hush-password",
    "elasticsearch_api_key": "hush-api",
    "token_secret": "hush-" + "x" * 40,
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`pagewire.yaml` of the working directory; not there yet."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "pagewire.yaml"


def refused(file: Path, yaml: str | None = None, **env: str) -> str:
    if yaml is not None:
        file.write_text(yaml, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load(env)
    return str(caught.value)


def test_without_file_and_environment_there_is_the_demo_site(file: Path) -> None:
    settings = load({})
    assert settings == Settings()
    assert settings.site("demo").languages == ("de", "en")
    assert settings.kafka is None


def test_the_least_file_that_works(file: Path) -> None:
    file.write_text("sites: {town: {languages: [en]}}")
    assert list(load({}).sites) == ["town"]


def test_an_empty_file_is_as_good_as_none(file: Path) -> None:
    file.write_text("# nothing yet\n")
    assert load({}) == Settings()


def test_the_environment_wins_over_the_file(file: Path) -> None:
    file.write_text("port: 1\npartitions: 2\n")
    settings = load({"PAGEWIRE_PORT": "3"})
    assert (settings.port, settings.partitions) == (3, 2)


def test_an_empty_variable_is_as_good_as_none(file: Path) -> None:
    file.write_text("port: 1\n")
    assert load({"PAGEWIRE_PORT": "", "OPENAI_BASE_URL": ""}).port == 1


def test_another_file_by_name(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("port: 5")
    assert load({"PAGEWIRE_CONFIG": str(other)}).port == 5
    assert "PAGEWIRE_CONFIG: no such file" in refused(file, PAGEWIRE_CONFIG=str(tmp_path / "none.yaml"))


def test_the_names_that_openai_uses_count_least(file: Path) -> None:
    openai = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://one/v1"}
    settings = load(openai)
    assert settings.openai_api_key is not None
    assert (settings.openai_api_key.get_secret_value(), settings.openai_base_url) == ("k", "http://one/v1")
    ours = {"PAGEWIRE_OPENAI_BASE_URL": "http://two/v1"}
    assert load(openai | ours).openai_base_url == "http://two/v1"
    assert load(ours | openai).openai_base_url == "http://two/v1"
    file.write_text("openai_base_url: http://file/v1")
    assert load(openai).openai_base_url == "http://file/v1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "many"),
        ("PORT", "70000"),
        ("SHARDS", "0"),
        ("CHUNK_MODE", "random"),
        ("CHUNK_SIZE", "31"),
        ("EMBEDDER", "word2vec"),
        ("EMBEDDER", "openai:"),
        ("TOPIC_PREFIX", "no spaces"),
        ("VISITOR_RATE", "fast"),
        ("TOKEN_SECRET", "short"),
        ("LOG_LEVEL", "loud"),
        ("LOG_JSON", "perhaps"),
        ("ELASTICSEARCH", "localhost:9200"),
        ("ELASTICSEARCH", "https://es.example.org"),
        ("ELASTICSEARCH", "https://elastic:pw@es.example.org:9200"),
        ("OPENAI_BASE_URL", "api.example.org/v1"),
    ],
)
def test_a_wrong_value_is_named_by_its_variable(file: Path, name: str, value: str) -> None:
    said = refused(file, **{f"PAGEWIRE_{name}": value})
    assert said.startswith(f"{name.lower()} (PAGEWIRE_{name}): ")
    assert "Value error" not in said


@pytest.mark.parametrize("url", ["http://localhost:9200", "https://es.example.org:443/path", "http://[::1]:9200"])
def test_addresses_of_elasticsearch_that_its_client_takes(file: Path, url: str) -> None:
    assert load({"PAGEWIRE_ELASTICSEARCH": url}).elasticsearch == url


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("sites: {}", "sites (pagewire.yaml): at least one site"),
        ("sites: [town]", "sites (pagewire.yaml): "),
        ("sites: {Town: {}}", "sites.Town (pagewire.yaml): "),
        ("sites: {town: {languages: []}}", "sites.town.languages (pagewire.yaml): "),
        ("sites: {town: {languages: [no]}}", "sites.town.languages.0 (pagewire.yaml): "),  # YAML's `no` is false
        ("sites: {town: {langs: [en]}}", "sites.town.langs (pagewire.yaml): no such setting"),
        ("sites: {town-000001: {}}", "'town-000001' ends like an index generation"),
        ("keys: [{name: cms, sha256: abc, scopes: [ingest]}]", "keys.0.sha256 (pagewire.yaml): "),
        ("prot: 8000", "prot (pagewire.yaml): no such setting; did you mean port?"),
        ("partitions: [1]", "partitions (pagewire.yaml): "),
        ("- a list", "pagewire.yaml: must be a mapping such as `sites: {town: {languages: [en]}}`"),
        ("a: {b\n", "pagewire.yaml: not YAML at line 2, column 1"),
        ("sites:\n  town: {}\n  town: {}\n", "pagewire.yaml: a key that stands twice at line 3, column 3"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(file: Path, yaml: str, said: str) -> None:
    assert said in refused(file, yaml)


def test_all_that_is_wrong_is_said_at_once(file: Path) -> None:
    said = refused(file, "port: x\nshards: 0")
    assert "port (" in said
    assert "shards (" in said


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("admin_key: ''", "admin_key (pagewire.yaml): has 0 characters, and needs 16 or more"),
        ("admin_key: h", "admin_key (pagewire.yaml): has 1 characters, and needs 16 or more"),
        (f"admin_key: '{' ' * 20}'", "admin_key (pagewire.yaml): has 0 characters"),
        ("token_secret: ''", "token_secret (pagewire.yaml): has 0 characters, and needs 32"),
        ("openai_api_key: ''", "openai_api_key (pagewire.yaml): is empty; leave it out"),
        (
            f"keys: [{{name: cms, sha256: {sha256(b'').hexdigest()}, scopes: [admin]}}]",
            "keys.0.sha256 (pagewire.yaml): is the hash of an empty key",
        ),
        (
            "sites: {town: {connectors: {w: {kind: wordpress, url: 'https://w.example', user: u, password: ''}}}}",
            "sites.town.connectors.w.password (pagewire.yaml): is empty",
        ),
        ("sites: {town: {connectors: {p: {kind: push, secret: whsec_aHVzaA==}}}}", "this is of 4 bytes"),
    ],
)
def test_a_secret_that_protects_nothing_is_refused_with_its_length(file: Path, yaml: str, said: str) -> None:
    message = refused(file, yaml)
    assert said in message
    assert "openssl rand -base64 32" in message or "empty" in message


@pytest.mark.parametrize("folder", [True, False])
def test_a_file_that_cannot_be_read_is_named(file: Path, folder: bool) -> None:
    if folder:
        file.mkdir()
    else:
        file.write_bytes(b"\xff\xfe\x00")
    assert refused(file).startswith("pagewire.yaml: cannot be read: ")


def test_a_misspelt_variable_gets_a_suggestion(file: Path) -> None:
    assert refused(file, PAGEWIRE_KAFAK="x") == "PAGEWIRE_KAFAK: no such setting; did you mean PAGEWIRE_KAFKA?"
    assert refused(file, PAGEWIRE_ZZZZZ="x") == "PAGEWIRE_ZZZZZ: no such setting"


@pytest.mark.parametrize("name", sorted(FILE_ONLY))
def test_what_fits_into_no_variable_says_where_it_goes(file: Path, name: str) -> None:
    assert refused(file, **{f"PAGEWIRE_{name.upper()}": "x"}).startswith(
        f"PAGEWIRE_{name.upper()}: {name} are set in pagewire.yaml"
    )


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("elasticsearch_user: elastic", "elasticsearch_user and elasticsearch_password: give both or neither"),
        (
            f"keys: [{{name: cms, sha256: {'a' * 64}, scopes: [ingest], site: village}}]",
            "keys: 'cms' is for the unknown site 'village'",
        ),
        (
            "sites: {a: {attachment_folder: /srv/x}, town: {attachment_folder: /srv/files}, "
            "school: {attachment_folder: /srv/files/school}}",
            "sites.school.attachment_folder: /srv/files/school lies in /srv/files, which is that of the site town; "
            "give each a folder of its own",
        ),
    ],
)
def test_settings_that_do_not_fit_each_other_are_named(file: Path, yaml: str, said: str) -> None:
    assert refused(file, yaml) == said


def test_attachments_of_the_only_site_may_lie_in_the_general_folder(file: Path) -> None:
    file.write_text("sites: {town: {}}")
    file.write_text("sites: {town: {attachment_folder: /srv/town}, school: {}}")
    assert load({}).attachment_folders == {"town": Path("/srv/town")}


def test_an_unknown_site_is_told_with_the_known_ones() -> None:
    settings = Settings.model_validate({"sites": {"town": {}, "harbour": {}}})
    with pytest.raises(UnknownSite, match=r"unknown site 'village'; pagewire\.yaml has: harbour, town"):
        settings.site("village")


def test_without_a_file_the_sample_site_is_not_said_to_stand_in_one() -> None:
    with pytest.raises(UnknownSite, match=r"no pagewire\.yaml here names any, so there is only the sample: demo"):
        Settings().site("village")


def test_of_many_sites_a_few_are_told() -> None:
    settings = Settings.model_validate({"sites": {f"site-{number:05}": {} for number in range(2_000)}})
    with pytest.raises(UnknownSite) as refused:
        settings.site("village")
    assert str(refused.value).endswith("site-00018, site-00019 and 1,980 more")


@pytest.mark.parametrize(("others", "label"), [(499, "town"), (500, "")])
def test_metrics_name_a_site_where_there_are_few(others: int, label: str) -> None:
    settings = Settings.model_validate({"sites": {"town": {}} | {f"site{number}x": {} for number in range(others)}})
    assert settings.label("town") == label


def test_secrets_are_not_printed(file: Path) -> None:
    settings = load(
        {f"PAGEWIRE_{name.upper()}": value for name, value in SECRETS.items()}
        | {"PAGEWIRE_ELASTICSEARCH_USER": "elastic"}
    )
    for printed in (repr(settings), str(settings), settings.model_dump_json()):
        assert "hush" not in printed
    assert settings.admin_key is not None
    assert settings.admin_key.get_secret_value() == "hush-admin-hush-admin"


@pytest.mark.parametrize(
    "yaml",
    [
        'admin_key: "hush',
        "admin_key: *hush",
        "admin_key: !hush x",
        "admin_key: [hush]",
        "admin_key: {hush: hush}",
        "token_secret: hush",
        "admin_key: hush\n  port: 1",
        "elasticsearch_password: hush",
        "keys: hush",
        "keys: [{name: cms, sha256: hush, scopes: [ingest]}]",
    ],
)
def test_no_complaint_about_the_file_says_a_secret(file: Path, yaml: str) -> None:
    assert "hush" not in refused(file, yaml)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]


def test_the_chunker_follows_its_settings() -> None:
    settings = Settings(chunk_mode="fixed", chunk_size=600)
    assert settings.chunker == Chunker(mode="fixed", size=600, overlap=0.2)
    assert settings.chunker.fingerprint == "fixed-600-20"


@pytest.mark.parametrize(
    ("configured", "local", "expected"),
    [
        ({"kafka": "k:1", "elasticsearch": "http://e:2"}, None, ("k:1", "http://e:2")),
        ({}, ("local:1", "http://local:2"), ("local:1", "http://local:2")),
        ({"kafka": "k:1"}, ("local:1", "http://local:2"), ("k:1", "http://local:2")),
        ({"elasticsearch": "http://e:2"}, ("local:1", "http://local:2"), ("local:1", "http://e:2")),
    ],
)
def test_addresses_are_the_configured_ones_or_the_local_engines(
    monkeypatch: pytest.MonkeyPatch, configured: dict[str, Any], local: Any, expected: tuple[str, str]
) -> None:
    monkeypatch.setattr(services, "discover", lambda home: local)
    found = addresses(Settings(**configured))
    assert (found.kafka, found.elasticsearch) == expected


@pytest.mark.parametrize(
    ("configured", "missing"),
    [
        ({}, "no address is set by PAGEWIRE_KAFKA and PAGEWIRE_ELASTICSEARCH;"),
        ({"kafka": "k:1"}, "no address is set by PAGEWIRE_ELASTICSEARCH;"),
        ({"elasticsearch": "http://e:2"}, "no address is set by PAGEWIRE_KAFKA;"),
    ],
)
def test_a_missing_service_is_named_with_the_command_that_starts_one(
    tmp_path: Path, configured: dict[str, Any], missing: str
) -> None:
    with pytest.raises(ServiceMissing) as caught:
        addresses(Settings(home=tmp_path, **configured))
    assert missing in str(caught.value)
    assert "pagewire engine start" in str(caught.value)


@pytest.mark.parametrize(
    ("yaml", "complaint"),
    [
        ("sites: {town: {steps: {anser: {max_tokens: 40}}}}", "sites.town.steps.anser.*'rephrase', 'answer'"),
        ("sites: {town: {steps: {answer: {max_token: 40}}}}", "sites.town.steps.answer.max_token .*no such setting"),
        ("sites: {town: {steps: {answer: {model: big}}}}", "sites.town.steps.answer.model: .*llm_model"),
        ("steps: {translate: {model: big}}", "^steps.translate.model: .*llm_model"),
        ("steps: {answer: {temperature: 7}}", "^steps.answer.temperature .*less than or equal to 2"),
        ("sites: {town: {daily_tokens: 0}}", "sites.town.daily_tokens .*greater than or equal to 1"),
    ],
)
def test_what_is_wrong_with_a_step_is_said(file: Path, yaml: str, complaint: str) -> None:
    assert re.search(complaint, refused(file, yaml))


def test_a_step_is_set_for_a_site_then_for_all() -> None:
    settings = Settings.model_validate(
        {
            "llm_model": "usual",
            "context_chars": 4_000,
            "steps": {"answer": {"temperature": 0.5, "max_tokens": 300}, "think": {"max_tokens": 50}},
            "sites": {"town": {"steps": {"answer": {"model": "big", "max_tokens": 200}}}, "village": {}},
        }
    )
    answer = StepSettings(model="big", temperature=0.5, max_tokens=200)
    assert settings.step("town", "answer") == answer
    assert settings.step("village", "answer") == answer.model_copy(update={"model": None, "max_tokens": 300})
    assert settings.step("village", "think") == StepSettings(max_tokens=50)
    assert settings.step("village", "tools") == StepSettings()


def test_a_site_says_where_its_index_is_to_be_else_all_do(file: Path) -> None:
    file.write_text("site_index: shared\nsites: {shop: {}, portal: {index: own}}")
    settings = load({})
    assert {site: settings.shares_index(site) for site in [*settings.sites, "not yet"]} == {
        "shop": True,
        "portal": False,
        "not yet": True,
    }
    assert not load({"PAGEWIRE_SITE_INDEX": "own"}).shares_index("shop")


def test_a_retired_setting_is_left_out_with_a_warning(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text(
        "tries: 3\n"
        "steps: {answer: {max_tokens: 80}}\n"
        "sites: {town: {chat: {titles: false}, connectors: {web: {kind: sitemap, url: 'https://a.example', "
        "max_depth: 3}}}}"
    )
    settings = load({"PAGEWIRE_WINDOW": "8", "PAGEWIRE_QUESTION_TIMEOUT": "60"})
    assert settings.steps == {"answer": StepSettings(max_tokens=80)}
    warned = caplog.messages
    assert len(warned) == 5
    for told in (
        "tries (PAGEWIRE_TRIES) is ignored",
        "window (PAGEWIRE_WINDOW) is ignored",
        "question_timeout (PAGEWIRE_QUESTION_TIMEOUT) is ignored: it is three times llm_timeout",
        "sites.town.chat.titles is ignored",
        "sites.town.connectors.web.max_depth is ignored",
    ):
        assert any(line.startswith(told) for line in warned), told


def test_a_retired_setting_whose_value_would_be_lost_is_refused(file: Path) -> None:
    for written, told in (
        (
            "answer_tokens: 80",
            "answer_tokens (PAGEWIRE_ANSWER_TOKENS) is no setting any more: set steps.answer.max_tokens",
        ),
        (
            "steps: {answer: {context_chars: 900}}",
            "steps.answer.context_chars is no setting any more: set context_chars",
        ),
        ("content_hits: 4", "content_hits (PAGEWIRE_CONTENT_HITS) is no setting any more: set hits"),
        ("sites: {town: {shards: 3}}", "sites.town.shards is no setting any more: set shards (PAGEWIRE_SHARDS)"),
    ):
        assert refused(file, written).startswith(told)
    assert "steps.rephrase.model" in refused(file, "", PAGEWIRE_LLM_SMALL_MODEL="small")
    told = refused(file, "", PAGEWIRE_KAFKA_OAUTH_SECRET_FILE="/run/secrets/kafka")
    assert told.endswith("is no setting any more: set kafka_password_file (PAGEWIRE_KAFKA_PASSWORD_FILE)")


def test_an_answer_may_take_three_times_a_models_silence(file: Path) -> None:
    assert (load({}).question_timeout, load({"PAGEWIRE_LLM_TIMEOUT": "120"}).question_timeout) == (90.0, 360.0)


def test_nothing_that_is_set_today_is_retired() -> None:
    examples = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    assert without_retired(copy.deepcopy(examples)) == examples


def test_a_site_that_names_a_flow_leaves_nothing_of_the_layers_below_it(file: Path) -> None:
    file.write_text("hits: 4\nsites: {town: {flow: original}, club: {neighbours: 1}}")
    settings = load({})
    assert {site: settings.flow_of(site).hits for site in settings.sites} == {"town": 10, "club": 4}
    assert settings.flow_of("club").departures == {"hits": 4, "neighbours": 1}
