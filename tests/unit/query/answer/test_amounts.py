"""Amounts without a figure, and figures that are not exact: what bears them, and what does not."""

from __future__ import annotations

import pytest

from pipelines.query.answer.grounding import Grounds
from tests.asking import source

PAGE = {
    "en": "Adults pay 8 euros. Guide dogs are exempt. 48,250 people live here. Books are lent for one week. "
    "Children under 6 pay 2 euros.",
    "de": "Erwachsene zahlen 4,50 Euro. Für Kinder unter sechs Jahren ist der Eintritt frei. "
    "Termine dauern eine Viertelstunde.",
    "fr": "L’entrée coûte 96 euros. Les chiens guides sont exonérés. Le délai est de quatorze jours.",
}


@pytest.mark.parametrize(
    ("lang", "said", "kind"),
    [
        ("en", "Guide dogs cost nothing.", None),
        ("en", "Guide dogs are not exempt.", "negation"),
        ("en", "About 48,000 people live here.", None),
        ("en", "48,000 people live here.", "figure"),  # it does not say that it is rounded
        ("en", "About 84,000 people live here.", "figure"),
        ("en", "Books are lent for seven days.", None),
        ("en", "Books are lent for eight days.", "figure"),
        ("en", "Children up to 5 pay 2 euros.", None),
        ("en", "Children up to 7 pay 2 euros.", "figure"),
        ("de", "Kinder bis fünf Jahre zahlen nichts.", None),
        ("de", "Erwachsene zahlen vier Euro fünfzig.", None),
        ("de", "Erwachsene zahlen vierzehn Euro.", "figure"),
        ("de", "Ein Termin dauert 15 Minuten.", None),
        ("fr", "L’entrée coûte quatre-vingt-seize euros.", None),
        ("fr", "L’entrée coûte quatre-vingt-six euros.", "figure"),
        ("fr", "Les chiens guides ne coûtent rien.", None),
        ("fr", "Comptez deux semaines.", None),
    ],
)
def test_an_amount_is_compared_whatever_it_is_written_as(lang: str, said: str, kind: str | None) -> None:
    doubt = Grounds([source(1, PAGE[lang], lang=lang)], "", lang).doubt(said, [1])
    assert (doubt and doubt.kind) == kind


def test_what_costs_nothing_must_be_said_by_the_page() -> None:
    doubt = Grounds([source(1, "Adults pay 8 euros.")], "", "en").doubt("Admission is free of charge.", [1])
    assert doubt is not None
    assert (doubt.kind, doubt.said) == ("figure", "free of charge")
