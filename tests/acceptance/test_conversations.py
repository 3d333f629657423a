"""A visitor's conversation through the real system: continued, stopped, taken back, asked again, read on elsewhere."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any

import httpx
import pytest

from pipelines.query.rephrase.rewrite import OUTPUT_TOKENS
from pipelines.query.titles import OUTPUT_TOKENS as TITLE_TOKENS
from tests.acceptance.system import PAGEWIRE, Instance, events, eventually
from tests.acceptance.test_story import put
from tests.engine_fixture import Servers
from tests.scripted_llm import MODEL, Reply, ScriptedLLM

pytestmark = pytest.mark.engine

STREAM = {"Accept": "text/event-stream"}
SHORT = Reply(["A boat costs 7 euros an hour [1]."])
# Nobody waits for its end: a test that reads it whole would be too slow to be missed.
ENDLESS = Reply([f"Word{n}. " for n in range(10_000)], delay=0.05)
REPHRASED = "What does a rowing boat cost per hour?"


@dataclass
class Model:
    """Says what a test wants; the rephrase stage gets the same question every time."""

    reply: Reply = SHORT
    rephrasings: list[str] = field(default_factory=list)

    def __call__(self, body: dict[str, Any]) -> Reply:
        if body["max_tokens"] == OUTPUT_TOKENS:
            self.rephrasings.append(str(body["messages"]))
            return Reply([REPHRASED])
        if body["max_tokens"] == TITLE_TOKENS:
            return Reply(['"**Rowing** ', 'boats."'])
        return self.reply


@dataclass(frozen=True)
class Town:
    """A system with a model, and two gateways."""

    instance: Instance
    model: Model
    server: ScriptedLLM
    site: httpx.Client
    elsewhere: httpx.Client  # the same site, through the second gateway


@pytest.fixture(scope="module")
def town(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    model = Model()
    server = ScriptedLLM(model)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        settings: dict[str, Any] = {
            "PAGEWIRE_LLM_MODEL": MODEL,
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "none",
            "PAGEWIRE_GATE": "false",  # what the model is asked is the test's business here
        }
        instance = Instance(tmp_path_factory.mktemp("conversations"), engine, **settings)
        with (
            instance.started("up") as up,
            instance.started("gateway") as second,
            instance.client(up.url) as site,
            instance.client(second.url) as elsewhere,
        ):
            put(site, "boats", "<p>A rowing boat costs 7 euros an hour. The pier opens at ten.</p>", title="Boats")
            yield Town(instance, model, server, site, elsewhere)
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(autouse=True)
def short_answers(town: Town) -> None:
    town.model.reply = SHORT
    town.server.hung_up.clear()


def ask(site: httpx.Client, question: str, **more: object) -> dict[str, Any]:
    answer = site.post("/chat", json={"question": question, **more})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def turns(site: httpx.Client, conversation_id: str) -> list[dict[str, Any]]:
    answer = site.get(f"/conversations/{conversation_id}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["turns"]
    return found


def test_a_follow_up_is_understood_by_what_was_said_before_at_any_gateway(town: Town) -> None:
    first = ask(town.site, "What does a rowing boat cost?")
    second = ask(town.elsewhere, "And how much is that for one hour?", conversation_id=first["conversation_id"])
    assert first["answer"] in town.model.rephrasings[-1]
    assert "What does a rowing boat cost?" in town.model.rephrasings[-1]
    assert second["rephrased"] == REPHRASED
    kept = turns(town.site, first["conversation_id"])
    assert [turn["state"] for turn in kept] == ["answered", "answered"]
    assert kept[0]["sources"][0]["page_id"] == "boats"


def test_visitors_cannot_see_or_continue_each_others_conversations(town: Town) -> None:
    with httpx.Client(base_url=town.site.base_url, timeout=60) as visitor:
        origin = f"http://{town.site.base_url.host}:{town.site.base_url.port}"
        token = visitor.post("/visitor-tokens", headers={"Origin": origin}).json()["token"]
        visitor.headers["Authorization"] = f"Bearer {token}"
        mine = ask(visitor, "What does a rowing boat cost?")
        foreign = ask(town.site, "When does the pier open?")
        for refused in (
            visitor.get(f"/conversations/{foreign['conversation_id']}"),
            visitor.post("/chat", json={"question": "And?", "conversation_id": foreign["conversation_id"]}),
            town.site.get(f"/conversations/{mine['conversation_id']}"),
        ):
            assert (refused.status_code, refused.json()["code"]) == (404, "unknown-conversation")

        def listed() -> list[str]:
            return [one["conversation_id"] for one in visitor.get("/conversations").json()["today"]]

        eventually(listed)
        assert listed() == [mine["conversation_id"]]
        eventually(lambda: visitor.get("/conversations").json()["today"][0]["title"] == "Rowing boats")  # the model's
        first_second = int(time())
        eventually(lambda: int(time()) > first_second)  # tokens end at a full second: in the same one they are equal
        # The next token, from another gateway, is the same visitor's.
        renewed = visitor.post(
            str(town.elsewhere.base_url.join("visitor-tokens")),
            headers={"Origin": str(town.elsewhere.base_url.copy_with(path="/")).rstrip("/")},
        ).json()["token"]
        assert renewed != token
        visitor.headers["Authorization"] = f"Bearer {renewed}"
        assert listed() == [mine["conversation_id"]]


def test_undo_forgets_the_last_pair_and_regenerate_replaces_it(town: Town) -> None:
    first = ask(town.site, "What does a rowing boat cost?")
    conversation_id = first["conversation_id"]
    town.model.reply = Reply(["It is blue [1]."])
    ask(town.site, "Which colour is it painted in?", conversation_id=conversation_id)
    left = town.site.post(f"/conversations/{conversation_id}/undo").json()
    assert [turn["request_id"] for turn in left["turns"]] == [first["request_id"]]
    ask(town.site, "And how long may I stay out?", conversation_id=conversation_id)
    assert "It is blue" not in town.model.rephrasings[-1]

    town.model.reply = Reply(["As long as you like [1]."])
    again = town.elsewhere.post(f"/conversations/{conversation_id}/regenerate").json()
    assert (again["question"], again["answer"]) == ("And how long may I stay out?", "As long as you like.")
    assert "It is blue" not in town.model.rephrasings[-1]
    assert [turn["answer"] for turn in turns(town.site, conversation_id)] == [first["answer"], again["answer"]]


def test_a_stop_at_another_gateway_ends_the_model_and_the_answer(town: Town) -> None:
    town.model.reply = ENDLESS
    seen: list[tuple[str, dict[str, Any]]] = []
    body = {"question": "Tell me all about the boats."}
    with town.site.stream("POST", "/chat", json=body, headers=STREAM) as response:
        for _, event, data in events(response):
            seen.append((event, data))
            if event == "token" and [kind for kind, _ in seen].count("token") == 3:
                accepted = seen[0][1]
                refused = town.site.post(
                    "/chat", json={"question": "And?", "conversation_id": accepted["conversation_id"]}
                )
                assert (refused.status_code, refused.json().get("code")) == (409, "answer-under-way"), refused.text
                assert refused.json()["request_id"] == accepted["request_id"]
                stopped = town.elsewhere.delete(f"/answers/{accepted['request_id']}")
                assert stopped.status_code == 202
    assert [event for event, _ in seen][-2:] == ["answer", "done"]
    final = seen[-2][1]
    assert final["stopped"] is True
    assert final["text"].startswith("Word0. Word1. Word2.")
    assert "".join(data["text"] for event, data in seen if event == "token").startswith(final["text"].strip())
    eventually(town.server.hung_up.is_set)
    [turn] = turns(town.elsewhere, accepted["conversation_id"])
    assert (turn["state"], turn["answer"]) == ("stopped", final["text"])
    town.model.reply = SHORT
    ask(town.site, "What does one cost?", conversation_id=accepted["conversation_id"])


def test_a_reload_mid_answer_goes_on_at_another_gateway_and_is_kept(town: Town) -> None:
    town.model.reply = Reply([f"Word{n}. " for n in range(60)], delay=0.05)
    begun: list[tuple[str, str, dict[str, Any]]] = []
    with town.site.stream("POST", "/chat", json={"question": "Tell me about the boats."}, headers=STREAM) as response:
        for one in events(response):
            begun.append(one)
            if [event for _, event, _ in begun].count("token") == 3:
                break
    accepted = begun[0][2]
    place = f"/answers/{accepted['request_id']}/events"
    whole = {}
    for name, headers in (("on", {"Last-Event-ID": begun[-1][0]}), ("again", {})):
        with town.elsewhere.stream("GET", place, headers=headers) as response:
            assert response.status_code == 200
            whole[name] = list(events(response))
    assert begun[1:] + whole["on"] == whole["again"][1:]
    first = whole["again"][0]
    assert first[1:] == begun[0][1:]
    # Its id is good for reading on, too.
    with town.site.stream("GET", place, headers={"Last-Event-ID": first[0]}) as response:
        assert list(events(response)) == whole["again"][1:]
    text = "".join(data["text"] for _, event, data in whole["again"] if event == "token")
    final = whole["again"][-2][2]
    assert text.split() == final["text"].split() == [f"Word{n}." for n in range(60)]
    # Nobody followed at the first gateway; the answer is kept nevertheless.
    [turn] = turns(town.site, accepted["conversation_id"])
    assert (turn["state"], turn["answer"]) == ("answered", final["text"])
    rating = town.site.post(f"/answers/{accepted['request_id']}/feedback", json={"rating": "down", "comment": "Long."})
    assert rating.status_code == 204
    assert turns(town.elsewhere, accepted["conversation_id"])[0]["feedback"]["comment"] == "Long."


@pytest.mark.parametrize("last", ["{other}:0.5.1", "{own}:nonsense", "{own}:", "nonsense"])
def test_a_foreign_or_invalid_position_is_refused(town: Town, last: str) -> None:
    own, other = (ask(town.site, "What does a rowing boat cost?")["request_id"] for _ in range(2))
    header = {"Last-Event-ID": last.format(own=own, other=other)}
    refused = town.site.get(f"/answers/{own}/events", headers=header)
    assert (refused.status_code, refused.json()["code"]) == (400, "bad-position")


def test_200_visitors_who_come_back_at_once_all_read_on(town: Town) -> None:
    town.model.reply = Reply([f"Word{n}. " for n in range(40)], delay=0.05)
    with town.site.stream("POST", "/chat", json={"question": "Tell me about the boats."}, headers=STREAM) as response:
        accepted = next(events(response))[2]

    async def storm() -> list[list[str]]:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(
            base_url=town.elsewhere.base_url, headers=town.elsewhere.headers, timeout=60, limits=limits
        ) as client:
            path = f"/answers/{accepted['request_id']}/events"
            answers = await asyncio.gather(*(client.get(path) for _ in range(200)))
        return [[line for line in answer.text.split("\n") if line.startswith("data")] for answer in answers]

    with ThreadPoolExecutor(1) as thread:
        seen = thread.submit(asyncio.run, storm()).result()
    assert [lines for lines in seen if lines != seen[0]] == []
    assert sum("Word" in line for line in seen[0]) > 3
    assert seen[0][-1] == "data: {}"


@pytest.mark.parametrize("by", ["gateway", "kafka"])
def test_ctrl_c_at_the_command_stops_the_model(town: Town, tmp_path: Path, by: str) -> None:
    town.model.reply = ENDLESS
    town.server.hung_up.clear()
    home = town.instance.environment["PAGEWIRE_HOME"] if by == "gateway" else str(tmp_path)
    assert (Path(home) / "gateway.json").exists() == (by == "gateway")
    command = subprocess.Popen(
        # Jobs that a shell starts in the background ignore Ctrl-C, and so would what they start.
        ["env", "--default-signal=INT", PAGEWIRE, "ask", town.instance.site, "Tell me all about the boats."],
        env=town.instance.environment | {"PAGEWIRE_HOME": home},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout
    read: Callable[[int], bytes] = command.stdout.read1  # type: ignore[attr-defined]
    said = b""
    while b"Word2" not in said:
        piece = read(1_000)
        assert piece, (said, command.communicate())
        said += piece
    assert not town.server.hung_up.is_set()
    command.send_signal(signal.SIGINT)
    _, error = command.communicate(timeout=30)
    assert command.returncode == 130, error
    assert b"Traceback" not in error
    eventually(town.server.hung_up.is_set)
