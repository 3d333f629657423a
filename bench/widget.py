"""What the widget costs a page: bytes, milliseconds to its button, milliseconds from the click to the painted panel.

own process: gateway over its fakes ─▶ Chromium: an empty page with the script ─▶ click ─▶ next painted frame
"""

from __future__ import annotations

import asyncio
import gzip
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import uvicorn

from bench.report import percentile, report
from gateway.app import create_app
from gateway.fakes import FakePorts
from pipelines.runtime import logs
from wiring.settings import Settings, SiteSettings

# From the click to the end of the frame that shows what it did: a message is delivered after the frame is painted.
CLICKED = """new Promise((resolve) => {
  const chat = document.querySelector("pagewire-chat");
  const launcher = chat.shadowRoot.querySelector(".launcher");
  launcher.addEventListener("click", () => {
    const begun = performance.now();
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve(performance.now() - begun);
      port2.postMessage(null);
    });
  }, { capture: true });
  launcher.click();
})"""
READY = "performance.getEntriesByName('pagewire')[0].startTime"
MARK = "addEventListener('pagewire:ready', () => performance.mark('pagewire'))"


def main(rounds: int = 20) -> None:
    """Bytes of the bundle; milliseconds of `rounds` first openings, each in a fresh browser context."""
    if shutil.which("chromium") is None:
        print("bench widget: left out, there is no chromium")
        return
    asyncio.run(_run(rounds))


async def _run(rounds: int) -> None:
    from playwright.async_api import async_playwright  # only this benchmark needs it

    bundle = (files("gateway") / "static" / "widget.js").read_bytes()
    ready, painted = [], []
    with tempfile.TemporaryDirectory() as home:
        async with _gateway(Path(home)) as url, async_playwright() as playwright:
            chromium = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for _ in range(rounds):
                context = await chromium.new_context()
                await context.add_init_script(MARK)
                page = await context.new_page()
                await page.goto(f"{url}/widget/light")
                await page.locator(".launcher").wait_for()
                ready.append(await page.evaluate(READY))
                painted.append(await page.evaluate(CLICKED))
                await context.close()
            await chromium.close()
    lines = [
        ("bundle, bytes", len(bundle), "", ""),
        ("bundle gzipped, bytes", len(gzip.compress(bundle)), "", ""),
        *(
            (name, percentile(found, 50), percentile(found, 95), max(found))
            for name, found in (("page begun to button, ms", ready), ("click to painted panel, ms", painted))
        ),
    ]
    report("widget", "what the widget costs a page", ("", "p50", "p95", "worst"), lines, rounds=rounds)


@asynccontextmanager
async def _gateway(home: Path) -> AsyncIterator[str]:
    settings = Settings(home=home, sites={"town": SiteSettings()}, log_level="warning")
    logs.configure(settings)
    app = create_app(settings, FakePorts().ports)
    server = uvicorn.Server(uvicorn.Config(app, port=0, access_log=False, log_level="warning"))
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:  # noqa: ASYNC110  # uvicorn sets no event
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
