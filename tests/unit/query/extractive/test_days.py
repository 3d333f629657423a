"""Which day is asked about, and whose row of the opening hours that is."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from pipelines.query.extractive.days import asked_day, closed_on, matching_rows, said_days

WEDNESDAY = datetime(2026, 11, 25, 10, 40, tzinfo=UTC)
MONDAY, SATURDAY, SUNDAY = date(2026, 11, 23), date(2026, 12, 5), date(2026, 11, 29)


@pytest.mark.parametrize(
    ("question", "lang", "day"),
    [
        ("today open?", "en", "2026-11-25"),
        ("is heut markt?", "de", "2026-11-25"),
        ("Hat das Bürgerbüro jetzt noch offen?", "de", "2026-11-25"),
        ("library open?", "en", "2026-11-25"),
        ("Bibliothek offen?", "de", "2026-11-25"),
        ("What about tomorrow?", "en", "2026-11-26"),
        ("und morgen?", "de", "2026-11-26"),
        ("übermorgen auch?", "de", "2026-11-27"),
        ("the day after tomorrow", "en", "2026-11-27"),
        ("When does it open on Saturdays?", "en", "2026-11-28"),
        ("open sat?", "en", "2026-11-28"),
        ("Wann ist sonntags auf?", "de", "2026-11-29"),
        ("Samstagabend ins Kino", "de", "2026-11-28"),
        ("Wednesday?", "en", "2026-11-25"),
        ("is it open on 25 december", "en", "2026-12-25"),
        ("December 31st, open?", "en", "2026-12-31"),
        ("am 31.12. noch was zu erledigen?", "de", "2026-12-31"),
        ("offen am 3. Januar?", "de", "2027-01-03"),
        ("am 24.12.2027", "de", "2027-12-24"),
        ("sauna offen 24.12?", "de", "2026-12-24"),
        ("Was ist heute los?", "en", "2026-11-25"),  # asked in German on the English page
        ("ma nyitva van?", "hu", "2026-11-25"),
        ("czy urząd dziś przyjmuje?", "pl", "2026-11-25"),
        ("w sobotę otwarte?", "pl", "2026-11-28"),
        ("¿Abre el domingo?", "es", "2026-11-29"),
        ("ouvert aujourd'hui ?", "fr", "2026-11-25"),
        ("aperto domani?", "it", "2026-11-26"),
        ("什么时候开门，星期六", "zh", "2026-11-28"),
        ("今天开门吗？", "zh", "2026-11-25"),
        ("هل المكتبة مفتوحة يوم السبت؟", "ar", "2026-11-28"),
        ("วันนี้เปิดไหม", "th", "2026-11-25"),
        ("в субботу открыто?", "ru", "2026-11-28"),
    ],
)
def test_the_day_that_is_asked_about(question: str, lang: str, day: str) -> None:
    assert asked_day(question, WEDNESDAY, lang) == date.fromisoformat(day)


@pytest.mark.parametrize(
    ("question", "lang"),
    [
        ("What does a library card cost?", "en"),
        ("How do I open an account?", "en"),
        ("I sat in the sun", "xx"),
        ("So teuer?", "de"),
        ("Montage einer Wärmepumpe", "de"),
        ("room 3.4", "en"),
        ("release 8.12?", "en"),
        ("Kostet das 12.10 Euro?", "de"),
        ("call 030 23125-100", "en"),
        ("When is it open?", "xx"),
    ],
)
def test_no_day_is_made_up(question: str, lang: str) -> None:
    assert asked_day(question, WEDNESDAY, lang) is None


@pytest.mark.parametrize(
    ("row", "lang", "days"),
    [
        ("Monday | 9:00 to 18:00", "en", "0"),
        ("Mon-Fri: 9-17", "en", "01234"),
        ("Monday to Thursday from 8", "en", "0123"),
        ("Tuesdays and Thursdays 6:30", "en", "13"),
        ("Sat, Sun 10-18", "en", "56"),
        ("Fri – Sun", "en", "456"),
        ("open every day", "en", "0123456"),
        ("daily except Mondays", "en", "123456"),
        ("at weekends", "en", "56"),
        ("on weekdays", "en", "01234"),
        ("The sun sat high", "en", ""),
        ("Closed on public holidays", "en", ""),
        ("Open day: Saturday, 9 January 2027", "en", ""),
        ("District | Weekday", "en", ""),
        ("Freitag, den 24.12. zu, montags auf", "de", "0"),
        ("Montag bis Freitag 8–12 Uhr", "de", "01234"),
        ("Mo, Mi und Fr 9–12", "de", "024"),
        ("Mo.–Do. 8:00", "de", "0123"),
        ("Sa | geschlossen", "de", "5"),
        ("So teuer war es nie", "de", ""),
        ("Die Straße wird am Dienstag gesperrt, So: frei", "de", "16"),
        ("täglich außer montags", "de", "123456"),
        ("Am Wochenende", "de", "56"),
        ("Montage der Anlage", "de", ""),
        ("lundi au vendredi", "fr", "01234"),
        ("de lunes a viernes", "es", "01234"),
        ("dal lunedì al venerdì", "it", "01234"),
        ("od poniedziałku do piątku", "pl", "01234"),
        ("maandag t/m vrijdag", "nl", "01234"),
        ("周一至周五", "zh", "01234"),
        ("จันทร์ถึงศุกร์", "th", "01234"),
        ("من الأحد إلى الخميس", "ar", "01236"),
        ("с понедельника по пятницу", "ru", "01234"),
    ],
)
def test_the_weekdays_of_a_row(row: str, lang: str, days: str) -> None:
    assert said_days(row, lang).weekdays == {int(day) for day in days}


def test_the_rows_of_a_day() -> None:
    rows = ["Monday, Tuesday | 9 to 16", "Wednesday | closed", "Thursday | 9 to 18", "Closed on public holidays"]
    assert matching_rows(rows, WEDNESDAY.date(), "en") == [1]
    assert matching_rows(rows, MONDAY, "en") == [0]
    assert matching_rows(rows, SUNDAY, "en") == []


def test_which_weekday_of_a_month() -> None:
    assert said_days("first Saturday in the month, 9 to 12", "en").holds(SATURDAY)
    assert not said_days("first Saturday in the month", "en").holds(date(2026, 11, 28))
    assert said_days("am letzten Samstag im Monat", "de").holds(date(2026, 11, 28))
    assert said_days("jeden ersten Samstag", "de").holds(SATURDAY)
    assert said_days("jeden ersten und dritten Samstag", "de").nth == {1, 3}


def test_a_season_is_kept_to() -> None:
    row = "May to September: Saturdays and Sundays 10 to 14"
    assert said_days(row, "en").holds(date(2026, 7, 5))
    assert not said_days(row, "en").holds(SUNDAY)
    assert not said_days("1. Mai bis 30. September: sonntags", "de").holds(SUNDAY)


def test_a_date_of_its_own_comes_before_a_weekday() -> None:
    rows = ["Thursday | 9 to 18", "31 December 2026 | closed", "24 December | closed"]
    assert matching_rows(rows, date(2026, 12, 31), "en") == [1]
    assert matching_rows(rows, date(2026, 12, 24), "en") == [2]
    assert matching_rows(rows, date(2027, 12, 31), "en") == []  # a Friday of another year


def test_of_several_days_of_a_month_each_is_named() -> None:
    for text, lang, days in (
        ("Am 24. und 31. Dezember zu", "de", {24, 31}),
        ("24., 25. und 26. Dezember", "de", {24, 25, 26}),
        ("vom 24. bis 26. Dezember", "de", {24, 25, 26}),
        ("closed on December 24 and 31", "en", {24, 31}),
        ("24 și 31 decembrie", "ro", {24, 31}),
        ("5 and 10 euros from 3 December", "en", {3}),
    ):
        assert said_days(text, lang).dates == {(day, 12, None) for day in days}, text


@pytest.mark.parametrize(
    ("question", "lang", "day"),
    [
        ("open on christmas eve?", "en", "2026-12-24"),
        ("Habt ihr Heiligabend auf?", "de", "2026-12-24"),
        ("is the pool open on New Year’s Day", "en", "2027-01-01"),
        ("an Silvester geöffnet?", "de", "2026-12-31"),
        ("Karfreitag offen?", "de", "2027-03-26"),
        ("ouvert le lundi de Pâques ?", "fr", "2027-03-29"),
        ("wigilia", "pl", "2026-12-24"),
        ("平安夜开门吗", "zh", "2026-12-24"),
        ("When is the Christmas market?", "en", None),
    ],
)
def test_feasts_are_dates(question: str, lang: str, day: str | None) -> None:
    assert asked_day(question, WEDNESDAY, lang) == (date.fromisoformat(day) if day else None)


def test_rows_that_name_a_feast_or_its_date_are_that_days() -> None:
    rows = ["Monday to Sunday 9 to 17", "24 and 31 December: closed", "Good Friday: closed", "25 December: closed"]
    assert matching_rows(rows, date(2026, 12, 24), "en") == [1]
    assert matching_rows(rows, date(2027, 3, 26), "en") == [2]
    assert matching_rows(["Friday 9 to 17", "Closed on public holidays"], date(2026, 12, 25), "en") == [1]
    assert matching_rows(["Täglich 9–17", "Heiligabend und Silvester geschlossen"], date(2026, 12, 31), "de") == [1]


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("Vom 30. November bis 4. Dezember 2026 bleibt das Haus wegen Umbau geschlossen.", "de"),
        ("Vom 30.11. bis 04.12.2026 geschlossen", "de"),
        ("Von Mittwoch, 30. November, bis Freitag, 4. Dezember 2026, geschlossen", "de"),
        ("Vom 1. bis 4. Dezember 2026 geschlossen.", "de"),
        ("Am 2. Dezember 2026 geschlossen.", "de"),
        ("Im Dezember 2026 geschlossen.", "de"),
        ("Bis 6. Dezember 2026 geschlossen.", "de"),
        ("Ab 1. Dezember 2026 ist das Haus dauerhaft geschlossen.", "de"),
        ("Ab dem 1. Dezember bleibt das Haus geschlossen.", "de"),
        ("Vom 1. Oktober bis 30. April ist das Freibad geschlossen.", "de"),
        ("Diese Woche geschlossen", "de"),
        ("We are closed from 30 November to 4 December 2026.", "en"),
        ("Closed November 30 – December 4, 2026", "en"),
        ("Closed until 6 December.", "en"),
        ("The youth club is closed until further notice.", "en"),
        ("Closed from October to April", "en"),
        ("Fermé du 30 novembre au 4 décembre", "fr"),
        ("Cerrado del 30 de noviembre al 4 de diciembre de 2026", "es"),
    ],
)
def test_something_is_closed_on_a_day(text: str, lang: str) -> None:
    assert closed_on(text, date(2026, 12, 2), lang)


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("Mittwochs geschlossen", "de"),  # a row of the hours says so by itself
        ("Mittwoch 14–20 Uhr, vom 30. November bis 4. Dezember 2026 bis 22 Uhr", "de"),
        ("Vom 30. November bis 4. Dezember 2025 geschlossen", "de"),
        ("Im Dezember 2025 geschlossen", "de"),
        ("Bis 30. November 2026 geschlossen", "de"),
        ("Ab 3. Dezember 2026 geschlossen", "de"),
        ("Vom 1. Mai bis 15. September geschlossen", "de"),
        ("Closed in August", "en"),
        ("Closed on public holidays", "en"),
        ("Closed from May to September", "en"),
        ("Closed until 31 June 2027", "en"),
    ],
)
def test_nothing_is_closed_on_a_day(text: str, lang: str) -> None:
    assert not closed_on(text, date(2026, 12, 2), lang)


def test_a_span_across_the_year_s_end_names_its_days() -> None:
    days = said_days("Weihnachtsferien vom 23. Dezember bis 6. Januar", "de")
    assert [days.on(date(2027, 1, day)) for day in (3, 6, 7)] == [True, True, False]


def test_how_long_prices_are_valid_names_no_day() -> None:
    assert not said_days("Preise gültig vom 1. Januar bis 31. Dezember 2026", "de").on(date(2026, 12, 2))
