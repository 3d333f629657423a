"""Where sentences end, in several languages and in Markdown."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text.sentences import cut, ended, split


def said(text: str, lang: str = "") -> list[str]:
    return [text[s.start : s.end] for s in split(text, lang)]


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("de", "Wir öffnen z. B. um 9.30 Uhr."),
        ("de", "Dr. Müller ist ab dem 3. Oktober da."),
        ("de", "Siehe § 5 Abs. 2 und Nr. 7 der Satzung."),
        ("de", "Es kostet ca. 1.200,50 Euro inkl. Porto."),
        ("de", "Rund 3 Mio. Menschen kamen."),
        ("de", "Inh. Fr. Meier und Ltg. Hr. Weber, Ansprechp. Frau Huber."),
        ("de", "Auskunft gibt die Gesch. Hr. Meier, Tel. 123."),
        ("en", "Ask Mrs. J. F. Smith at No. 5, St. Mary St. Louis."),
        ("en", "Version 3.5 costs $4.20 (approx. 4 euros)."),
        ("hu", "A 3. emelet kb. 20 percre van."),
        ("pl", "Urząd przy ul. Długiej 5 ma ok. 20 okien."),
        ("fr", "Adressez-vous à Mme Dupont, av. Foch."),
        ("it", "Il sig. Rossi e la sig. Bianchi."),
        ("es", "Llame a la Sra. García, pl. Mayor, desp. 3."),
        ("hu", "Nyitva h.–p. 9-17 óráig."),
        ("uk", "Адреса: вул. Франка, буд. 5, кім. 12."),
        ("he", "ליצירת קשר: טל. 03-1234567 או רח. 5."),
        ("th", "เวลา 9.00-17.00 น. โทร. 02 123"),
        ("xx", "Bus kvbr. 5 stops here."),
        ("xx", "Go to www.example.org/a.b?c=d. or not"),
        ("en", "3\\. Oktober: closed"),
        ("en", "See [How it works. And why.](/how) here."),
    ],
)
def test_a_full_stop_inside_a_sentence_does_not_end_it(lang: str, text: str) -> None:
    assert said(text, lang) == [text]


@pytest.mark.parametrize(
    ("lang", "text", "sentences"),
    [
        ("en", "One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ("en", 'He said "Go." Then he went.', ['He said "Go."', "Then he went."]),
        ("en", "He said no. The end.", ["He said no.", "The end."]),
        ("en", "It was 24. The rest left.", ["It was 24.", "The rest left."]),
        ("de", "Offen Mo. Mi. Fr. Eintritt frei.", ["Offen Mo. Mi. Fr.", "Eintritt frei."]),
        ("de", "Das war 1998. Danach kam viel.", ["Das war 1998.", "Danach kam viel."]),
        ("en", "Ask in St. Mary's Bldg. Parking is free.", ["Ask in St. Mary's Bldg.", "Parking is free."]),
        ("en", "Bins go on Mon. and Thurs. Paper is free.", ["Bins go on Mon. and Thurs.", "Paper is free."]),
        ("en", "Ask the DRK. 5 people help.", ["Ask the DRK.", "5 people help."]),
        ("ru", "Вход 500 руб. Детям бесплатно.", ["Вход 500 руб.", "Детям бесплатно."]),
        ("ru", "Паспорт, фото и т. д. Копии не нужны.", ["Паспорт, фото и т. д.", "Копии не нужны."]),
        ("he", 'אגרה: 35 ש"ח. התשלום בכרטיס.', ['אגרה: 35 ש"ח.', "התשלום בכרטיס."]),
        ("es", "¿Dónde? ¡Aquí! Bien.", ["¿Dónde?", "¡Aquí!", "Bien."]),
        ("zh", "图书馆九点开门。周日休息。", ["图书馆九点开门。", "周日休息。"]),
        ("hi", "यह खुला है। वह बंद है।", ["यह खुला है।", "वह बंद है।"]),
        ("ar", "هل هو مفتوح؟ نعم.", ["هل هو مفتوح؟", "نعم."]),
        ("ja", "見る https://example.com/路径。次に", ["見る https://example.com/路径。", "次に"]),
        ("ja", "[娘](https://t.example/娘。)の歌。次。", ["[娘](https://t.example/娘。)の歌。", "次。"]),
        ("ja", "<https://t.example/娘。の>を見る。次。", ["<https://t.example/娘。の>を見る。", "次。"]),
        ("ja", "「九時に開く。」と言う。日曜は休み。", ["「九時に開く。」", "と言う。", "日曜は休み。"]),
        ("my", "စာကြည့်တိုက်ဖွင့်သည်။ပိတ်သည်။", ["စာကြည့်တိုက်ဖွင့်သည်။", "ပိတ်သည်။"]),
        ("km", "បណ្ណាល័យបើក។ បិទ។", ["បណ្ណាល័យបើក។", "បិទ។"]),
        ("ur", "لائبریری کھلی ہے۔ آج بند ہے۔", ["لائبریری کھلی ہے۔", "آج بند ہے۔"]),
        ("hy", "Բաց է։ Փակ է։", ["Բաց է։", "Փակ է։"]),
        ("am", "ክፍት ነው። ዝግ ነው።", ["ክፍት ነው።", "ዝግ ነው።"]),
        ("he", "הספרייה פתוחה. היא סגורה.", ["הספרייה פתוחה.", "היא סגורה."]),
        ("en", "A line\nbreaks here. Next.", ["A line\nbreaks here.", "Next."]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(lang: str, text: str, sentences: list[str]) -> None:
    assert said(text, lang) == sentences


def test_thai_ends_a_sentence_at_a_space_once_it_has_said_something() -> None:
    clause = "ห้องสมุดเปิดทุกวันจันทร์ถึงวันศุกร์"
    text = " ".join([clause] * 7)
    assert said(text, "th") == [" ".join([clause] * n) for n in (3, 3, 1)]
    assert said("ห้องสมุด เปิด 9.30 น. ทุกวัน", "th") == ["ห้องสมุด เปิด 9.30 น. ทุกวัน"]


PAGE = """# Library of St. Ives

Open daily. See below.
- Monday: 9.30–18. Closed at noon.
- Tuesday
  all day

| Day | Hours |
| --- | --- |
| Wed | 9 |
| Thu | 10 |

High Street 1\x20\x20
Springfield

```
x = a[1]. B
```
***
End"""


def test_markdown_blocks_are_units() -> None:
    units = [(s.kind, PAGE[s.start : s.end]) for s in split(PAGE, "en")]
    assert units == [
        ("heading", "# Library of St. Ives"),
        ("prose", "Open daily."),
        ("prose", "See below."),
        ("item", "- Monday: 9.30–18. Closed at noon."),
        ("item", "- Tuesday\n  all day"),
        ("row", "| Day | Hours |"),
        ("row", "| Wed | 9 |"),
        ("row", "| Thu | 10 |"),
        ("prose", "High Street 1"),
        ("prose", "Springfield"),
        ("code", "x = a[1]. B"),
        ("prose", "End"),
    ]


def test_rows_know_their_header() -> None:
    headers = [s.header and PAGE[slice(*s.header)] for s in split(PAGE) if s.kind == "row"]
    assert headers == [None, "| Day | Hours |", "| Day | Hours |"]


def test_a_long_list_item_is_several_sentences() -> None:
    item = "- " + "This is a sentence of the item. " * 20
    assert len(split(item)) == 20


@given(st.text(alphabet="aB1. \n|-#`*。!?", max_size=200))
def test_units_are_in_order_apart_and_lose_no_word(text: str) -> None:
    units = split(text)
    assert all(a.end <= b.start for a, b in pairwise(units))
    assert all(text[u.start : u.end] == text[u.start : u.end].strip() != "" for u in units)
    if "```" not in text:  # what stands behind a fence is left out on purpose
        kept = "".join(text[u.start : u.end] for u in units)
        assert [*filter(str.isalnum, kept)] == [*filter(str.isalnum, text)]


@given(st.text(alphabet="aB1. \n", max_size=80), st.integers(0, 90))
def test_cut_is_a_beginning_within_the_limit(text: str, limit: int) -> None:
    piece = cut(text, limit)
    assert len(piece) <= limit or piece == text
    assert text.startswith(piece)
    assert piece == text if len(text) <= limit else True


@pytest.mark.parametrize(
    ("limit", "piece"),
    [
        (3, ""),
        (4, "Eins"),
        (9, "Eins"),
        (12, "Eins zwei."),
        (21, "Eins zwei. Drei vier."),
        (99, "Eins zwei. Drei vier. Fünf"),
    ],
)
def test_cut_ends_with_a_sentence_or_at_least_a_word(limit: int, piece: str) -> None:
    assert cut("Eins zwei. Drei vier. Fünf", limit) == piece


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Closed.", True),
        ("**Closed.**", True),
        ("He said “No!”", True),
        ("休息。", True),
        ("Prices:", False),
        ("", False),
    ],
)
def test_whether_a_text_ends_with_a_sentence(text: str, expected: bool) -> None:
    assert ended(text) is expected
