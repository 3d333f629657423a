"""Screenshots of the widget on the sample site, and of the console: the running demo and its real answers.

`make pictures` puts them into docs/pictures, of the whole site. A test run imports what they are about, throws
them away, and looks at no pixel: fonts differ from machine to machine.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pytest
from aiokafka import AIOKafkaProducer

from cli.demo import sample_pages
from sites.content import DEMO, page_documents
from tests.acceptance.system import Instance, save
from tests.chromium import Browser
from tests.console_pictures import PICTURE_OF
from tests.edge import bearer
from tests.engine_fixture import Servers
from tests.published_runs import AFTER, BEFORE, new_run

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.engine]

CARD = "What does a library card cost for adults?"
SATURDAY = "Wann hat die Bibliothek am Samstag geöffnet?"


class Picture(NamedTuple):
    """`says`: what the page says, and so must the answer. `opened`: the first passage is shown, too."""

    path: str
    question: str
    says: str
    width: int = 1100
    height: int = 800
    scheme: str = "light"
    opened: bool = False


PICTURES = {
    "widget-light": Picture("/site/en/library", CARD, "€18", opened=True),
    "widget-dark": Picture("/widget/dark?site=demo", SATURDAY, "10:00–14:00", scheme="dark", opened=True),
    "widget-german": Picture("/site/de/library", SATURDAY, "10:00–14:00"),
    "widget-narrow": Picture("/site/en/library", CARD, "€18", width=320, height=640),
    "widget-rtl": Picture("/widget/rtl?site=demo", CARD, "€18"),
    "widget-brand": Picture("/widget/brand?site=demo", SATURDAY, "10:00–14:00"),
}


@pytest.fixture(scope="module")
def instance(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Instance:
    """Where the sample site is served, without a model: answers quote the pages."""
    return Instance(tmp_path_factory.mktemp("demo"), engine, PAGEWIRE_CONFIG="")


@pytest.fixture(scope="module")
def demo(instance: Instance) -> Iterator[str]:
    """Where it serves its site."""
    if os.environ.get("PICTURES"):
        with instance.started("demo") as started:
            yield started.url
        return
    with instance.started("up") as started:
        with instance.client(started.url, "demo") as client:
            for page in sample_pages(started.url):
                if page.id in ABOUT:
                    save(client, page)
        yield started.url


ABOUT = ("dog-tax", "library", "wedding")
ASKED = {
    CARD: {"rating": "up"},
    SATURDAY: None,
    "Is there a ski lift?": {"rating": "down", "comment": "I saw one from the train!"},
    "Wie melde ich meinen Hund an?": None,
    "Can I marry on a Saturday?": None,
    "Hello!": None,
}
KEY = "key-of-the-acceptance-ring"
EXAMPLE = {"kind": "answer", "question": "Is a library card free?", "output": "For children it is."}
PASTED = """name: few
version: 1
cases:
- {lang: en, question: "Can I marry on a Saturday?", answerable: false}
"""
CORRECTION = {"kind": "answer", "page": "library", "questions": ["Is a card free?"], "text": "For children it is."}
# Of the console, besides those on the way from a question to its page: what it takes until they are whole.
SCREENS = {
    "handovers": ("/console/handovers", ".card"),
    "gaps": ("/console/gaps", ".rows li"),
    "corrections": ("/console/corrections", ".rows li"),
    "new-correction": ("/console/corrections/new?kind=answer", "#questions"),
    "evaluations": ("/console/evaluations", ".chart rect"),
    "examples": ("/console/examples", ".rows li"),
    "new-example": ("/console/examples/new?kind=answer", "#question"),
    "texts": ("/console/texts", "details"),
    "text": ("/console/texts/contact/en", "#text"),
    "indexes": ("/console/indexes", ".facts"),
    "sites": ("/console/sites", ".facts"),
    "privacy": ("/console/privacy?site=demo", "#conversations"),
    "letters": ("/console/dlq", ".rows li"),
    "keys": ("/console/keys", "text=press-office"),
    "audit-log": ("/console/audit-log", ".rows li"),
}


class Camera:
    """Takes the pictures of a page, and knows which it has taken.

    In the folder LOOK, if there is one, it leaves each of them dark and on a phone, too: for whoever looks at them.
    """

    def __init__(self, page: Page, folder: Path) -> None:
        self._page = page
        self._folder = folder
        self.taken: set[str] = set()

    async def take(self, name: str, *, whole: bool = False) -> None:
        self.taken.add(name)
        await self._page.screenshot(path=self._folder / f"console-{name}.png", full_page=whole)
        if look := os.environ.get("LOOK"):
            size = self._page.viewport_size
            assert size
            await self._page.set_viewport_size({"width": 360, "height": 740})
            await self._page.emulate_media(color_scheme="dark")
            await self._page.screenshot(path=Path(look) / f"{name}-phone-dark.png", full_page=True)
            await self._page.set_viewport_size(size)
            await self._page.screenshot(path=Path(look) / f"{name}-dark.png", full_page=True)
            await self._page.emulate_media(color_scheme="light")


async def test_pictures_of_the_console(browser: Browser, instance: Instance, demo: str, tmp_path: Path) -> None:
    await _break_a_page(instance, demo)
    await _ask(demo)
    page = await browser.open(f"{demo}/console/questions", width=1100, height=800)
    camera = Camera(page, Path(os.environ.get("PICTURES") or tmp_path))
    await camera.take("sign-in")
    await page.get_by_label("Key").fill(KEY)
    await page.keyboard.press("Enter")
    await page.locator(".who").wait_for()
    async with asyncio.timeout(180):
        while not {*ASKED} <= {*await page.locator(".question").all_inner_texts()}:
            await page.reload()
    await camera.take("questions")
    await _from_a_question_to_its_page(page, camera)
    await page.emulate_media(color_scheme="dark")
    await page.get_by_role("link", name="Overview").click()
    await page.locator(".chart rect").first.wait_for()
    await camera.take("overview", whole=True)
    await page.emulate_media(color_scheme="light")
    made = await _made_by_programs(demo)
    for name, (path, whole) in (SCREENS | made).items():
        await page.goto(demo + path)
        await page.locator(whole).first.wait_for()
        await camera.take(name)
    await _evaluation(page, camera, demo)
    await page.goto(f"{demo}/console/dlq")
    await page.locator(".rows .question a").first.click()
    await page.locator("pre").first.wait_for()
    await camera.take("letter", whole=True)
    await page.goto(f"{demo}/console/indexes/audit")
    await page.get_by_role("button", name="Audit now").click()
    await page.get_by_text("finished", exact=True).wait_for(timeout=180_000)  # the page looks again by itself
    await camera.take("audit")
    assert camera.taken == set(PICTURE_OF.values())
    assert browser.complaints == []


async def _break_a_page(instance: Instance, demo: str) -> None:
    """A program writes a price of tomorrow into the change log, past the gateway, and a revision that is no number."""
    pages = page_documents(DEMO, f"{demo}/site")
    page = next(each for each in pages if (each["id"], each["lang"]) == ("library", "en"))
    change = {
        "v": 1, "op": "upsert", "site": "demo", "lang": "en", "page_id": "library", "revision": "the 2nd",
        "accepted_at": "2026-11-24T12:00:00Z", "source": "import",
        "page": page | {"content": page["content"].replace("€18", "€20")},
    }  # fmt: skip
    producer = AIOKafkaProducer(bootstrap_servers=instance.environment["PAGEWIRE_KAFKA"])
    await producer.start()
    try:
        topic = f"{instance.environment['PAGEWIRE_TOPIC_PREFIX']}cms.changes"
        await producer.send_and_wait(topic, json.dumps(change).encode(), b"demo:en:library")
    finally:
        await producer.stop()


async def _ask(demo: str) -> None:
    async with httpx.AsyncClient(base_url=f"{demo}/v1/sites/demo", headers=bearer(KEY), timeout=60) as client:
        for question, feedback in ASKED.items():
            answer = (await client.post("/chat", json={"question": question})).raise_for_status().json()
            if feedback:
                path = f"/answers/{answer['request_id']}/feedback"
                (await client.post(path, json=feedback)).raise_for_status()


async def _from_a_question_to_its_page(page: Page, camera: Camera) -> None:
    await page.get_by_role("link", name=CARD).first.click()
    await page.get_by_role("heading", name="Pages that were found").wait_for()
    await camera.take("question", whole=True)
    question = page.url
    await page.get_by_role("link", name="Ask again in the playground").click()
    await page.get_by_role("button", name="Add a column").click()
    await page.get_by_role("group", name="Column B").get_by_label("Language of the answer").select_option("de")
    await page.get_by_role("button", name="Ask", exact=True).click()
    await page.locator(".trial").nth(1).wait_for()
    assert "€18" in await page.locator(".trial .seen").first.inner_text()
    await camera.take("playground", whole=True)
    await page.goto(question)
    await page.locator("li:has(.badge) > a").first.click()
    await page.locator(".chunks .seen").first.wait_for()
    assert "€18" in await page.locator(".chunks").inner_text()
    await camera.take("page")


async def _evaluation(page: Page, camera: Camera, demo: str) -> None:
    """Ordered with two settings to compare, its cost shown first, and read when it is finished."""
    await page.goto(f"{demo}/console/evaluations?site=demo")
    await page.get_by_role("link", name="Start an evaluation").click()
    if os.environ.get("PICTURES"):
        await page.locator("#dataset").select_option("questions")
    else:  # asked within seconds, also by a slow machine
        await page.get_by_text("Or paste a dataset").click()
        await page.locator("#pasted").fill(PASTED)
    await page.locator("#hits").fill("1, 5")
    await page.get_by_role("button", name="Show the cost").click()
    await page.locator(".well .facts").wait_for()
    await camera.take("new-evaluation", whole=True)
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.get_by_text("finished", exact=True).wait_for(timeout=300_000)  # the page looks again by itself
    await camera.take("evaluation-run")


async def _made_by_programs(demo: str) -> dict[str, tuple[str, str]]:
    """An example, a correction, a key, two published runs. Returns: screens that have an id in their address."""
    async with httpx.AsyncClient(base_url=f"{demo}/v1/admin", headers=bearer(KEY), timeout=60) as client:
        (await client.post("/sites/demo/examples", json=EXAMPLE)).raise_for_status()
        corrected = (await client.post("/sites/demo/corrections", json=CORRECTION)).raise_for_status().json()
        key = await client.post("/keys", json={"name": "press-office", "scopes": ["edit"], "site": "demo"})
        runs = [new_run(days, said, dataset="demo") for days, said in ((0, BEFORE), (1, AFTER))]
        published = [
            (await client.post("/sites/demo/evaluations", json=each.model_dump(mode="json"))).raise_for_status().json()
            for each in runs
        ]
    before, after = (each["id"] for each in published)
    return {
        "key": (f"/console/keys/{key.raise_for_status().json()['id']}", ".facts"),
        "correction": (f"/console/corrections/{corrected['id']}", ".rows li"),
        "evaluation": (f"/console/evaluations/{after}", "tbody tr"),
        "evaluation-pair": (f"/console/evaluations/compare?before={before}&after={after}", "ins"),
    }


@pytest.mark.parametrize("name", PICTURES)
async def test_a_picture(browser: Browser, demo: str, tmp_path: Path, name: str) -> None:
    picture = PICTURES[name]
    scale = 2 if picture.width < 400 else 1
    page = await browser.open(
        demo + picture.path,
        width=picture.width,
        height=picture.height,
        scheme=picture.scheme,
        device_scale_factor=scale,
    )
    await page.locator(".launcher").click()
    await page.get_by_role("textbox").fill(picture.question)
    await page.keyboard.press("Enter")
    await page.locator(".turn .actions button").first.wait_for()
    assert picture.says in await page.locator(".turn .answer").inner_text()
    if picture.opened:
        await page.locator(".chip").first.click()
    target = Path(os.environ.get("PICTURES") or tmp_path) / f"{name}.png"
    await page.screenshot(path=target)
    assert target.stat().st_size > 10_000
    assert browser.complaints == []


if os.environ.get("PICTURES"):  # of three pages, as without, none suggests a question

    async def test_a_picture_of_the_first_view(browser: Browser, demo: str, tmp_path: Path) -> None:
        """Its questions are made from the site's own pages, and asked before anybody sees them."""
        async with httpx.AsyncClient(base_url=f"{demo}/v1/sites/demo", timeout=60) as client, asyncio.timeout(300):
            for lang in ("en", "de"):
                while not (made := (await client.get("/welcome", params={"lang": lang})).json()["examples"]):
                    pass
                for question in made:
                    answer = (await client.post("/chat", json={"question": question}, headers=bearer(KEY))).json()
                    assert answer["certainty"] in ("said", "place"), question
        page = await browser.open(f"{demo}/widget/brand?site=demo", width=1100, height=800)
        await page.locator(".launcher").click()
        await page.locator(".welcome li").first.wait_for()
        await page.screenshot(path=Path(os.environ.get("PICTURES") or tmp_path) / "widget-first.png")
        assert browser.complaints == []
