"""Words that were typed without umlauts."""

from text.compounds import with_umlauts


def test_umlauts_are_written_where_only_they_make_a_word() -> None:
    for typed, meant in {
        "Wann wird Sperrmuell abgeholt?": "Wann wird Sperrmüll abgeholt?",
        "oeffnungszeiten": "öffnungszeiten",
        "Wie hoch ist die Gebuehr": "Wie hoch ist die Gebühr",
        "Öffnet das Buergeramt?": "Öffnet das Bürgeramt?",
    }.items():
        assert with_umlauts(typed, "de") == meant


def test_words_that_have_the_letters_anyway_stay() -> None:
    for typed in ("Steuer", "neue Adresse", "Quelle", "Bauer", "Wasser", "Poet", "xqueryae", "blue issue", ""):
        assert with_umlauts(typed, "de") == typed
    assert with_umlauts("Sperrmuell", "en") == "Sperrmuell"
