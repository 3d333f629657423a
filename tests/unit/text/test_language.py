"""Which language a text is in."""

from __future__ import annotations

import pytest

from text.language import identified, language_of, spoken, tells_language


@pytest.mark.parametrize(
    ("question", "lang"),
    [
        ("When does the pool open on Sundays?", "en"),
        ("Wann macht das Otterbad am Sonntag auf?", "de"),
        ("Mennyibe kerül egy belépő a strandra?", "hu"),
        ("Ile kosztuje bilet na basen dla dzieci?", "pl"),
        ("Quanto costa il biglietto per la piscina?", "it"),
        ("¿Cuánto cuesta la entrada a la piscina para los niños?", "es"),
        ("Combien coûte le billet pour la piscine ?", "fr"),
        ("Cât costă un bilet pentru piscină?", "ro"),
    ],
)
def test_stop_words_tell_the_language(question: str, lang: str) -> None:
    assert spoken(question) == {lang}


@pytest.mark.parametrize(
    ("question", "languages", "expected"),
    [
        ("What is the dog tax?", ("de", "en"), "en"),
        ("Wie hoch ist die Hundesteuer?", ("en", "de"), "de"),
        ("What is the dog tax?", ("de-AT", "en-GB"), "en-GB"),
        ("What is the dog tax?", ("de",), "en"),
        ("Hundesteuer Kranichmünde", ("de", "en"), "de"),
        ("Hundesteuer in Kranichmünde", ("de", "en"), "de"),
        ("犬の税金はいくらですか？", ("de", "en"), "ja"),
        ("Öffnungszeiten Hallenbad", ("en", "de-AT"), "de-AT"),
        ("Коли відкрита бібліотека?", ("de", "en"), "uk"),
        ("sauna", ("de", "en"), "de"),
        ("Vamos un domingo de noviembre, ¿estará abierta la oficina de turismo?", ("de", "en"), "es"),
        ("ya ben köpeği kaydettirmeyi unuttum, ceza yer miyim ne kadar", ("de", "en"), "tr"),
        ("alte mühle heiraten preis", ("de", "en"), "de"),  # a stop word of Romanian, and of no other language
        ("wie teuer is ne inspektion fürs ebike", ("de", "en"), "de"),  # two of Hungarian, and one of German
        ("d-lock price", ("de", "en"), "de"),
        ("oeffnungszeiten buergerbuero", ("en", "de"), "de"),
        ("oeffnungszeiten buergerbuero", ("en", "fr"), "lb"),  # no page is in German
    ],
)
def test_a_question_without_a_language_is_heard_for_one(
    question: str, languages: tuple[str, ...], expected: str
) -> None:
    assert language_of(question, languages) == expected


@pytest.mark.parametrize(
    ("question", "languages", "told"),
    [
        ("What is the dog tax?", ("de", "en"), True),
        ("What is the dog tax?", ("de-AT", "en-GB"), True),
        ("Коли відкрита бібліотека?", ("de", "en"), True),
        ("trash day christmas", ("de", "en"), False),
        ("Hundesteuer in Kranichmünde", ("de", "en"), True),
        ("sauna?", ("de", "en"), False),
        ("bin day", ("de", "en"), False),  # a German stop word among two
        ("wer zahlt?", ("de", "en"), False),
        ("ich bin neu", ("de", "en"), True),
    ],
)
def test_words_tell_a_language_or_leave_it_to_a_guess(question: str, languages: tuple[str, ...], told: bool) -> None:
    assert tells_language(question, languages) is told


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("Öffnungszeiten", "de"),
        ("opening hours", "en"),
        ("könyvtár", "hu"),
        ("Kiedy jest otwarta biblioteka?", "pl"),
        ("Kütüphane ne zaman açık?", "tr"),
        ("Коли відкрита бібліотека?", "uk"),
        ("ห้องสมุด", "th"),
        ("도서관", "ko"),
        ("ספרייה", "he"),
        ("المكتبة", "ar"),
        ("图书馆几点开门？", "zh"),
        ("図書館は何時に開きますか", "ja"),
        ("sauna", None),
        ("1234", None),
        ("", None),
    ],
)
def test_letters_tell_the_language(text: str, lang: str | None) -> None:
    assert identified(text) == lang
