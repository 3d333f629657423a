"""Words in any script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text.words import count_words, indexed, readings, stems, stems_of_words, words


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("?!", 0),
        ("Öffnungszeiten", 1),
        ("What's open?", 2),
        ("l’école primaire", 2),
        ("Wann öffnet die Bücherei?", 4),
        ("पुस्तकालय कब खुलता है", 4),  # vowel signs do not split words
        ("מתי פתוחה הספרייה", 3),
        ("营业时间", 2),  # four characters are a keyword or two
        ("图书馆几点开门", 4),
        ("ห้องสมุดเปิดกี่โมง", 5),
        ("도서관은 언제 엽니까", 3),
    ],
)
def test_counts_words_in_any_script(text: str, count: int) -> None:
    assert count_words(text) == count


def test_words_are_folded_and_split_at_apostrophes() -> None:
    assert words("Dell'ORARIO, groß_und 9.30") == ["dell", "orario", "gross", "und", "9", "30"]


@given(st.text() | st.text(st.characters(codec="ascii")) | st.text(st.characters(codec="latin-1")))
def test_text_without_unusual_characters_is_cut_like_any_other_text(text: str) -> None:
    assert words(f"{text} 书") == [*words(text), "书"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ห้องสมุดเปิดกี่โมง", "ห้อง สมุด เปิด กี่ โมง"),
        ("ຫ້ອງສະໝຸດເປີດ", "ຫ້ອງສະໝຸດ ເປີດ"),
        ("បណ្ណាល័យបើកម៉ោងប៉ុន្មាន", "បណ្ណាល័យ បើក ម៉ោង ប៉ុន្មាន"),
        ("စာကြည့်တိုက်ဖွင့်လဲ။", "စာကြည့်တိုက် ဖွင့် လဲ"),
        ("图书馆几点开门？", "图书 馆 几点 开门"),
        ("図書館は何時に", "図書館 は 何時 に"),
    ],
)
def test_scripts_without_spaces_are_cut_by_dictionaries(text: str, found: str) -> None:
    assert words(text) == found.split()
    assert words(f"A {text} 9") == ["a", *found.split(), "9"]


def test_what_nobody_sees_does_not_part_a_word() -> None:
    assert words("Straßen\u00adbahn می\u200cخواهم") == ["strassenbahn", "میخواهم"]


def test_without_a_language_stems_are_the_first_letters_without_accents() -> None:
    assert stems("Öffnungszeiten") == stems("Offnung") == ["offnu"]
    assert stems("București") == stems("Bucuresti")
    assert stems("20261123") == ["20261123"]


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        ("de", "Gebühren", "gebuhr"),
        ("de-AT", "Gebu\u0308hr", "GEBUEHR"),
        ("en-GB", "opening", "opened"),
        ("fr", "écoles", "ecole"),
        ("hu", "könyvtárban", "könyvtár"),
        ("pl", "biletów", "bilety"),
        ("ar", "والمكتبة", "مَكْتَبَة"),
        ("ar", "للأطفال", "أطفال"),
        ("he", "בספרייה", "והספרייה"),
        ("he", "ילדים", "לילדים"),
        ("uk", "бібліотека", "бібліотеки"),  # without a stemmer
        ("ja", "ホテル", "ﾎﾃﾙ"),
    ],
)
def test_stems_forget_what_a_language_does_to_its_words(lang: str, one: str, other: str) -> None:
    assert stems(one, lang) == stems(other, lang) != []


def test_chinese_and_japanese_are_compared_by_pairs() -> None:
    assert stems("图书馆 A", "zh") == ["图书", "书馆", "a"]
    assert stems("书") == ["书"]
    assert stems("ホテル", "ja") == ["ホテ", "テル"]
    assert stems("ห้องสมุด", "th") == ["ห้อง", "สมุด"]


def test_korean_syllables_stay_whole() -> None:
    assert stems("서울시청은", "ko") == ["서울", "울시", "시청", "청은"]
    assert set(stems("서울시청")) & set(stems("서울대학교")) == {"서울"}


@given(st.text())
def test_stems_are_found_word_by_word(text: str) -> None:
    for lang in ("", "de", "ko", "ar"):
        assert [stem for word in stems_of_words(text, lang) for stem in word] == stems(text, lang)
        assert all(word and all(word) for word in stems_of_words(text, lang) if word != ("",))


def test_a_word_is_read_in_every_language_that_it_may_be_in() -> None:
    assert readings("opening Freibadgebühr opening", ["en", "de", "en-GB"]) == [
        [("open",), ("opening",)],
        [("freibadgebuhr",), ("freibadgebuhr", "freibad", "gebuhr")],
    ]
    assert readings("opening 图书馆", [], beginnings=True) == [[("openi-",)], [("图书-",)], [("书馆-",)]]
    assert indexed("opening", "en") == ["open", "openi-"]
