"""Settings are refused by name, and the folders are where people look for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.engine import LocalEngineSettings
from infra.engine.settings import default_cache
from pipelines.runtime.errors import SettingsError


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"home": Path("/data,more")}, "PAGEWIRE_HOME"),
        ({"cache": Path("/data:more")}, "XDG_CACHE_HOME"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, wrong: dict[str, Path], named: str) -> None:
    right = {"home": tmp_path, "cache": tmp_path}
    with pytest.raises(SettingsError, match=f"^{named}="):
        LocalEngineSettings(**{**right, **wrong})


def test_the_engine_lives_in_its_home_as_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert LocalEngineSettings(home=Path(".pagewire")).root == tmp_path.resolve() / ".pagewire" / "engine"


def test_the_cache_follows_the_xdg_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "pagewire" / "engine"
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    in_home = tmp_path / "me" / ".cache" / "pagewire" / "engine"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert default_cache() == in_home
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == in_home
