"""Without a model: a unit that is sure, what comes closest on a page, the day that was asked about."""

from __future__ import annotations

from datetime import UTC, datetime

from pipelines.query.answer.strategies.base import Task
from pipelines.query.answer.strategies.quote import Quote
from schemas.answer import Citation, Step, Token
from schemas.query import Evidence, Part, Retrieved, Sure, SureOf, Turn
from tests.asking import retrieved, source

POOL = source(1, "Open daily. Bring a towel.")
TICKETS = source(2, "A ticket costs 4 euros.", title="Tickets [new]")
EVIDENCE = (
    Evidence(n=2, start=0, text="A ticket costs 4 euros.", kind="prose", block=0, score=9),
    Evidence(n=1, start=0, text="Open daily.", kind="prose", block=0, score=2),
)


def found(of: SureOf | None = None, evidence: tuple[Evidence, ...] = EVIDENCE, text: str = "A ticket?") -> Retrieved:
    sure = None if of is None else Sure(of=of)
    made = retrieved(POOL, TICKETS, text=text)
    request = made.request.model_copy(update={"question": text})
    return made.model_copy(update={"request": request, "evidence": evidence, "sure": sure})


async def said(question: Retrieved) -> tuple[str, list[int]]:
    """The text, the sources cited."""
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)  # a Monday
    task = Task(question, site="Town", language="English", now=now, budget=6_000, history_messages=0)
    pieces = [piece async for piece in Quote("It says:", "Closest:", "Nothing about:").run(task)]
    assert isinstance(pieces[-1], Step)
    text = "".join(piece.text for piece in pieces if isinstance(piece, Token))
    return text, [piece.n for piece in pieces if isinstance(piece, Citation)]


async def test_a_sure_unit_is_quoted() -> None:
    text, cited = await said(found("unit"))
    assert (text, cited) == ("It says:\n\n> A ticket costs 4 euros.", [2])


async def test_what_fits_as_well_on_another_page_is_not_quoted() -> None:
    more = source(3, "Children pay 2 euros.", title="Tickets [new]").model_copy(update={"url": TICKETS.url})
    best, other = EVIDENCE
    near = other.model_copy(update={"score": best.score})
    same = Evidence(n=3, start=40, text="Children pay 2 euros.", kind="prose", block=40, score=best.score)
    question = found("unit", (best, near, same)).model_copy(update={"sources": (POOL, TICKETS, more)})
    assert (await said(question))[1] == [2, 3]


async def test_of_a_sure_page_what_comes_closest_is_shown_and_said_to_be_no_more() -> None:
    text, cited = await said(found("page"))
    assert text == "Closest: [Tickets \\[new\\]](</p2>)\n\n> A ticket costs 4 euros."
    assert cited == [2]


async def test_without_a_calibration_the_best_unit_is_quoted() -> None:
    assert (await said(found()))[0].startswith("It says:")


async def test_a_question_about_a_day_is_told_which_one_and_that_days_row_first() -> None:
    rows = tuple(
        Evidence(n=1, start=n, text=text, kind="row", header="| Day | Hours |", block=0, of=7, score=score)
        for n, text, score in ((0, "| Monday | 9–18 |", 5.0), (9, "| Sunday | 10–16 |", 6.0))
    )
    text, _ = await said(found("unit", rows, "Is it open today?"))
    assert text.startswith("**Monday, November 23, 2026**\n\nIt says:")
    assert "Monday | 9–18" in text
    assert "Sunday" not in text.partition("| Monday")[0]


async def test_who_asks_again_is_shown_something_else() -> None:
    question = found("unit")
    again = question.request.model_copy(update={"replaced": "It says:\n\n> A ticket costs 4 euros."})
    text, cited = await said(question.model_copy(update={"request": again}))
    assert (text, cited) == ("Closest: [Pool](</p1>)\n\n> Open daily.", [1])


async def test_a_further_question_is_not_answered_with_what_was_just_read() -> None:
    question = found("unit")
    turn = Turn(question="What does it cost?", answer="> A ticket costs **4** euros.")
    further = question.request.model_copy(update={"history": (turn,)})
    text, _ = await said(question.model_copy(update={"request": further}))
    assert text == "Closest: [Pool](</p1>)\n\n> Open daily."


def told(question: Retrieved, answer: str) -> Retrieved:
    request = question.request.model_copy(update={"history": (Turn(question="And what?", answer=answer),)})
    return question.model_copy(update={"request": request})


async def test_of_rows_that_were_shown_the_one_that_is_asked_for_comes_alone() -> None:
    rows = tuple(
        Evidence(n=1, start=n, text=text, kind="row", header="| Dog | Tax |", block=0, of=3, score=score)
        for n, text, score in ((9, "| second | 132 |", 6.0), (0, "| first | 84 |", 5.0), (20, "| others | 168 |", 4.0))
    )
    shown = "> | Dog | Tax |\n> | --- | --- |\n> | first | 84 |\n> | second | 132 |"
    text, cited = await said(told(found("unit", rows[:2], "And the second?"), shown))
    assert ("84" in text, "132" in text, len(cited)) == (False, True, 1)


async def test_a_sentence_that_was_all_comes_again_only_with_what_stands_around_it() -> None:
    around = EVIDENCE[0].model_copy(update={"start": 30, "block": 30, "text": "Children pay half.", "score": 8.5})
    text, _ = await said(told(found("unit", (EVIDENCE[0], around, EVIDENCE[1])), "> A ticket costs 4 euros."))
    assert text.endswith("> A ticket costs 4 euros.\n>\n> Children pay half.")
    assert text.startswith("Closest:")


async def test_the_day_that_a_follow_up_names_counts_before_that_of_the_question_it_leans_on() -> None:
    rows = tuple(
        Evidence(n=1, start=n, text=text, kind="row", header="| Day | Hours |", block=0, of=7, score=score)
        for n, text, score in ((0, "| Wednesday | 9–18 |", 6.0), (9, "| Sunday | 10–16 |", 5.0))
    )
    question = found("unit", rows, "And on Sundays?").model_copy(
        update={"question": "Open on Wednesdays? And on Sundays?"}
    )
    text, _ = await said(question)
    assert text.startswith("**Sunday, November 29, 2026**")


async def test_where_there_is_nothing_else_it_is_said_again() -> None:
    question = found("unit", EVIDENCE[:1])
    again = question.request.model_copy(update={"replaced": "> A ticket costs 4 euros."})
    assert (await said(question.model_copy(update={"request": again})))[1] == [2]


def in_parts(*parts: tuple[str, int, SureOf]) -> Retrieved:
    """Each with the unit that fits it best, and what it is sure of."""
    asked = [Part(question=said, evidence=EVIDENCE[best : best + 1], sure=Sure(of=of)) for said, best, of in parts]
    return found("page").model_copy(update={"parts": tuple(asked)})


async def test_each_part_of_a_question_is_quoted_by_itself() -> None:
    text, cited = await said(in_parts(("what is a ticket", 0, "unit"), ("when is it open", 1, "unit")))
    assert text == "It says:\n\n> A ticket costs 4 euros.\n\n> Open daily."
    assert cited == [2, 1]


async def test_a_part_that_nothing_answers_is_named() -> None:
    text, cited = await said(in_parts(("what is a ticket", 0, "unit"), ("who sings", 1, "nothing")))
    assert text == "It says:\n\n> A ticket costs 4 euros.\n\nNothing about: “who sings”"
    assert cited == [2]


async def test_what_comes_closest_to_a_part_is_said_to_be_no_more() -> None:
    question = in_parts(("who sings", 0, "page"), ("when is it open", 1, "unit"))
    text, cited = await said(question)
    closest = "“who sings”: Closest: [Tickets \\[new\\]](</p2>)\n\n> A ticket costs 4 euros."
    assert text == f"It says:\n\n> Open daily.\n\n{closest}"
    assert cited == [1, 2]


async def test_a_page_that_is_quoted_anyway_is_not_linked_for_the_other_part() -> None:
    question = in_parts(("who sings", 0, "unit"), ("when is it open", 1, "page"))
    other = question.parts[1].evidence[0].model_copy(update={"n": 2, "start": 50})
    second = question.parts[1].model_copy(update={"evidence": (other,)})
    text, _ = await said(question.model_copy(update={"parts": (question.parts[0], second)}))
    assert text.endswith("“when is it open”: Closest:\n\n> Open daily.")


async def test_a_part_is_not_missing_whose_best_unit_was_quoted_for_the_other() -> None:
    text, _ = await said(in_parts(("what is a ticket", 0, "unit"), ("and in euros", 0, "nothing")))
    assert text == "It says:\n\n> A ticket costs 4 euros."


async def test_a_question_no_part_of_which_is_sure_is_one_question() -> None:
    text, _ = await said(in_parts(("what is a ticket", 0, "page"), ("who sings", 1, "nothing")))
    assert text.startswith("Closest:")


async def test_who_asks_again_is_not_answered_by_parts() -> None:
    question = in_parts(("what is a ticket", 0, "unit"), ("who sings", 1, "nothing"))
    again = question.request.model_copy(update={"replaced": "A ticket costs 4 euros."})
    text, _ = await said(question.model_copy(update={"request": again}))
    assert "Nothing about" not in text
