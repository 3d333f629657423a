"""A question in the words that a search does best with."""

from __future__ import annotations

import pytest

from pipelines.query.extractive.wording import (
    MOST,
    is_known,
    other_names,
    spelled,
    with_spelling,
    with_whole_verb,
    without_particles,
)
from prompts.loader import table
from text.language import stopwords
from text.words import stems, words


@pytest.mark.parametrize(
    ("question", "pages", "added"),
    [
        ("Perso verloren", "", ["Personalausweis"]),
        ("Perso verloren", "Den Perso gibt es im Bürgerbüro", []),
        ("PERSO, kita und Öffis?", "", ["Personalausweis", "Kindertagesstätte", "Kindergarten", "Bus", "Nahverkehr"]),
        ("Personal", "", []),
        ("Geldbeutel weg", "", ["Fundbüro", "Fundsachen"]),
        ("Geldbeutel weg", "Geldbeutel aus Leder", []),
    ],
)
def test_a_short_name_that_no_page_has_is_searched_by_its_whole_name(
    question: str, pages: str, added: list[str]
) -> None:
    assert other_names(question, {"de"}, frozenset(stems(pages, "de"))) == added


def test_a_compound_is_known_by_the_whole_word() -> None:
    known = frozenset(stems("Bürger und Meister", "de"))
    assert not is_known("Bürgermeister", {"de"}, known)
    assert is_known("Bürger", {"de"}, known)
    assert is_known("občanský průkaz", {"cs"}, frozenset(stems("občanský průkaz", "cs")))


def test_a_question_gets_some_names_at_most() -> None:
    assert len(other_names(" ".join(table("other-names")), {"de"}, frozenset())) == MOST


def test_other_names_are_of_single_words_each_once_and_differ_from_them() -> None:
    said = [(word, names) for listed, names in table("other-names").items() for word in listed.split(", ")]
    assert len(dict(said)) == len(said)
    assert not frozenset().union(*stopwords().values()) & dict(said).keys()  # "die" is an article
    for word, names in said:
        assert words(word) == [word]
        assert word not in {name.casefold() for name in names.split(", ")}


@pytest.mark.parametrize(
    ("question", "langs", "pages", "right"),
    [
        ("libary card", {"en"}, "library card", {"libary": "library"}),
        ("libary offen heut?", {"de", "en-GB"}, "library", {"libary": "library"}),
        ("libary card", {"en"}, "libary card", {}),  # a page has it
        ("Wo ist die libary", {"en"}, "library", {}),  # in a language of no page
        ("où est la libary ?", {"en", "fr"}, "library", {}),  # there is no French dictionary
        ("libary card", {"en", "fr"}, "library", {}),  # may be French
        ("a libary card", {"en", "hu"}, "library", {}),  # may be Hungarian
        ("a libary card", {"en"}, "library", {"libary": "library"}),
    ],
)
def test_words_are_misspelled_in_languages_of_pages_that_have_a_dictionary(
    question: str, langs: set[str], pages: str, right: dict[str, str]
) -> None:
    assert spelled(question, langs, frozenset(stems(pages, "en")), {"libary": ["library"]}) == right


def test_misspelled_words_are_replaced_where_they_stand() -> None:
    assert with_spelling("LIBARY, libary's bib?", {"libary": "library", "bi": "no"}) == "library, library's bib?"


@pytest.mark.parametrize(
    ("question", "lang", "searched"),
    [
        ("wer is hier eigentlich bürgermeister", "de", "wer is hier bürgermeister"),
        ("Wo ist denn  eigentlich die Bib?", "de-DE", "Wo ist die Bib?"),
        ("bitte, bitte Hilfe", "de", "bitte, bitte Hilfe"),
        ("wo darf man bloß parken", "de", "wo darf man parken"),
        ("Is the pool actually open?", "en", "Is the pool open?"),
        ("Is the pool  open?", "en", "Is the pool  open?"),
        ("wer is hier eigentlich bürgermeister", "en", "wer is hier eigentlich bürgermeister"),
        ("¿y entonces?", "xx", "¿y entonces?"),
    ],
)
def test_words_that_only_colour_a_question_are_not_searched(question: str, lang: str, searched: str) -> None:
    assert without_particles(question, lang) == searched


def test_particles_are_words() -> None:
    for lang, particles in table("particles").items():
        assert len(words(particles)) == len(particles.split()), lang


@pytest.mark.parametrize(
    ("question", "searched"),
    [
        ("Wann hat das Rathaus auf?", "Wann hat das Rathaus geöffnet?"),
        ("wann macht das bad zu", "wann macht das bad geöffnet"),
        ("Worauf passt ihr auf?", "Worauf passt ihr auf?"),
        ("ich ziehe um was muss ich machen", "ich ziehe umziehen was muss ich machen"),
        ("Wir ziehen im Mai um", "Wir ziehen im Mai umziehen"),
        ("Wo melde ich mich an?", "Wo melde ich mich anmelden?"),
        ("Ist auf dem Markt etwas los?", "Ist auf dem Markt etwas los?"),
        ("auf", "auf"),
        ("", ""),
    ],
)
def test_a_separable_verb_is_searched_as_pages_write_it(question: str, searched: str) -> None:
    assert with_whole_verb(question) == searched
