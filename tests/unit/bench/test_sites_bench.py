"""The fleet of the benchmark: who counts as served, and what its names and its table are."""

from __future__ import annotations

import asyncio

import httpx

from bench import sites
from bench.sites import Asked, Step
from wiring.settings import Settings

NAMES = [f"site-{number}" for number in range(40)]


def client(*, silent: str = "") -> httpx.AsyncClient:
    """A gateway whose even sites are saved, whose sites that end in 0 give no answers, and one says nothing at all."""

    async def answer(request: httpx.Request) -> httpx.Response:
        site = request.url.path.split("/")[3]
        await asyncio.sleep(0)
        if site == silent:
            await asyncio.Event().wait()
        if request.method == "PUT":
            return httpx.Response(200, json={"state": "searchable" if int(site[-1]) % 2 == 0 else "failed"})
        return httpx.Response(503 if site.endswith("0") else 200)

    return httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://gateway")


async def test_a_site_is_served_that_has_its_page_and_its_answer() -> None:
    seen: list[None] = []
    async with client() as gateway:
        assert await sites._fill(gateway, NAMES, 60.0, lambda: seen.append(None)) == 16
    assert len(seen) == 16


async def test_what_came_in_time_is_told() -> None:
    async with client(silent="site-2") as gateway:
        assert await sites._fill(gateway, NAMES, 0.5, lambda: None) == 15


def test_each_name_is_one_of_a_site() -> None:
    names = sites._names(1_000)
    assert len(set(names)) == 1_000
    Settings.model_validate({"sites": {name: {} for name in names}})


def test_memory_is_told_for_each_thousand_sites_from_the_first_step_with_sites() -> None:
    def step(count: int, mib: float) -> Step:
        asked = Asked(seconds=1.0, cpu=0.5, kib=10.0)
        return Step(count, {"gateway": mib}, {"gateway": 1.0}, asked, asked, asked, [1.0, 2.0, 9.0], count, 100.0)

    lines = {str(line[0]): line[1:] for line in sites._lines([step(0, 90), step(500, 100), step(2_500, 110)])}
    assert lines["gateway, MiB"] == (90, 100, 110, 5.0)
    assert lines["first save of a new site, s"][0] == 2.0
    assert lines["... the longest"][0] == 9.0
