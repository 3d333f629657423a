"""Grids: which arms follow from one, and what is said of one that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.evaluate.experiments.grid import BadGrid, Grid, arms, load_grid
from schemas.trial import TrialSettings

SHOTS = {"hits": [3, 5], "shots": [0, 1, 2]}


def grid(tmp_path: Path, **fields: Any) -> Grid:
    whole = {"name": "g", "site": "town", "dataset": "town.yaml", "vary": SHOTS} | fields
    file = tmp_path / "g.yaml"
    file.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    return load_grid(file)


def names(tmp_path: Path, **fields: Any) -> list[str]:
    return [arm.name for arm in arms(grid(tmp_path, **fields), tmp_path)]


def test_each_value_with_each_other_and_the_base_first(tmp_path: Path) -> None:
    read = grid(tmp_path, base={"strategy": "plain"})
    assert read.dataset == tmp_path / "town.yaml"
    made = arms(read, tmp_path)
    assert [arm.name for arm in made] == [
        "base",
        *(f"hits {hits}, shots {shots}" for hits in (3, 5) for shots in (0, 1, 2)),
    ]
    assert made[0].settings == TrialSettings(strategy="plain")
    assert made[-1].settings == TrialSettings(strategy="plain", hits=5, examples=2)
    assert made[-1].varied == {"strategy": "plain", "hits": 5, "shots": 2}


def test_an_arm_that_is_the_base_is_not_asked_twice(tmp_path: Path) -> None:
    told = names(tmp_path, base={"hits": 3, "shots": 1})
    assert "hits 3, shots 1" not in told
    assert len(told) == 6


def test_only_and_except(tmp_path: Path) -> None:
    assert names(tmp_path, only=[{"hits": 5}, {"shots": [0, 2]}]) == [
        "base",
        "hits 3, shots 0",
        "hits 3, shots 2",
        "hits 5, shots 0",
        "hits 5, shots 1",
        "hits 5, shots 2",
    ]
    assert names(tmp_path, **{"except": [{"hits": 5, "shots": [1, 2]}, {"hits": 3}]}) == ["base", "hits 5, shots 0"]


def test_what_changes_nothing_makes_no_arm(tmp_path: Path) -> None:
    orders = {"shots": [1, 3], "order": [1, 2]}
    assert names(tmp_path, vary=orders) == ["base", "shots 1, order 1", "shots 3, order 1", "shots 3, order 2"]
    quoted = {"strategy": ["quote"], "think": [True, False], "temperature": [0, 1]}  # no model reads it
    assert names(tmp_path, vary=quoted) == ["base", "strategy quote, think on, temperature 0"]
    assert names(tmp_path, vary={"index": ["live", "pagewire-town-000002"]}) == ["base", "index pagewire-town-000002"]


def test_a_prompt_is_a_file_beside_the_grid(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text("id: answer", encoding="utf-8")
    [_, arm] = arms(grid(tmp_path, vary={"prompt": ["short.yaml"]}), tmp_path)
    assert (arm.name, arm.settings.prompt) == ("prompt short.yaml", "id: answer")
    with pytest.raises(BadGrid, match=r"prompt none\.yaml: the prompt none\.yaml cannot be read"):
        arms(grid(tmp_path, vary={"prompt": ["none.yaml"]}), tmp_path)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"vary": {"chunk_size": [400]}}, r"rebuild SITE --from changes --chunk-size 800`, and vary `index"),
        ({"base": {"embedder": "x"}}, r"rebuild SITE --from chunks --embedder NAME`"),
        ({"vary": {"colour": ["red"]}}, "no setting 'colour'; there are flow, retriever"),
        ({"vary": {}}, "vary"),
        ({"vary": {"hits": []}}, "hits has no values"),
        ({"only": [{"colour": "red"}]}, "a rule names 'colour'"),
        ({"measures": ["beauty"]}, "no measure 'beauty'; there are hit@1"),
        ({"name": "../g"}, "name"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_grid_that_cannot_be_used(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(BadGrid, match=said):
        grid(tmp_path, **fields)


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ({"hits": [0]}, "hits 0: hits: Input should be greater"),
        ({"shots": [9]}, "shots 9: examples"),
        ({"strategy": ["magic"]}, "strategy magic"),
        ({"hits": list(range(1, 51)), "shots": [0, 1, 2, 3, 4]}, "251 arms; at most 200"),
    ],
)
def test_what_no_trial_takes(tmp_path: Path, vary: dict[str, Any], said: str) -> None:
    with pytest.raises(BadGrid, match=said):
        arms(grid(tmp_path, vary=vary), tmp_path)


def test_nothing_beside_the_base(tmp_path: Path) -> None:
    with pytest.raises(BadGrid, match="no arm is left"):
        arms(grid(tmp_path, only=[{"hits": 4}]), tmp_path)


@pytest.mark.parametrize("text", ["", "- 1", "name: [", "name: g\nsite: town", "name: 2026-13-01"])
def test_a_file_that_is_no_grid(tmp_path: Path, text: str) -> None:
    (tmp_path / "g.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(BadGrid, match=r"g\.yaml"):
        load_grid(tmp_path / "g.yaml")
