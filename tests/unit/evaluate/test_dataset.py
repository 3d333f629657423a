"""Datasets: how they are written, and what their version says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.evaluate.dataset import BadDataset, Case, Dataset, dumped, load_dataset, of_site, parse_dataset
from tests.unit.evaluate import runs

ROOT = Path(__file__).resolve().parents[3]
TOWN = """
name: town
version: 3
cases:
  - id: card
    question: What does a card cost?
    lang: en
    page: library
    answer: 18 euros
    facts: [[€18, 18 euros], adults]
    never: €9
    tags: [prices]
  - {question: "Was kostet ein Drache?", lang: DE, answerable: false, kind: near-miss}
  - {id: further, question: "And for children?", history: ["What does a card cost?"], facts: [free]}
  - {id: unlabelled, question: "Hm?", site: other}
"""


def written(folder: Path, text: str, name: str = "town.yaml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_dataset_is_read(tmp_path: Path) -> None:
    dataset = load_dataset(written(tmp_path, TOWN))
    card, dragon, further, unlabelled = dataset.cases
    assert (dataset.name, dataset.version) == ("town", "3")
    assert card == Case(
        id="card",
        question="What does a card cost?",
        lang="en",
        pages=("library",),
        answers=("18 euros",),
        facts=(("€18", "18 euros"), ("adults",)),
        never=("€9",),
        expect="answer",
        tags=("prices",),
    )
    assert (dragon.lang, dragon.expect, dragon.tags, len(dragon.id)) == ("de", "refuse", ("near-miss",), 12)
    assert (further.expect, unlabelled.expect) == ("answer", None)
    assert [case.id for case in of_site(dataset.cases, "town")] == ["card", dragon.id, "further"]
    assert dataset.groups() == {
        "lang de": {dragon.id},
        "lang en": {"card"},
        "tag near-miss": {dragon.id},
        "tag prices": {"card"},
    }


@pytest.mark.parametrize("name", ["again.yaml", "again.ndjson"])
def test_it_is_the_same_when_it_is_written_and_read_again(tmp_path: Path, name: str) -> None:
    dataset = load_dataset(written(tmp_path, TOWN))
    again = load_dataset(written(tmp_path, dumped(dataset, Path(name).suffix), name))
    assert again == dataset
    assert again.label == f"town 3 ({dataset.fingerprint})"


def test_the_fingerprint_is_of_what_the_cases_say() -> None:
    one, other = Case(id="a", question="A?"), Case(id="b", question="B?")
    made = Dataset("x", (one, other)).fingerprint
    assert Dataset("y", (other, one), "9").fingerprint == made
    assert Dataset("x", (one, other.model_copy(update={"note": "seen"}))).fingerprint == made
    assert Dataset("x", (one, other.model_copy(update={"pages": ("p",)}))).fingerprint != made
    assert Dataset("x", (one,)).fingerprint != made
    assert Dataset("x", (one.model_copy(update={"must_say": ("It is free.",)}), other)).fingerprint != made


def test_datasets_of_before_the_judges_keep_their_fingerprints() -> None:
    """A run names it, and is compared with no other."""
    assert runs.dataset(6).fingerprint == "e1887dbef208"


def test_statements_that_must_be_said_want_an_answer() -> None:
    case = Case.model_validate({"question": "a", "must_say": "It is free.", "must_not_say": ["It costs."]})
    assert (case.expect, case.must_say, case.must_not_say) == ("answer", ("It is free.",), ("It costs.",))


def test_a_folder_of_yaml_files_is_one_dataset(tmp_path: Path) -> None:
    written(tmp_path, '[{id: a, question: "A?"}]', "a.yaml")
    written(tmp_path, '{name: b, version: 2, cases: [{id: b, question: "B?"}]}', "b.yaml")
    dataset = load_dataset(tmp_path)
    assert ([case.id for case in dataset.cases], dataset.name, dataset.version) == (["a", "b"], tmp_path.name, "2")
    written(tmp_path, '[{id: a, question: "C?"}]', "c.yaml")
    with pytest.raises(BadDataset, match="same id: a"):
        load_dataset(tmp_path)


def test_the_sample_sites_files_are_datasets() -> None:
    questions = load_dataset(ROOT / "sites/demo/questions.yaml")
    assert {case.expect for case in questions.cases} == {"answer", "refuse"}
    assert all(case.pages and case.answers for case in questions.cases if case.expect == "answer")
    visitors = load_dataset(ROOT / "sites/demo/visitors")
    assert {case.expect for case in visitors.cases} == {"answer", "refuse", "courtesy"}
    assert {"lang de", "lang en", "tag near-miss"} <= visitors.groups().keys()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("d.yaml", "question: one", "must be a list of cases"),
        ("d.yaml", "- {page: a}", "entry 1: question"),
        ("d.yaml", "- words", "entry 1"),
        ("d.yaml", '- {question: "A?", colour: red}', "colour"),
        ("d.yaml", '- {question: "A?", page: a, pages: [b]}', "two names"),
        ("d.yaml", "[", "cannot be read"),
        ("d.yaml", "[]", "has no cases"),
        ("d.yaml", "{name: d, cases: {a: 1}}", "must be a list"),
        ("d.ndjson", "{no json", "cannot be read"),
        ("d.ndjson", '{"name": "d", "version": "1"}', "has no cases"),
    ],
)
def test_a_file_of_something_else_is_told_plainly(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(BadDataset, match=said):
        load_dataset(written(tmp_path, text, name))


def test_what_is_not_there_is_told_plainly(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="cannot be read"):
        load_dataset(tmp_path / "none.yaml")
    with pytest.raises(BadDataset, match="no YAML files"):
        load_dataset(tmp_path)
    with pytest.raises(BadDataset, match="written as"):
        dumped(Dataset("x", ()), ".csv")


def test_a_number_too_large_is_told_plainly(tmp_path: Path) -> None:
    text = f"- 1{':1' * 400}.5\n"
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(BadDataset, match="pasted: cannot be read as a dataset: int too large"):
        parse_dataset(text, "pasted")
    with pytest.raises(BadDataset, match="cannot be read as a dataset: int too large"):
        load_dataset(tmp_path / "a.yaml")
