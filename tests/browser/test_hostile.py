"""Nobody's text freezes a visitor's tab: everything that reads strangers' text, at its longest, with hostile units.

A new function or regular expression in widget/src is found by itself, and fails here until it is in the ring.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import punctuation
from typing import Any

import pytest

from tests.browser.conftest import WIDGET
from tests.chromium import Browser

pytestmark = [pytest.mark.browser, pytest.mark.node]

MOST = 50.0  # ms, on a machine as fast as that on which `calibrated` takes:
CALIBRATED = 8.0  # ms
HANGS = 30  # seconds
SLOWER = 16  # times, than this machine: a cheap phone, on which drawing a long answer takes longer than a frame
SHARE = 0.42  # of the time that tokens come; without a rest it is half and more, and that takes eight times as long
TRIES = 5  # the machine may be busy with something else
SOURCES = WIDGET / "src"
MODULES = sorted(path.stem for path in SOURCES.glob("*.ts") if path.stem not in ("index", "search-index", "css.d"))

# What sees no stranger's text, or gives it on as it is.
EXEMPT = {
    "brand.brand": "the page developer's colour",
    "search.PagewireSearch": "puts the others together",
    "search-words": "our own words, and the query as it is",
    "chat.PagewireChat": "puts the others together",
    "client.AnswerClient": "reads JSON",
    "client.AskError": "has no work",
    "dom": "makes nodes of what it is given",
    "feedback.feedback": "sends what was typed",
    "handover.handover": "sends what was typed",
    "setup": "the page developer's own attributes",
    "storage": "reads JSON",
    "talk.Talk": "hands on to Turn",
    "trouble.trouble": "one sentence of our own",
    "webmcp.offerTools": "hands on to AnswerClient",
}

MIXED = Random(7)
UNITS = [
    *punctuation,
    *("0", "a", "א", "字", "👍", "👨\u200d👩\u200d👧", "é", "e\u0301\u0323", "\u0301", "\u00a0", " ", "\n", "\t"),
    *("- ", "| ", "* ", "> ", "# ", ": ", "1. ", "a, ", "字。", "| - ", "- | _ "),
    *("*a ", "_a ", "~~a ", "`a ", "``a` ", "**a", "***a", "*a_b**c__d ", "&a", "&#1", "<br>"),
    *(
        "[a](",
        "[](<",
        '](a "',
        "](",
        "![",
        "[a](b)",
        "<https://",
        "https://(",
        "https://[",
        "https://a.",
        "https://a/*",
    ),
    *("- a\n", "1. a\n", "  - a\n", "> a\n", "a\n", "a\n: b\n", "|a|\n", "```\n"),
    *("".join(MIXED.choices(f"{punctuation}a1 \n", k=length)) for length in (3, 7, 40, 400, 4_000)),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """All modules of the widget as the global `widget`, and the ring."""
    built = tmp_path_factory.mktemp("hostile")
    entry = built / "all.ts"
    entry.write_text("".join(f'export * as "{name}" from "{SOURCES / name}";\n' for name in MODULES), "utf-8")
    esbuild = [WIDGET / "node_modules/.bin/esbuild", entry, "--bundle", "--global-name=widget", "--loader:.css=text"]
    subprocess.run([*esbuild, f"--outfile={built / 'all.js'}", "--log-level=error"], check=True, timeout=60)
    bundle = (built / "all.js").read_text("utf-8").replace("var widget =", "globalThis.widget =", 1)
    return [bundle, Path(__file__).with_name("hostile.js").read_text("utf-8")]


@pytest.fixture(scope="module")
def expressions() -> list[tuple[str, str, str]]:
    """File, pattern and flags of each regular expression of the widget."""
    done = subprocess.run(["node", "patterns.mjs"], cwd=WIDGET, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [(file, pattern, flags) for file, pattern, flags in json.loads(done.stdout)]


async def opened(browser: Browser, url: str, scripts: list[str]) -> Any:
    page = await browser.open(f"{url}/page.css")  # a page without the widget
    for script in scripts:
        await page.evaluate(script)
    return page


async def within(page: Any, work: str, *given: Any) -> float:
    """Milliseconds that it takes, as on a machine where nothing else runs."""
    ms = 0.0
    for _ in range(TRIES):
        try:
            ms = await asyncio.wait_for(page.evaluate(work, list(given)), HANGS)
        except TimeoutError:
            raise AssertionError(f"hangs: {given}") from None
        ms *= min(1.0, CALIBRATED / await page.evaluate("calibrated()")) if ms > MOST else 1
        if ms <= MOST:
            break
    return ms


async def test_every_function_is_in_the_ring(browser: Browser, url: str, scripts: list[str]) -> None:
    page = await opened(browser, url, scripts)
    exported = await page.evaluate(
        """() => Object.entries(widget).flatMap(([name, all]) => Object.entries(all)
          .filter(([, value]) => typeof value === "function").map(([key]) => `${name}.${key}`))"""
    )
    ring = {name.partition(",")[0] for name in await page.evaluate("Object.keys(ring)")}
    exempt = {name for name in exported if name in EXEMPT or name.partition(".")[0] in EXEMPT}
    assert ring | exempt == set(exported)
    assert not ring & exempt


async def test_no_text_takes_long(browser: Browser, url: str, scripts: list[str]) -> None:
    page = await opened(browser, url, scripts)
    too_long = {}
    for name in await page.evaluate("Object.keys(ring)"):
        for unit in UNITS:
            if (ms := await within(page, "([name, unit]) => timed(name, unit)", name, unit)) > MOST:
                too_long[name, unit[:20]] = round(ms)
    assert too_long == {}


async def test_no_expression_takes_long(
    browser: Browser, url: str, scripts: list[str], expressions: list[tuple[str, str, str]]
) -> None:
    page = await opened(browser, url, scripts)
    too_long = {}
    for file, pattern, flags in expressions:
        units = [*UNITS, *pairs(pattern)]
        for start in range(0, len(units), 50):
            work = "([pattern, flags, units]) => slowest(pattern, flags, units)[0]"
            if (ms := await within(page, work, pattern, flags, units[start : start + 50])) > MOST:
                too_long[file, pattern] = round(ms)
    assert too_long == {}


async def test_a_growing_answer_leaves_the_tab_most_of_the_time(browser: Browser, url: str, scripts: list[str]) -> None:
    page = await opened(browser, url, scripts)
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    drawing, whole, shown = await page.evaluate("grown()")
    assert shown
    assert drawing / whole < SHARE


def pairs(pattern: str) -> Iterator[str]:
    """Of each two characters that a pattern speaks of."""
    characters = sorted({*(c for c in pattern if c.isascii()), "a", "1", " "})
    return (one + other for one in characters for other in characters)
