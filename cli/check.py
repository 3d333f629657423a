"""`pagewire check`: a site's own example questions, and what its editors have put right, asked as visitors ask."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track

from cli.output import NOT_SO, err, explained, out, print_json, table
from cli.wired import connected, logged
from pipelines.conversations.ask import Asker
from pipelines.evaluate.corrected_cases import corrected_cases
from pipelines.evaluate.dataset import Case
from pipelines.query.extractive.replies import refused
from pipelines.runtime.errors import WrongUse
from schemas.answer import Answered, Event, Failed, SourcesFound
from schemas.query import Question
from sites.content import load_site

if TYPE_CHECKING:
    from wiring.settings import Settings

SAMPLE_SITE = "demo"


@dataclass(frozen=True)
class Checked:
    """What came of one question. `problem` is empty where its answer cites a page."""

    lang: str
    question: str
    problem: str
    page: str = ""  # title of the first page that is cited
    url: str = ""
    answer: str = ""


def check(
    site: Annotated[str, typer.Argument(help="Site, as in pagewire.yaml.")],
    lang: Annotated[str | None, typer.Option(help="Only the questions in this language.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask the questions that the chat offers to begin with (`chat.examples` of the site), and those of the site's
    corrections. Exit code 1 when one of them is refused, fails, or is answered without citing a page, or a corrected
    one not as an editor has said: run it after an import. Answers are asked for as a visitor without groups gets them.

    Example: pagewire check town

    Example: pagewire check town --lang de --json
    """
    with explained():
        settings = logged()
        checked = asyncio.run(ask_all(settings, site, lang))
    failed = [each for each in checked if each.problem]
    if json:
        print_json(
            {"site": site, "asked": len(checked), "failed": len(failed), "questions": [asdict(one) for one in checked]}
        )
    else:
        lines = [(each.lang, each.question, each.problem or "fine", each.page) for each in checked]
        out.print(table(("lang", "question", "", "page"), lines))
        out.print(f"{len(checked) - len(failed)} of {len(checked)} are answered as they should be")
    if failed:
        raise typer.Exit(NOT_SO)


def example_questions(settings: Settings, site: str) -> Mapping[str, Sequence[str]]:
    """By language; of the sample site its own, unless the settings have others. Raises: UnknownSite."""
    configured = settings.site(site).chat.examples
    return load_site().example_questions if not configured and site == SAMPLE_SITE else configured


def chosen(questions: Mapping[str, Sequence[str]], site: str, lang: str | None) -> list[tuple[str, str]]:
    """Language and question of those to ask. Raises: WrongUse: there are none."""
    found = [(each, text) for each, texts in questions.items() for text in texts if lang in (None, each)]
    if not found:
        there = f"; there are some in {', '.join(questions)}" if questions else ""
        raise WrongUse(f"sites.{site}.chat.examples: no questions{f' in {lang}' if lang else ''} to ask{there}")
    return found


async def ask_all(settings: Settings, site: str, lang: str | None) -> list[Checked]:
    """One after the other, with a progress bar on standard error. Raises: PagewireError."""
    async with connected(settings) as clients:
        found = corrected_cases(await (await clients.correction_changes()).list(site, ()))
        corrected = [case for case in found.cases if lang in (None, case.lang)]
        examples = example_questions(settings, site)
        questions: list[tuple[str, str, Case | None]] = [(case.lang or "", case.question, case) for case in corrected]
        if examples or not corrected:
            questions = [*((own, text, None) for own, text in chosen(examples, site, lang)), *questions]
        asker = await clients.asker()
        checked = []
        for own, text, case in track(questions, "asking", console=err, transient=True):
            events = await _events(asker, settings, site, own, text)
            checked.append(judged(own, text, events) if case is None else judged_as(case, events))
        return checked


async def _events(asker: Asker, settings: Settings, site: str, lang: str, text: str) -> list[Event]:
    """What a visitor would be told; not to its end where it takes too long."""
    at = datetime.now(UTC)
    asked = Question(
        request_id=token_urlsafe(16),
        conversation_id=token_urlsafe(16),
        site=site,
        lang=lang,
        question=text,
        asked_at=at,
        deadline=at + timedelta(seconds=settings.question_timeout),
    )
    events: list[Event] = []
    try:
        async with asyncio.timeout(settings.question_timeout):
            events.extend([followed.event.event async for followed in asker.ask(asked)])
    except TimeoutError:
        pass  # judged by what is missing
    return events


def judged_as(case: Case, events: Sequence[Event]) -> Checked:
    """As `judged`, of a question that an editor has corrected: fine where its answer is as the editor has said."""
    checked = judged(case.lang or "", case.question, events)
    answer = next((each for each in events if isinstance(each, Answered)), None)
    if answer is None:
        return checked
    cited = {source.page_id for source in answer.sources if source.cited}
    if case.expect == "refuse":
        return replace(checked, problem="answered, but an editor refuses it" if cited else "")
    if not cited.isdisjoint(case.pages):
        return checked
    return replace(checked, problem=f"not from the page of its correction, {', '.join(case.pages)}")


def judged(lang: str, question: str, events: Sequence[Event]) -> Checked:
    """Fine where a page is cited; else why not."""
    failed = next((each for each in events if isinstance(each, Failed)), None)
    answer = next((each for each in events if isinstance(each, Answered)), None)
    if failed is not None:
        return Checked(lang, question, f"failed: {failed.code}")
    if answer is None:
        return Checked(lang, question, "no answer in time")
    cited = next((source for source in answer.sources if source.cited), None)
    if cited is not None:
        return Checked(lang, question, "", cited.title, cited.url, answer.text)
    grades = [each.grade for each in events if isinstance(each, SourcesFound)]
    problem = "refused" if grades and refused(grades[-1]) else "no page cited"
    return Checked(lang, question, problem, answer=answer.text)
