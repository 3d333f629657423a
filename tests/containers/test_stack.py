"""The production shape at work: asked, stopped, upgraded, lost and restored, by the commands of docs/howto."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Self

import httpx
import pytest

from tests.acceptance.system import eventually
from tests.containers.stack import ADMIN_KEY, ROOT, Stack, documented, two_free_ports
from tests.unit.infra.test_compose import ONE_SHOTS, OURS, THEIRS, WORKERS

pytestmark = [pytest.mark.containers, pytest.mark.timeout(3600)]

QUESTION = "What does a library card cost?"
KILLED = {137}  # by SIGKILL: it did not stop in time, or had no memory


def asked(site: httpx.Client) -> httpx.Response:
    return site.post("/chat", json={"question": QUESTION, "lang": "en"})


def assert_answers(stack: Stack) -> None:
    with stack.client() as site:
        assert_cited(asked(site))


def assert_cited(reply: httpx.Response) -> None:
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    assert "library" in {source["page_id"] for source in answer["sources"] if source["cited"]}, answer


def visitor_token(stack: Stack, gateway: str | None = None) -> str:
    with stack.client(gateway=gateway) as site:
        origin = {"Origin": f"http://127.0.0.1:{stack.port}"}
        token: str = site.post("/visitor-tokens", headers=origin).json()["token"]
    return token


def test_everybody_is_healthy_and_seen_by_prometheus(stack: Stack) -> None:
    containers = stack.containers()
    assert set(containers) == {*OURS, *THEIRS}
    for name in ONE_SHOTS:
        assert containers.pop(name)["State"]["ExitCode"] == 0, name
    assert {one["State"]["Health"]["Status"] for one in containers.values()} == {"healthy"}
    assert {name: one["RestartCount"] for name, one in containers.items() if one["RestartCount"]} == {}
    ready = httpx.get(f"http://127.0.0.1:{stack.port}/readyz", trust_env=False)
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "problems": {}})

    def unseen() -> set[str]:
        url = f"http://127.0.0.1:{stack.prometheus}/api/v1/targets"
        targets = httpx.get(url, trust_env=False).json()["data"]["activeTargets"]
        return {*WORKERS, "gateway"} - {one["labels"]["container"] for one in targets if one["health"] == "up"}

    eventually(lambda: not unseen(), timeout=180, every=2)


@pytest.mark.parametrize("name", OURS)
def test_ours_are_sealed_as_they_run(stack: Stack, name: str) -> None:
    container = stack.containers()[name]
    assert container["Config"]["User"] == "10001:10001"
    assert container["HostConfig"]["ReadonlyRootfs"]
    assert container["HostConfig"]["CapDrop"] == ["ALL"]
    assert "Read-only file system" not in stack.run(f"docker compose logs --no-log-prefix {name} 2>&1")


def test_a_question_is_answered_from_the_sample_site(stack: Stack) -> None:
    assert_answers(stack)


def test_what_is_stopped_stops_in_order_and_goes_on(stack: Stack) -> None:
    pages = stack.pages()
    stack.run("docker compose stop")
    codes = {name: one["State"]["ExitCode"] for name, one in stack.containers().items()}
    assert {name: code for name, code in codes.items() if name in OURS and code != 0} == {}
    assert not KILLED & {codes["kafka"], codes["elasticsearch"]}
    stack.up()
    assert stack.pages() == pages
    assert_answers(stack)


@pytest.mark.parametrize("way", ["all at once", "one after the other"])
def test_an_upgrade_replaces_ours_alone_and_loses_nothing(
    stack: Stack, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = stack.containers()
    with stack.client() as site:
        page = {"id": "ferry", "lang": "en", "url": "/ferry", "content": "<p>A ferry ticket costs 4 euros.</p>"}
        assert site.put("/pages/ferry", json=page).status_code in (200, 202)
        number = int(stack.settings["PAGEWIRE_VERSION"].rpartition(".")[2])
        stack.set(PAGEWIRE_VERSION=f"{stack.name}.{number + 1}")
        with Visitors(stack) as visitors:
            if way == "all at once":
                stack.up()
            else:
                stack.run(documented("deploy.md", "In place of the last line, one after the other:"))
        after = stack.containers()
        assert {one["Config"]["Image"] for name, one in after.items() if name in OURS} == {stack.image}
        assert {name for name in after if after[name]["Id"] == before[name]["Id"]} == THEIRS
        eventually(lambda: found(site, "ferry") == ["ferry"], timeout=180, every=1)
        site.delete("/pages/ferry", params={"lang": "en", "wait": "searchable", "timeout": 60})
    assert_answers(stack)
    with capsys.disabled():
        print(f"\nupgrade, {way}: {visitors}")


class Visitors:
    """Ask all the time, until the context ends; whoever gets through to the gateway gets an answer."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._over = threading.Event()
        self._asking = ThreadPoolExecutor(64)

    def __enter__(self) -> Self:
        self._coming = threading.Thread(target=self._come)
        self._coming.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._coming.join()
        asked = [one.result() for one in self._asked]
        waits = [wait for _, wait in asked if wait is not None]
        assert waits
        refused = [at for at, wait in asked if wait is None]
        self._away = max(refused) - min(refused) if refused else 0.0
        self._longest = max(waits)

    def _come(self) -> None:
        self._asked = []
        while not self._over.wait(0.5):
            self._asked.append(self._asking.submit(self._ask))

    def _ask(self) -> tuple[float, float | None]:
        """When it was asked, and how long it took; None: no gateway was there."""
        since = monotonic()
        try:
            with self._stack.client() as site:
                reply = asked(site)
        except httpx.TransportError:
            return since, None
        if reply.status_code == 503:  # of a gateway that stops and whose workers are away
            return since, None
        assert_cited(reply)
        return since, monotonic() - since

    def __str__(self) -> str:
        return f"no gateway for {self._away:.0f} s, an answer took at most {self._longest:.0f} s"


def test_a_second_gateway_answers_what_the_first_was_asked(stack: Stack) -> None:
    ports = two_free_ports()
    stack.set(PAGEWIRE_PORT=f"{ports[0]}-{ports[1]}")
    try:
        stack.up("--scale gateway=2")
        first, second = (f"http://127.0.0.1:{port}" for port in ports)
        for gateway in (first, second):
            assert httpx.get(f"{gateway}/readyz", trust_env=False).status_code == 200
        with stack.client(visitor_token(stack, first), first) as visitor:
            conversation = f"/conversations/{asked(visitor).json()['conversation_id']}"
            told = visitor.get(conversation).json()
        # It knows the token of the other, and the conversation.
        with stack.client(visitor.headers["Authorization"].removeprefix("Bearer "), second) as visitor:
            assert visitor.get(conversation).json() == told
            assert_cited(asked(visitor))
    finally:
        stack.set(PAGEWIRE_PORT=str(stack.port))
        stack.up("--scale gateway=1")


def test_sites_of_ones_own_are_taken_up(stack: Stack) -> None:
    shipped = (ROOT / "infra/docker/pagewire.yaml").read_text(encoding="utf-8")
    own = stack.home / "pagewire.yaml"

    def known(site: str) -> bool:
        reply = httpx.get(
            f"http://127.0.0.1:{stack.port}/v1/sites/{site}/search",
            params={"q": "ferry"},
            headers={"Authorization": f"Bearer {ADMIN_KEY}"},
            trust_env=False,
        )
        assert reply.status_code in (200, 404), reply.text
        return reply.status_code == 200

    try:
        own.write_text(f"{shipped}  village: {{languages: [en]}}\n", encoding="utf-8")
        stack.set(PAGEWIRE_YAML=str(own))
        stack.up()
        assert (known("village"), known("hamlet")) == (True, False)
        # In the same file: a container sees a file that is written over, and Compose does not.
        own.write_text(f"{shipped}  hamlet: {{languages: [en]}}\n", encoding="utf-8")
        stack.run(documented("deploy.md", "Compose does not see when the file itself changes"))
        stack.up()
        assert (known("village"), known("hamlet")) == (False, True)
        assert_answers(stack)
    finally:
        stack.set(PAGEWIRE_YAML=str(ROOT / "infra/docker/pagewire.yaml"))
        stack.up()


def found(site: httpx.Client, page: str) -> list[str]:
    hits = site.get("/search", params={"q": "ferry ticket", "mode": "keyword"}).json()["hits"]
    return [hit["page_id"] for hit in hits if hit["page_id"] == page]


def test_everything_is_lost_and_comes_back(stack: Stack) -> None:
    pages = stack.pages()
    assert pages
    token = visitor_token(stack)
    with stack.client(token) as visitor:
        path = f"/conversations/{asked(visitor).json()['conversation_id']}"
        conversation = visitor.get(path).json()
    assert conversation["turns"]
    stack.run(documented("deploy.md", "## Backup"))
    stack.run("docker compose down --volumes")
    volumes = f"docker volume ls --quiet --filter label=com.docker.compose.project={stack.name}"
    assert stack.run(volumes) == ""
    stack.run(documented("backup.md", "With `docker compose`:"))
    stack.wait_for(pages)
    with stack.client(token) as visitor:
        eventually(lambda: visitor.get(path).json() == conversation)
    stack.run("docker compose exec gateway pagewire index audit demo")  # exit code 0: clean
    assert_answers(stack)
