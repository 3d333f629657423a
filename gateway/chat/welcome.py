"""What a chat shows before the first question."""

from __future__ import annotations

from fastapi import APIRouter

from gateway.edge.bounds import bounded
from gateway.edge.edge import TheEdge
from schemas.base import language_tag
from schemas.http import Welcome

router = APIRouter(prefix="/v1/sites/{site}", tags=["chat"])


@router.get("/welcome")
@bounded("memory", visitors=True)
async def welcome(site: str, edge: TheEdge, lang: str = "") -> Welcome:
    """The site's name, questions to begin with, and who writes the answers. Public, as the chat is."""
    settings = edge.settings.site(site)
    tags = (tag := language_tag(lang), tag.partition("-")[0])
    examples = settings.chat.examples
    of = next((each for each in tags if each in examples), None)
    spoken = settings.spoken(lang)
    suggested: tuple[str, ...] = ()
    if spoken and not of and settings.chat.enabled and not edge.ports.chat.off(site):
        suggested = edge.ports.suggestions.of(site, spoken)  # those that are known: it waits for none
    return Welcome(
        title=settings.title or site,
        examples=examples[of] if of else suggested,
        model=edge.settings.llm_model is not None,
        handover=settings.hands_over,
        frequent=settings.chat.frequent_questions,
    )
