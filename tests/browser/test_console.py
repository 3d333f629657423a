"""The console as axe and a window of any width see it: over the fakes, in both schemes and both languages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from gateway.console.words import LANGUAGES
from pipelines.query.live.site_privacy import written_rules
from schemas.answer import Failed
from schemas.example import NewExample, WorkedExample
from schemas.outcome import Verdict, VerdictEvent
from schemas.privacy import PrivacyRules
from schemas.query import Question
from schemas.text_version import TextVersion
from tests.browser.test_accessibility import violations
from tests.chromium import Browser
from tests.console import ACT, CARD, FAILED, KEY, SAUNA, console_ports, fill, tried
from tests.edge import ADMIN
from tests.fakes.ports import FakePorts, Step
from tests.making import NOON, letter
from tests.published_runs import AFTER, run
from wiring.settings import Settings

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.node]

SCREENS = {
    "overview": "/console/",
    "questions": "/console/questions",
    "wrong-filter": "/console/questions?lang=%20&feedback=up",
    "question": f"/console/questions/{CARD}",
    "failed": f"/console/questions/{FAILED}",
    "gaps": "/console/gaps?show=asked",
    "evaluations": "/console/evaluations",
    "evaluation": f"/console/evaluations/{run().id}",
    "evaluation-pair": f"/console/evaluations/compare?before={run().id}&after={run(1).id}",
    "new-evaluation": "/console/evaluations/new?site=town",
    "evaluation-run": "/console/evaluations/new?site=town",
    "page": "/console/page?id=library&of=en",
    "playground": f"/console/playground?again={CARD}",
    "examples": "/console/examples",
    "new-example": "/console/examples/new?kind=answer",
    "like-example": "/console/examples/new?kind=rephrase",
    "corrections": "/console/corrections",
    "new-correction": "/console/corrections/new?kind=answer",
    "handovers": "/console/handovers?site=town",
    "texts": "/console/texts",
    "text": "/console/texts/canned/nothing-found.en",
    "compared-text": "/console/texts/contact/en",
    "glossary": "/console/texts/glossary/terms",
    "settings": "/console/texts/settings/answers",
    "indexes": "/console/indexes",
    "sites": "/console/sites?site=town&done=chat-off",
    "privacy": "/console/privacy?site=town",
    "letters": "/console/dlq",
    "letter": "/console/dlq/cms.changes/0/1",
    "keys": "/console/keys?revoked=webmaster-1",
    "key": f"/console/keys/{KEY.id}",
    "audit-log": "/console/audit-log?who=admin",
    "nowhere": "/console/nowhere",
}


def _script(question: Question) -> Sequence[Step]:
    if question.trial is not None and question.trial.strategy == "react":
        return [Failed(code="model-denied", message="Not now.")]
    return tried(question)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> FakePorts:
    monkeypatch.setattr(Settings, "models", lambda settings, site: ("large", "small"))
    made = console_ports()
    made.answers.script = _script
    return made


# Colours do not depend on words: each scheme in one language looks at all of both.
@pytest.mark.parametrize(("lang", "scheme"), list(zip(LANGUAGES, ("light", "dark"), strict=True)))
async def test_every_screen_in_every_dress(
    browser: Browser, url: str, fakes: FakePorts, lang: str, scheme: Literal["light", "dark"]
) -> None:
    """Signed in by keyboard; nothing to complain of, nothing wider than a phone; no console error but for a 4xx."""
    await fill(fakes)
    await fakes.audit_log.put(ACT)
    figure = {"cases": 3, "mean": 0.6, "low": 0.2, "high": 0.9, "judged": 2, "of": 3, "at_worst": 0.4, "at_best": 0.8}
    judged = run(judge="small", judged={"all": {"faithfulness": figure}})
    verdict = Verdict(judged_at=NOON, judge="small", faithfulness=1.0, context_relevancy=0.5)
    for id in (CARD, SAUNA):
        said = VerdictEvent(site="town", request_id=id, conversation="c", asked_at=NOON, verdict=verdict)
        await fakes.outcomes.put_verdict(said)
    for each in (judged, run(1, AFTER, note="Chunks of 1000.")):
        await fakes.runs.put(each)
    like = NewExample(question="Is a library card free?", output="Is a card of the library free?")
    for spoken in ("en", "de"):
        await fakes.examples.put(WorkedExample.of(like, "town", spoken, NOON))
    for number, days in enumerate((400, 500), start=1):
        rules = PrivacyRules(log_questions="on", conversations=90, outcomes=days)
        version = {"site": "town", "kind": "privacy", "name": "rules", "version": number, "by": "anna", "at": NOON}
        await fakes.texts.add(
            TextVersion.model_validate(version | {"text": written_rules(rules), "note": "Our notice."})
        )
    made = letter(1)
    fakes.letters.kept[made.letter.id] = made
    page = await browser.open(url + "/console/", width=1100, height=900)
    assert await violations(page) == []
    await page.keyboard.type(ADMIN)
    await page.keyboard.press("Enter")
    await page.locator(".who").wait_for()
    for name, path in SCREENS.items():
        await page.set_viewport_size({"width": 1100, "height": 900})
        await page.emulate_media(color_scheme=scheme)
        await page.goto(f"{url}{path}{'&' if '?' in path else '?'}ui={lang}")
        if name == "playground":
            await _try_out(page)
        if name in ("new-evaluation", "evaluation-run"):
            await _order(page)
        if name == "evaluation-run":
            await page.locator("[value=start]").click()
            await page.locator(".badge.calm").wait_for()  # the page looks again by itself
        if name == "compared-text":
            await page.locator("#text").fill("Ring the town hall.")
            await page.locator("main .actions button").click()
            await page.locator("pre").wait_for()
        if name == "privacy":
            await page.locator("#conversations").fill("30")
            await page.locator("main .actions button").click()
            await page.locator(".wrong").first.wait_for()
        if name == "glossary":
            await page.locator("#text").fill("Lido: {en: [pool, baths], de: Freibad}")
            await page.locator("#asked").fill("Is the pool open?")
            await page.locator("main .actions button").click()
            await page.locator("pre").wait_for()
        if name == "like-example":
            await page.locator("#question").fill("Is a library card free?")
            await page.locator("#output").fill("Is a library card free?")
            await page.locator("main .actions button").click()
            await page.locator("[role=alert]").wait_for()
        await page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert await violations(page) == [], (name, lang, scheme)
        await _keep(page, f"{name}-{lang}-{scheme}")
        await page.set_viewport_size({"width": 320, "height": 640})
        assert await page.evaluate("document.documentElement.scrollWidth") == 320, (name, lang)
        await _keep(page, f"{name}-{lang}-phone")
    assert [each for each in browser.complaints if "status of 4" not in each] == []


async def _order(page: Page) -> None:
    """An evaluation, up to what it costs."""
    await page.locator("details:has(#pasted) summary").click()
    await page.locator("#pasted").fill("- {question: Card fees, lang: en, answers: 18 euros}")
    await page.locator("#hits").fill("1, 5")
    await page.locator("[value=plan]").click()
    await page.locator(".well .facts").wait_for()


async def _try_out(page: Page) -> None:
    """The question of the log in three columns, of which the second quotes and the third has failed."""
    await page.locator("button[value=more]").click()
    await page.locator("#strategy2").select_option("quote")
    await page.locator("#index2").select_option("pagewire-town-000002")
    await page.locator("button[value=more]").click()
    await page.locator("#strategy3").select_option("react")
    await page.locator("button[value=ask]").click()
    await page.locator(".trial").nth(2).wait_for()
    tops = [
        box["y"]
        for section in await page.locator(".trial > section:nth-of-type(3)").all()
        if (box := await section.bounding_box())
    ]
    assert len(tops) == 2
    assert len(set(tops)) == 1  # the same parts stand side by side


async def _keep(page: Page, name: str) -> None:
    if folder := os.environ.get("LOOK"):
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
