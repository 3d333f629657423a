"""The chat's screen: what it says first, the form for a message to a person, and that nothing widens the panel."""

from __future__ import annotations

import os
from typing import Any

import pytest

from schemas.answer import Answered, Certainty, Citation, Done, Doubted, QuestionRephrased, SourcesFound, Token
from tests.browser.conftest import Host, overflow
from tests.browser.scripts import source, written
from tests.chromium import Browser
from tests.fakes.ports import FakePorts
from wiring.settings import SiteSettings

pytestmark = pytest.mark.browser

SECRET = "whsec_" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"
DESK = SiteSettings.model_validate(
    {
        "title": "Kranichmünde",
        "handover": {"webhook": {"url": "https://desk.example/in", "secret": SECRET}},
        "chat": {"examples": {"en": ["What does a card cost?", "When is it open?", "Where is it?", "A fourth?"]}},
    }
)
LONG = "Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenauszahlungsstelle"
WIDE = f"| {' | '.join(f'Column {n}' for n in range(9))} |\n|{' --- |' * 9}\n| {' | '.join([LONG] * 9)} |"
KINDS = {
    "table": WIDE,
    "ordered": "\n".join(f"{n}. {LONG} {LONG}" for n in range(98, 103)),
    "nested": f"- {LONG}\n  - {LONG}\n    1. {LONG}",
    "code": f"```\n{LONG * 4}\n```\n\n`{LONG * 3}`",
    "address": f"https://town.example/{LONG * 3}",
    "quotation": f"> {WIDE}\n> > {LONG * 2}",
    "definition": f"{LONG}\n: {WIDE}",
    "formula": "A" * 400,
}


def said(text: str, *, mode: str = "semantic", handover: bool = True) -> Any:
    return lambda question: [
        QuestionRephrased(question=question.question, mode=mode),  # type: ignore[arg-type]
        SourcesFound(grade=0, sources=()),
        Token(text=text),
        Answered(text=text, citations=(), sources=(), extractive=True, generated_by="site", handover=handover),
        Done(),
    ]


async def picture(page: Any, name: str) -> None:
    if folder := os.environ.get("PICTURES"):
        await page.screenshot(path=f"{folder}/{name}.png")


async def asked(page: Any, question: str = "I want to talk to a person") -> None:
    await page.get_by_role("textbox", name="Your question").fill(question)
    await page.keyboard.press("Enter")


@pytest.mark.parametrize("width", [320, 1000])
async def test_opening_a_source_or_any_kind_of_content_never_widens_the_panel(
    browser: Browser, host: Host, fakes: FakePorts, width: int
) -> None:
    async with host.serving() as url:
        page = await browser.open(url, width=width, height=700)
        await page.get_by_role("button", name="Ask a question").click()
        for kind, text in KINDS.items():
            page_of = source(1, "fees", f"Fees {LONG}", text=text)
            fakes.answers.script = written(text, [page_of], [Citation(n=1, start=0, end=len(text), quote=LONG)])
            await asked(page, f"{kind} {LONG}")
            await page.locator(".turn:last-child .actions button").first.wait_for()
            await page.locator(".turn:last-child .chip").click()
            await page.locator(".turn:last-child .passage").wait_for()
            assert await overflow(page) == [0, 0, 0], kind
            if kind == "table":
                await picture(page, f"table-{width}")


async def test_the_first_view_says_whose_it_is_and_that_answers_are_automatic(browser: Browser, host: Host) -> None:
    async with host.serving(site=DESK, heading="") as url:
        page = await browser.open(url)
        await page.get_by_role("button", name="Ask a question").click()
        await page.get_by_role("heading", name="Ask Kranichmünde").wait_for()
        assert (await page.locator(".notice").inner_text()).startswith("Answers are automatic.")
        assert await page.locator(".welcome button").all_inner_texts() == [
            "What does a card cost?",
            "When is it open?",
            "Where is it?",
        ]
        await picture(page, "first")
        # The round button closes it again.
        assert await page.get_by_role("button", name="Close chat").count() == 1
        await page.locator(".launcher").click()
        await page.get_by_role("dialog").wait_for(state="hidden")


@pytest.mark.parametrize(("width", "theme"), [(1000, "dark"), (390, "light")])
async def test_a_visitor_leaves_a_message_for_a_person(
    browser: Browser, host: Host, fakes: FakePorts, width: int, theme: str
) -> None:
    fakes.answers.script = said("I found nothing about this.")
    async with host.serving(site=DESK, theme=theme) as url:
        page = await browser.open(url, width=width, height=760)
        await page.get_by_role("button", name="Ask a question").click()
        await asked(page, "Is there a cinema?")
        await page.get_by_role("button", name="Leave a message for a person").click()
        form = page.get_by_role("form", name="Leave a message for a person")
        assert await form.get_by_label("Your message").input_value() == "Is there a cinema?"
        await form.get_by_label("Where to answer you").fill("eva")
        await form.get_by_role("button", name="Send message").click()
        assert fakes.handovers.kept == {}  # the field says what is wrong
        await form.get_by_label("Where to answer you").fill("eva@town.example")
        await form.get_by_label("Send this conversation along").check()
        await picture(page, f"form-{width}")
        assert await overflow(page) == [0, 0, 0]
        await form.get_by_role("button", name="Send message").click()
        await page.locator(".handover", has_text="Its reference").wait_for()
        [kept] = fakes.handovers.kept.values()
        assert kept.handover.reference in await page.locator(".handover").inner_text()
        assert [turn.question for turn in kept.handover.conversation] == ["Is there a cinema?"]
        await picture(page, f"answered-{width}")
        # Who asks for a person gets the form at once, and nothing to copy or to rate.
        fakes.answers.script = said("You can leave a message.", mode="courtesy")
        await asked(page)
        await page.locator(".turn:last-child form").wait_for()
        assert await page.locator(".turn:last-child .actions button").count() == 0
        # Without the site's consent there is no form.
        fakes.answers.script = said("I found nothing.", handover=False)
        await asked(page, "?")
        await page.locator(".turn:last-child .actions button").first.wait_for()
        assert await page.locator(".turn:last-child .handover").count() == 0


async def test_from_right_to_left(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = said("Kranichmünde مدينة صغيرة وفيها مكتبة.\n\nOpen daily.", mode="courtesy")
    async with host.serving(site=DESK, lang="ar", dir="rtl") as url:
        page = await browser.open(url)
        await page.locator(".launcher").click()
        await page.locator("textarea#question").fill("؟")
        await page.keyboard.press("Enter")
        await page.locator(".handover form").wait_for()
        blocks = page.locator(".text p")
        assert [await each.get_attribute("dir") for each in await blocks.all()] == ["rtl", "ltr"]
        assert await overflow(page) == [0, 0, 0]
        await picture(page, "arabic")


FEES = "> | Card | Price |\n> | --- | --- |\n> | **Adult** | **18 euros** |"
NOTE = " *(not found on the page in this form)*"
DOUBTED = f"A card costs 18 euros. It is free for dogs.{NOTE} Bring your *identity* card."


@pytest.mark.parametrize(("width", "theme", "lang"), [(1000, "light", "en"), (390, "dark", "de")])
async def test_a_place_names_two_other_pages_and_a_sentence_in_doubt_is_marked(
    browser: Browser, host: Host, fakes: FakePorts, width: int, theme: str, lang: str
) -> None:
    pages = [source(n, f"page-{n}", f"Page {n}", cited=n == 1, text=f"Passage {n}") for n in range(1, 6)]
    pages[0] = pages[0].model_copy(update={"heading": "Keywords: card\nDescription: What a card costs"})
    start = DOUBTED.index("It is")
    doubted = Doubted(start=start, end=DOUBTED.index(NOTE), kind="belongs", said="dogs")
    answers: list[tuple[str, Certainty | None, tuple[Doubted, ...]]] = [
        (FEES, "place", ()),
        (DOUBTED, None, (doubted,)),
    ]
    async with host.serving(theme=theme, lang=lang) as url:
        page = await browser.open(url, width=width, height=760)
        await page.locator(".launcher").click()
        for text, certainty, in_doubt in answers:
            citation = Citation(n=1, start=0, end=len(text) if certainty else 22, quote="Passage 1")
            answer = Answered(
                text=text, citations=(citation,), sources=tuple(pages), extractive=certainty is not None,
                certainty=certainty, generated_by="quotation" if certainty else "model", doubted=in_doubt,
            )  # fmt: skip
            fakes.answers.script = lambda question, answer=answer: [
                QuestionRephrased(question=question.question, mode="semantic"),
                SourcesFound(grade=0, sources=answer.sources),
                Token(text=answer.text),
                answer,
                Done(),
            ]
            await page.locator("textarea").fill("What does a card cost?")
            await page.keyboard.press("Enter")
            turn = page.locator(".turn:last-child")
            await turn.locator(".actions button").first.wait_for()
            await turn.locator(".chip").click()
            assert await turn.locator(".passage .where p").inner_text() == "What a card costs"
            others = ["Page 2", "Page 3"] if certainty else []
            assert await turn.locator(".related a").all_inner_texts() == others
            assert await turn.locator(".doubt").all_inner_texts() == [
                one.said and "It is free for dogs." for one in in_doubt
            ]
            await picture(page, f"{'place' if certainty else 'doubt'}-{width}")
        note = page.locator(".doubt + em")
        assert await note.count() == 1
        assert await note.evaluate("(note) => getComputedStyle(note).fontStyle") == "normal"
        # Of a kept answer, too.
        await page.reload()
        await page.locator(".doubt + em").wait_for()
        assert await overflow(page) == [0, 0, 0]
