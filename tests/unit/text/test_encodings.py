"""Bytes of strangers: read as they were written, or refused, and never read as something else."""

from __future__ import annotations

import random

import pytest

from text.encodings import UnknownEncoding, decoded

# Reported for attachments in Unstructured-IO/unstructured issue 4466 and microsoft/markitdown issue 18.
UNDECLARED = [
    ("Привет, библиотека", "cp1251"),
    ("Привет, библиотека", "koi8-r"),
    ("図書館の開館時間", "shift_jis"),
    ("図書館の開館時間", "euc_jp"),
    ("图书馆开放时间为周一至周五", "gbk"),
    ("圖書館開放時間", "big5"),
    ("도서관 운영 시간", "euc_kr"),
    ("Zażółć gęślą jaźń", "cp1250"),
    ("őszi nyitvatartás", "iso-8859-2"),
    ("O szóstej, surówka na dziesiątej. Jak pomagać, żeby nie zaszkodzić? W pigułce", "iso-8859-2"),
    ("Kütüphane çalışma saatleri değişti", "cp1254"),
    ("Βιβλιοθήκη ώρες λειτουργίας", "cp1253"),
    ("المكتبة مفتوحة", "cp1256"),
    ("L’entrée coûte 5 € pour les élèves", "cp1252"),
    ("Gebühr", "latin-1"),
    ("Gebühr: 5 €", "utf-8-sig"),
    ("Gebühr: 5 €", "utf-16"),
    ("Hello, Привет", "utf-16-le"),
    ("Hello, Привет", "utf-16-be"),
]


@pytest.mark.parametrize(("text", "encoding"), UNDECLARED)
def test_what_nobody_declares_is_told(text: str, encoding: str) -> None:
    assert decoded(text.encode(encoding)) == text


@pytest.mark.parametrize(
    "data",
    [
        "Darbo laikas: šeštadienį nedirbame".encode("cp1257"),  # one detector says cp1250
        "Der Eintritt für Kinder über 6 Jahre beträgt 3 €".encode("mac-roman"),
        "Привет".encode("utf-16-be"),  # valid UTF-8, but for what it says
        "Привет, библиотека".encode("cp1251") + b"\0",
        random.Random(1).randbytes(5_000),
        b"\xff" * 5_000,
        b"\0" * 100,
    ],
)
def test_what_cannot_be_told_is_refused(data: bytes) -> None:
    with pytest.raises(UnknownEncoding, match="save it as UTF-8"):
        decoded(data)


def test_the_server_goes_before_the_page_and_both_before_a_guess() -> None:
    page = '<title>Öffnungszeiten</title><meta http-equiv=content-type content="text/html; charset={}"><p>Gebühr</p>'
    for name, said, encoding in (
        ("utf-8", "iso-8859-1", "cp1252"),  # what the server says
        ("windows-1252", None, "cp1252"),
        ("iso-8859-1", "utf8mb4", "cp1252"),  # a name that nobody knows says nothing
        ("iso-8859-1", "hex", "cp1252"),  # nor does one of Python's that is for bytes
        ("utf-16", None, "utf-8"),  # it was read as ASCII
        ("utf8mb4", "utf8mb4", "utf-8"),
        ("windows-1251", "utf-8", "utf-8"),
        ("windows-1252", "windows-1251", "utf-8-sig"),  # a mark is no opinion
    ):
        text = page.format(name)
        assert decoded(text.encode(encoding), said, page=True) == text
    assert decoded("<p>5 €".encode("cp1252"), "ISO-8859-1") == "<p>5 €"  # as browsers do
    assert decoded('<?xml version="1.0" encoding="iso-8859-2"?><p>őszi'.encode("iso-8859-2"), page=True).endswith(
        "őszi"
    )
    assert decoded('<!-- <meta charset="koi8-r"> --><meta charset="cp1251">Цена'.encode("cp1251"), page=True).endswith(
        "Цена"
    )


def test_a_broken_byte_is_a_broken_letter_and_no_other_encoding() -> None:
    text = "Die Gebühr beträgt 5 €. " * 100
    assert decoded(text.encode() + b"\xfc") == text + "\ufffd"
    assert decoded(b"The fee is 5 euros. " * 100 + b"\x81") == "The fee is 5 euros. " * 100 + "\ufffd"
