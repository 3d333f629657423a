"""The widget on somebody else's page: another site's origin, the strictest policy, every control."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

import gateway.site
from gateway.edge.auth import token_secret
from gateway.edge.tokens import VisitorTokens
from gateway.site.widget_pages import EXAMPLES
from schemas.answer import Citation, Done, Token
from tests.browser.conftest import Host, overflow
from tests.browser.scripts import LIBRARY, source, written
from tests.chromium import Browser
from tests.edge import edge_settings, until
from tests.fakes.ports import FakePorts
from text.markdown import plain
from wiring.settings import ChatSettings, SiteSettings

pytestmark = pytest.mark.browser

BUNDLE = (Path(gateway.site.__file__).parent / "static/widget.js").read_text("utf-8")
EVENTS = """
window.heard = [];
for (const name of ["ready", "open", "close", "question", "answer", "feedback", "error"]) {
  addEventListener(`pagewire:${name}`, ({ detail }) => heard.push([name, detail]));
}"""
FOCUSED = """() => {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  if (!node || node === document.body) return "BODY";
  return node.ariaLabel || node.id || node.textContent.trim().slice(0, 40) || node.tagName;
}"""


async def ask(page: Any, question: str = "What does a card cost?") -> None:
    await page.get_by_role("textbox", name="Your question").fill(question)
    await page.keyboard.press("Enter")
    await page.locator(".turn:last-child .actions button").first.wait_for()


async def marked(page: Any) -> str:
    """What is marked in the passage that is open."""
    texts = await page.locator(".passage:not([hidden]) mark").all_inner_texts()
    return " ".join(" ".join(texts).split())


@pytest.mark.parametrize("kind", ["", 'type="module" '])
async def test_every_control_under_the_strictest_policy(
    browser: Browser, host: Host, fakes: FakePorts, kind: str
) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving(kind=kind, examples="What does a card cost?\nWhere is it?", privacy="/privacy") as url:
        page = await browser.open(url, init=EVENTS)
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
        opener = page.get_by_role("button", name="Ask a question")
        await opener.click()
        panel = page.get_by_role("dialog", name="Ask the town")
        assert await panel.get_by_role("link", name="Privacy").get_attribute("href") == f"{url}/privacy"
        # An example is asked, and the answer's source opens at the sentence.
        await panel.get_by_role("button", name="What does a card cost?").click()
        await panel.get_by_role("heading", name="Sources").wait_for()
        await panel.get_by_role("button", name="1 Town library").click()
        assert await marked(panel) == "A library card costs 12 euros a year."
        assert "Children and young people" in await panel.locator(".passage blockquote").first.inner_text()
        hrefs = [await link.get_attribute("href") for link in await panel.locator(".sources a").all()]
        assert hrefs[0] == f"{url}/pages/library#:~:text=A%20library%20card%20costs%2012,euros%20a%20year."
        # Copy
        await panel.get_by_role("button", name="Copy", exact=True).click()
        await panel.get_by_role("button", name="Copied").wait_for()
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied == (
            "A library card costs 12 euros a year. [1] It is free for everybody under 18. [2]\n\n"
            "- Bring your identity card\n\n"
            f"[1] Town library {url}/pages/library\n[2] Fees {url}/pages/fees"
        )
        # Feedback, with a comment
        await panel.get_by_role("button", name="Not helpful").click()
        await panel.get_by_label("Would you like to tell us more?").fill("No word on students.")
        await panel.get_by_role("button", name="Send comment").click()
        await panel.locator(".comment", has_text="Thank you for your feedback.").wait_for()
        [kept] = fakes.conversations.kept.values()
        given = kept.conversation.turns[0].feedback
        assert given is not None
        assert (given.rating, given.comment) == ("down", "No word on students.")
        # Again, and taken back
        await panel.get_by_role("button", name="Answer again").click()
        await panel.locator(".turn:last-child .actions button").first.wait_for()
        assert len(fakes.answers.asked) == 2
        await panel.get_by_role("button", name="Remove this question and its answer").click()
        await panel.get_by_text("Ask in your own words.").wait_for()
        # The list of conversations: renamed, kept after all, deleted
        await ask(page)
        await panel.get_by_role("button", name="New conversation").click()
        await ask(page, "When is it open?")
        await panel.get_by_role("button", name="Your conversations").click()
        await panel.get_by_role("button", name="Rename “When is it open?”").click()
        await page.keyboard.type("Hours")
        await page.keyboard.press("Enter")
        await panel.get_by_role("button", name="Hours", exact=True).wait_for()
        await panel.get_by_role("button", name="Delete “Hours”").click()
        await panel.get_by_role("button", name="Cancel").click()
        await panel.get_by_role("button", name="Delete “Hours”").click()
        await panel.get_by_role("button", name="Delete", exact=True).click()
        await until(lambda: len(fakes.conversations.kept) == 1)  # its line gives way to the question before that
        await panel.get_by_role("button", name="Hours", exact=True).wait_for(state="detached")
        [kept] = fakes.conversations.kept.values()
        assert [turn.question for turn in kept.conversation.turns if not turn.removed] == ["What does a card cost?"]
        await panel.get_by_role("button", name="What does a card cost?", exact=True).click()
        await panel.get_by_role("heading", name="Sources").wait_for()
        # Stop
        fakes.answers.script = lambda _: [Token(text="Half an answer"), 600.0, Done()]
        await page.get_by_role("textbox", name="Your question").fill("And for children?")
        await page.keyboard.press("Enter")
        await panel.get_by_text("Half an answer").wait_for()
        await panel.get_by_role("button", name="Stop answering").click()
        await panel.locator(".note", has_text="Stopped.").wait_for()
        await page.get_by_role("button", name="Close chat").click()
        await panel.wait_for(state="hidden")
        heard = await page.evaluate("heard")
        assert [name for name, _ in heard] == [
            *("ready", "open", "question", "answer", "feedback", "feedback", "answer"),
            *("question", "answer", "question", "answer", "question", "answer", "close"),
        ]
        assert heard[0][1] == {"site": "town", "lang": "en"}
        assert heard[5][1]["comment"] == "No word on students."
        assert heard[-2][1]["stopped"]
        assert browser.complaints == []


async def test_nothing_of_the_host_page_moves_and_nothing_is_asked_before_it_is_opened(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    fakes.answers.script = LIBRARY
    shifts = """
      window.shifts = [];
      // What is in the chat's own tree has no node here.
      const ofPage = ({ sources }) => sources.some(({ node }) => node);
      new PerformanceObserver((list) => shifts.push(...list.getEntries().filter(ofPage).map(({ value }) => value)))
        .observe({ type: "layout-shift", buffered: true });"""
    boxes = """() => [document.documentElement, document.body, ...document.body.querySelectorAll("main, main *")]
      .map((node) => JSON.stringify(node.getBoundingClientRect()))"""
    async with host.serving() as url:
        page = await browser.open(url, init=shifts)
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        await page.reload()
        await page.get_by_role("button", name="Ask a question").wait_for()
        # As it is without the chat.
        without = await page.evaluate(
            f"""() => {{
              const chat = document.querySelector("pagewire-chat");
              chat.remove();
              const found = ({boxes})();
              document.body.append(chat);
              return found;
            }}"""
        )
        assert await page.evaluate(boxes) == without
        assert [seen for seen in requests if seen.startswith(host.gateway)] == [f"{host.gateway}/widget.js"]
        await page.get_by_role("button", name="Ask a question").click()
        await ask(page)
        assert await page.evaluate(boxes) == without
        await page.keyboard.press("Escape")
        assert await page.evaluate("shifts") == []
        # 62.5 % of the host's root is not our business.
        size = await page.locator(".launcher").evaluate("node => node.getBoundingClientRect().width")
        assert size == 56
        assert browser.complaints == []


async def test_by_keyboard_beside_the_page(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving() as url:
        page = await browser.open(url)
        await page.keyboard.press("Tab")
        assert await page.evaluate(FOCUSED) == "more"
        await page.keyboard.press("Tab")
        assert await page.evaluate(FOCUSED) == "Ask a question"
        await page.keyboard.press("Enter")
        assert await page.evaluate(FOCUSED) == "question"
        await page.keyboard.type("What does a card cost?")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Sources").wait_for()
        assert await page.evaluate(FOCUSED) == "question"
        await page.get_by_role("button", name="Your conversations").focus()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Rename").wait_for()
        for _ in range(4):  # past "new", the two sizes and the conversation itself
            await page.keyboard.press("Tab")
        await page.keyboard.press("Tab")
        assert await page.evaluate(FOCUSED) == "Rename “What does a card cost?”"
        # Escape leaves one thing at a time, and the focus goes back to where it was left.
        await page.keyboard.press("Enter")
        assert await page.evaluate(FOCUSED) == "New title"
        await page.keyboard.press("Escape")
        assert await page.evaluate(FOCUSED) == "Rename “What does a card cost?”"
        await page.keyboard.press("Escape")
        assert await page.evaluate(FOCUSED) == "Your conversations"
        assert await page.get_by_role("button", name="Rename").count() == 0
        await page.keyboard.press("Escape")
        assert await page.evaluate(FOCUSED) == "Ask a question"
        assert await page.get_by_role("dialog").count() == 0


async def test_by_keyboard_where_it_covers_the_page(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving() as url:
        page = await browser.open(url, width=320, height=640)
        await page.get_by_role("button", name="Ask a question").click()
        await ask(page)
        seen = set()
        for _ in range(30):
            await page.keyboard.press("Tab")
            seen.add(await page.evaluate(FOCUSED))
        assert {"question", "Close chat", "Copy", "Source 1: Town library", "1Town library"} <= seen
        assert not seen & {"more", "Ask a question"}
        # Wider, it is beside the page, still open, and keeps nothing.
        field = page.get_by_role("textbox", name="Your question")
        await field.focus()
        await page.set_viewport_size({"width": 1000, "height": 640})
        await page.get_by_role("button", name="Close chat").wait_for()
        # Its button is there with the new style, a frame before the panel hears of the new width.
        modal = "document.querySelector('pagewire-chat').shadowRoot.querySelector('dialog').matches(':modal')"
        await page.wait_for_function(f"!{modal}")
        assert await page.evaluate(FOCUSED) == "question"
        await page.get_by_role("link", name="more").focus()
        assert await page.evaluate(FOCUSED) == "more"
        assert browser.complaints == []


async def test_screen_readers_hear_each_thing_once(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving() as url:
        page = await browser.open(url)
        await page.get_by_role("button", name="Ask a question").click()
        await page.evaluate(
            """() => {
              window.spoken = [];
              const live = document.querySelector("pagewire-chat").shadowRoot.querySelector("[role=status]");
              const hear = () => live.textContent && spoken.push(live.textContent);
              new MutationObserver(hear).observe(live, { childList: true });
            }"""
        )
        await ask(page)
        assert await page.evaluate("spoken") == [
            "Searching the pages…",
            "A library card costs 12 euros a year. It is free for everybody under 18. Bring your identity card",
        ]
        # Nothing else there is live.
        live = await page.evaluate(
            """() => [...document.querySelector("pagewire-chat").shadowRoot.querySelectorAll("[aria-live], [role]")]
              .map((node) => node.getAttribute("role") ?? "live")"""
        )
        assert live == ["region", "status"]


@pytest.mark.parametrize("offline", [True, False])
async def test_a_network_cut_and_back_mid_answer(browser: Browser, host: Host, fakes: FakePorts, offline: bool) -> None:
    text = "The first half is here. The second half comes later."
    cut = asyncio.Event()
    fakes.answers.script = written(text, pause=3.0)

    def around(app: Any) -> Any:
        async def cutting(scope: Any, receive: Any, send: Any) -> None:
            async def sending(message: Any) -> None:
                if scope["path"].endswith("/chat") and cut.is_set():
                    raise ConnectionResetError
                await send(message)

            try:
                await app(scope, receive, sending)
            except ConnectionResetError:
                return  # uvicorn closes a connection whose response is unfinished

        return cutting

    async with host.serving(around=around) as url:
        page = await browser.open(url)
        await page.get_by_role("button", name="Ask a question").click()
        await page.get_by_role("textbox", name="Your question").fill("?")
        await page.keyboard.press("Enter")
        await page.locator(".text", has_text="The first half").wait_for()
        await page.context.set_offline(offline)
        cut.set()  # the connection breaks; without a network there is no new one
        if offline:
            await page.locator(".status", has_text="No connection.").wait_for(timeout=60_000)
            await page.context.set_offline(False)
        await page.locator(".turn .actions button").first.wait_for(timeout=60_000)
        assert await page.locator(".text").inner_text() == text
        assert len(fakes.answers.asked) == 1


async def test_a_reload_mid_answer_opens_the_panel_and_reads_on(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Token(text="Half an answer"), 600.0, Done()]
    async with host.serving() as url:
        page = await browser.open(url)
        await page.get_by_role("button", name="Ask a question").click()
        await page.get_by_role("textbox", name="Your question").fill("How much?")
        await page.keyboard.press("Enter")
        await page.locator(".text", has_text="Half an answer").wait_for()
        await page.reload()
        await page.locator(".text", has_text="Half an answer").wait_for()
        assert await page.evaluate(FOCUSED) == "BODY"  # the focus is the page's
        await page.get_by_role("button", name="Stop answering").click()
        await page.locator(".note", has_text="Stopped.").wait_for()
        await page.get_by_role("button", name="Close chat").click()
        await page.reload()
        await page.get_by_role("button", name="Ask a question").wait_for()
        assert await page.get_by_role("dialog").count() == 0
        assert len(fakes.answers.asked) == 1
        assert browser.complaints == []


async def test_a_token_that_is_over_is_renewed_without_a_word(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = LIBRARY
    tokens: list[str] = []
    async with host.serving() as url:
        page = await browser.open(url)
        page.on("request", lambda seen: tokens.append(seen.method) if "visitor-tokens" in seen.url else None)
        await page.get_by_role("button", name="Ask a question").click()
        await ask(page)
        change = """(change) => {
          const key = Object.keys(localStorage).find((name) => name.startsWith("pagewire-token:"));
          localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), ...change }));
        }"""
        await page.evaluate(change, {"expires_at": "2020-01-01T00:00:00Z"})
        await ask(page, "And for children?")
        assert [turn.question for turn in fakes.answers.asked[-1].history] == ["What does a card cost?"]
        await page.evaluate(change, {"token": "pwv1.nonsense.nonsense"})  # as after a new secret on the gateway
        await ask(page, "And for students?")
        assert tokens.count("POST") == 3
        assert fakes.answers.asked[-1].history == ()  # somebody new, by necessity


REFUSALS = {
    "off": (
        {"site": SiteSettings(chat=ChatSettings(enabled=False))},
        "The chat of this website is switched off at the moment.",
    ),
    "budget": (
        {"site": SiteSettings(chat=ChatSettings(daily_questions=1))},
        "All questions for today have been asked.",
    ),
    "uninvited": ({"invited": False}, "The chat is not available on this page."),
}


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_refusal_is_a_clear_sentence(browser: Browser, host: Host, fakes: FakePorts, refusal: str) -> None:
    settings, sentence = REFUSALS[refusal]
    async with host.serving(**settings) as url:  # type: ignore[arg-type]
        page = await browser.open(url, init=EVENTS)
        await page.get_by_role("button", name="Ask a question").click()
        for _ in range(2):
            await page.get_by_role("textbox", name="Your question").fill("How much?")
            await page.keyboard.press("Enter")
            await page.locator(".turn:last-child:not(.busy)").wait_for()
        await page.locator(".turn:last-child .trouble", has_text=sentence).wait_for()
        assert len(fakes.answers.asked) == (1 if refusal == "budget" else 0)
        assert (await page.evaluate("heard")).pop()[0] == "error"


@pytest.mark.parametrize(("status", "sentence"), [(503, "Answers are not available right now."), (429, "Too many")])
async def test_a_proxy_that_answers_for_the_gateway_is_understood(
    browser: Browser, host: Host, status: int, sentence: str
) -> None:
    def around(app: Any) -> Any:
        async def proxy(scope: Any, receive: Any, send: Any) -> None:
            if scope.get("method") != "POST" or not scope["path"].endswith("/chat"):
                await app(scope, receive, send)
                return
            allow = [(b"access-control-allow-origin", b"*"), (b"content-type", b"text/html")]
            await send({"type": "http.response.start", "status": status, "headers": allow})
            await send({"type": "http.response.body", "body": b"<h1>Sorry</h1>"})

        return proxy

    async with host.serving(around=around) as url:
        page = await browser.open(url)
        await page.get_by_role("button", name="Ask a question").click()
        await page.get_by_role("textbox", name="Your question").fill("How much?")
        await page.keyboard.press("Enter")
        await page.locator(".trouble", has_text=sentence).wait_for()


class Failing:
    """A middleware that fails for some requests, by method and end of the path, as a gateway whose servers are away."""

    def __init__(self) -> None:
        self.wanted: tuple[str, str] | None = None

    def __call__(self, app: Any) -> Any:
        async def handler(scope: Any, receive: Any, send: Any) -> None:
            method, end = self.wanted or ("", "")
            if scope.get("method") != method or not re.search(end, scope["path"]):
                await app(scope, receive, send)
                return
            headers = [(b"access-control-allow-origin", b"*")]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": b""})

        return handler


async def test_what_fails_is_said_and_can_be_done_again(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = LIBRARY
    failing = Failing()
    sentence = "Something went wrong. Please try again."
    async with host.serving(around=failing) as url:
        page = await browser.open(url)
        panel = page.get_by_role("dialog")
        await page.get_by_role("button", name="Ask a question").click()
        await ask(page)

        async def fails(method: str, end: str, button: str, where: str) -> None:
            failing.wanted = (method, end)
            await panel.get_by_role("button", name=button, exact=True).click()
            await panel.locator(where, has_text=sentence).wait_for()
            await page.get_by_role("status").filter(has_text=sentence).wait_for()
            failing.wanted = None

        await fails("POST", "/feedback$", "Helpful", ".comment .trouble")
        await panel.get_by_role("button", name="Not helpful").click()
        await panel.get_by_label("Would you like to tell us more?").fill("No word on students.")
        await fails("POST", "/feedback$", "Send comment", ".comment form .trouble")
        await panel.get_by_role("button", name="Send comment").click()
        await panel.locator(".comment", has_text="Thank you for your feedback.").wait_for()
        await fails("POST", "/undo$", "Remove this question and its answer", ".turn .trouble")
        assert await panel.get_by_text("12 euros").is_visible()
        # The list of conversations
        past = panel.get_by_role("button", name="Your conversations")
        await past.click()
        await panel.get_by_role("button", name="Rename “What does a card cost?”").click()
        await page.keyboard.type("Cards")
        await fails("PATCH", "/conversations/", "Save", ".past form .trouble")
        await panel.get_by_role("button", name="Save").click()
        await panel.get_by_role("button", name="Cards", exact=True).wait_for()
        await panel.get_by_role("button", name="Delete “Cards”").click()
        await fails("DELETE", "/conversations/", "Delete", ".past li .trouble")
        sentence = "Answers are not available right now."
        await fails("GET", "/conversations/", "Cards", ".turns .trouble")
        sentence = "Something went wrong. Please try again."
        await panel.get_by_role("button", name="Try again").click()
        await panel.get_by_text("12 euros").first.wait_for()
        await past.click()
        await panel.get_by_role("button", name="Delete all my conversations").click()
        await fails("DELETE", "/visitors/me", "Delete", ".past .all .trouble")
        assert len(fakes.conversations.kept) == 1
        await panel.get_by_role("button", name="Delete all my conversations").click()
        await panel.get_by_role("button", name="Delete", exact=True).click()
        await panel.locator(".past", has_text="No conversations yet.").wait_for()
        assert fakes.conversations.kept == {}
        await past.click()
        # What cannot be stopped is ended here all the same.
        fakes.answers.script = lambda _: [Token(text="Half an answer"), 600.0, Done()]
        await page.get_by_role("textbox", name="Your question").fill("And for children?")
        await page.keyboard.press("Enter")
        await panel.get_by_text("Half an answer").wait_for()
        failing.wanted = ("DELETE", "/answers/")
        await panel.get_by_role("button", name="Stop answering").click()
        await panel.locator(".trouble", has_text="The answer could not be stopped;").wait_for()
        assert await panel.locator(".note", has_text="Stopped.").is_visible()


async def test_an_undo_whose_answer_is_lost_takes_back_one_question(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving() as url:
        page = await browser.open(url)
        await page.get_by_role("button", name="Ask a question").click()
        await ask(page)
        await ask(page, "And for children?")

        async def lost(route: Any) -> None:
            await route.fetch()
            await route.abort()

        await page.route("**/undo", lost)
        await page.get_by_role("button", name="Remove this question and its answer").click()
        await page.locator(".turn", has_text="And for children?").wait_for(state="detached")
        await page.locator(".turn .actions button").first.wait_for()
        assert await page.locator(".question [dir]").all_inner_texts() == ["What does a card cost?"]
        assert await page.locator(".trouble").count() == 0


UNAVAILABLE = "The chat is not available on this page."
MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {  # what is served, in the console, to the visitor
    "site": (
        {"tag": lambda tag: tag.replace("town", "twon", 1)},
        'knows no data-site="twon"; write an id that stands below `sites` in its pagewire.yaml, such as data-site="tow',
        UNAVAILABLE,
    ),
    "origin": ({"invited": False}, "refuses pages of {origin}; in pagewire.yaml, add it to the site town", UNAVAILABLE),
    "nobody": (
        {"gateway": "http://127.0.0.1:9"},
        "nothing answers at http://127.0.0.1:9/v1 (from data-gateway",
        "Answers are not available",
    ),
    "somebody": (
        {"gateway": "/"},
        "what answers at {origin}/v1 (from data-gateway, or the script's own address) is no Pagewire",
        UNAVAILABLE,
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_in_the_tag_tells_the_developer_the_cause_and_the_visitor_one_sentence(
    browser: Browser, host: Host, mistake: str
) -> None:
    served, cause, sentence = MISTAKES[mistake]
    requests: list[str] = []
    async with host.serving(**served) as url:
        page = await browser.open(url)
        page.on("request", lambda request: requests.append(request.url) if request.method == "POST" else None)
        await page.get_by_role("button", name="Ask a question").click()
        await page.get_by_role("textbox", name="Your question").fill("How much?")
        await page.keyboard.press("Enter")
        await page.locator(".turn:not(.busy) .trouble", has_text=sentence).wait_for()
        assert await page.get_by_role("button", name="Try again").count() == (sentence != UNAVAILABLE)
        assert len(requests) <= 2
        await page.get_by_role("button", name="Your conversations").click()
        await page.locator(".past .trouble", has_text=sentence).wait_for()
        [said] = [each for each in browser.complaints if each.startswith("pagewire-chat: ")]
        assert cause.format(origin=url) in said


BARRIERS = {
    "no site": (lambda tag: tag.replace('data-site="town"', ""), ["the attribute data-site is missing"]),
    "misspelt": (
        lambda tag: tag.replace("data-site", "data-sight-id").replace("data-lang", "data-langs"),
        ['data-langs="en" is not read; write data-lang="en"', "the attribute data-site is missing"],
    ),
    "without data": (
        lambda tag: tag.replace("data-site", "site"),
        ['site="town" is not read; write data-site="town"', "the attribute data-site is missing"],
    ),
    "scheme": (
        lambda tag: tag + ' data-gateway="chat.town.example"',
        ['data-gateway="chat.town.example" is no address of a gateway; write it with its scheme'],
    ),
    "labels": (
        lambda tag: tag + ' data-labels="kind:form,tax:"',
        ['data-labels="kind:form,tax:" is no list of labels; write data-labels="kind:form, department:tax"'],
    ),
}


@pytest.mark.parametrize("mistake", BARRIERS)
async def test_what_cannot_work_is_said_before_anything_is_asked(browser: Browser, host: Host, mistake: str) -> None:
    tag, causes = BARRIERS[mistake]
    async with host.serving(tag=tag) as url:
        page = await browser.open(url)
        await page.get_by_role("button", name="Ask a question").click()
        await page.get_by_role("dialog").get_by_text(UNAVAILABLE).wait_for()
        assert await page.get_by_role("textbox").count() == 0
        await page.evaluate("document.querySelector('pagewire-chat').ask('How much?')")
        assert len(browser.complaints) == len(causes)
        for cause, said in zip(causes, browser.complaints, strict=True):
            assert cause in said


async def test_a_name_that_is_nearly_right_is_no_obstacle(browser: Browser, host: Host, fakes: FakePorts) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving(**{"headding": "us", "cfasync": "false", "turbo-track": "reload"}) as url:
        page = await browser.open(url)
        await page.get_by_role("button", name="Ask a question").click()
        await ask(page)
        assert browser.complaints == [
            'pagewire-chat: the attribute data-headding="us" is not read; write data-heading="us"'
        ]


async def test_a_tag_with_nothing_on_it_is_said(browser: Browser, host: Host) -> None:
    async with host.serving(tag=lambda _: "") as url:
        await browser.open(url)
        [said] = browser.complaints
        assert "has no data-site, and the page no <pagewire-chat>; write the site's id" in said


async def test_pages_with_https_and_pages_from_a_file(browser: Browser, url: str, tmp_path: Path) -> None:
    page = await browser.open(url)
    tag = '<html lang="de"><script src="{}/widget.js" data-site="town" {}></script>'
    secure = "https://www.town.example"

    async def website(route: Any) -> None:
        if route.request.url.endswith("/widget.js"):
            await route.fulfill(body=BUNDLE, content_type="text/javascript")
        else:
            html = tag.format("", 'data-gateway="http://chat.town.example"')
            await route.fulfill(body=html, content_type="text/html; charset=utf-8")

    await page.route(f"{secure}/**", website)
    (tmp_path / "index.html").write_text(tag.format(url, ""), "utf-8")
    for address, cause in (
        (secure, 'without (data-gateway="http://chat.town.example"); put TLS before the gateway'),
        (f"file://{tmp_path}/index.html", "python3 -m http.server 8080"),
    ):
        browser.complaints.clear()
        await page.goto(address)
        await page.get_by_role("button", name="Frage stellen").click()
        await page.get_by_text("Der Chat ist auf dieser Seite nicht verfügbar.").wait_for()
        assert [cause in said for said in browser.complaints] == [True], browser.complaints


HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>"


async def test_nothing_in_attributes_answers_titles_and_passages_is_obeyed(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    text = (
        f"{HOSTILE} [a](javascript:alert(1)) [b](<javascript:alert(1)>) <javascript:alert(1)> [c]( data:text/html,x )"
    )
    fakes.answers.script = written(
        text,
        (
            source(1, "a", HOSTILE, url="javascript:alert(1)", text=f"Before. {HOSTILE} After."),
            source(2, "b", "B", url="//evil.example/x", text="x"),
            source(3, "c", "C", url="JaVaScRiPt:alert(1)"),
        ),
        (),
    )
    async with host.serving(
        heading=HOSTILE,
        examples=HOSTILE,
        intro=HOSTILE,
        disclaimer=HOSTILE,
        privacy="javascript:alert(1)",
        accent="red;background:url(//evil.example)",
    ) as url:
        page = await browser.open(url)
        page.on("dialog", lambda dialog: browser.complaints.append(dialog.message))
        await page.get_by_role("button", name="Ask a question").click()
        await page.get_by_role("button", name=HOSTILE).click()
        await page.get_by_role("heading", name="Sources").wait_for()
        for chip in await page.locator("button.chip").all():
            await chip.click()
        found = await page.evaluate(
            """() => {
              const root = document.querySelector("pagewire-chat").shadowRoot;
              return [root.querySelectorAll("img, script, iframe, [onerror]").length,
                      [...root.querySelectorAll("a")].map(({ href }) => href)];
            }"""
        )
        assert found == [0, ["http://evil.example/x"]]  # a link, which a page may have; nothing that runs
        assert browser.complaints == []


async def test_style_sheets_of_the_host_do_not_get_in(browser: Browser, url: str) -> None:
    looks = """() => [...document.querySelector("pagewire-chat").shadowRoot
      .querySelectorAll(".launcher, .panel, h2, p, textarea")].map((node) => {
        const s = getComputedStyle(node);
        return [s.color, s.backgroundColor, s.fontFamily, s.fontSize, s.letterSpacing, s.textTransform, s.textAlign,
          s.padding, s.borderTopStyle, s.width, s.height];
      })"""
    found = []
    for name in ("light", "hostile"):
        page = await browser.open(f"{url}/widget/{name}")
        await page.get_by_role("button", name="Ask a question").click()
        found.append(await page.evaluate(looks))
    assert found[0] == found[1]
    assert browser.complaints == []


async def test_the_live_page_shows_every_example(browser: Browser, url: str) -> None:
    page = await browser.open(f"{url}/widget/", height=6000)  # frames load when they come into view
    for number in range(await page.locator("iframe").count()):
        frame = page.frame_locator("iframe").nth(number)
        await frame.locator(".launcher").wait_for()
    assert number + 1 == len(EXAMPLES)
    await page.frame_locator("iframe").first.locator(".launcher").click()
    await page.frame_locator("iframe").first.get_by_role("dialog").wait_for()
    assert browser.complaints == []


@pytest.mark.parametrize("width", [320, 1000])
async def test_from_right_to_left(browser: Browser, host: Host, fakes: FakePorts, width: int) -> None:
    fakes.answers.script = written("כרטיס קורא עולה **12 אירו** לשנה.", (source(1, "a", "ספרייה", lang="he"),))
    async with host.serving(lang="he", dir="rtl", heading="הספרייה") as url:
        page = await browser.open(url, width=width, height=640)
        opener = page.get_by_role("button", name="שאילת שאלה")
        box = await opener.bounding_box()
        assert box is not None
        assert box["x"] < 40  # the end of a line is on the left
        await opener.click()
        await page.get_by_role("textbox").fill("כמה עולה כרטיס?")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="מקורות").wait_for()
        question = await page.locator(".question").bounding_box()
        close = await page.get_by_role("button", name="סגירת הצ׳אט").bounding_box()
        panel = await page.get_by_role("dialog").bounding_box()
        assert question is not None
        assert close is not None
        assert panel is not None
        middle = panel["x"] + panel["width"] / 2
        assert question["x"] < panel["x"] + 40
        assert close["x"] < middle
        assert await overflow(page) == [0, 0, 0]
        assert browser.complaints == []


OPENERS = {
    "ar": "اطرح سؤالاً",
    "de": "Frage stellen",
    "en": "Ask a question",
    "es": "Hacer una pregunta",
    "fr": "Poser une question",
    "he": "שאילת שאלה",
    "hu": "Kérdés feltevése",
    "it": "Poni una domanda",
    "nl": "Ask a question",
    "pl": "Zadaj pytanie",
    "ro": "Puneți o întrebare",
}


@pytest.mark.parametrize(
    ("cited", "fragment"),
    [
        ("| Dog | Tax |\n| --- | --- |\n| first | 84 |", "Dog-,Tax,84"),
        ("|  |  |\n| --- | --- |\n| first | 84 |", "first-,84"),
        ("On 3\\. May\\: \\*\\* ~~20 €~~ 15 € a year.", "On%203.%20May%3A%20**-,15%20%E2%82%AC%20a%20year."),
        ("Open daily\nfrom 9 to 18", "Open%20daily-,from%209%20to%2018"),
        ("Please bring:\n\n- a **photo**\n- 60 euros", "Please%20bring%3A-,a%20photo,60%20euros"),
        (
            "A*A*A for [5*3](/x) of `*.txt` in __init__.py: https://t.example/Foo_(bar) too.",
            "A*A*A%20for%205*3%20of%20*.txt%20in%20__init__.py%3A%20https%3A%2F%2Ft.example%2FFoo_(bar)%20too.",
        ),
        (
            "見る https://t.example/路 です。",
            "%E8%A6%8B%E3%82%8B%20https%3A%2F%2Ft.example%2F%E8%B7%AF%20%E3%81%A7%E3%81%99%E3%80%82",
        ),
    ],
)
async def test_a_cited_table_or_list_is_marked_in_its_passage(
    browser: Browser, url: str, fakes: FakePorts, cited: str, fragment: str
) -> None:
    read = source(1, "tax", "Tax", text=f"Before.\n\n{cited}\n\nAfter.")
    fakes.answers.script = written(cited, [read], [Citation(n=1, start=0, end=len(cited), quote=plain(cited))])
    page = await browser.open(f"{url}/widget/light")
    await page.get_by_role("button", name="Ask a question").click()
    await ask(page)
    await page.locator(".chip").click()
    assert await marked(page) == plain(cited)
    assert (await page.locator("sup a").get_attribute("href") or "").endswith(f"#:~:text={fragment}")


async def test_every_language_fits_320_pixels(browser: Browser, url: str, fakes: FakePorts) -> None:
    fakes.answers.script = LIBRARY
    page = await browser.open(f"{url}/widget/light", width=320, height=640)
    for lang, opener in OPENERS.items():
        await page.evaluate(
            """(lang) => {
              document.querySelector("pagewire-chat").remove();
              sessionStorage.clear();
              const chat = document.createElement("pagewire-chat");
              chat.setAttribute("site", "town");
              chat.setAttribute("lang", lang);
              chat.setAttribute("heading", "Kranichmünde-Niederlausitz");
              document.body.append(chat);
            }""",
            lang,
        )
        await page.get_by_role("button", name=opener).click()
        await page.get_by_role("textbox").fill("?")
        await page.keyboard.press("Enter")
        await page.locator(".turn .actions button").first.wait_for()
        assert await overflow(page) == [0, 0, 0], lang
        await page.locator(".actions button[aria-pressed]").last.click()
        await page.locator(".comment textarea").wait_for()
        assert await overflow(page) == [0, 0, 0], lang
        said = await page.evaluate("document.querySelector('pagewire-chat').shadowRoot.textContent")
        assert not re.search(r"undefined|\{\w+\}", said), lang
        await page.evaluate("document.querySelector('pagewire-chat').close()")
    assert browser.complaints == []


class Late:
    """A middleware that keeps back what the gateway says of one conversation until it is let go."""

    def __init__(self) -> None:
        self.kept_back = ""
        self.waiting = asyncio.Event()
        self.go = asyncio.Event()

    def __call__(self, app: Any) -> Any:
        async def handler(scope: Any, receive: Any, send: Any) -> None:
            if self.kept_back and scope.get("path", "").endswith(f"/conversations/{self.kept_back}"):
                self.waiting.set()
                await self.go.wait()
            await app(scope, receive, send)

        return handler


async def two_conversations(page: Any, fakes: FakePorts) -> list[str]:
    """Their ids; the second one is shown."""
    await ask(page, "What does a card cost?")
    await page.get_by_role("button", name="New conversation").click()
    await ask(page, "Where is the pool?")
    return [question.conversation_id for question in fakes.answers.asked]


async def choose(page: Any, title: str) -> None:
    await page.get_by_role("button", name="Your conversations").click()
    await page.get_by_role("button", name=title, exact=True).click()


async def test_of_two_conversations_opened_quickly_the_last_one_is_shown_and_goes_on(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    fakes.answers.script = written("So it is.")
    late = Late()
    async with host.serving(mode="page", around=late) as url:
        page = await browser.open(url)
        first, second = await two_conversations(page, fakes)
        late.kept_back = first
        await choose(page, "What does a card cost?")
        await asyncio.wait_for(late.waiting.wait(), 10)
        await choose(page, "Where is the pool?")
        await page.locator(".turn .actions button").first.wait_for()
        async with page.expect_response(f"**/conversations/{first}"):
            late.go.set()
        await ask(page, "And on Sundays?")
        asked = fakes.answers.asked[-1]
        assert (asked.question, asked.conversation_id) == ("And on Sundays?", second)
        assert await page.locator(".turn .question [dir]").all_inner_texts() == [
            "Where is the pool?",
            "And on Sundays?",
        ]


async def test_a_question_asked_before_the_chosen_conversation_is_there_belongs_to_it(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    fakes.answers.script = written("So it is.")
    late = Late()
    async with host.serving(mode="page", around=late) as url:
        page = await browser.open(url)
        first, _ = await two_conversations(page, fakes)
        late.kept_back = first
        await choose(page, "What does a card cost?")
        await asyncio.wait_for(late.waiting.wait(), 10)
        await ask(page, "And for children?")
        assert fakes.answers.asked[-1].conversation_id == first
        async with page.expect_response(f"**/conversations/{first}"):
            late.go.set()
        await ask(page, "And for dogs?")
        assert fakes.answers.asked[-1].conversation_id == first
        assert [turn.question for turn in fakes.answers.asked[-1].history][:2] == [
            "What does a card cost?",
            "And for children?",
        ]


@pytest.mark.parametrize(
    ("written_as", "lang"), [("EN", "en"), ("De", "de"), ("en_US", "en-US"), ("english", "en"), ("", "en")]
)
async def test_a_page_may_write_its_language_as_it_likes(
    browser: Browser, host: Host, fakes: FakePorts, written_as: str, lang: str
) -> None:
    fakes.answers.script = written("So it is.")
    async with host.serving(mode="page", lang=written_as) as url:
        page = await browser.open(url)
        await page.get_by_role("textbox").fill("When?")
        await page.keyboard.press("Enter")
        await page.locator(".turn .actions button").first.wait_for()
        assert [question.lang for question in fakes.answers.asked] == [lang]


async def test_who_is_logged_in_on_the_website_reads_their_groups_pages_as_long_as_they_are(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    tokens = VisitorTokens(token_secret(edge_settings(host.home)), ttl=3_600)
    logged_in = True

    async def website(route: Any) -> None:
        """What a website's own server does, which asks the gateway for the token with a key."""
        if not logged_in:
            return await route.fulfill(status=403)
        given = tokens.issue("town", route.request.post_data_json["before"], ("staff",))
        return await route.fulfill(body=given.model_dump_json(), content_type="application/json")

    async with host.serving(**{"token-url": "/tokens"}) as url:
        page = await browser.open(url)
        await page.route(f"{url}/tokens", website)
        await page.get_by_role("button", name="Ask a question").click()
        fakes.answers.script = LIBRARY
        await ask(page, "What does a card cost?")
        assert fakes.answers.asked[-1].groups == ("staff",)
        assert await page.locator(".answer").first.inner_text() != ""
        logged_in = False
        await page.reload()
        await page.get_by_text("This answer is for people who are signed in.").wait_for()
        assert "euros" not in await page.locator(".turn").first.inner_text()
        await ask(page, "And for children?")
        assert (fakes.answers.asked[-1].groups, fakes.answers.asked[-1].history) == ((), ())
        logged_in = True
        await page.reload()
        await page.get_by_text("12 euros").first.wait_for()
        assert await page.get_by_text("for people who are signed in").count() == 0
        assert await page.evaluate("Object.values(localStorage).filter(kept => kept.includes('pwv1.')).length") == 1
        stored = await page.evaluate("Object.values(localStorage).find(kept => kept.includes('pwv1.'))")
        visitor = tokens.verify(json.loads(stored)["token"])
        assert visitor is not None
        assert visitor.groups == ()  # what is kept in the browser opens nothing


# A browser's part of WebMCP, at both places where the draft has had it; the newer one counts.
MODEL_CONTEXT = """(where => {
  globalThis.offered = [];
  for (const place of where) {
    const registerTool = async (tool, { signal }) => {
      offered.push(`${place} ${tool.name}`);
      globalThis[tool.name] = tool;
      signal.addEventListener("abort", () => offered.push(`gone ${tool.name}`));
    };
    Object.defineProperty(globalThis[place], "modelContext", { value: { registerTool }, configurable: true });
  }
})"""


async def test_labels_of_the_tag_go_with_every_question_and_search(
    browser: Browser, host: Host, fakes: FakePorts
) -> None:
    fakes.answers.script = LIBRARY
    wanted = {"kind": ("form", "A, b"), "department": ("tax & fees",), "constructor": ("x",)}
    async with host.serving(webmcp="", labels="kind:form, department: tax & fees,kind:A, b, constructor:x") as url:
        page = await browser.open("about:blank")
        await page.add_init_script(f'{MODEL_CONTEXT}(["document"])')
        await page.goto(url)
        await page.get_by_role("button", name="Ask a question").click()
        await ask(page)
        assert fakes.answers.asked[-1].labels == wanted
        await page.evaluate("search.execute({ query: 'a card' })")
        assert fakes.search.labels == [wanted]


@pytest.mark.parametrize("where", [["document"], ["navigator"], ["navigator", "document"]])
async def test_an_assistant_in_the_browser_is_offered_search_and_answers(
    browser: Browser, host: Host, fakes: FakePorts, where: list[str]
) -> None:
    fakes.answers.script = LIBRARY
    async with host.serving(webmcp="") as url:
        page = await browser.open("about:blank")
        await page.add_init_script(f"{MODEL_CONTEXT}({json.dumps(where)})")
        await page.goto(url)
        await page.wait_for_function("globalThis.ask && globalThis.search")
        assert await page.evaluate("offered") == [f"{where[-1]} search", f"{where[-1]} ask"]
        said = await page.evaluate("ask.execute({ question: 'What does a card cost?' })")
        assert said["answered"]
        assert said["sources"][0].keys() == {"n", "title", "url", "text"}
        assert await page.evaluate("search.execute({ query: 'a card & more' })") == {"hits": []}
        assert fakes.search.searches[-1][1:] == ("a card & more", "hybrid", 8)
        await page.evaluate("document.querySelector('pagewire-chat').remove()")
        await page.wait_for_function("offered.length === 4")
    async with host.serving() as url:
        page = await browser.open("about:blank")
        await page.add_init_script(f"{MODEL_CONTEXT}({json.dumps(where)})")
        await page.goto(url)
        await page.get_by_role("button", name="Ask a question").wait_for()
        assert await page.evaluate("offered") == []
