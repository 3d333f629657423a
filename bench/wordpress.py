"""A real WordPress beside a running system: a save until it is found, what it costs the editor, the first sync.

update   click (REST, as the block editor saves) ─▶ plugin ─▶ webhook ─▶ found by a search ─▶ said in an answer
save     the same click with the plugin on and off, in turns
sync     `pagewire import SITE CONNECTOR`, listed ─▶ searchable, against the model alone on the same chunks

Needs the packages of the WordPress ring (tests/conftest.py names them).
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing
from pathlib import Path
from time import perf_counter, sleep

import httpx
import yaml
from rich.progress import track

from bench.ingest import embedded_texts, timed
from bench.report import percentile, report
from bench.system import home
from bench.xquad import load as load_xquad
from cli.content import import_connector
from cli.up import running
from connectors.cms.frame import Listed
from connectors.cms.sources import opened
from gateway.edge.keys import admin_key
from schemas.page import PageDocument
from tests.wordpress.peer import USER, WordPress, built
from tests.wordpress.peer import running as wordpress_running
from tests.wordpress.receiver import SECRET
from wiring.clients import Clients
from wiring.settings import Settings
from wiring.settings_file import load

SITE, CONNECTOR = "wordpress", "blog"
SENTENCES = 8  # of a post: about 950 characters
TURNS = 10  # saves with the plugin on, then as many with it off
PAUSE = 1.0  # seconds between two saves: an editor's next one does not compete with the work on the last
LOOK_EVERY = 0.05  # seconds between two searches
PATIENCE = 60.0  # seconds
SEED = 6
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def main(data: Path, saves: int, posts: int) -> None:
    """Milliseconds of saves, and the share of the bare embedder that the first sync reaches."""
    with ExitStack() as stack:
        wordpress = stack.enter_context(wordpress_running(stack.enter_context(built())))
        settings = stack.enter_context(home([SITE]))
        asyncio.run(_run(_connected(settings, wordpress), wordpress, _written(data, posts), saves))


def _connected(settings: Settings, wordpress: WordPress) -> Settings:
    connector = {
        "kind": "wordpress",
        "url": wordpress.url,
        "secret": SECRET,
        "user": USER,
        "password": wordpress.application_password,
    }
    sites = {SITE: {"languages": ["en"], "connectors": {CONNECTOR: connector}}}
    config = {"sites": sites, "fetch_allow": "127.0.0.1"}
    (Path(settings.home) / "pagewire.yaml").write_text(yaml.safe_dump(config))
    return load()


async def _run(settings: Settings, wordpress: WordPress, posts: Sequence[tuple[str, str]], saves: int) -> None:
    await asyncio.to_thread(_put_in, wordpress, posts)  # both are measured on a site of this size
    async with AsyncExitStack() as stack:
        started = await stack.enter_async_context(running(settings))
        key, _ = admin_key(started.settings)
        client = await stack.enter_async_context(
            httpx.AsyncClient(
                base_url=f"{started.url}/v1/sites/{SITE}",
                headers={"Authorization": f"Bearer {key.get_secret_value()}"},
                timeout=PATIENCE,
            )
        )
        wordpress.configure(
            endpoint=started.url, site=SITE, connector=CONNECTOR, types=["post", "page"], private=True, secret=SECRET
        )
        found, answered, clicks = await _updates(client, wordpress, saves)
        _report_saves(found, answered, clicks, await asyncio.to_thread(_slowed, wordpress, saves))
        # The plugin stays quiet from here on: what is measured is the puller.
        wordpress.configure(endpoint="")
        synced = await _sync(started.settings, posts)
    columns = ("way", "posts", "texts", "seconds", "texts/s", "ratio")
    report("wordpress-sync", "first sync", columns, synced)


def _report_saves(
    found: Sequence[float], answered: Sequence[float], clicks: Sequence[float], slowed: Mapping[str, Sequence[float]]
) -> None:
    lines = [
        ("Update -> found", len(found), *_both(found)),
        ("Update -> answered with it", len(answered), *_both(answered)),
        ("the save itself meanwhile", len(clicks), *_both(clicks)),
        *((f"a save, plugin {name}", len(times), *_both(times)) for name, times in slowed.items()),
    ]
    report("wordpress-saves", "saves in WordPress, milliseconds", ("what", "saves", "p50", "p95"), lines)


async def _updates(
    client: httpx.AsyncClient, wordpress: WordPress, saves: int
) -> tuple[list[float], list[float], list[float]]:
    """Seconds from the click until a search finds it, until an answer says it, and until the click is answered."""
    post = wordpress.create(title="Ferry fares", content="<p>A ferry ticket costs nothing yet.</p>")
    found, answered, clicks = [], [], []
    for number in track(range(-1, saves), description="saves"):  # the first makes the index, and does not count
        fare = f"{1000 + number} crowns"
        content = f"<p>A ferry ticket to the island costs {fare} for adults.</p>"
        began = perf_counter()
        await asyncio.to_thread(wordpress.change, post, content=content)
        clicks.append(perf_counter() - began)
        while not await _is_found(client, fare):
            assert perf_counter() - began < PATIENCE, f"{fare} was not found"
            await asyncio.sleep(LOOK_EVERY)
        found.append(perf_counter() - began)
        answer = await client.post("/chat", json={"question": "How much is a ferry ticket to the island for adults?"})
        answered.append(perf_counter() - began)
        assert fare in answer.json()["answer"], answer.text
    return found[1:], answered[1:], clicks[1:]


async def _is_found(client: httpx.AsyncClient, text: str) -> bool:
    answer = await client.get("/search", params={"q": "ferry ticket island", "mode": "keyword", "size": 3})
    if answer.status_code == 503:  # no index yet, or busy for a moment; the caller's patience ends
        return False
    answer.raise_for_status()
    return any(text in hit["text"] for hit in answer.json()["hits"])


def _slowed(wordpress: WordPress, saves: int) -> dict[str, list[float]]:
    """Seconds of saves with the plugin on and off, in turns, so that both see the same machine."""
    times: dict[str, list[float]] = {"on": [], "off": []}
    post = wordpress.create(title="Minutes", content="<p>0</p>")
    for turn in track(range(-(-saves // TURNS) * 2), description="on and off"):
        state = ("on", "off")[turn % 2]
        call = "activate_plugin" if state == "on" else "deactivate_plugins"
        wordpress.php(f"require ABSPATH . 'wp-admin/includes/plugin.php'; {call}('pagewire/pagewire.php');")
        wordpress.change(post, content=f"<p>warm {turn}</p>")
        for number in range(TURNS):
            began = perf_counter()
            wordpress.change(post, content=f"<p>Minutes of turn {turn}, {number}.</p>")
            times[state].append(perf_counter() - began)
            sleep(PAUSE)
    return times


async def _sync(settings: Settings, posts: Sequence[tuple[str, str]]) -> list[tuple[object, ...]]:
    """Lines of the table: fetching alone, the model alone in both ways, and the sync."""
    async with opened(settings, SITE, CONNECTOR) as source:
        began = perf_counter()
        async with aclosing(source.inventory()) as inventory:
            listed = [one async for one in inventory if isinstance(one, Listed)]
        async with aclosing(source.fetch(listed)) as pages:
            read = [page async for page in pages]
        fetched = perf_counter() - began
    documents = [page for page in read if isinstance(page, PageDocument)]
    assert len(documents) >= len(posts), f"{len(documents)} of {len(posts)} were read"
    texts = embedded_texts(documents, settings.chunker)
    async with Clients(settings) as clients:
        model = await clients.models.for_site(SITE)
        await model.passages(texts[:4])
        half = len(texts) // 2
        bare = await timed(model.passages(texts[:half]))
        began = perf_counter()
        result = await import_connector(settings, SITE, CONNECTOR)
        synced = perf_counter() - began
        assert not result["failed"], result["failed"]
        bare += await timed(model.passages(texts[half:]))
    ways = (
        ("fetching alone", fetched),
        ("the model alone", bare),
        ("import, listed -> searchable", synced),
    )
    return [
        (name, len(documents), len(texts), round(seconds, 1), round(len(texts) / seconds, 1), round(bare / seconds, 3))
        for name, seconds in ways
    ]


def _written(data: Path, posts: int) -> list[tuple[str, str]]:
    """Titles and contents: sentences of XQuAD in an order that no two posts share."""
    rng = random.Random(SEED)
    articles = load_xquad(data, "en").articles
    sentences = [s for article in articles for paragraph in article.paragraphs for s in _SENTENCE_END.split(paragraph)]
    made = []
    for number in range(posts):
        chosen = rng.sample(sentences, SENTENCES)
        paragraphs = (" ".join(chosen[: SENTENCES // 2]), " ".join(chosen[SENTENCES // 2 :]))
        blocks = (f"<!-- wp:paragraph --><p>{text}</p><!-- /wp:paragraph -->" for text in paragraphs)
        made.append((f"Report {number}", "\n\n".join(blocks)))
    return made


def _put_in(wordpress: WordPress, posts: Sequence[tuple[str, str]]) -> None:
    """As they were there before the plugin."""
    file = wordpress.folder / "posts.json"
    file.write_text(json.dumps(posts))
    wordpress.php(
        "remove_all_actions('wp_after_insert_post'); wp_defer_term_counting(true);"
        f"foreach (json_decode(file_get_contents('{file}'), true) as [$title, $content]) {{"
        "wp_insert_post(array('post_title' => $title, 'post_content' => wp_slash($content), "
        "'post_status' => 'publish')); }"
    )


def _both(seconds: Sequence[float]) -> tuple[int, int]:
    """p50 and p95 in milliseconds."""
    milliseconds = [1000 * value for value in seconds]
    return round(percentile(milliseconds, 50)), round(percentile(milliseconds, 95))
