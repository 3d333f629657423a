"""Courtesies are recognised in every language we speak, and no question is taken for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml

from pipelines.query.extractive.courtesy import recognized
from pipelines.query.live.site_prompts import SitePrompts
from prompts.loader import sentences
from schemas.query import CourtesyKind

SITES = Path(__file__).parents[4] / "sites"
QUESTIONS = SITES / "demo" / "questions.yaml"
PHRASES = SitePrompts().of("town").phrases


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("hi", "greeting"),
        ("Hiiii!!! 🙂", "greeting"),
        ("Good evening, are you there?", "greeting"),
        ("Guten Morgen", "greeting"),
        ("GRUESS GOTT", "greeting"),
        ("你好", "greeting"),
        ("สวัสดีครับ", "greeting"),
        ("👋", "greeting"),
        ("thx!", "thanks"),
        ("ok, thank you so much for your help", "thanks"),
        ("danke 🙏", "thanks"),
        ("شكرًا جزيلًا", "thanks"),
        ("Thanks, bye!", "thanks"),
        ("Tschüß und einen schönen Abend noch", "goodbye"),
        ("do widzenia", "goodbye"),
        ("you're so stupid", "insult"),
        ("Du bist echt ein Vollidiot.", "insult"),
        ("useless bot", "insult"),
        ("fuck off", "insult"),
        ("What's your name?", "about"),
        ("bist du ein Roboter?", "about"),
        ("Can you help me?", "about"),
        ("Qu'est-ce que j'ai demandé ?", "conversation"),
        ("what did I just ask", "conversation"),
        ("Hi, I want to talk to a real person please", "person"),
        ("you stupid bot, let me speak to somebody!", "person"),
        ("Ich würde gerne mit jemandem sprechen", "person"),
        ("Kann ich mit einem Mitarbeiter reden?", "person"),
        ("Szeretnék valakivel beszélni", "person"),
        ("Czy mogę porozmawiać z człowiekiem?", "person"),
        ("Vorrei parlare con un operatore", "person"),
        ("¿Puedo hablar con alguien?", "person"),
        ("Je voudrais parler à quelqu'un", "person"),
        ("Vreau să vorbesc cu o persoană", "person"),
        ("Kan ik een medewerker spreken?", "person"),
        ("Quero falar com uma pessoa", "person"),
        ("Biriyle konuşmak istiyorum", "person"),
        ("Можна поговорити з кимось?", "person"),
        ("Соедините меня с оператором", "person"),
        ("أريد التحدث مع شخص", "person"),
        ("אפשר לדבר עם נציג?", "person"),
        ("转人工", "person"),
        ("อยากคุยกับเจ้าหน้าที่", "person"),
        ("asdfgh", "gibberish"),
        ("kjsdhf qwpoe xxcv", "gibberish"),
        ("фывапр", "gibberish"),
        ("???", "gibberish"),
    ],
)
def test_what_needs_no_search(said: str, kind: str) -> None:
    assert recognized(said, "en").kind == kind


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("Hi, when is the library open?", "when is the library open?"),
        ("hi when is the library open", "when is the library open"),
        ("Hallo zusammen! Wann ist offen? Danke und viele Grüße", "Wann ist offen?"),
        ("Hello, I have a question: may dogs come in, and cats?", "may dogs come in, and cats?"),
        ("You idiot, when is the pool open?", "when is the pool open?"),
        ("你好，图书馆几点开门？", "图书馆几点开门？"),
        ("السلام عليكم، متى تفتح المكتبة؟", "متى تفتح المكتبة؟"),
        ("Help, a pipe has burst!", "a pipe has burst!"),
    ],
)
def test_of_a_courtesy_with_a_question_the_question_is_searched_alone(said: str, question: str) -> None:
    understood = recognized(said, "en")
    assert (understood.kind, understood.question) == (None, question)


@pytest.mark.parametrize(
    "said",
    [
        "library",
        "Dom",  # German for cathedral, Dutch for stupid
        "kanker",
        "SUP",
        "115",
        "030 23125-100",
        "BMW X5",
        "GmbH",
        "Kyiv",
        "Mbappé",
        "Grzegorz Brzęczyszczykiewicz",
        "서울시청",
        "ok und morgen?",
        "What, exactly, does it cost?",
        "the stupid parking machine ate my card",
        "where can dogs bathe",
        "Was kostet ein Hund",
        "Who do I talk to about a building permit?",
        "I want to talk to someone about my taxes",
        "Mit wem kann ich über die Hundesteuer sprechen?",
        "customer service",
        "Mitarbeiter",
        "Wo melde ich einen Hund an? Und wo eine Katze?",
    ],
)
def test_a_question_stays_as_it_is(said: str) -> None:
    understood = recognized(said, "en", conversing=True)
    assert (understood.kind, understood.question) == (None, said)


def test_no_question_about_the_sample_site_is_a_courtesy() -> None:
    for each in yaml.safe_load(QUESTIONS.read_text(encoding="utf-8")):
        understood = recognized(each["question"], each["lang"])
        assert (understood.kind, understood.question) == (None, each["question"])


def test_no_gold_question_asks_for_a_person() -> None:
    files = [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in SITES.glob("*/visitors/*.yaml")]
    asked = [text for text in _texts(files) if recognized(text, "en").kind == "person"]
    assert asked == []


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def test_it_is_answered_in_the_language_it_was_said_in() -> None:
    assert recognized("Danke!", "en").lang == "de"
    assert recognized("hi", "de-AT").lang == "de-AT"
    assert recognized("привет", "de").lang == "ru"
    assert recognized("asdfgh", "fr").lang == "fr"


def test_whoever_says_it_at_the_end_means_goodbye() -> None:
    assert recognized("ciao", "it").kind == "greeting"
    assert recognized("ciao", "it", conversing=True).kind == "goodbye"


def test_every_kind_has_phrases_and_an_answer_in_every_language() -> None:
    found = sentences("courtesies")
    for kind in get_args(CourtesyKind):
        assert set(PHRASES.canned[kind]) == set(PHRASES.canned["nothing-found"])
        if kind != "gibberish":
            assert set(found[kind]) == set(PHRASES.canned[kind])


def test_every_phrase_is_heard_as_what_it_is() -> None:
    for kind in ("greeting", "thanks", "goodbye", "insult", "about", "conversation"):
        for lang, phrases in sentences("courtesies")[kind].items():
            for phrase in phrases.split(","):
                assert recognized(phrase, lang).kind is not None, (kind, lang, phrase)
