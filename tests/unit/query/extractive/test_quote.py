"""Without a model: what is told as an answer, what is shown where it stands, the day that was asked about."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from pipelines.query.extractive.quotation import Quotation
from pipelines.query.extractive.quote import OwnWords, quote
from schemas.query import Evidence, Part, Retrieved, Sure, SureOf, Turn
from tests.asking import retrieved, source

POOL = source(1, "Open daily.\n\nBring a towel.")
TICKETS = source(2, "A ticket costs 4 euros.\n\nChildren pay half.", title="Tickets [new]")
EVIDENCE = (
    Evidence(n=2, start=0, text="A ticket costs 4 euros.", kind="prose", block=0, score=9),
    Evidence(n=1, start=0, text="Open daily.", kind="prose", block=0, score=2),
)
ASKED = "What does a ticket cost?"
SAID = ("It says:\n\n> A ticket costs 4 euros.", [2])
PLACE = ("On: [Tickets \\[new\\]](</p2>)\n\n> A ticket costs 4 euros.", [2])


def found(of: SureOf | None = None, evidence: tuple[Evidence, ...] = EVIDENCE, text: str = ASKED) -> Retrieved:
    sure = None if of is None else Sure(of=of, unit=0.9 if of == "unit" else 0.3, page=0.6)
    made = retrieved(POOL, TICKETS, text=text)
    request = made.request.model_copy(update={"question": text})
    return made.model_copy(update={"request": request, "question": text, "evidence": evidence, "sure": sure})


def quoted(question: Retrieved) -> Quotation:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)  # a Monday
    return quote(question, now, OwnWords("It says:", "On:", "Nothing about:", "No row:"))


def said(question: Retrieved) -> tuple[str, list[int]]:
    """The text, the sources cited."""
    quotation = quoted(question)
    return quotation.text, [citation.n for citation in quotation.citations]


@pytest.mark.parametrize(
    ("text", "of", "expected"),
    [
        (ASKED, "unit", SAID),
        (ASKED, None, SAID),  # of an embedder that nobody has calibrated
        (ASKED, "page", PLACE),
        ("Tell me about a ticket", "unit", PLACE),  # no kind of thing is asked for
        ("When does a ticket run out?", "unit", PLACE),  # there is no time in it
        ("What does a sauna ticket cost?", "unit", PLACE),  # it says nothing of a sauna
        ("What does it cost?", "unit", PLACE),  # nor does the question
        ("What does a ticket not cost?", "unit", PLACE),
        ("Was kostet ein Ticket?", "unit", SAID),
    ],
)
def test_what_answers_by_itself_is_said_and_all_else_shown_where_it_stands(
    text: str, of: SureOf | None, expected: tuple[str, list[int]]
) -> None:
    question = found(of, text=text)
    assert said(question) == expected
    assert quoted(question).certainty == ("said" if expected is SAID else "place")


def test_a_page_without_an_address_is_named_without_a_link() -> None:
    nowhere = TICKETS.model_copy(update={"url": ""})
    question = found("page").model_copy(update={"sources": (POOL, nowhere)})
    assert said(question)[0] == "On: Tickets \\[new\\]\n\n> A ticket costs 4 euros."


def test_what_was_not_measured_is_shown_by_the_words_that_it_shares_with_the_question() -> None:
    sauna = source(3, "## Sauna\n\nIt opens at four.\n\n## Tickets\n\n- Day: 8 euros\n- Year: 90 euros", title="Sauna")
    question = found(evidence=(), text="What are the tickets for a year?").model_copy(update={"sources": (sauna, POOL)})
    text = "On: [Sauna](</p3>)\n\n> **Sauna**\n>\n> It opens at four."
    text += "\n>\n> **Tickets**\n>\n> - Day: 8 euros\n> - Year: 90 euros"
    assert said(question) == (text, [3, 3])
    assert quoted(question).certainty == "place"
    title = POOL.model_copy(update={"field": "title", "text": "Pool"})
    assert said(question.model_copy(update={"sources": (title, TICKETS)}))[1][:1] == [2]
    assert said(question.model_copy(update={"sources": (title,)})) == ("On: [Pool](</p1>)\n\n> Pool", [1])


HOURS = "| Day | Hours |\n| --- | --- |\n| Monday | 9–18 |\n| Sunday | 10–16 |"


def hours(text: str, *rows: tuple[int, str, float]) -> Retrieved:
    evidence = tuple(
        Evidence(n=1, start=n, text=row, kind="row", header="| Day | Hours |", block=0, of=7, score=score)
        for n, row, score in rows
    )
    return found("unit", evidence, text).model_copy(update={"sources": (source(1, HOURS, title="Pool"), TICKETS)})


def test_a_question_about_a_day_is_told_which_one_and_that_days_row_first() -> None:
    rows = (30, "| Monday | 9–18 |", 5.0), (49, "| Sunday | 10–16 |", 6.0)
    text, _ = said(hours("Is the pool open today?", *rows))
    assert text.startswith("**Monday, November 23, 2026**\n\nIt says:")
    assert "| Monday | 9–18 |" in text
    assert "Sunday" not in text  # the whole table opens below it


@pytest.mark.parametrize(
    ("zone", "written"),
    [
        ("Europe/London", "Monday, 23 November 2026"),
        ("America/New_York", "Monday, November 23, 2026"),
        ("Etc/UTC", "Monday, November 23, 2026"),
    ],
)
def test_a_day_is_written_as_in_the_sites_country(zone: str, written: str) -> None:
    question = hours("Is the pool open today?", (30, "| Monday | 9–18 |", 5.0), (49, "| Sunday | 10–16 |", 6.0))
    now = datetime(2026, 11, 23, 15, tzinfo=ZoneInfo(zone))
    assert quote(question, now, OwnWords("It says:", "On:", "Nothing about:", "No row:")).text.startswith(
        f"**{written}**"
    )


def test_a_question_about_a_weekday_is_told_its_row_alone() -> None:
    rows = (49, "| Sunday | 10–16 |", 6.0), (30, "| Monday | 9–18 |", 5.0)
    text, _ = said(hours("When is the pool open on Sundays?", *rows))
    assert "| Sunday | 10–16 |" in text
    assert "Monday" not in text


def test_a_closing_on_the_day_comes_before_its_hours_and_nothing_is_said() -> None:
    question = hours(
        "When is the pool open on Sunday?", (49, "| Sunday | 10–16 |", 9.0), (30, "| Monday | 9–18 |", 8.0)
    )
    assert quoted(question).certainty == "said"
    for text in ("Closed from 27 November to 2 December.", "Closed until further notice."):
        closed = Evidence(n=1, start=70, text=text, kind="prose", block=1, score=-3)
        page = source(1, f"{HOURS}\n\n{text}", title="Pool")
        shown = quoted(question.model_copy(update={"sources": (page,), "evidence": (*question.evidence, closed)}))
        assert shown.certainty == "place"
        assert text in shown.text
        assert "10–16" in shown.text
    other = Evidence(n=2, start=0, text="Closed until further notice.", kind="prose", block=0, score=-3)  # another page
    kept = question.model_copy(update={"evidence": (*question.evidence, other)})
    assert quoted(kept).certainty == "said"


def test_no_day_is_written_where_nothing_is_about_it() -> None:
    text, _ = said(hours("Is the pool open today?", (49, "| Sunday | 10–16 |", 6.0)))
    assert "November" not in text


def test_no_day_is_written_above_prose_that_names_a_weekday() -> None:
    question = hours("Sunday in the pool?", (49, "| Sunday | 10–16 |", 6.0))
    assert said(question)[0].startswith("**Sunday, November 29, 2026**")
    library = question.model_copy(update={"question": "Sunday in the library?"})
    library = library.model_copy(update={"request": library.request.model_copy(update={"question": library.question})})
    assert said(library)[0].startswith("On: [Pool]")  # another one's Sunday
    prose = question.evidence[0].model_copy(update={"kind": "prose", "header": ""})
    assert said(question.model_copy(update={"evidence": (prose,)}))[0].startswith("On: [Pool]")


def test_the_day_that_a_follow_up_names_counts_before_that_of_the_question_it_leans_on() -> None:
    question = hours("And on Sunday?", (30, "| Monday | 9–18 |", 6.0), (49, "| Sunday | 10–16 |", 5.0))
    text, _ = said(question.model_copy(update={"question": "Pool open on Mondays? And on Sunday?"}))
    assert text.startswith("**Sunday, November 29, 2026**")


@pytest.mark.parametrize("text", ["Is the pool open on Sundays?", "Ist der Pool sonntags offen?"])
def test_every_sunday_is_no_date(text: str) -> None:
    told, _ = said(hours(text, (30, "| Monday | 9–18 |", 5.0), (49, "| Sunday | 10–16 |", 6.0)))
    assert "November" not in told
    assert "10–16" in told


def test_a_table_without_the_day_s_row_is_shown_and_that_is_said() -> None:
    days = ("Monday", "Tuesday", "Friday")
    rows = [(n, f"| {day} | 9–18 |", 6.0 - n) for n, day in enumerate(days)]
    question = hours("Is the pool open on Sunday?", *rows)
    table = "\n".join(("| Day | Hours |", "| --- | --- |", *(row for _, row, _ in rows)))
    evidence = tuple(each.model_copy(update={"of": len(days)}) for each in question.evidence)
    question = question.model_copy(update={"sources": (source(1, table, title="Pool"),), "evidence": evidence})
    assert said(question)[0].startswith("**Sunday, November 29, 2026**\n\nNo row:\n\nOn: [Pool](</p1>)\n\n> | Day |")
    assert quoted(question).certainty == "place"
    more = question.model_copy(update={"evidence": tuple(each.model_copy(update={"of": 7}) for each in evidence)})
    assert "No row" not in said(more)[0]  # not all of the table was read


def test_who_asks_again_is_shown_something_else() -> None:
    question = found("unit")
    again = question.request.model_copy(update={"replaced": "It says:\n\n> A ticket costs 4 euros."})
    assert said(question.model_copy(update={"request": again})) == ("On: [Pool](</p1>)\n\n> Open daily.", [1])


def test_where_there_is_nothing_else_it_is_shown_again() -> None:
    question = found("unit", EVIDENCE[:1])
    again = question.request.model_copy(update={"replaced": "> A ticket costs 4 euros."})
    assert said(question.model_copy(update={"request": again}))[1] == [2]


def test_a_question_that_stands_alone_is_answered_as_before_whatever_was_said() -> None:
    question = found("unit")
    turn = Turn(question=ASKED, answer="> A ticket costs **4** euros.")
    again = question.request.model_copy(update={"history": (turn,)})
    assert said(question.model_copy(update={"request": again})) == SAID


def test_a_follow_up_is_not_answered_with_what_was_just_read() -> None:
    question = found("unit", text="And children?")
    turn = Turn(question=ASKED, answer="> A ticket costs **4** euros.")
    request = question.request.model_copy(update={"history": (turn,)})
    further = question.model_copy(update={"request": request, "question": f"{ASKED} And children?"})
    assert said(further) == ("On: [Pool](</p1>)\n\n> Open daily.", [1])


def in_parts(*parts: tuple[str, int, SureOf]) -> Retrieved:
    """Each with the unit that fits it best, and what it is sure of."""
    asked = [
        Part(question=text, evidence=EVIDENCE[best : best + 1], sure=Sure(of=of, unit=0.9 if of == "unit" else 0.3))
        for text, best, of in parts
    ]
    return found("page").model_copy(update={"parts": tuple(asked)})


PRICE, SINGS = ("what does a ticket cost", 0, "unit"), "who sings"


def test_a_part_that_nothing_answers_is_named() -> None:
    text, cited = said(in_parts(PRICE, (SINGS, 1, "nothing")))
    assert (text, cited) == ("It says:\n\n> A ticket costs 4 euros.\n\nNothing about: “who sings”", [2])


def test_what_comes_closest_to_a_part_is_said_to_be_no_more() -> None:
    text, cited = said(in_parts((SINGS, 1, "page"), PRICE))
    assert text == "It says:\n\n> A ticket costs 4 euros.\n\n“who sings”: On: [Pool](</p1>)\n\n> Open daily."
    assert cited == [2, 1]


def test_a_part_is_not_missing_whose_best_unit_was_quoted_for_the_other() -> None:
    assert said(in_parts(PRICE, ("and in euros", 0, "nothing"))) == SAID


def test_a_question_no_part_of_which_is_certain_is_shown_one_place() -> None:
    assert said(in_parts(("what is a ticket", 0, "page"), (SINGS, 1, "nothing"))) == PLACE


def test_who_asks_again_is_not_answered_by_parts() -> None:
    question = in_parts(PRICE, (SINGS, 1, "nothing"))
    again = question.request.model_copy(update={"replaced": "A ticket costs 4 euros."})
    assert "Nothing about" not in said(question.model_copy(update={"request": again}))[0]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Is there an old mill?", "Old mill"),
        ("Is there an old mill for cats?", None),  # of which nothing is said
        ("What does a wedding look like?", None),  # nobody has asked for this place
        ("Is it open on Thursday?", "Thursday"),
        ("Is the library open on Thursday?", None),  # another one's Thursday
        ("Is it open on 24 December?", None),  # a Thursday, but the page names that day
    ],
)
def test_the_row_that_is_meant_is_marked_and_no_other(text: str, marked: str | None) -> None:
    rows = ["| Old mill | 180 |", "| Thursday | 9 |", "| Tower | 120 |"]
    page = "\n".join(("| Of | Is |", "| --- | --- |", *rows)) + "\n\nWe are closed on 24 and 31 December.\n"
    best = rows[0] if "old mill" in text or "wedding" in text else rows[1]
    units = [(best, "row", 9.0), ("We are closed on 24 and 31 December.", "prose", 5.0)]
    evidence = tuple(
        Evidence(n=1, start=page.index(each), text=each, kind=kind, header="| Of | Is |", block=0, of=3, score=score)  # type: ignore[arg-type]
        for each, kind, score in units
    )
    made = retrieved(source(1, page, title="Weddings"), text=text)
    request = made.request.model_copy(update={"question": text})
    shown = quoted(made.model_copy(update={"request": request, "question": text, "evidence": evidence})).text
    assert [name for name in ("Old mill", "Thursday") if f"**{name}**" in shown] == ([marked] if marked else [])


def test_of_two_rows_of_the_same_name_none_is_marked() -> None:
    rows = [
        "| Adult | 26 – 64 | 39.50 |",
        "| Adult | 65 and over | 31.00 |",
        "| Junior | 5 – 17 | 9.50 |",
        "| Guest | – | 12 |",
    ]
    page = "\n".join(("| For | Age | Monthly |", "| --- | --- | --- |", *rows))
    header = "| For | Age | Monthly |"

    def shown(best: str) -> str:
        ordered = sorted(rows, key=lambda row: row != best)
        evidence = tuple(
            Evidence(n=1, start=page.index(row), text=row, kind="row", header=header, block=0, of=4, score=9.0 - n)
            for n, row in enumerate(ordered)
        )
        text = f"{best.split()[1].lower()} membership"
        made = retrieved(source(1, page, title="Membership"), text=text)
        request = made.request.model_copy(update={"question": text})
        return quoted(made.model_copy(update={"request": request, "question": text, "evidence": evidence})).text

    assert "**" not in shown(rows[1])
    assert "**Junior**" in shown(rows[2])
