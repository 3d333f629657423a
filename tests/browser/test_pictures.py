"""Screenshots of the widget on the sample site. `make pictures` puts them into docs/pictures; a test run throws them
away, and looks at no pixel: fonts differ from machine to machine.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.app import create_app
from gateway.fakes import FakePages, FakePorts
from schemas.answer import Citation
from schemas.query import Source
from tests.browser.scripts import Script, source, written
from tests.chromium import Browser
from tests.edge import served
from wiring.settings import Settings

pytestmark = pytest.mark.browser


def answer(text: str, *cited: tuple[Source, str, str]) -> Script:
    """`cited`: a source, the words of `text` that it supports, and its own."""
    citations = []
    for one, words, quote in cited:
        start = text.index(words)
        citations.append(Citation(n=one.n, start=start, end=start + len(words), quote=quote))
    return written(text, tuple(one for one, _, _ in cited), tuple(citations))


ENGLISH = answer(
    "A library card costs **12 euros** a year. Children and young people under 18 read for free.\n\n"
    "You get it at the counter within minutes:\n\n- bring your identity card\n- under 16: a parent signs",
    (
        source(
            1,
            "library",
            "Town library",
            text="The library has 40,000 media. A library card costs 12 euros a year. It is valid in all branches.",
        ),
        "A library card costs **12 euros** a year.",
        "A library card costs 12 euros a year.",
    ),
    (
        source(2, "fees", "Fees of the town", text="Children and young people under 18 pay no fee."),
        "under 18 read for free.",
        "Children and young people under 18 pay no fee.",
    ),
)
GERMAN = answer(
    "Ein Ausweis der Stadtbücherei kostet **12 Euro** im Jahr. Kinder und Jugendliche unter 18 lesen kostenlos.\n\n"
    "Sie bekommen ihn am Schalter:\n\n- Personalausweis mitbringen\n- unter 16: Unterschrift der Eltern",
    (
        source(
            1,
            "library",
            "Stadtbücherei",
            lang="de",
            text="Die Bücherei hat 38.000 Medien. Der Ausweis kostet 12 Euro im Jahr. Er gilt in allen Zweigstellen.",
        ),
        "**12 Euro** im Jahr.",
        "Der Ausweis kostet 12 Euro im Jahr.",
    ),
    (
        source(2, "fees", "Gebührensatzung", lang="de", text="Kinder und Jugendliche unter 18 zahlen nichts."),
        "unter 18 lesen kostenlos.",
        "Kinder und Jugendliche unter 18 zahlen nichts.",
    ),
)
HEBREW = answer(
    "כרטיס קורא עולה **12 אירו** לשנה. ילדים ובני נוער עד גיל 18 קוראים בחינם.\n\n- יש להביא תעודת זהות",
    (
        source(1, "library", "הספרייה העירונית", lang="he", text="כרטיס קורא עולה 12 אירו לשנה."),
        "**12 אירו** לשנה.",
        "כרטיס קורא עולה 12 אירו לשנה.",
    ),
)

# Name -> page, size, scheme, answer, question, and whether the first passage is opened.
PICTURES = {
    "widget-light": ("/site/en/library", (1100, 800), "light", ENGLISH, "What does a library card cost?", True),
    "widget-dark": ("/widget/dark?site=demo", (1100, 800), "dark", GERMAN, "Was kostet der Ausweis?", True),
    "widget-german": ("/site/de/library", (1100, 800), "light", GERMAN, "Was kostet der Ausweis?", False),
    "widget-narrow": ("/site/en/library", (320, 640), "light", ENGLISH, "What does a library card cost?", False),
    "widget-rtl": ("/widget/rtl?site=demo", (1100, 800), "light", HEBREW, "כמה עולה כרטיס קורא?", False),
    "widget-brand": ("/widget/brand?site=demo", (1100, 800), "light", GERMAN, "Was kostet der Ausweis?", False),
}


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(pages=FakePages({"demo": "de"}))


@pytest.fixture
async def url(fakes: FakePorts, tmp_path: Path) -> AsyncIterator[str]:
    async with served(create_app(Settings(home=tmp_path), fakes.ports)) as url:
        yield url


@pytest.mark.parametrize("name", PICTURES)
async def test_a_picture(browser: Browser, url: str, fakes: FakePorts, tmp_path: Path, name: str) -> None:
    path, (width, height), scheme, script, question, opened = PICTURES[name]
    fakes.answers.script = script
    scale = 2 if width < 400 else 1
    page = await browser.open(url + path, width=width, height=height, scheme=scheme, device_scale_factor=scale)
    await page.locator(".launcher").click()
    await page.get_by_role("textbox").fill(question)
    await page.keyboard.press("Enter")
    await page.locator(".turn .actions button").first.wait_for()
    if opened:
        await page.locator("summary").first.click()
        await page.locator(".scroller").evaluate("node => (node.scrollTop = 0)")
    target = Path(os.environ.get("PICTURES") or tmp_path) / f"{name}.png"
    await page.screenshot(path=target)
    assert target.stat().st_size > 10_000
    assert browser.complaints == []
