"""Which questions are alike by the bundled model: what asks the same is found, what is only near is not.

The pairs are those by which the threshold of pipelines.query.retrieve.alike was chosen, and others of days and groups.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest

from adapters.embedders.lite import LiteEmbedder
from pipelines.query.retrieve.alike import LEAST, AskedQuestion, alike
from pipelines.query.retrieve.corrected import centred

# Language, a correction's question, questions that ask the same, and such as ask something else.
PAIRS = (
    (
        "en",
        "What does a library card cost?",
        (
            "How much is a library card?",
            "price of a library card",
            "library card fee?",
            "how much do I pay for a card at the library",
            "is the library card free?",
            "cost library card",
        ),
        (
            "What does a parking card cost?",
            "Where do I get a library card?",
            "When is the library open?",
            "What does it cost to lose a library book?",
            "Do I need an ID for a library card?",
            "Does the library have a cafe?",
        ),
    ),
    (
        "en",
        "When is the swimming pool open?",
        (
            "pool opening hours",
            "what time does the pool open",
            "is the swimming pool open on sunday?",
            "opening times of the swimming pool",
            "until when can I swim at the pool",
        ),
        (
            "When is the library open?",
            "when does the pool close",
            "How much is the swimming pool?",
            "Where is the swimming pool?",
            "is there parking at the pool?",
            "when is the sauna open?",
            "How deep is the pool?",
        ),
    ),
    (
        "en",
        "Do you have a cinema?",
        (
            "is there a cinema in town?",
            "where is the cinema",
            "cinema?",
            "Which movies does the cinema show?",
        ),
        (
            "Do you have a museum?",
            "do you have a swimming pool?",
            "Do you have parking?",
            "is there a theatre",
        ),
    ),
    (
        "en",
        "How do I register my dog?",
        (
            "I got a new dog, where do I register it",
            "dog registration",
            "register a dog",
            "where can I register my dog for tax?",
        ),
        (
            "How do I register my car?",
            "How do I register a residence?",
            "What does the dog tax cost?",
            "Where can my dog swim?",
            "how do I register my child for kindergarten",
        ),
    ),
    (
        "en",
        "Who is the mayor?",
        (
            "what is the name of the mayor",
            "who's the current mayor?",
            "mayor's name",
        ),
        (
            "Where is the town hall?",
            "Who is the mayor of Paris?",
            "When does the mayor hold office hours?",
            "How much does the mayor earn?",
        ),
    ),
    (
        "en",
        "Can I cancel my order?",
        (
            "how do I cancel an order",
            "cancel order",
            "I want to cancel my order",
        ),
        (
            "Can I change my order?",
            "Where is my order?",
            "Can I cancel my subscription?",
            "how do I place an order?",
        ),
    ),
    (
        "en",
        "When does the cafe close on Fridays?",
        (
            "what time does the cafe close on friday",
            "friday closing time of the cafe",
        ),
        (
            "when does the cafe close on saturdays",
            "when does the cafe close on sunday",
            "is the cafe open on mondays?",
            "what time does the cafe open today",
            "what time does the cafe open on friday",
            "when does the cafe close",
        ),
    ),
    (
        "en",
        "How much is a monthly membership for adults?",
        (
            "price of monthly adult membership",
            "monthly membership adults cost",
        ),
        (
            "How much is a monthly membership for juniors?",
            "How much is a yearly membership for adults?",
            "How much is a family membership?",
        ),
    ),
    (
        "en",
        "When is the museum open at Christmas?",
        (
            "Christmas opening hours of the museum",
            "is the museum open at christmas",
        ),
        (
            "When is the museum open?",
            "When is the museum open at Easter?",
            "When is the museum closed?",
        ),
    ),
    (
        "de",
        "Wann hat das Rathaus freitags geöffnet?",
        (
            "Rathaus Öffnungszeiten Freitag",
            "wann hat das rathaus am freitag auf",
        ),
        (
            "Wann hat das Rathaus montags geöffnet?",
            "Wann hat das Rathaus heute geöffnet?",
            "Wann schließt das Rathaus freitags?",
            "Wann hat das Rathaus geöffnet?",
        ),
    ),
    (
        "de",
        "Was kostet ein Personalausweis?",
        (
            "Wie teuer ist ein Personalausweis?",
            "Wie viel kostet der Personalausweis",
            "Gebühr Personalausweis",
            "personalausweis kosten",
            "was muss ich für einen neuen personalausweis bezahlen",
        ),
        (
            "Was kostet ein Reisepass?",
            "Wo beantrage ich einen Personalausweis?",
            "Wie lange ist ein Personalausweis gültig?",
            "Was kostet ein Bewohnerparkausweis?",
            "Was brauche ich für den Personalausweis?",
        ),
    ),
    (
        "de",
        "Wann hat die Bibliothek geöffnet?",
        (
            "Wann hat die Bibliothek offen?",
            "Öffnungszeiten Bibliothek",
            "Bis wann hat die Bibliothek auf?",
            "wie lange ist die bibliothek heute offen",
            "Hat die Bibliothek samstags geöffnet?",
        ),
        (
            "Wann hat das Schwimmbad geöffnet?",
            "Was kostet die Bibliothek?",
            "Wo ist die Bibliothek?",
            "Wie lange kann ich Bücher in der Bibliothek ausleihen?",
            "Wann hat das Rathaus geöffnet?",
        ),
    ),
    (
        "de",
        "Wo kann ich mein Auto anmelden?",
        (
            "Wo melde ich mein Auto an?",
            "KFZ anmelden wo",
            "auto zulassen wo geht das",
            "Wo kann ich ein Auto anmelden?",
        ),
        (
            "Wo kann ich mein Auto parken?",
            "Wo kann ich mein Kind anmelden?",
            "Wo kann ich mein Auto waschen?",
            "Was kostet es, ein Auto anzumelden?",
            "Wo kann ich mein Auto abmelden?",
        ),
    ),
    (
        "de",
        "Mein Nachbar ist zu laut",
        (
            "Nachbar zu laut, was tun?",
            "laute nachbarn",
            "mein nachbar macht lärm",
            "wer hilft bei lärm vom nachbarn",
        ),
        (
            "Mein Nachbar baut einen Zaun",
            "Wie laut darf ein Rasenmäher sein?",
            "Mein Nachbar ist gestorben",
            "Mein Hund ist zu laut",
        ),
    ),
    (
        "de",
        "Darf ich im Museum fotografieren?",
        (
            "fotografieren im museum erlaubt?",
            "kann man im museum fotos machen",
            "Museum Fotos erlaubt",
        ),
        (
            "Darf ich im Schwimmbad fotografieren?",
            "Was kostet das Museum?",
            "Darf ich im Museum essen?",
            "Gibt es Führungen im Museum?",
        ),
    ),
    (
        "de",
        "Wie beantrage ich Wohngeld?",
        (
            "Wohngeld beantragen",
            "wo bekomme ich wohngeld",
            "Antrag auf Wohngeld stellen",
            "ich brauche wohngeld",
        ),
        (
            "Wie beantrage ich Kindergeld?",
            "Wie beantrage ich einen Reisepass?",
            "Wie hoch ist das Wohngeld?",
            "Wer bekommt Wohngeld?",
        ),
    ),
)


@pytest.fixture
async def model() -> AsyncIterator[LiteEmbedder]:
    made = LiteEmbedder(0)
    await made.start()
    yield made
    await made.aclose()


async def test_what_asks_the_same_is_found_and_what_is_near_is_not(model: LiteEmbedder) -> None:
    async def likenesses(lang: str, own: str, others: Iterable[str]) -> list[tuple[float, str, str]]:
        vector = centred((await model.query(own))[None], model)[0]
        found = []
        for other in others:
            cosine = float(centred((await model.query(other))[None], model)[0] @ vector)
            found.append((alike(AskedQuestion(other, lang), AskedQuestion(own, lang), cosine), own, other))
        return found

    same = [each for lang, own, others, _ in PAIRS for each in await likenesses(lang, own, others)]
    near = [each for lang, own, _, others in PAIRS for each in await likenesses(lang, own, others)]
    assert [each for each in near if each[0] >= LEAST["alike"]] == []
    assert sum(like >= LEAST["alike"] for like, *_ in same) >= 0.6 * len(same)
