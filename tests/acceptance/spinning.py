"""`pagewire` with stages that keep the event loop to themselves: `python -m tests.acceptance.spinning worker all`.

No question is known that does this; the defect is put in here.
"""

from __future__ import annotations

import re
from typing import Any

from pipelines.query.rephrase import handler
from pipelines.query.retrieve import handler as retrieve_handler

SPINS = "Which question makes rephrase spin?", "Which question makes retrieve spin?"

recognized, retrieve = handler.recognized, retrieve_handler.retrieve


def spin() -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")  # for years


def heard_or_spin(said: str, lang: str, *, conversing: bool = False) -> Any:
    if said == SPINS[0]:
        spin()
    return recognized(said, lang, conversing=conversing)


async def retrieve_or_spin(asked: Any, *given: Any, **named: Any) -> Any:
    if asked.question == SPINS[1]:
        spin()
    return await retrieve(asked, *given, **named)


if __name__ == "__main__":
    handler.recognized = heard_or_spin
    retrieve_handler.retrieve = retrieve_or_spin
    from cli.main import main

    main()
