"""The glossary: what visitors call a thing and what the site calls it; and read from what an editor has written."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.query.live import glossary as module
from pipelines.query.live.glossary import read_glossary, terms, terms_back, widened, written_glossary
from prompts.loader import PromptError

GLOSSARY = {"Bürgeramt": {"en": "citizens' office", "sv": "medborgarkontoret"}, "Kranichmünde": {}}


def test_prompts_hear_of_the_terms_they_need() -> None:
    assert terms(GLOSSARY, "en-GB", "Das Bürgeramt in Kranichmünde") == (
        "Bürgeramt: citizens' office\nKranichmünde: Kranichmünde"
    )
    assert terms(GLOSSARY, "en", "Nothing of the kind") == ""
    assert terms_back(GLOSSARY, "Where is the Citizens' Office?") == "citizens' office: Bürgeramt"
    assert terms_back(GLOSSARY, "Wo ist das Bürgeramt?") == ""


EVERYDAY = {
    "Fundbüro": {"de": ("Fundbüro", "Portmonee", "liegen lassen"), "en": ["lost property", "wallet"]},
    "Kranichmünde": {"de": "", "en": ()},
}


@pytest.mark.parametrize(
    ("lang", "asked", "searched"),
    [
        ("de", "Portmonees liegen lassen?", "Portmonees liegen lassen? Fundbüro"),
        ("de-AT", "Wo ist das Fundbüro?", "Wo ist das Fundbüro?"),
        ("en", "lost my wallet", "lost my wallet Fundbüro lost property"),
        ("en", "Where is the Fundbüro?", "Where is the Fundbüro? lost property"),
        ("en", "How do I get to Kranichmünde?", "How do I get to Kranichmünde?"),
        ("en", "When is the pool open?", "When is the pool open?"),
    ],
)
def test_what_visitors_call_a_thing_is_searched_by_what_the_site_calls_it(lang: str, asked: str, searched: str) -> None:
    assert widened(EVERYDAY, lang, asked) == searched


def test_of_several_names_the_first_is_said() -> None:
    assert terms(EVERYDAY, "en", "Das Fundbüro") == "Fundbüro: lost property"
    assert terms_back(EVERYDAY, "my wallet") == "wallet: Fundbüro"


def test_what_an_editor_writes_is_read_as_pagewire_yaml_has_it() -> None:
    written = """
        Fundbüro: {en: [ lost property , wallet, wallet], de: "Fundstelle"}
        Bad:
        "2024": {}
    """
    assert read_glossary(written) == {
        "Fundbüro": {"en": ("lost property", "wallet"), "de": ("Fundstelle",)},
        "Bad": {},
        "2024": {},
    }
    assert read_glossary("{}") == {}
    assert written_glossary(EVERYDAY) == (
        "Fundbüro:\n  de: [Fundbüro, Portmonee, liegen lassen]\n  en: [lost property, wallet]\nKranichmünde: {}"
    )
    assert written_glossary({}) == ""


PRINTABLE = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
WORDS = st.text(PRINTABLE, min_size=1, max_size=20).map(str.strip)
NAMES = st.lists(WORDS.map("n{}".format), min_size=1, max_size=20, unique=True)
TERMS = st.lists(WORDS.map("T{}".format), max_size=5, unique_by=str.casefold)


@given(TERMS, st.dictionaries(st.sampled_from(["de", "en", "no"]), NAMES))
def test_what_is_written_is_read_again(found: list[str], names: dict[str, list[str]]) -> None:
    made = dict.fromkeys(found, names)
    read = {term: {lang: tuple(those) for lang, those in names.items()} for term in found}
    assert read_glossary(written_glossary(made) or "{}") == read


CASED = st.text(alphabet="iIıİsſSkKKßẞςσΣaÄä x", max_size=12)


@example("\u0130stanbul", "Wo ist istanbul?")
@example("Mas", "Eine Maß")
@example("Masse", "MAßE und Gewichte")
@example("S", "\u00df")
@given(CASED.filter(str.strip), CASED)
def test_capitals_make_no_difference_in_any_script(name: str, text: str) -> None:
    """Letter by letter, as patterns have it; and ß is ss, but not half of it."""
    letters = [re.sub("[ßẞ]", "ss", letter) for letter in text]
    wanted = re.compile(re.escape(re.sub("[ßẞ]", "ss", name)), re.IGNORECASE)
    begins = [at for at in range(len(text)) if not re.match(r"\w", text[at - 1 : at])]
    found = any(wanted.fullmatch("".join(letters[at:end])) for at in begins for end in range(at, len(text) + 1))
    assert (terms({name: {}}, "en", text) != "") == found


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Fundbüro", "must be terms"),
        ("- Fundbüro", "must be terms"),
        ("Fundbüro: wallet", "Fundbüro: must be names by language"),
        ("Fundbüro: {en: []}", "Fundbüro.en: 0 names"),
        ("Fundbüro: {en: ' '}", "Fundbüro.en: is empty"),
        ("' ': {en: wallet}", "term: is empty"),
        ("Fundbüro: {en: 12}", "Fundbüro.en: 12 is not read as words: put it in quotes"),
        ("2024: {}", "term: 2024 is not read as words: put it in quotes"),
        ("Bad: {no: bad}", "Bad: False is no language: put it in quotes"),
        ("Bad: {English: bath}", "Bad: 'English' is no language, such as"),
        ('Bad: {en: "a\\nb"}', "must be one line"),
        (f"Bad: {{en: {'x' * 101}}}", "100 characters at most"),
        (f"Bad: {{en: [{', '.join(f'x{n}' for n in range(21))}]}}", "21 names, must be 1 to 20"),
        ("Bad: {}\nBad: {}", "stands twice"),
        ("Bad: {}\nBAD: {}", "'Bad' and 'BAD' are one term"),
        ("Bad: &a {}\nPool: *a", "anchors, aliases and tags"),
        ("Bad: {}\n---\nPool: {}", "one YAML document"),
        ("Bad: {", "cannot be read"),
        ("Hallenbad: {de: schwimmbad}\nSchwimmbad: {de: [Bad, Hallenbad]}", "circle: Hallenbad ← Schwimmbad ←"),
        ("A1: {en: B1}\nB1: {de: C1}\nC1: {en: A1}", "name each other in a circle"),
    ],
)
def test_a_bad_glossary_is_refused_with_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(PromptError) as refused:
        read_glossary(text)
    assert complaint in str(refused.value)


def test_a_term_may_be_the_name_of_another_and_its_own() -> None:
    assert read_glossary("Lido: {en: [lido, pool], de: Hallenbad}\nHallenbad: {en: indoor pool}").keys() == {
        "Lido",
        "Hallenbad",
    }


def test_too_many_terms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TERMS", 1)
    with pytest.raises(PromptError, match="2 terms, more than 1"):
        read_glossary("Bad: {}\nPool: {}")
