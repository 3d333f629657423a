"""Datasets out of the formats of question sets; the samples are our own lines under those formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.evaluate.dataset import BadDataset, Case
from pipelines.evaluate.measures import MEASURES, AnswerPassage, Observed
from pipelines.evaluate.question_sets import hotpotqa, openbookqa, pairs, recognised
from schemas.page import PageDocument
from tests.asking import NOON

Read = Callable[[Path, str], tuple[list[Case], list[PageDocument]]]

PAIRS: list[dict[str, Any]] = [
    {
        "question": "Wie lange gilt ein Ausweis?",
        "answer": "Ein Jahr.",
        "context": "Ein Ausweis & seine Karte gelten ein Jahr.",
        "source": "ausweise",
        "category": "Bibliothek",
    },
    {
        "id": 7,
        "question": "Was kostet er?",
        "answer": ["18 Euro", "achtzehn Euro"],
        "source": "ausweise",
        "context": "18 Euro.",
    },
    {"question": "Wann ist Markt?", "answer": "Samstags.", "source": "Faltblatt S. 3", "category": ["Markt", "Zeiten"]},
    {
        "question": "Wo ist der Bus?",
        "answer": "Am Platz.",
        "context": ["Der Bus hält am Platz.", "Er fährt stündlich."],
    },
]
HOTPOT: list[dict[str, Any]] = [
    {
        "_id": "5a8b",
        "question": "Which river flows past the town where the painter was born?",
        "answer": "the Elde",
        "supporting_facts": [["Painter", 0], ["Town", 1], ["Town", 9]],  # the set has sentences that are not there
        "context": [
            ["Painter", ["She was born in the town.", " She moved away."]],
            ["Town", ["It is small.", " It lies on the Elde."]],
            ["Sea", ["It is salt."]],
        ],
        "type": "bridge",
        "level": "hard",
    },
]
COLUMNS = HOTPOT[0] | {
    "id": "5a8c",
    "_id": None,
    "supporting_facts": {"title": ["Painter", "Town"], "sent_id": [0, 1]},
    "context": {"title": ["Painter", "Town"], "sentences": [["She was born in the town."], ["It lies on the Elde."]]},
}
OPENBOOK: list[dict[str, Any]] = [
    {
        "id": "7-980",
        "question": {
            "stem": "Ice melts when it is",
            "choices": [
                {"text": "warmed in the sun", "label": "A"},
                {"text": "painted", "label": "B"},
                {"text": "the sun", "label": "C"},
            ],
        },
        "fact1": "heat makes ice melt",
        "answerKey": "A",
        "humanScore": "1.00",
    }
]


def written(folder: Path, document: Any, *, lines: bool = False) -> Path:
    file = folder / "file.json"
    text = "\n".join(map(json.dumps, document)) + "\n" if lines else json.dumps(document)
    file.write_text(document if isinstance(document, str) else text, encoding="utf-8")
    return file


@pytest.mark.parametrize("lines", [False, True])
def test_pairs_become_cases_and_their_contexts_pages(tmp_path: Path, lines: bool) -> None:
    (long, price, market, bus), (cards, stop) = pairs(written(tmp_path, PAIRS, lines=lines), "de")
    assert (long.question, long.answers, long.lang) == ("Wie lange gilt ein Ausweis?", ("Ein Jahr.",), "de")
    assert (long.pages, long.page_lang, long.tags, long.expect) == (("ausweise",), "de", ("Bibliothek",), "answer")
    assert (price.id, price.answers, price.pages) == ("7", ("18 Euro", "achtzehn Euro"), ("ausweise",))
    assert (market.pages, market.note, market.tags) == ((), "source: Faltblatt S. 3", ("Markt", "Zeiten"))
    assert cards.content == "<p>Ein Ausweis &amp; seine Karte gelten ein Jahr.</p>\n<p>18 Euro.</p>"
    assert (cards.id, cards.lang) == ("ausweise", "de")
    assert bus.pages == (stop.id,)
    assert stop.content.count("<p>") == 2


@pytest.mark.parametrize("document", [HOTPOT, [HOTPOT[0], COLUMNS]])
def test_right_pages_of_hotpotqa_are_those_of_the_supporting_facts(tmp_path: Path, document: list[Any]) -> None:
    cases, pages = hotpotqa(written(tmp_path, document), "en")
    assert [case.id for case in cases] == ["5a8b", "5a8c"][: len(document)]
    for case in cases:
        assert (case.pages, case.answers, case.tags) == (("Painter", "Town"), ("the Elde",), ("bridge", "hard"))
    assert [page.id for page in pages] == ["Painter", "Town", "Sea"]
    assert pages[0].content.startswith("<p>She was born in the town. She moved away.</p>")


@pytest.mark.parametrize("lines", [False, True])
def test_openbookqa_is_asked_with_its_choices(tmp_path: Path, lines: bool) -> None:
    (case,), (fact,) = openbookqa(written(tmp_path, OPENBOOK, lines=lines), "en")
    assert case.question == "Ice melts when it is (A) warmed in the sun (B) painted (C) the sun"
    assert (case.id, case.answers, case.pages) == ("7-980", ("warmed in the sun",), (fact.id,))
    assert (fact.title, fact.content) == ("Fact", "<p>heat makes ice melt</p>")
    right = next(measure for measure in MEASURES if measure.name == "right")
    source = (AnswerPassage(page=fact.id, lang="en", cited=True),)
    for answer, figure in (
        ("When it is warmed in the sun.", 1.0),  # which says "the sun", too
        ("When it is painted.", 0.0),
        (case.question, 0.0),  # whoever names all has chosen none
    ):
        assert right.of(case, Observed(case=case.id, at=NOON, ms=1, answer=answer, sources=source)) == figure, answer


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (PAIRS, "pairs"),
        (HOTPOT, "hotpotqa"),
        ([COLUMNS], "hotpotqa"),
        (OPENBOOK, "openbookqa"),
        (OPENBOOK[0], "openbookqa"),
        ({"version": "1.1", "data": []}, "squad"),
        ({"counts": {"asked": 0}, "questions": []}, "questions"),
    ],
)
def test_a_file_is_recognised_by_what_is_in_it(tmp_path: Path, document: Any, kind: str) -> None:
    assert recognised(written(tmp_path, document)) == kind
    if isinstance(document, list):
        assert recognised(written(tmp_path, document * 2, lines=True)) == kind


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{no", r"file\.json: no JSON"),
        ('{"question": "?"}\n{no', r"file\.json, line 2: no JSON"),
        ([], "it has no entries"),
        ({"rows": []}, "must be a list of questions, or one a line; it is an object with rows"),
        ("3", "it is a number"),
        (["who?"], "entry 1: must be an object, is a text"),
        (
            [{"frage": "?", "antwort": "!"}],
            "entry 1: of no format that is known: it has frage, antwort; squad has data",
        ),
    ],
)
def test_what_is_not_recognised_says_what_it_is(tmp_path: Path, document: Any, said: str) -> None:
    with pytest.raises(BadDataset, match=said):
        recognised(written(tmp_path, document))


def broken(entry: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    """A good entry, and one of which something is not right."""
    return [entry, {**entry, "_id": "other", "id": "other", **changes}]


@pytest.mark.parametrize(
    ("read", "document", "said"),
    [
        (pairs, broken(PAIRS[0], answer=""), "entry 2: answer: "),
        (pairs, broken(PAIRS[0], answer=None), "entry 2: answer: "),
        (pairs, broken(PAIRS[0], question=["?"]), "entry 2: question: "),
        (pairs, broken(PAIRS[0], source="x" * 300), "entry 2: 'x+'… cannot be a page's id"),
        (pairs, [PAIRS[0], PAIRS[0]], "entry 2: the same id, or the same question without one, as in .*, entry 1"),
        (pairs, ["who?"], "entry 1: message: "),
        (hotpotqa, broken(HOTPOT[0], supporting_facts=[]), "entry 2: supporting_facts: "),
        (hotpotqa, broken(HOTPOT[0], supporting_facts=[["Lake", 0]]), "entry 2: supporting_facts: no article 'Lake'"),
        (hotpotqa, broken(HOTPOT[0], context=[["Painter"]]), "entry 2: context.0.1: |entry 2: context.0: "),
        (hotpotqa, broken(HOTPOT[0], context={"title": ["a"], "sentences": []}), "as many title as sentences"),
        (openbookqa, broken(OPENBOOK[0], answerKey="D"), "entry 2: message: .*'D' must be one of the labels A, B, C"),
        (openbookqa, broken(OPENBOOK[0], question={"stem": "?"}), "entry 2: question.choices: "),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, read: Read, document: Any, said: str) -> None:
    with pytest.raises(BadDataset, match=said):
        read(written(tmp_path, document), "en")


def test_a_wrong_line_is_told_by_its_number_in_the_file(tmp_path: Path) -> None:
    lines = f"{json.dumps(PAIRS[0])}\n\n{json.dumps({'question': '?'})}\n"
    with pytest.raises(BadDataset, match=r"file\.json, line 3: answer: "):
        pairs(written(tmp_path, lines), "en")
