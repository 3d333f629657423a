"""Connectors in pagewire.yaml: a wrong or missing secret fails at start, named and never said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from connectors.cms.settings import PushConnector, webhook_secret
from connectors.cms.sources import NoSource, opened
from pipelines.runtime.errors import SettingsError
from tests.signing import SECRET
from wiring.settings import Settings
from wiring.settings_file import load


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "pagewire.yaml"


def write(file: Path, name: str = "blog", **connector: Any) -> None:
    file.write_text(yaml.safe_dump({"sites": {"town": {"connectors": {name: connector}}}}))


def refused(**env: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(env)
    return str(caught.value)


GOOD: list[dict[str, Any]] = [
    {"kind": "push", "secret": SECRET},
    {"kind": "wordpress", "url": "https://www.town.example"},
    {"kind": "wordpress", "url": "http://127.0.0.1:8080/blog/", "secret": SECRET, "user": "u", "password": "p"},
    {"kind": "wagtail", "url": "https://www.town.example", "secret": SECRET},
    {"kind": "drupal", "url": "https://www.town.example", "secret": SECRET},
    {"kind": "folder", "path": "pages"},
    {"kind": "sitemap", "url": "https://www.town.example/sitemap.xml?x=1"},
]


@pytest.mark.parametrize("connector", GOOD, ids=lambda c: c["kind"])
def test_every_kind_of_connector(file: Path, connector: dict[str, Any]) -> None:
    write(file, **connector)
    found = load({}).sites["town"].connectors["blog"]
    assert found.kind == connector["kind"]
    secret = webhook_secret(found)
    assert (secret.get_secret_value() if secret else None) == connector.get("secret")
    assert SECRET not in repr(load({}))


@pytest.mark.parametrize(
    ("connector", "said"),
    [
        ({"kind": "push"}, "sites.town.connectors.blog.secret (pagewire.yaml): is missing"),
        (
            {"kind": "joomla"},
            "sites.town.connectors.blog (pagewire.yaml): no kind 'joomla'; there are: drupal, folder, push, ",
        ),
        ({"kind": "wordpres"}, "; did you mean wordpress?"),
        ({"secret": SECRET}, "sites.town.connectors.blog (pagewire.yaml): needs a `kind`: drupal, folder, push, "),
        ({"kind": "push", "secret": "hush"}, "must be whsec_ and the base64 of 24 random bytes or more"),
        ({"kind": "push", "secret": "whsec_hush"}, "openssl rand -base64 32"),
        ({"kind": "push", "secret": "whsec_aHVzaA=="}, "must be whsec_"),
        ({"kind": "push", "secret": SECRET, "url": "https://x.example"}, "blog.url (pagewire.yaml): no such setting"),
        ({"kind": "wordpress", "url": "https://u:hush@x.example"}, "blog.url"),
        ({"kind": "wordpress", "url": "ftp://x.example"}, "blog.url"),
        ({"kind": "wordpress", "url": "https://x.example", "user": "u"}, "user and password: give both or neither"),
        ({"kind": "sitemap", "url": "https://x.example", "delay": -1}, "blog.delay"),
    ],
)
def test_a_wrong_connector_is_named(file: Path, connector: dict[str, Any], said: str) -> None:
    write(file, **connector)
    message = refused()
    assert said in message
    assert "hush" not in message


@pytest.mark.parametrize("name", ["push", "import", "Blog", "a/b", "", "-a"])
def test_a_name_that_is_taken_or_fits_into_no_path_is_refused(file: Path, name: str) -> None:
    write(file, name, kind="push", secret=SECRET)
    assert f"connectors.{name}" in refused()


def test_a_secret_may_come_from_the_environment(file: Path) -> None:
    write(file, kind="push", secret="${BLOG_SECRET}")
    found = load({"BLOG_SECRET": SECRET}).sites["town"].connectors["blog"]
    assert isinstance(found, PushConnector)
    assert found.secret.get_secret_value() == SECRET
    where = "sites.town.connectors.blog.secret (pagewire.yaml): the environment variable BLOG_SECRET is not set"
    assert refused() == f"{where}, nor is BLOG_SECRET_FILE"
    assert refused(BLOG_SECRET="") == f"{where}, nor is BLOG_SECRET_FILE"
    assert "hush" not in refused(BLOG_SECRET="hush")


def test_a_variable_of_our_own_prefix_is_no_unknown_setting(file: Path) -> None:
    write(file, kind="push", secret="${PAGEWIRE_BLOG_SECRET}")
    assert load({"PAGEWIRE_BLOG_SECRET": SECRET}).sites["town"].connectors["blog"].kind == "push"
    assert "PAGEWIRE_BLAG_SECRET: no such setting" in refused(PAGEWIRE_BLOG_SECRET=SECRET, PAGEWIRE_BLAG_SECRET=SECRET)


@pytest.mark.parametrize("name", ["blog", "none"])
async def test_what_only_pushes_cannot_be_asked(name: str) -> None:
    settings = Settings.model_validate({"sites": {"town": {"connectors": {"blog": GOOD[0]}}}})
    with pytest.raises(NoSource):
        async with opened(settings, "town", name):
            pass


@pytest.mark.parametrize("connector", [c for c in GOOD if c["kind"] != "push"], ids=lambda c: c["kind"])
async def test_every_other_kind_has_a_source(connector: dict[str, Any], tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": tmp_path, "sites": {"town": {"connectors": {"blog": connector}}}})
    async with opened(settings, "town", "blog") as source:
        assert callable(source.inventory)
