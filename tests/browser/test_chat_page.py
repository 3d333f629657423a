"""The chat as visitors meet it: by mouse and by keyboard, wide and narrow, over networks that break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from gateway.edge.problems import message
from pipelines.conversations.ask import Followed
from pipelines.query.extractive.card import card
from pipelines.runtime.errors import Retryable
from schemas.answer import Answered, Citation, Done, Failed, QuestionRephrased, Restart, SourcesFound, Token
from schemas.query import Evidence, Question, Source
from tests.browser.conftest import chips, overflow
from tests.browser.scripts import source
from tests.browser.test_accessibility import violations
from tests.chromium import Browser
from tests.fakes.ports import FakePorts

pytestmark = pytest.mark.browser

# An emoji and a combining flag before the citations: positions count characters, JavaScript counts UTF-16 units.
TEXT = "🏛 The card costs **12 euros** a year. 🇭🇺 It is free\nfor everybody under 18.\n\n- bring your identity card"
LONG_QUOTE = (
    "Children and young people under 18 pay nothing at all for it, and neither do pupils, trainees - or students."
)


SOURCES = (source(1, "library", "Town library"), source(2, "office", "Office"), source(3, "museum", "Museum", False))


def ends_after(words: str) -> int:
    return TEXT.index(words) + len(words)


CITATIONS = (
    Citation(n=1, start=2, end=ends_after("a year."), quote="The **card** costs 12 euros."),
    Citation(n=1, start=0, end=ends_after("under 18."), quote=LONG_QUOTE),
    Citation(n=2, start=0, end=len(TEXT)),
)


def library(_: Question) -> list[Any]:
    return [
        QuestionRephrased(question="What does a library card cost?", mode="semantic"),
        SourcesFound(grade=0, sources=SOURCES),
        *(Token(text=TEXT[at : at + 4]) for at in range(0, len(TEXT), 4)),
        *CITATIONS,
        Answered(text=TEXT, citations=CITATIONS, sources=SOURCES, extractive=True, generated_by="quotation"),
        Done(),
    ]


def answering(text: str, sources: tuple[Source, ...] = ()) -> Any:
    return lambda _: [Token(text=text), Answered(text=text, citations=(), sources=sources, extractive=False), Done()]


async def test_a_question_by_keyboard_alone(browser: Browser, url: str, fakes: FakePorts) -> None:
    fakes.answers.script = library
    page = await browser.open(url)
    field = page.get_by_role("textbox", name="Your question")
    for _ in range(6):  # header links come first
        await page.keyboard.press("Tab")
        if await field.evaluate("field => field.getRootNode().activeElement === field"):
            break
    await page.keyboard.type("How much is")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("the card?")
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Sources").wait_for()
    assert fakes.answers.asked[0].question == "How much is\nthe card?"
    # The numbers stand where the citations end, in spite of Markdown and of characters outside the BMP.
    text = await page.locator(".text").evaluate("node => node.textContent")
    assert text == ("🏛 The card costs 12 euros a year.1 🇭🇺 It is freefor everybody under 18.1bring your identity card2")
    # Only sources that the answer uses are shown.
    assert await chips(page) == ["1 Town library", "2 Office"]
    assert await page.get_by_text("Quoted word for word").is_visible()
    # Screen readers get the answer once, whole.
    await page.get_by_role("status").filter(has_text="12 euros").wait_for()
    # On by keyboard: the first number is a link that opens the page at the sentence.
    assert await field.evaluate("field => field.getRootNode().activeElement === field")
    for _ in range(7):  # past the five buttons below the answer, and the source whose passage is not known
        await page.keyboard.press("Shift+Tab")
    focused = "document.querySelector('pagewire-chat').shadowRoot.activeElement"
    assert await page.evaluate(f"{focused}.textContent") == "1Town library"
    await page.keyboard.press("Enter")
    assert await page.evaluate(f"{focused}.ariaExpanded") == "true"
    assert await page.locator(".passage mark").all_inner_texts() == ["The ", "card", " costs 12 euros.", LONG_QUOTE]
    hrefs = [await link.get_attribute("href") for link in await page.locator("sup a").all()]
    assert hrefs[0] == f"{url}/pages/library#:~:text=The%20card%20costs%2012%20euros."
    assert hrefs[2] == f"{url}/pages/office"
    begin, _, end = unquote(urlsplit(hrefs[1] or "").fragment.removeprefix(":~:text=")).partition(",")
    assert LONG_QUOTE.startswith(begin)
    assert LONG_QUOTE.endswith(end)
    assert "%2D" in (hrefs[1] or "")  # a bare hyphen means something else in a text fragment
    assert await page.locator("sup a").first.get_attribute("aria-label") == "Source 1: Town library"
    assert browser.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_fits_320_pixels_and_can_be_read(
    browser: Browser, url: str, fakes: FakePorts, scheme: str, tmp_path: Path
) -> None:
    wide = "| Card | Fee |\n|---|---|\n| " + "Donaudampfschifffahrtsgesellschaft" * 3 + " | 12 € |\n\n" + "x" * 10_000
    cells = "| " + " | ".join(["Benutzungsgebühr"] * 4) + " |\n"
    fakes.answers.script = answering(wide, (source(1, "a", "y" * 300, text=cells * 3),))
    page = await browser.open(f"{url}/?lang=de", width=320, height=640, scheme=scheme)
    await page.get_by_role("textbox", name="Ihre Frage").fill("Was kostet der Ausweis?")
    await page.get_by_role("button", name="Frage absenden").click()
    await page.get_by_role("heading", name="Quellen").wait_for()
    await page.locator(".chip").click()
    await page.screenshot(path=tmp_path / f"{scheme}.png")
    # With the second button in the head, beside a long title and two languages.
    assert await page.get_by_role("button", name="Neues Gespräch").is_visible()
    assert await overflow(page) == [0, 0, 0]
    for part in (".question", ".text p", ".chip .title", ".chip .number", ".sources h2", ".disclaimer", "h1"):
        assert await page.locator(part).first.evaluate(CONTRAST) >= 4.5, part
    assert browser.complaints == []


# WCAG 2.2, 1.4.3, over the nearest opaque background; a canvas turns any CSS colour into bytes.
CONTRAST = """node => {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const bytes = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
  };
  const light = (colour) => {
    const [r, g, b] = [...bytes(colour)].map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let below = node;
  while (bytes(getComputedStyle(below).backgroundColor)[3] < 255) below = below.parentElement;
  const pair = [light(getComputedStyle(node).color), light(getComputedStyle(below).backgroundColor)].sort();
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
}"""


class BreaksOff:
    """Cuts the connection of every `kind` request after some pieces, as a dying gateway does."""

    def __init__(self, method: str, pieces: int, times: int) -> None:
        self.method, self.pieces, self.times = method, pieces, times
        self.seen = asyncio.Event()  # a browser may drop what it has not read when the connection breaks
        self.seen.set()
        self.resumed: list[str] = []

    def __call__(self, app: Any) -> Any:
        async def handler(scope: Any, receive: Any, send: Any) -> None:
            path = scope.get("path", "")
            if path.endswith("/events"):
                self.resumed += [v.decode() for k, v in scope["headers"] if k == b"last-event-id"]
            if scope.get("method") != self.method or not path.endswith(("/chat", "/events")) or self.times == 0:
                await app(scope, receive, send)
                return
            self.times -= 1
            left = self.pieces

            async def sending(event: Any) -> None:
                nonlocal left
                if event["type"] == "http.response.body":
                    left -= 1
                    if left < 0:
                        await self.seen.wait()
                        raise _Cut
                await send(event)

            try:
                await app(scope, receive, sending)
            except _Cut:
                return  # uvicorn closes a connection whose response is unfinished

        return handler


class _Cut(Exception):
    pass


async def test_a_broken_connection_is_taken_up_where_it_broke(
    browser: Browser, url: str, fakes: FakePorts, wrapped: list[Any]
) -> None:
    fakes.answers.script = library
    broken = BreaksOff("POST", pieces=8, times=1)
    again = BreaksOff("GET", pieces=3, times=1)
    broken.seen.clear()
    wrapped += [broken, again]
    page = await browser.open(url)
    await page.get_by_role("textbox").fill("How much?")
    await page.keyboard.press("Enter")
    await page.locator(".text", has_text="costs **1").wait_for()
    broken.seen.set()
    await page.get_by_role("heading", name="Sources").wait_for()
    assert (await page.locator(".text p").first.inner_text()).count("card costs") == 1
    assert len(fakes.answers.asked) == 1
    request_id = fakes.answers.asked[0].request_id
    # What was still under way when the connection broke may be lost; then it is read again.
    first, second = (int(id.removeprefix(f"{request_id}:").split(".")[0]) for id in again.resumed)
    assert first == 7
    assert first <= second <= first + 3


async def test_a_connection_that_never_was_is_told_and_can_be_tried_again(
    browser: Browser, url: str, fakes: FakePorts, wrapped: list[Any]
) -> None:
    wrapped.append(BreaksOff("POST", pieces=0, times=1))
    page = await browser.open(url)
    await page.get_by_role("textbox").fill("How much?")
    await page.keyboard.press("Enter")
    await page.locator(".trouble", has_text="The connection was lost.").wait_for()
    await page.get_by_role("button", name="Try again").click()
    await page.locator(".text", has_text="The library opens at nine.").wait_for()
    assert await page.locator(".turn").count() == 1


async def test_a_connection_that_never_was_is_tried_again_by_itself_when_the_network_is_back(
    browser: Browser, url: str, fakes: FakePorts, wrapped: list[Any]
) -> None:
    wrapped.append(BreaksOff("POST", pieces=0, times=1))
    page = await browser.open(url)
    await page.get_by_role("textbox").fill("How much?")
    await page.keyboard.press("Enter")
    await page.locator(".trouble", has_text="The connection was lost.").wait_for()
    await page.get_by_role("link", name="de").focus()
    await page.evaluate("dispatchEvent(new Event('online'))")
    await page.locator(".text", has_text="The library opens at nine.").wait_for()
    assert await page.locator(".turn").count() == 1
    assert await page.evaluate("document.activeElement.lang") == "de"


async def test_a_restart_forgets_the_tokens_so_far(browser: Browser, url: str, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [
        Token(text="Half an answer that "),
        0.3,
        Restart(attempt=2),
        Token(text="A whole one."),
        600.0,
        Done(),
    ]
    page = await browser.open(url)
    await page.get_by_role("textbox").fill("How much?")
    await page.keyboard.press("Enter")
    await page.get_by_text("A whole one.", exact=True).wait_for()
    assert await page.get_by_text("Half an answer").count() == 0
    # The stop button lets go of it.
    await page.get_by_role("button", name="Stop answering").click()
    await page.locator(".note", has_text="Stopped.").wait_for()
    assert await page.get_by_role("button", name="Send question").is_visible()
    assert await page.locator(".text").inner_text() == "A whole one."


@pytest.mark.parametrize("lang", ["en", "de"])
async def test_failures_come_in_the_visitors_words(browser: Browser, url: str, fakes: FakePorts, lang: str) -> None:
    fakes.answers.script = lambda _: [Token(text="half"), Retryable("10.0.0.7:9092")]
    page = await browser.open(f"{url}/?lang={lang}")
    await page.get_by_role("textbox").fill("?")
    await page.keyboard.press("Enter")
    await page.locator(".trouble", has_text=message("unavailable", lang)).wait_for()
    fakes.answers.script = lambda _: [Failed(code="model-away", message="Das Modell schläft."), Done()]
    await page.get_by_role("button", name={"en": "Try again", "de": "Noch einmal"}[lang]).click()
    await page.locator(".trouble", has_text="Das Modell schläft.").wait_for()
    assert fakes.answers.asked[0].lang == lang


async def test_grades_without_an_answer_offer_pages(browser: Browser, url: str, fakes: FakePorts) -> None:
    several = (source(1, "a", "Page A", False), source(2, "a", "Page A", False), source(3, "b", "Page B", False))
    fakes.answers.script = answering("I did not find this.", several)
    page = await browser.open(url)
    await page.get_by_role("textbox").fill("?")
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Pages that may help").wait_for()
    assert await page.locator(".sources li").all_inner_texts() == ["Page A", "Page B"]


async def test_pages_that_the_reply_names_are_not_named_again(browser: Browser, url: str, fakes: FakePorts) -> None:
    near = (source(1, "a", "Page [A]", False), source(2, "b", "Page B", False), source(3, "c", "Page C", False))
    reply = "I found none.\n\nThese pages come closest:\n\n- [Page \\[A\\]](</pages/a>)\n- [Page B](</pages/b>)"
    fakes.answers.script = answering(reply, near)
    page = await browser.open(url)
    await page.get_by_role("textbox").fill("?")
    await page.keyboard.press("Enter")
    await page.locator(".turn .actions button").first.wait_for()
    hrefs = await page.locator(".turn a").evaluate_all("links => links.map((link) => link.href)")
    assert hrefs == [f"{url}/pages/a", f"{url}/pages/b"]
    assert await page.locator(".turn a").first.inner_text() == "Page [A]"
    assert await page.get_by_role("heading", name="Pages that may help").count() == 0


ROWS = "\n".join(f"| Day {n} | from {n}:00 am to {n}:30 pm, by appointment |" for n in range(1, 9))
HOURS = f"## Opening hours\n\nIn summer:\n\n| Day | Time |\n| --- | --- |\n{ROWS}\n\n## Access\n\nThere is a lift."


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
async def test_a_place_on_a_page_fits_on_the_screen(
    browser: Browser, url: str, fakes: FakePorts, scheme: Any, width: int
) -> None:
    page_ = source(1, "hall", "Town hall and citizens' office").model_copy(update={"text": HOURS, "cited": True})
    shared: dict[str, Any] = {"n": 1, "score": 1.0}
    row = ROWS.split("\n")[4]
    evidence = [
        Evidence(
            start=HOURS.index(row),
            text=row,
            kind="row",
            header="| Day | Time |",
            block=9,
            headings=("Hours",),
            **shared,
        ),
        Evidence(
            start=HOURS.index("There"), text="There is a lift.", kind="prose", block=90, headings=("Access",), **shared
        ),
    ]
    shown = card(evidence, [page_], "On this page: [Town hall and citizens' office](</hall>) › Hours")
    final = Answered(
        text=shown.text, citations=shown.citations, sources=(page_,), extractive=True, certainty=shown.certainty
    )
    fakes.answers.script = lambda _: [Token(text=shown.text), *shown.citations, final, Done()]
    page = await browser.open(url, width=width, height=740, scheme=scheme)
    await page.get_by_role("textbox").fill("When is the town hall open?")
    await page.keyboard.press("Enter")
    await page.locator(".turn .actions button").first.wait_for()
    assert await page.locator(".turn blockquote table strong").all_inner_texts() == [
        "Day 5",
        "from 5:00 am to 5:30 pm, by appointment",
    ]
    assert await page.locator(".turn blockquote strong").last.inner_text() == "Access"
    assert await overflow(page) == [0, 0, 0]


async def test_nothing_in_an_answer_is_obeyed(browser: Browser, url: str, fakes: FakePorts) -> None:
    hostile = (
        "<img src=x onerror=alert(1)> <script>alert(1)</script>\n"
        "[click](javascript:alert(1)) [data](data:text/html,x) [ok](https://a.example/b_(c)) ![pic](x.png)"
    )
    sources = (source(1, "a", "<b>Evil</b>", True, "javascript:alert(1)"), source(2, "b", "No URL", True, ""))
    fakes.answers.script = answering(hostile, sources)
    page = await browser.open(url)
    await page.get_by_role("textbox").fill("<img src=x onerror=alert(1)>")
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Sources").wait_for()
    assert await page.locator(".turn img, .turn script, .turn b").count() == 0
    hrefs = await page.locator(".turn a").evaluate_all("links => links.map((link) => link.href)")
    assert hrefs == ["https://a.example/b_(c)"]
    assert await chips(page) == ["1 <b>Evil</b>", "2 No URL"]
    assert browser.complaints == []


async def test_a_conversation_lasts_over_a_reload_until_a_new_one_begins(
    browser: Browser, url: str, fakes: FakePorts
) -> None:
    page = await browser.open(url)
    tokens: list[str] = []
    page.on("request", lambda r: tokens.append(r.url) if "visitor-tokens" in r.url else None)
    for reload, fresh in ((False, False), (True, False), (False, True)):
        if reload:
            await page.reload()
        if fresh:
            await page.get_by_role("button", name="New conversation").click()
        await page.get_by_role("textbox").fill("?")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Send question").wait_for()
        await page.locator(".turn:last-child .text p", has_text="at nine.").wait_for()
        assert await page.locator(".turn").count() == (2 if reload else 1)
    first, second, third = (question.conversation_id for question in fakes.answers.asked)
    assert first == second != third
    assert len(tokens) == 1
    assert all(not parse_qs(urlsplit(seen).query) for seen in tokens)


def numbered(question: Question) -> list[Any]:
    text = f"Answer to {question.question}"
    return [Token(text=text), Answered(text=text, citations=(), sources=(), extractive=False), Done()]


async def ask(page: Any, question: str) -> None:
    await page.get_by_role("textbox").fill(question)
    await page.keyboard.press("Enter")
    await page.locator(".turn:last-child .actions").wait_for()


async def test_an_answer_is_back_where_its_question_cannot_be_asked_again(
    browser: Browser, url: str, fakes: FakePorts
) -> None:
    fakes.answers.script = numbered
    page = await browser.open(url)
    await ask(page, "First?")

    async def no_broker(question: Question) -> AsyncGenerator[Followed, None]:
        raise Retryable("no broker")
        yield

    fakes.answers.ask = no_broker  # type: ignore[method-assign]
    await page.get_by_role("button", name="Answer again").click()
    await page.get_by_role("button", name="Try again").wait_for()
    assert await page.locator(".text", has_text="Answer to First?").is_visible()


async def test_asking_again_and_taking_back(browser: Browser, url: str, fakes: FakePorts) -> None:
    fakes.answers.script = numbered
    page = await browser.open(url)
    await ask(page, "First?")
    await ask(page, "Second?")
    assert await page.get_by_role("button", name="Answer again").count() == 1  # the last answer's
    fakes.answers.script = answering("Another answer.")
    await page.get_by_role("button", name="Answer again").click()
    await page.locator(".text", has_text="Another answer.").wait_for()
    assert await page.locator(".question [dir]").all_inner_texts() == ["First?", "Second?"]
    assert [turn.question for turn in fakes.answers.asked[-1].history] == ["First?"]
    await page.locator(".turn:last-child .actions").wait_for()
    await page.get_by_role("button", name="Remove this question and its answer").click()
    await page.locator(".text", has_text="Another answer.").wait_for(state="detached")
    await page.locator(".text", has_text="Answer to First?").wait_for()
    assert await page.locator(".question [dir]").all_inner_texts() == ["First?"]
    async with page.expect_response(lambda answer: urlsplit(answer.url).path.endswith("/feedback")):
        await page.get_by_role("button", name="Not helpful").click()
    await page.get_by_role("button", name="Not helpful", pressed=True).wait_for()
    [kept] = fakes.conversations.kept.values()
    assert kept.conversation.turns[0].feedback is not None
    assert kept.conversation.turns[0].feedback.rating == "down"
    assert browser.complaints == []


@pytest.mark.node
async def test_earlier_conversations_are_opened_and_deleted(browser: Browser, url: str, fakes: FakePorts) -> None:
    fakes.answers.script = library
    page = await browser.open(url)
    await ask(page, "What does the card cost?")
    await page.get_by_role("button", name="New conversation").click()
    fakes.answers.script = numbered
    await ask(page, "When is it open?")
    await page.evaluate("sessionStorage.clear()")  # as another tab, or the next day
    await page.reload()
    past = page.get_by_role("button", name="Your conversations")
    await past.click()
    await page.get_by_role("heading", name="Today").wait_for()
    assert await page.locator(".past li button:first-child").all_inner_texts() == [
        "When is it open?",
        "What does the card cost?",
    ]
    assert not await page.get_by_role("textbox").is_hidden()
    await page.get_by_role("button", name="What does the card cost?", exact=True).click()
    await page.get_by_role("heading", name="Sources").wait_for()
    assert await chips(page) == ["1 Town library", "2 Office"]
    # Of a kept answer the passage is not known; the cited sentences are.
    await page.locator(".chip", has_text="Town library").click()
    assert await page.locator(".passage blockquote").inner_text() == f"The card costs 12 euros.\n\n{LONG_QUOTE}"
    await ask(page, "And for children?")
    assert [turn.question for turn in fakes.answers.asked[-1].history] == ["What does the card cost?"]
    await past.click()
    await page.get_by_role("button", name="Delete “What does the card cost?”").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await page.locator(".past li").nth(1).wait_for(state="detached")
    assert await page.locator(".past li button:first-child").all_inner_texts() == ["When is it open?"]
    assert len(fakes.conversations.kept) == 1
    # All of them, after a second thought.
    everything = page.get_by_role("button", name="Delete all my conversations")
    await everything.click()
    await page.get_by_role("group", name="Delete all your conversations for good?").wait_for()
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    assert len(fakes.conversations.kept) == 1
    await everything.click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await page.locator(".past", has_text="No conversations yet.").wait_for()
    assert (fakes.conversations.kept, await everything.count()) == ({}, 0)
    assert browser.complaints == []


async def test_a_reload_mid_answer_reads_on(browser: Browser, url: str, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Token(text="Half an answer"), 600.0, Done()]
    page = await browser.open(url)
    await page.get_by_role("textbox").fill("How much?")
    await page.keyboard.press("Enter")
    await page.locator(".text", has_text="Half an answer").wait_for()
    await page.reload()
    await page.locator(".text", has_text="Half an answer").wait_for()
    assert await page.locator(".question [dir]").all_inner_texts() == ["How much?"]
    await page.get_by_role("button", name="Stop answering").click()
    await page.locator(".note", has_text="Stopped.").wait_for()
    assert len(fakes.answers.asked) == 1
    assert browser.complaints == []


MARKDOWN = {
    "plain": "<p>plain</p>",
    "a\nb\n\nc": "<p>a<br>b</p><p>c</p>",
    # What stands below an item is part of it, and blank lines end no list.
    "- a\n  b\n- c": "<ul><li>a<br>b</li><li>c</li></ul>",
    "> 1. a\n>\n>    more\n>\n> 2. b\n>\n> c": (
        '<blockquote><ol start="1"><li>a<p>more</p></li><li>b</li></ol><p>c</p></blockquote>'
    ),
    "a\n---\nb\\\nc &rarr;\n\n***": "<p>a</p><hr><p>b<br>c →</p><hr>",
    "**b** *i* __b__ _i_ `c*d*`": (
        '<p><strong>b</strong> <em>i</em> <strong>b</strong> <em>i</em> <code dir="ltr">c*d*</code></p>'
    ),
    "2*3*4 snake_case_name * a *": "<p>2*3*4 snake_case_name * a *</p>",
    "**b *i* b**": "<p><strong>b <em>i</em> b</strong></p>",
    "**b\nb** c": "<p><strong>b<br>b</strong> c</p>",
    "> **b\n> b**": "<blockquote><p>**b<br>b**</p></blockquote>",
    "**not yet closed": "<p>**not yet closed</p>",
    r"\*a\* 1\. \\": "<p>*a* 1. \\</p>",
    "## Fees\ntext": '<p class="heading">Fees</p><p>text</p>',
    "- a\n- b\n\n1. c\n2. d": '<ul><li>a</li><li>b</li></ul><ol start="1"><li>c</li><li>d</li></ol>',
    "3. c": '<ol start="3"><li>c</li></ol>',
    "- a\n  - b\n    1. c\n  - d\n- e": (
        '<ul><li>a<ul><li>b<ol start="1"><li>c</li></ol></li><li>d</li></ul></li><li>e</li></ul>'
    ),
    "- a\n1. b": '<ul><li>a</li></ul><ol start="1"><li>b</li></ol>',
    "1998. Then came the pool.": "<p>1998. Then came the pool.</p>",
    "> a\n> b": "<blockquote><p>a<br>b</p></blockquote>",
    "```py\n<b>*x*</b>\n```\nafter": '<pre dir="ltr"><code>&lt;b&gt;*x*&lt;/b&gt;</code></pre><p>after</p>',
    "```\nx": '<pre dir="ltr"><code>x</code></pre>',
    "| a": "<p>| a</p>",
    "| a | b |": (
        '<div class="table" tabindex="0" data-at="0"><table><tbody><tr><td>a</td><td>b</td></tr></tbody></table></div>'
    ),
    "<b>x</b> &amp;": "<p>&lt;b&gt;x&lt;/b&gt; &amp;</p>",
    "- [Fees \\[2026\\]](</fees?a=(b)>)": (
        '<ul><li><a href="{url}/fees?a=(b)" target="_blank" rel="noopener noreferrer">Fees [2026]</a></li></ul>'
    ),
    "[a](<javascript:alert(1)>) <javascript:b>": "<p><span>a</span> &lt;javascript:b&gt;</p>",
    "<https://a.example/>.": (
        '<p><a href="https://a.example/" target="_blank" rel="noopener noreferrer" dir="ltr">https://a.example/</a>.</p>'
    ),
    # As models write it (lmstudio-ai/lmstudio-bug-tracker issue 1615, Mintplex-Labs/anything-llm issue 1940).
    "***both*** ~~old~~ new ~5 ~6": "<p><em><strong>both</strong></em> <del>old</del> new ~5 ~6</p>",
    "***a* b** ***a** b*": "<p><strong><em>a</em> b</strong> <em><strong>a</strong> b</em></p>",
    "| 9<br>14 |": (
        '<div class="table" tabindex="0" data-at="0"><table><tbody><tr><td>9<br>14</td></tr></tbody></table></div>'
    ),
    "AT&amp;T&nbsp;Park &uuml;&#8211;&#x20AC; `&amp;` &nosuch; &lt;b>": (
        '<p>AT&amp;T&nbsp;Park ü–€ <code dir="ltr">&amp;amp;</code> &amp;nosuch; &lt;b&gt;</p>'
    ),
    "[a](javascript&#58;alert(1))": "<p><span>a</span></p>",
    "A*A*A or A*AA, 5*3*2, __init__.py, _see Foo_(bar)": "<p>A*A*A or A*AA, 5*3*2, __init__.py, _see Foo_(bar)</p>",
    "这是*重要*的 ______ *****": "<p>这是<em>重要</em>的 ______ *****</p>",
    "`` `a` `` `b": '<p><code dir="ltr">`a`</code> `b</p>',
    "[x *y](z) a*": '<p><a href="{url}/z" target="_blank" rel="noopener noreferrer">x *y</a> a*</p>',
    "[https://a.example/b](<https://a.example/b>)": (
        '<p><a href="https://a.example/b" target="_blank" rel="noopener noreferrer">https://a.example/b</a></p>'
    ),
    "": "",
}


@pytest.mark.node
async def test_markdown_becomes_nodes(browser: Browser, url: str, markdown: str) -> None:
    page = await browser.open(url)
    await page.evaluate(markdown)
    for text, expected in MARKDOWN.items():
        html = await page.evaluate(
            """(text) => {
              const box = document.createElement("div");
              box.append(markdown.renderMarkdown(text));
              return box.innerHTML;
            }""",
            text,
        )
        assert html == expected.replace("{url}", url), text


ADDRESSES = {
    # Mininglamp-OSS/octo-web PR 1656, openchamber/openchamber issue 3039
    "見てください https://example.com/路径。次に": ["https://example.com/路径"],
    "（https://example.com/a）、https://example.com/b，又": ["https://example.com/a", "https://example.com/b"],
    "https://en.wikipedia.org/wiki/Foo_(bar)": ["https://en.wikipedia.org/wiki/Foo_(bar)"],
    "(see https://t.example/a).": ["https://t.example/a"],
    "(https://t.example/a_(b)), https://t.example/c(d": ["https://t.example/a_(b)", "https://t.example/c"],
    "**https://t.example/a**, ~~https://t.example/b~~!": ["https://t.example/a", "https://t.example/b"],
    "https://t.example/?a=1&amp;b=2.": ["https://t.example/?a=1&b=2"],
    "http://[::1]:8000/a]": ["http://[::1]:8000/a"],
    "https://, https://.": [],
}


@pytest.mark.node
async def test_an_address_ends_where_the_sentence_goes_on(browser: Browser, url: str, markdown: str) -> None:
    page = await browser.open(url)
    await page.evaluate(markdown)
    links = """(text) => [...markdown.renderMarkdown(text).querySelectorAll("a")]
      .map((link) => [link.textContent, link.href === new URL(link.textContent).href])"""
    for text, expected in ADDRESSES.items():
        assert await page.evaluate(links, text) == [[each, True] for each in expected], text


@pytest.mark.node
async def test_a_page_shows_what_it_shows_itself(browser: Browser, url: str, markdown: str) -> None:
    page = await browser.open(url)
    await page.evaluate(markdown)
    shown = "(text) => markdown.renderMarkdown(text, [], 'https://t.example/').textContent"
    assert await page.evaluate(shown, "Write <br> or &amp; there") == "Write <br> or &amp; there"


@pytest.mark.node
async def test_what_is_quoted_in_quotations_too_deep_is_text(browser: Browser, url: str, markdown: str) -> None:
    page = await browser.open(url)
    await page.evaluate(markdown)
    found = await page.evaluate(
        """() => {
          const shown = markdown.renderMarkdown("> ".repeat(8_000) + "deep");
          return [shown.querySelectorAll("blockquote").length, shown.textContent.endsWith("> deep")];
        }"""
    )
    assert found == [8, True]


DIRECTIONS = {
    # NousResearch/hermes-agent PR 44596
    "Kranichmünde: المكتبة مفتوحة من 9 إلى 17.\n\n- الاثنين مغلق\n- Tuesday 10-18": {"P": "rtl", "LI": "rtl,ltr"},
    "`config.json` الملف\n\nhttps://t.example/a الصفحة": {"P": "rtl,rtl", "CODE": "ltr", "A": "ltr"},
    "شرح\n\n1. `ls -l` أمر\n\n```\nls\n```": {"P": "rtl", "LI": "rtl", "PRE": "ltr"},
    "> | اليوم | 9-17 |\n> | --- | --- |\n> | Bus | 9 |": {"BLOCKQUOTE": "rtl", "TH": "rtl,rtl", "TD": "ltr,rtl"},
    "Open.\n\nAlso: مكتبة in Kranichmünde": {"P": "ltr,ltr"},
}


async def test_each_paragraph_and_item_has_its_own_direction(browser: Browser, url: str, fakes: FakePorts) -> None:
    page = await browser.open(url)
    for text, expected in DIRECTIONS.items():
        fakes.answers.script = answering(text)
        await ask(page, "?")
        found = await page.locator(".turn:last-child .text").evaluate(
            """(text, names) => Object.fromEntries(names.map((name) => [name, [...text.querySelectorAll(name)]
              .map((node) => getComputedStyle(node).direction).join()]))""",
            list(expected),
        )
        assert found == expected, text
    isolated = "node => getComputedStyle(node).unicodeBidi"
    assert await page.locator(".text code").first.evaluate(isolated) == "isolate"
    # The item's number and its indent are on its own side.
    item = page.locator(".text ol li").first
    assert await item.evaluate("node => getComputedStyle(node).marginRight") != "0px"


MARKS = [
    ("One<br>Two", [3], "One[3]Two"),
    ("One. Two.", [4, 9], "One.[4] Two.[9]"),
    ("**One.** Two.", [8, 13], "One.[8] Two.[13]"),
    ("**One** *two*", [5, 7], "One[5][7] two"),
    ("- One\n- Two", [5, 11], "One[5]Two[11]"),
    ("| a | b |\n|---|---|\n| c | d |", [27], "abcd[27]"),
    ("[One](https://a.example)", [24], "One[24]"),
    ("One", [0, 99], "[0]One[99]"),
    ("", [0], "[0]"),
]


MARKED = """([text, ends]) => {
  const marks = ends.map((at) => {
    const node = document.createElement("sup");
    node.append(`[${at}]`);
    return { at, node };
  });
  const box = document.createElement("div");
  box.append(markdown.renderMarkdown(text, marks));
  return box;
}"""


@pytest.mark.node
async def test_marks_stand_where_the_source_says(browser: Browser, url: str, markdown: str) -> None:
    page = await browser.open(url)
    await page.evaluate(markdown)
    for text, ends, expected in MARKS:
        shown = await page.evaluate(f"(given) => ({MARKED})(given).textContent", [text, ends])
        assert shown == expected, text


@pytest.mark.node
async def test_a_mark_behind_a_row_stands_in_its_last_cell(browser: Browser, url: str, markdown: str) -> None:
    page = await browser.open(url)
    await page.evaluate(markdown)
    table = "> | a | b |\n> | --- | --- |\n> | c | d |\n"
    row, whole = table.index("b |") + 3, len(table) - 1
    html = await page.evaluate(
        f"(given) => ({MARKED})(given).innerHTML", [table + ">\n> **Below**\n> - e", [row, whole]]
    )
    assert f'<th scope="col">b<sup>[{row}]</sup></th>' in html
    assert f"<td>d<sup>[{whole}]</sup></td>" in html
    assert "<p><strong>Below</strong></p>" in html
