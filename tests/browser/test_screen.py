"""What the visitor has before their eyes: the question on top, passages as on their page, waits that are explained."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from schemas.answer import Answered, Citation, Done, QuestionMeaning, QuestionRephrased, SourcesFound, Token, WholeTable
from schemas.query import Question
from tests.browser.conftest import Host, chips, overflow
from tests.browser.scripts import LIBRARY, source, written
from tests.browser.test_accessibility import violations
from tests.chromium import Browser
from tests.fakes.ports import FakePorts
from wiring.settings import ChatSettings, SiteSettings

pytestmark = pytest.mark.browser

FEES = """# Fees

| Card | Price |
| --- | --- |
| Adults | 18 euros |
| Families | 25 euros |

Please bring:

- your identity card
- for children:
  - the [form](forms/card), signed

The card is **valid** for twelve months. It is yours alone."""
LONG = "\n\n".join(f"Paragraph {n}. The library lends books, films, games and instruments." for n in range(30))
# Pixels from the top of the view to the last question, the height of the view, and whether the sources can be seen.
VIEW = """() => {
  const root = document.querySelector("pagewire-chat").shadowRoot;
  const scroller = root.querySelector(".scroller").getBoundingClientRect();
  const question = root.querySelector(".turn:last-child .question").getBoundingClientRect();
  const sources = root.querySelector(".turn:last-child .sources")?.getBoundingClientRect();
  return [question.top - scroller.top, scroller.height, Boolean(sources && sources.top < scroller.bottom)];
}"""
IN_VIEW = """node => {
  const scroller = node.closest(".scroller").getBoundingClientRect();
  const { top, bottom } = node.getBoundingClientRect();
  return top >= scroller.top && bottom <= scroller.bottom && node.getRootNode().activeElement === node;
}"""


async def opened(page: Any) -> None:
    await page.get_by_role("button", name="Ask a question").click()


async def ask(page: Any, question: str) -> None:
    await page.get_by_role("textbox", name="Your question").fill(question)
    await page.keyboard.press("Enter")
    await page.locator(".turn:last-child .actions button").first.wait_for()


@pytest.mark.parametrize(("width", "height"), [(1000, 800), (390, 700)])
async def test_the_question_stays_on_top_of_a_short_and_of_a_long_answer(
    browser: Browser, host: Host, fakes: FakePorts, width: int, height: int
) -> None:
    async with host.serving() as url:
        page = await browser.open(url, width=width, height=height)
        await opened(page)
        fakes.answers.script = LIBRARY
        await ask(page, "What does a card cost?")
        fakes.answers.script = written(LONG, [source(1, "a", "A")], [Citation(n=1, start=0, end=len(LONG), quote="x")])
        await ask(page, "And what is there?")
        top, view, sources = await page.evaluate(VIEW)
        assert 0 <= top < 40
        assert not sources
        fakes.answers.script = LIBRARY
        await ask(page, "And for children?")  # so short that there is room left below it
        top, view, sources = await page.evaluate(VIEW)
        assert 0 <= top < 40
        assert sources
        await ask(page, "word " * 700)  # of a question higher than the view its end is shown
        top, view, _ = await page.evaluate(VIEW)
        answer = await page.evaluate(VIEW.replace(".question", ".answer"))
        assert top < 0
        assert 0 < answer[0] < view / 2
        # Also after a look at the list, and after a reload.
        await ask(page, "Anything else?")
        await page.get_by_role("button", name="Your conversations").click()
        await page.get_by_role("heading", name="Today").wait_for()
        await page.get_by_role("button", name="Your conversations").click()
        assert 0 <= (await page.evaluate(VIEW))[0] < 40
        await page.reload()
        await page.locator(".turn").nth(4).wait_for()
        assert 0 <= (await page.evaluate(VIEW))[0] < 40
        assert browser.complaints == []


async def test_in_a_part_of_a_page_without_a_height_the_page_scrolls(
    browser: Browser, url: str, fakes: FakePorts
) -> None:
    fakes.answers.script = written(LONG)
    page = await browser.open(f"{url}/widget/light", height=500)
    await page.evaluate(
        """() => {
          const chat = document.createElement("pagewire-chat");
          for (const [name, value] of [["mode", "page"], ["site", "town"]]) chat.setAttribute(name, value);
          document.querySelector("pagewire-chat").replaceWith(chat);
        }"""
    )
    for n in range(3):
        await ask(page, f"Question {n}?")
    top = await page.locator(".turn:last-child .question").evaluate("node => node.getBoundingClientRect().top")
    assert 0 <= top < 500  # it is still to be seen, above its answer
    heights = await page.locator(".turn").evaluate_all("turns => turns.map((turn) => turn.style.minBlockSize)")
    assert heights == ["", "", ""]


async def test_sources_are_numbered_as_they_are_cited_and_open_as_on_their_page(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    text = "It is open all year. A card for families costs 25 euros, for a year. Bring a form."
    cuts = [text.index(" A card"), text.index(", for"), text.index(" Bring"), len(text)]
    fakes.answers.script = written(
        text,
        [
            source(2, "unused", "Unused", cited=False, text="x"),
            source(5, "fees", "Fees", text=FEES),
            source(9, "hours", "Hours", text="It is open all year."),
        ],
        [
            Citation(n=9, start=0, end=cuts[0], quote="It is open all year."),
            Citation(n=5, start=cuts[0], end=cuts[1], quote="Families 25 euros"),
            Citation(n=5, start=cuts[1], end=cuts[2], quote="The card is valid for twelve months."),
            Citation(n=5, start=cuts[2], end=cuts[3], quote="for children: the form, signed"),
        ],
    )
    async with host.serving() as url:
        page = await browser.open(url)
        await opened(page)
        await ask(page, "?")
        assert await page.locator("sup").all_inner_texts() == ["1", "2", "2", "2"]
        assert await chips(page) == ["1 Hours", "2 Fees"]
        assert await page.locator(".passage:visible").count() == 0
        await page.get_by_role("button", name="2 Fees").click()
        passage = page.locator(".passage:visible")
        assert await passage.locator("mark").all_inner_texts() == [
            *("Families", "25 euros", "for children:", "the ", "form", ", signed"),
            *("The card is ", "valid", " for twelve months."),
        ]
        assert await passage.locator("tr").all_inner_texts() == [
            "Card\tPrice",
            "Adults\t18 euros",
            "Families\t25 euros",
        ]
        assert await passage.locator("li li").inner_text() == "the form, signed"
        # Relative to the page of the passage, not to the one that the chat is on.
        assert await passage.locator("li a").get_attribute("href") == f"{url}/pages/forms/card"
        assert (
            await passage.locator(".where a").get_attribute("href") == f"{url}/pages/fees#:~:text=Families-,25%20euros"
        )
        # The first marked sentence can be seen; one passage is open at a time; a chip closes its own.
        assert await passage.locator("mark").first.evaluate(
            IN_VIEW.replace(" && node.getRootNode().activeElement === node", "")
        )
        await page.get_by_role("button", name="1 Hours").click()
        assert await page.locator(".passage:visible").inner_text() == "Hours\n\nIt is open all year."
        await page.get_by_role("button", name="1 Hours").click()
        assert await page.locator(".passage:visible").count() == 0
        assert browser.complaints == []


HOURS = """| Day | Pool | Sauna, on the upper floor |
| --- | --- | --- |
| Monday | 2:00 pm–8:00 pm | closed |
""" + "".join(f"| Day {n} | 6:30 am–9:00 pm | 2:00 pm–9:30 pm, women only |\n" for n in range(2, 30))
ROW = "| Day 25 | 6:30 am–9:00 pm | 2:00 pm–9:30 pm, women only |"
QUOTED = f"""The website says:

> **Hours**
>
> | Day | Pool | Sauna, on the upper floor |
> | --- | --- | --- |
> {ROW}
> | … | … | … |
>
> Saturday
> Sunday
> : by [appointment](book)
> : in summer only
"""
LISTED = "Monday\n:   9 to 5\n\nSaturday\nSunday\n:   by appointment\n:   in summer only\n\n    Bring a towel."


@pytest.mark.node
@pytest.mark.parametrize("width", [1000, 390])
async def test_a_quoted_row_opens_its_whole_table(browser: Browser, host: Host, fakes: FakePorts, width: int) -> None:
    cuts = [QUOTED.index(mark) for mark in ("| Day |", ROW, "in summer")]
    fakes.answers.script = written(
        QUOTED,
        [source(3, "pool", "Pool", text=LISTED)],
        [
            Citation(n=3, start=cuts[1], end=cuts[1] + len(ROW), quote=ROW.replace("|", " ")),
            Citation(n=3, start=cuts[2], end=len(QUOTED) - 1, quote="in summer only"),
        ],
        tables=[WholeTable(n=3, start=cuts[0], text=HOURS.strip())],
    )
    async with host.serving() as url:
        page = await browser.open(url, width=width, height=800)
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
        await opened(page)
        await ask(page, "?")
        # As a definition list, in the answer and in the passage.
        answer = page.locator(".text")
        assert await answer.locator("dl > *").all_inner_texts() == [
            *("Saturday", "Sunday", "by appointment", "in summer only1"),
        ]
        assert await answer.locator("dd a").first.inner_text() == "appointment"
        await page.locator(".chip").click()
        passage = page.locator(".passage:visible")
        assert await passage.locator("dt, dd").all_inner_texts() == [
            *("Monday", "9 to 5", "Saturday", "Sunday", "by appointment", "in summer only\n\nBring a towel."),
        ]
        assert await passage.locator("mark").all_inner_texts() == ["in summer only"]
        # The whole table, by keyboard: the quoted row is marked and can be seen.
        whole = page.locator("details.whole")
        assert await whole.locator("tr:visible").count() == 0
        await page.get_by_text("Whole table", exact=True).focus()
        await page.keyboard.press("Enter")
        rows = whole.locator("tr:visible")
        await rows.first.wait_for()
        assert await rows.count() == 30
        marks = whole.locator("mark")
        assert await marks.all_inner_texts() == ["Day 25", "6:30 am–9:00 pm", "2:00 pm–9:30 pm, women only"]
        await page.wait_for_function(
            """() => {
              const box = document.querySelector("pagewire-chat").shadowRoot.querySelector(".whole .table");
              const [seen, mark] = [box, box.querySelector("mark")].map((node) => node.getBoundingClientRect());
              return mark.top >= seen.top && mark.bottom <= seen.bottom;
            }"""
        )
        assert await overflow(page) == [0, 0, 0]
        assert await violations(page) == []
        await page.reload()  # nor is it lost to a conversation that is read again
        await page.get_by_text("Whole table", exact=True).wait_for()
        # It is no part of what was answered.
        await page.get_by_role("button", name="Copy", exact=True).click()
        await page.get_by_role("button", name="Copied").wait_for()
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert "Day 2\t" not in copied
        assert "Saturday\nSunday\n  by appointment" in copied
        assert browser.complaints == []


async def test_the_panel_is_made_wider_and_full_screen(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving() as url:
        page = await browser.open(url, width=1200)
        await opened(page)
        await ask(page, "What does a card cost?")
        panel = page.get_by_role("dialog")
        widths = []
        for name in ("Wider panel", "Full screen"):
            button = page.get_by_role("button", name=name)
            await button.click()
            assert await button.get_attribute("aria-pressed") == "true"
            widths.append((await panel.bounding_box() or {})["width"])
            assert 0 <= (await page.evaluate(VIEW))[0] < 40
            assert await overflow(page) == [0, 0, 0]
        assert 700 < widths[0] < 800
        assert widths[1] == 1200
        # It covers the page, so the focus stays in it; a new page of the site finds it as it was.
        await page.get_by_role("link", name="more", include_hidden=True).focus()
        assert await page.evaluate("document.activeElement.tagName") == "PAGEWIRE-CHAT"
        await page.reload()
        await page.locator(".turn .actions button").first.wait_for()
        assert (await panel.bounding_box() or {})["width"] == 1200
        # Escape leaves one thing at a time.
        await page.get_by_role("textbox", name="Your question").focus()
        await page.keyboard.press("Escape")
        assert (await panel.bounding_box() or {})["width"] < 500
        await page.keyboard.press("Escape")
        assert await panel.count() == 0
        # Where it covers the page anyway there is nothing to choose.
        await page.set_viewport_size({"width": 390, "height": 700})
        await opened(page)
        assert await page.get_by_role("button", name="Full screen").count() == 0
        assert browser.complaints == []


@pytest.mark.parametrize("path", ["/", "/widget/light"])
async def test_nothing_is_wider_than_a_phone(browser: Browser, url: str, fakes: FakePorts, path: str) -> None:
    fakes.answers.script = written(
        FEES, [source(1, "fees", "Fees of " + "y" * 200, text=FEES)], [Citation(n=1, start=0, end=9, quote=FEES)]
    )
    page = await browser.open(url + path, width=390, height=844)
    if path != "/":
        await opened(page)
    for question in ("How much does it cost " * 9, "Donaudampfschifffahrt" * 9):
        await page.get_by_role("button", name="New conversation", include_hidden=True).dispatch_event("click")
        await ask(page, question)
        await page.locator(".chip").click()
        assert await overflow(page) == [0, 0, 0]
    await page.get_by_role("button", name="Your conversations").click()
    await page.get_by_role("button", name=re.compile("^Rename")).first.wait_for()
    assert await overflow(page) == [0, 0, 0]
    await page.get_by_role("button", name=re.compile("^Rename")).first.click()
    assert await overflow(page) == [0, 0, 0]


async def test_every_answer_can_be_rated_and_what_was_wrong_be_written_at_once(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    broken = asyncio.Event()

    def around(app: Any) -> Any:
        async def refusing(scope: Any, receive: Any, send: Any) -> None:
            if scope.get("path", "").endswith("/feedback") and broken.is_set() and scope["method"] == "POST":
                await send(
                    {"type": "http.response.start", "status": 503, "headers": [(b"access-control-allow-origin", b"*")]}
                )
                await send({"type": "http.response.body", "body": b""})
                return
            await app(scope, receive, send)

        return refusing

    fakes.answers.script = written(LONG)
    async with host.serving(around=around) as url:
        page = await browser.open(url)
        await opened(page)
        await ask(page, "First?")
        await ask(page, "Second?")
        first, second = page.locator(".turn").nth(0), page.locator(".turn").nth(1)
        await second.get_by_role("button", name="Not helpful").click()
        field = second.get_by_label("Would you like to tell us more?")
        assert await field.evaluate(IN_VIEW)
        await first.get_by_role("button", name="Helpful", exact=True).click()
        await first.get_by_role("button", name="Helpful", exact=True, pressed=True).wait_for()
        # What was written stays when it cannot be sent, and when another question is asked.
        broken.set()
        await field.fill("No word on students.")
        await second.get_by_role("button", name="Send comment").click()
        await second.get_by_text("Something went wrong.").wait_for()
        await ask(page, "Third?")
        assert await field.input_value() == "No word on students."
        broken.clear()
        await second.get_by_role("button", name="Send comment").click()
        await second.get_by_text("Thank you for your feedback.").wait_for()
        [kept] = fakes.conversations.kept.values()
        given = [turn.feedback and (turn.feedback.rating, turn.feedback.comment) for turn in kept.conversation.turns]
        assert given == [("up", None), ("down", "No word on students."), None]


def pausing(_: Question) -> list[Any]:
    return [Token(text="Half an answer"), 600.0, Done()]


async def test_enter_during_an_answer_asks_the_new_question(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = pausing
    async with host.serving() as url:
        page = await browser.open(url)
        await opened(page)
        await page.get_by_role("textbox", name="Your question").fill("First?")
        await page.keyboard.press("Enter")
        await page.get_by_text("Half an answer").wait_for()
        await page.keyboard.press("Enter")  # nothing was written: nothing happens
        assert await page.get_by_role("button", name="Stop answering").is_visible()
        fakes.answers.script = LIBRARY
        await ask(page, "Second?")
        assert [asked.question for asked in fakes.answers.asked] == ["First?", "Second?"]
        assert await page.locator(".turn").first.locator(".note").inner_text() == "Stopped."
        assert await page.locator(".trouble").count() == 0
        assert fakes.answers.stopped[fakes.answers.asked[0].request_id].is_set()
        assert fakes.answers.asked[0].conversation_id == fakes.answers.asked[1].conversation_id
        assert browser.complaints == []


async def test_stop_ends_the_answer_at_once(browser: Browser, host: Host, fakes: FakePorts) -> None:
    told = asyncio.Event()

    def around(app: Any) -> Any:
        async def slow(scope: Any, receive: Any, send: Any) -> None:
            if scope.get("method") == "DELETE":
                await told.wait()
            await app(scope, receive, send)

        return slow

    fakes.answers.script = pausing
    async with host.serving(around=around) as url:
        page = await browser.open(url)
        await opened(page)
        await page.get_by_role("textbox", name="Your question").fill("First?")
        await page.keyboard.press("Enter")
        await page.get_by_text("Half an answer").wait_for()
        await page.get_by_role("button", name="Stop answering").click()
        await page.locator(".note", has_text="Stopped.").wait_for()
        assert await page.locator(".status:visible, .trouble").count() == 0
        assert await page.get_by_role("status").inner_text() == "Half an answer Stopped."
        assert await page.get_by_role("button", name="Send question").is_visible()
        # The next question waits until the gateway has let go of the last one.
        fakes.answers.script = LIBRARY
        await page.get_by_role("textbox", name="Your question").fill("Second?")
        await page.keyboard.press("Enter")
        await page.locator(".status", has_text="Searching").wait_for()
        assert len(fakes.answers.asked) == 1
        told.set()
        await page.get_by_role("heading", name="Sources").wait_for()
        assert browser.complaints == []


async def test_a_conversation_that_was_taken_back_leaves_the_list(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving() as url:
        page = await browser.open(url)
        await opened(page)
        await ask(page, "Kept?")
        await page.get_by_role("button", name="New conversation").click()
        await ask(page, "Taken back?")
        await page.get_by_role("button", name="Remove this question and its answer").click()
        await page.get_by_text("Ask in your own words.").wait_for()
        await page.get_by_role("button", name="Your conversations").click()
        await page.get_by_role("heading", name="Today").wait_for()
        assert await page.locator(".past li button:first-child").all_inner_texts() == ["Kept?"]
        assert await page.locator(".welcome").is_hidden()
        assert browser.complaints == []


async def test_a_long_wait_says_what_is_being_done(browser: Browser, host: Host, fakes: FakePorts) -> None:
    go = [asyncio.Event() for _ in range(3)]

    def around(app: Any) -> Any:
        async def stepwise(scope: Any, receive: Any, send: Any) -> None:
            async def sending(message: Any) -> None:
                for step, mark in enumerate((b"event: rephrased", b"event: token", b"event: answer")):
                    if mark in message.get("body", b""):
                        await go[step].wait()
                await send(message)

            await app(scope, receive, sending)

        return stepwise

    sources = (source(1, "a", "A"), source(2, "b", "B"))
    fakes.answers.script = lambda _: [
        QuestionRephrased(question="What does it cost?", mode="semantic"),
        SourcesFound(grade=0, sources=sources),
        Token(text="It is free."),
        Answered(text="It is free.", citations=(), sources=(), extractive=False),
        Done(),
    ]
    async with host.serving(around=around) as url:
        page = await browser.open(url)
        await page.clock.install()
        await opened(page)
        await page.get_by_role("textbox", name="Your question").fill("?")
        await page.keyboard.press("Enter")
        status = page.locator(".status")
        await page.locator(".status", has_text="Searching the pages…").wait_for()
        await page.clock.run_for(9_000)
        assert await status.inner_text() == "Searching the pages… This is taking longer than usual."
        assert await page.get_by_role("status").inner_text() == await status.inner_text()
        go[0].set()
        await page.locator(".status", has_text="Reading 2 passages…").wait_for()
        go[1].set()
        await page.locator(".status", has_text="Writing the answer…").wait_for()
        go[2].set()
        await status.wait_for(state="hidden")


async def test_too_many_questions_says_when_there_may_be_more(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = LIBRARY
    waits = ["90", "2"]

    def around(app: Any) -> Any:
        async def limited(scope: Any, receive: Any, send: Any) -> None:
            if scope.get("method") != "POST" or not scope["path"].endswith("/chat") or not waits:
                await app(scope, receive, send)
                return
            allow = [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", b"Retry-After")]
            headers = [*allow, (b"retry-after", waits.pop(0).encode())]
            await send({"type": "http.response.start", "status": 429, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"code": "too-many-requests"}'})

        return limited

    async with host.serving(around=around) as url:
        page = await browser.open(url)
        await opened(page)
        trouble = page.locator(".turn:last-child .trouble")
        for said in ("in 90 seconds", r"in [12] seconds?"):
            await page.get_by_role("textbox", name="Your question").fill("How much?")
            await page.keyboard.press("Enter")
            await trouble.filter(has_text=re.compile(f"You can ask again {said}")).wait_for()
        assert await page.get_by_role("button", name="Try again").count() == 0  # it would be refused
        await page.get_by_role("button", name="Try again").click()
        await page.get_by_role("heading", name="Sources").wait_for()


async def test_asked_without_a_network_it_is_answered_when_there_is_one(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving() as url:
        page = await browser.open(url)
        await opened(page)
        await ask(page, "First?")
        await page.context.set_offline(True)
        await page.get_by_role("textbox", name="Your question").fill("Second?")
        await page.keyboard.press("Enter")
        await page.locator(".status", has_text="No connection.").wait_for()
        await page.get_by_role("button", name="Your conversations").click()
        await page.get_by_text("The connection was lost.").wait_for()
        await page.context.set_offline(False)
        await page.get_by_role("heading", name="Today").wait_for()
        await page.get_by_role("button", name="Your conversations").click()
        await page.locator(".turn:last-child .actions button").first.wait_for()
        assert [asked.question for asked in fakes.answers.asked] == ["First?", "Second?"]


async def test_a_copy_is_clean_text(browser: Browser, host: Host, fakes: FakePorts) -> None:
    text = FEES.replace("](forms", "](https://town.example/forms")
    fakes.answers.script = written(text, [source(4, "fees", "Fees")], [Citation(n=4, start=0, end=len(text))])
    async with host.serving() as url:
        page = await browser.open(url)
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
        await opened(page)
        await ask(page, "?")
        await page.get_by_role("button", name="Copy", exact=True).click()
        await page.get_by_role("button", name="Copied").wait_for()
        assert await page.evaluate("navigator.clipboard.readText()") == (
            "Fees\n\nCard\tPrice\nAdults\t18 euros\nFamilies\t25 euros\n\nPlease bring:\n\n"
            "- your identity card\n- for children:\n  - the form (https://town.example/forms/card), signed\n\n"
            "The card is valid for twelve months. It is yours alone. [1]\n\n"
            f"[1] Fees {url}/pages/fees"
        )


async def test_a_broad_question_can_be_narrowed_by_a_button(browser: Browser, host: Host, fakes: FakePorts) -> None:
    topics = (
        QuestionMeaning(label="Pool", question="What does it cost? – Pool"),
        QuestionMeaning(label="מוזיאון", question="Museum?"),
    )

    def broad(question: Question) -> list[Any]:
        return [
            Token(text="It depends."),
            Answered(text="It depends.", citations=(), sources=(), extractive=False, narrower=topics),
            Done(),
        ]

    async with host.serving() as url:
        page = await browser.open(url, width=320, height=700)
        await opened(page)
        fakes.answers.script = broad
        await ask(page, "What does it cost?")
        choices = page.locator(".narrower button")
        assert await page.locator(".narrower :is(h2, h3)").inner_text() == "Do you mean one of these?"
        assert await choices.all_inner_texts() == ["Pool", "מוזיאון"]
        assert max(await overflow(page)) <= 0
        await page.reload()  # a conversation that is read again offers them, too
        await choices.first.wait_for()
        assert await choices.all_inner_texts() == ["Pool", "מוזיאון"]
        fakes.answers.script = LIBRARY
        await choices.first.click()
        await page.locator(".turn:last-child .actions button").first.wait_for()
        assert [asked.question for asked in fakes.answers.asked] == ["What does it cost?", "What does it cost? – Pool"]
        assert await page.evaluate("document.activeElement.shadowRoot.activeElement.tagName") == "TEXTAREA"
        assert browser.complaints == []


@pytest.mark.node
@pytest.mark.parametrize("wanted", [True, False])
async def test_a_site_may_show_how_an_answer_came_about(
    browser: Browser, host: Host, fakes: FakePorts, wanted: bool
) -> None:
    async with host.serving(site=SiteSettings(chat=ChatSettings(show_steps=wanted))) as url:
        page = await browser.open(url, width=320, height=700)
        await opened(page)
        fakes.answers.script = LIBRARY
        await ask(page, "What does a card cost?")
        fold = page.locator(".steps summary")
        assert await fold.count() == wanted
        if wanted:
            await fold.click()
            assert await page.locator(".steps li").all_inner_texts() == [
                "Searched the pages for “What does a card cost?”",
                "Passages found: 2",
                "A language model wrote the answer from these passages",
            ]
            assert max(await overflow(page)) <= 0
            assert await violations(page) == []
        assert browser.complaints == []
