"""The few sentences that the edge itself says to a visitor, in their language."""

from __future__ import annotations

from typing import Literal

Trouble = Literal["timeout", "unavailable", "internal"]

_MESSAGES: dict[str, dict[Trouble, str]] = {
    "en": {
        "timeout": "This is taking too long. Please ask again in a moment.",
        "unavailable": "Answers are not available right now. Please try again in a moment.",
        "internal": "Something went wrong. Please ask again.",
    },
    "de": {
        "timeout": "Das dauert zu lange. Bitte fragen Sie gleich noch einmal.",
        "unavailable": "Antworten sind gerade nicht verfügbar. Bitte versuchen Sie es gleich noch einmal.",
        "internal": "Etwas ist schiefgegangen. Bitte fragen Sie noch einmal.",
    },
    "es": {
        "timeout": "Está tardando demasiado. Vuelva a preguntar en un momento.",
        "unavailable": "Las respuestas no están disponibles ahora. Inténtelo de nuevo en un momento.",
        "internal": "Algo ha fallado. Vuelva a preguntar, por favor.",
    },
    "fr": {
        "timeout": "Cela prend trop de temps. Veuillez reposer votre question dans un instant.",
        "unavailable": "Les réponses sont momentanément indisponibles. Veuillez réessayer dans un instant.",
        "internal": "Une erreur est survenue. Veuillez reposer votre question.",
    },
    "hu": {
        "timeout": "Ez túl sokáig tart. Kérjük, tegye fel újra a kérdést kicsit később.",
        "unavailable": "A válaszadás most nem érhető el. Kérjük, próbálja újra kicsit később.",
        "internal": "Hiba történt. Kérjük, tegye fel újra a kérdést.",
    },
    "it": {
        "timeout": "Ci vuole troppo tempo. La preghiamo di riprovare tra un momento.",
        "unavailable": "Le risposte non sono disponibili al momento. La preghiamo di riprovare tra poco.",
        "internal": "Qualcosa è andato storto. La preghiamo di ripetere la domanda.",
    },
    "pl": {
        "timeout": "To trwa zbyt długo. Proszę zapytać ponownie za chwilę.",
        "unavailable": "Odpowiedzi są teraz niedostępne. Proszę spróbować ponownie za chwilę.",
        "internal": "Coś poszło nie tak. Proszę zapytać ponownie.",
    },
}


def message(trouble: Trouble, lang: str) -> str:
    """In `lang`, or in English where we do not speak it."""
    return _MESSAGES.get(lang.split("-")[0], _MESSAGES["en"])[trouble]
