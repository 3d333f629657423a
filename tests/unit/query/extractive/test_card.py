"""The place on a page: whole blocks in the page's order, marks for what is left out."""

from __future__ import annotations

import pytest

from pipelines.query.extractive.card import ROOM, card
from schemas.query import Evidence, Source
from tests.asking import source

ROWS = [f"| Day {n} | {n}–18 |" for n in range(1, 60)]
TABLE = "\n".join(("| Day | Hours |", "| --- | --- |", *ROWS))
PAGE = f"""## Fees

A card costs, for a year:

- Adults: €12
- Children: nothing

## Late

{"Whoever is late pays. " * 40}

## Hours

{TABLE}
"""


def shown(*texts: tuple[str, str, tuple[str, ...]], page: str = PAGE) -> tuple[str, list[str]]:
    """Units, best first, each with its kind and its headings. Returns: the text below the lead-in, what is cited."""
    evidence = [
        Evidence(
            n=1,
            start=page.index(text) + 1_000,  # the passage begins somewhere on its page
            text=text,
            kind=kind,  # type: ignore[arg-type]
            headings=headings,
            header="| Day | Hours |" if kind == "row" else "",
            block=0,
            score=-n,
        )
        for n, (text, kind, headings) in enumerate(texts)
    ]
    made = card(evidence, [source(1, page)], "On:")
    assert made.certainty == "place"
    for citation in made.citations:
        assert 0 <= citation.start < citation.end <= len(made.text)
    text = made.text.removeprefix("On:\n\n")
    return text.replace("\n> ", "\n").replace("\n>", "\n").removeprefix("> "), [c.quote or "" for c in made.citations]


FEES, LATE, HOURS = ("Fees",), ("Late",), ("Hours",)


def test_a_list_is_shown_whole_with_what_introduces_it() -> None:
    text, quotes = shown(("- Children: nothing", "item", FEES))
    assert text == "A card costs, for a year:\n\n- Adults: €12\n- Children: nothing"
    assert quotes == ["Children: nothing"]


def test_the_pages_order_stays_and_what_is_skipped_is_marked_and_other_headings_named() -> None:
    text, _ = shown(
        ("| Day 1 | 1–18 |", "row", HOURS),
        ("- Adults: €12", "item", FEES),
        page=PAGE.replace(TABLE, "\n".join(TABLE.split("\n")[:4])),
    )
    assert text == (
        "**Fees**\n\nA card costs, for a year:\n\n- Adults: €12\n- Children: nothing\n\n…\n\n"
        "**Hours**\n\n| Day | Hours |\n| --- | --- |\n| **Day 1** | **1–18** |\n| Day 2 | 2–18 |"
    )


def test_the_lead_in_names_the_headings_of_the_block_that_is_shown_first() -> None:
    page = "## Prices\n\nA ticket costs €4.\n\n## Rules\n\nNo running."
    rules, prices = (
        Evidence(n=1, start=page.index(text), text=text, kind="prose", headings=(heading,), block=0, score=-n)
        for n, (text, heading) in enumerate([("No running.", "Rules"), ("A ticket costs €4.", "Prices")])
    )
    for evidence, text in (
        ([rules, prices], "On:\n\n> **Prices**\n>\n> A ticket costs €4.\n>\n> **Rules**\n>\n> No running."),
        ([prices, rules], "On: › Prices\n\n> A ticket costs €4.\n>\n> **Rules**\n>\n> No running."),
        ([rules], "On: › Rules\n\n> No running."),
    ):
        assert card(evidence, [source(1, page)], "On:", path=evidence[0].headings).text == text


@pytest.mark.parametrize(("row", "above", "below"), [(1, False, True), (30, True, True), (59, True, False)])
def test_of_a_long_table_the_rows_around_the_one_that_fits_are_shown(row: int, above: bool, below: bool) -> None:
    text, _ = shown((ROWS[row - 1], "row", HOURS))
    assert f"| **Day {row}** |" in text
    assert text.startswith(
        "| Day | Hours |\n| --- | --- |\n| … | … |" if above else "| Day | Hours |\n| --- | --- |\n| **"
    )
    assert text.endswith("| … | … |") == below
    assert len(text) < ROOM + 100


def test_of_a_block_that_does_not_fit_any_more_the_lines_around_the_unit_are_shown() -> None:
    long, items = "Whoever is late pays. " * 25, "\n".join(f"- Thing {n} is nothing special" for n in range(20))
    page = f"## Late\n\n{long.strip()}\n\nMore.\n\n## Things\n\n{items}\n\nThe end.\n"
    text, _ = shown(("Whoever is late pays.", "prose", LATE), ("- Thing 7", "item", ("Things",)), page=page)
    assert long.strip() in text
    assert "- Thing 7 is" in text
    assert "- Thing 0 is" not in text
    text, _ = shown(("- Thing 7", "item", ("Things",)), ("The end.", "prose", ("Things",)), page=f"{page}{long}")
    assert "…\n\n…" not in text  # one mark is enough


def test_of_a_long_paragraph_the_sentence_is_shown_as_one_of_more() -> None:
    assert shown(("Whoever is late pays.", "prose", LATE))[0] == "Whoever is late pays. …"


def test_what_stands_on_another_page_is_left_out_and_so_is_what_was_deleted() -> None:
    pages = [source(1, "Open ~~daily~~ on Mondays."), source(2, "Elsewhere.")]
    evidence = [
        Evidence(n=n, start=0, text=page.text, kind="prose", block=0, score=-n) for n, page in enumerate(pages, 1)
    ]
    assert card(evidence, pages, "On:").text == "On:\n\n> Open on Mondays."


def test_a_question_is_shown_with_what_answers_it() -> None:
    text = "**May I take pictures?**\n\nYes, but not of others."
    assert shown((text, "prose", ()), page=f"Hello.\n\n{text}\n\nBye.")[0] == text


def test_a_unit_that_is_in_no_passage_is_left_out() -> None:
    lost = Evidence(n=1, start=0, text="Lost.", kind="prose", block=0, score=1)
    pages: list[Source] = [source(1, "Open daily.")]
    there = lost.model_copy(update={"text": "Open daily."})
    assert card([there, lost], pages, "On:").text == "On:\n\n> Open daily."


def test_code_and_what_a_paragraph_introduces_come_with_each_other() -> None:
    code = "```bash\nnpm run test -- --grep=x\n\nnpm run y\n```"
    page = f"## Scripts\n\nTwo dashes pass arguments. For example:\n\n{code}\n\nMore.\n\n## Rest\n\nOther words:\n"
    for unit, kind in (("For example:", "prose"), ("npm run test -- --grep=x\n\nnpm run y", "code")):
        text, _ = shown((unit, kind, ("Scripts",)), page=page)
        assert text == f"Two dashes pass arguments. For example:\n\n{code}", kind
    assert shown(("More.", "prose", ("Scripts",)), page=page)[0] == "More."
    text, _ = shown(("Other words:", "prose", ("Rest",)), page=page)
    assert text == "Other words:"
    long = page.replace("npm run y", "npm run y\n" * 200)
    text, _ = shown(("npm run test -- --grep=x", "code", ("Scripts",)), page=long)
    assert len(text) <= 1.2 * ROOM
    assert (text.count("```"), text.endswith("\n```\n\n…")) == (2, True)


def test_a_table_without_names_of_columns_has_one_blank_header() -> None:
    table = "|  |  |\n| --- | --- |\n| Phone | 99 810 |\n| Loans | 28 days |"
    unit = Evidence(n=1, start=0, text="| Loans | 28 days |", kind="row", headings=(), header="", block=0, score=1)
    text = card([unit], [source(1, table)], "On:").text
    assert text == "On:\n\n> |  |  |\n> | --- | --- |\n> | Phone | 99 810 |\n> | **Loans** | **28 days** |"
