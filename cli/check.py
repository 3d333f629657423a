"""`pagewire eval check`: a site's own example questions, and what its editors have put right, asked as visitors ask."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track

from cli.admin_client import Gateway
from cli.output import NOT_SO, Json, Site, err, out, print_json, table
from pipelines.evaluate.dataset import Case, corrected_cases
from pipelines.query.extractive.replies import refused
from pipelines.runtime.errors import WrongUse
from schemas.answer import Answered, Event, Failed, SourcesFound
from schemas.correction import CorrectionList
from sites.content import load_site

if TYPE_CHECKING:
    from wiring.settings import Settings

SAMPLE_SITE = "demo"
_Asked = tuple[str, str, Case | None]  # language, question, and the case of a correction


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
    site: Site,
    lang: Annotated[str | None, typer.Option(help="Only the questions in this language.")] = None,
    json: Json = False,
) -> None:
    """Ask the questions that the chat offers to begin with (`chat.examples` of the site), and those of the site's
    corrections. Exit code 1 when one of them is refused, fails, or is answered without citing a page, or a corrected
    one not as an editor has said: run it after an import. Answers are asked for as a visitor without groups gets them.

    Example: pagewire eval check town

    Example: pagewire eval check town --lang de --json
    """
    gateway = Gateway()
    corrections = gateway.read(CorrectionList, "sites", site, "corrections")
    checked = asyncio.run(ask_all(gateway, site, asked_of(gateway.settings, site, lang, corrections)))
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


async def ask_all(gateway: Gateway, site: str, questions: Sequence[_Asked]) -> list[Checked]:
    """One after the other, with a progress bar on standard error. Raises: PagewireError."""
    checked = []
    for lang, text, case in track(questions, "asking", console=err, transient=True):
        events = await _events(gateway, site, lang, text)
        checked.append(judged(lang, text, events) if case is None else judged_as(case, events))
    return checked


def asked_of(settings: Settings, site: str, lang: str | None, corrections: CorrectionList) -> list[_Asked]:
    """Raises: WrongUse: there are no questions."""
    cases = [case for case in corrected_cases(corrections).cases if lang in (None, case.lang)]
    examples = example_questions(settings, site)
    corrected: list[_Asked] = [(case.lang or "", case.question, case) for case in cases]
    offered = chosen(examples, site, lang) if examples or not corrected else []
    return [*((own, text, None) for own, text in offered), *corrected]


async def _events(gateway: Gateway, site: str, lang: str, text: str) -> list[Event]:
    """The answer's events; incomplete if it takes too long or breaks off."""
    from adapters.http_gateway import Interrupted, stream_answer

    events: list[Event] = []
    with suppress(TimeoutError, Interrupted):  # judged by what is missing
        async with asyncio.timeout(gateway.settings.question_timeout):
            events.extend([event async for event in stream_answer(gateway.url, site, gateway.key, text, lang)])
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
