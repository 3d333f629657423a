"""Tools of a site end to end: an installed package with an entry point, and a web service on loopback; the model is
tests/scripted_llm.py over real HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml

from pipelines.query.answer.strategies import loop
from tests.acceptance.system import Instance, Started, eventually
from tests.acceptance.test_model import served
from tests.acceptance.test_story import put
from tests.acceptance.test_strategies import Model
from tests.engine_fixture import Servers
from tests.scripted_llm import MODEL, Reply

pytestmark = pytest.mark.engine

EXAMPLE = Path(__file__).parents[2] / "sites" / "examples" / "scholarship"
SECRET = "Bearer of-the-test"
STAFF = "key-of-the-staff"
OTHER_TOOLS = '''
import time
from typing import Annotated, Literal

from pydantic import Field

def hang(number: int) -> str:
    """Waits for ever."""
    time.sleep(600)
    return ""

def flood(number: int) -> str:
    """Returns 5 MB."""
    return "9" * 5_000_000

def salary(level: Annotated[Literal[7, 8], Field(alias="pay-level", description="Pay level.")]) -> str:
    """Says what staff of a pay level earn."""
    return f"{level * 500} euros"
'''


class Fees(BaseHTTPRequestHandler):
    """A web service with an operation that works, one that answers HTML, and one that redirects inside."""

    asked: list[tuple[str, str | None]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["X-Key"]))
        if self.path.startswith("/fees/moved"):
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
            self.end_headers()
            return
        html = self.path.startswith("/fees/html")
        body = b"<html>Please sign in</html>" if html else b'{"fee": 42.5, "currency": "EUR"}'
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if html else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


DOCUMENT = {
    "openapi": "3.0.3",
    "info": {"title": "Fees", "version": "1"},
    "paths": {
        "/fees/{service}": {
            "get": {
                "operationId": "getFee",
                "summary": "Fee of a service",
                "parameters": [
                    {"name": "service", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "persons", "in": "query", "required": True, "schema": {"type": "integer"}},
                ],
                "responses": {},
            },
            "delete": {"operationId": "dropFee", "summary": "Deletes a fee", "responses": {}},
        }
    },
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, installed as a user does it, and a package that misbehaves."""
    folder = tmp_path_factory.mktemp("packages")
    how = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *how, str(EXAMPLE)], check=True)
    (folder / "other_tools.py").write_text(OTHER_TOOLS)
    about = folder / "other_tools-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-tools\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[pagewire.tools]\nhang = other_tools:hang\nflood = other_tools:flood\nsalary = other_tools:salary\n"
    )
    return folder


@pytest.fixture(scope="module")
def university(
    engine: Servers, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Model, httpx.Client, Instance, Started]]:
    model, home = Model(), tmp_path_factory.mktemp("tools")
    service = ThreadingHTTPServer(("127.0.0.1", 0), Fees)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    with served(model) as server:  # type: ignore[arg-type]
        instance = Instance(
            home,
            engine,
            PAGEWIRE_LLM_MODEL=MODEL,
            OPENAI_BASE_URL=server.url,
            OPENAI_API_KEY="none",
            PAGEWIRE_GATE="false",
            PYTHONPATH=str(packages),
            FEES_KEY=SECRET,
        )
        (home / "fees.json").write_text(json.dumps(DOCUMENT))
        fees = {
            "openapi": str(home / "fees.json"),
            "operations": ["getFee"],
            "server": f"http://127.0.0.1:{service.server_port}",
            "header": "X-Key",
            "secret": "${FEES_KEY}",
        }
        salary = {"function": "salary", "groups": ["staff"]}
        site = {
            "languages": ["en"],
            "strategy": "tools",
            "tools": ["weighted_average", "credit_index", "hang", "flood", fees, salary],
        }
        key = {"name": "staff", "sha256": sha256(STAFF.encode()).hexdigest(), "scopes": ["chat"], "groups": ["staff"]}
        config = {"fetch_allow": ["127.0.0.1"], "keys": [key], "sites": {instance.site: site}}
        (instance.home / "pagewire.yaml").write_text(yaml.safe_dump(config))
        with instance.started("up") as up, instance.client(up.url) as client:
            put(client, "grants", "<p>The scholarship office is open on Mondays.</p>", title="Scholarships")
            yield model, client, instance, up
    service.shutdown()
    service.server_close()


def called(name: str, **arguments: Any) -> Reply:
    return Reply(calls=[(name, json.dumps(arguments))], finish="tool_calls")


def ask(site: httpx.Client, question: str, conversation: str = "", key: str = "") -> dict[str, Any]:
    more = {"conversation_id": conversation} if conversation else {}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    response = site.post("/chat", json={"question": question, **more}, headers=headers)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_a_slot_is_asked_for_and_the_next_turn_gets_the_result(university: Any) -> None:
    model, site, _, _ = university
    model.seen.clear()
    # The model makes the credits up: nobody has said them.
    model.script = [
        called("weighted_average", grades=[5, 4, 3], credits=[30, 30, 30]),
        Reply(["How many credits has each of the three courses?"]),
    ]
    first = ask(site, "My grades are 5, 4 and 3. What is my weighted average?")
    assert first["answer"] == "How many credits has each of the three courses?"
    assert "the visitor must be asked for: credits" in model.seen[1]["messages"][-1]["content"]
    offered = {tool["function"]["name"]: tool["function"] for tool in model.seen[0]["tools"]}
    assert set(offered) >= {"weighted_average", "credit_index", "get_fee", "search", "date_calculator"}
    grades = offered["weighted_average"]["parameters"]["properties"]["grades"]
    assert grades["description"] == "The grade of each completed course, 2 to 5."
    model.seen.clear()
    # The model gives only what is new: the call that waits has the rest.
    model.script = [
        called("weighted_average", credits=[6, 3, 1]),
        Reply(["Enough"]),
        Reply(["Your weighted average is 4.50 [2]."]),
    ]
    second = ask(site, "6, 3 and 1", first["conversation_id"])
    assert 'weighted_average({"grades": [5, 4, 3]}), asked for: credits' in model.seen[0]["messages"][-1]["content"]
    assert second["answer"] == "Your weighted average is 4.50."
    [result] = [source for source in second["sources"] if source["cited"]]
    assert (result["n"], result["kind"], result["title"]) == (2, "tool", "Weighted average")
    assert result["text"] == "- grades: 5, 4, 3\n- credits: 6, 3, 1\n\nWeighted grade average: 4.50 (10 credits)"
    [step] = [step for step in second["trace"] if step["kind"] == "tool"]
    assert step["said"] == "[2] Weighted grade average: 4.50 (10 credits)"
    kept = site.get(f"/conversations/{first['conversation_id']}").json()["turns"][-1]
    assert [(source["kind"], source["title"]) for source in kept["sources"]] == [("tool", "Weighted average")]


def test_what_a_tool_worked_out_is_in_the_question_log(university: Any) -> None:
    model, site, _, _ = university
    model.script = [
        called("credit_index", grades=[5, 4], credits=[6, 3], enrolled_credits=12),
        Reply(["Enough"]),
        Reply(["Your credit index is 1.40, corrected 1.05 [2]."]),
    ]
    asked = f"Credit index of 5 and 4 with 6 and 3 of 12 credits, {uuid4().hex[:6]}?"
    assert ask(site, asked)["answer"] == "Your credit index is 1.40, corrected 1.05."
    admin = str(site.base_url).replace("/v1/", "/v1/admin/").rstrip("/")

    def logged() -> Any:
        rows = site.get(f"{admin}/questions").json()["questions"]
        return next((row for row in rows if row["question"] == asked), None)

    eventually(logged, every=0.5)
    row = logged()
    assert (row["became"], row["pages"]) == ("answered", [])
    outcome = site.get(f"{admin}/questions/{row['request_id']}").json()["outcome"]
    assert outcome["tools"] == ["credit_index"]
    [run] = outcome["tool_runs"]
    assert run["call"] == 'credit_index({"grades": [5, 4], "credits": [6, 3], "enrolled_credits": 12})'
    assert run["said"].startswith("[2] Credit index: 1.40")


def test_prompts_are_logged_from_the_moment_that_an_operator_wants_it(university: Any) -> None:
    model, site, _, _ = university
    admin = str(site.base_url).replace("/v1/", "/v1/admin/").rstrip("/")
    asked = f"Average of a 5 with 6 credits, {uuid4().hex[:6]}?"

    def steps() -> list[str]:
        """Of a question that is asked now."""
        script = [called("weighted_average", grades=[5], credits=[6]), Reply(["Enough"]), Reply(["It is 5.00 [2]."])]
        model.script = script
        answer = ask(site, asked)
        found = f"{admin}/questions/{answer['request_id']}"
        eventually(lambda: site.get(found).status_code == 200, every=0.5)
        return [call["step"] for call in site.get(found).json()["outcome"].get("calls", ())]

    assert steps() == []
    changed = site.put(f"{admin}/privacy", json={"log_prompts": True, "note": "wrong averages"})
    assert changed.status_code == 200, changed.text
    eventually(lambda: steps() == ["rephrase", "tools", "tools", "answer"], every=1.0)
    acts = site.get(f"{admin.rpartition('/sites/')[0]}/audit-log").json()["entries"]
    own = admin.rpartition("/")[2]  # the log is of all sites of the servers
    [entry] = [one for one in acts if (one["action"], one["site"]) == ("privacy.put", own)]
    assert entry["outcome"] == "done"


def test_a_tool_for_staff_is_called_for_staff_alone(university: Any) -> None:
    """With an argument that has an alias, and choices with which a visitor is asked for it."""
    model, site, _, _ = university
    model.seen.clear()
    model.script = [called("salary", **{"pay-level": 8}), Reply(["Which pay level, 7 or 8?"])]
    first = ask(site, "What do I earn?", key=STAFF)
    assert first["answer"] == "Which pay level, 7 or 8?"
    offered = {tool["function"]["name"]: tool["function"] for tool in model.seen[0]["tools"]}
    assert list(offered["salary"]["parameters"]["properties"]) == ["pay-level"]
    asked = "the visitor must be asked for: pay-level (Pay level.; one of: 7, 8)"
    assert asked in model.seen[1]["messages"][-1]["content"]
    model.script = [called("salary", **{"pay-level": 8}), Reply(["Enough"]), Reply(["You earn 4000 euros [2]."])]
    assert ask(site, "The second", first["conversation_id"], key=STAFF)["answer"] == "You earn 4000 euros."
    model.seen.clear()
    model.script = [called("salary", **{"pay-level": 8}), Reply(["Enough"]), Reply(["On Mondays [1]."])]
    other = ask(site, "What do I earn at level 8, and when is the office open?")
    assert "salary" not in {tool["function"]["name"] for tool in model.seen[0]["tools"]}
    assert "there is no tool 'salary'" in json.dumps(other["trace"])
    assert other["answer"] == "On Mondays."


def test_an_operation_of_a_web_service_is_called_with_its_secret(university: Any) -> None:
    model, site, _, up = university
    Fees.asked.clear()
    model.seen.clear()
    model.script = [
        called("get_fee", service="../admin", persons=2),
        Reply(["Enough"]),
        Reply(["It costs 42.5 euros [2]."]),
    ]
    answer = ask(site, "What does ../admin cost for 2 persons?")
    assert answer["answer"] == "It costs 42.5 euros."
    assert Fees.asked == [("/fees/..%2Fadmin?persons=2", SECRET)]
    assert SECRET not in json.dumps(answer) + json.dumps(model.seen) + up.log.read_text()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (called("get_fee", service="html", persons=2), "answers with text/html"),
        (called("get_fee", service="moved", persons=2), "the service refuses the call"),
        (called("hang", number=2), "no result within 5 s"),
        (called("flood", number=2), "returned more than"),
        (
            called("weighted_average", grades=["A"], credits=["B"]),
            "wrong call: weighted_average: grades.0: Input should",
        ),
        (called("dropFee", service="dog"), "wrong call: there is no tool 'dropFee'"),
    ],
    ids=["HTML", "redirect inside", "hangs", "5 MB", "wrong types", "not offered"],
)
def test_bad_calls_are_told_and_the_conversation_goes_on(university: Any, call: Reply, said: str) -> None:
    model, site, _, _ = university
    model.seen.clear()
    model.script = [call, Reply(["Enough"]), Reply(["The office is open on Mondays [1][99]."])]
    began = perf_counter()
    first = ask(site, "With 2: when is the office open?")
    assert perf_counter() - began < 30
    assert first["answer"] == "The office is open on Mondays.", first["trace"]
    assert any(said in step["said"] for step in first["trace"] if step["kind"] == "tool"), first["trace"]
    model.script = [Reply(["Enough"]), Reply(["On Mondays [1]."])]
    assert ask(site, "When is the office open?", first["conversation_id"])["answer"] == "On Mondays."


def test_a_hundred_thousand_characters_of_thought_are_no_answer(university: Any) -> None:
    model, site, _, _ = university
    model.script = [Reply(["so " * 33_000]), Reply(["On Mondays [1]."])]
    told = ask(site, "When is the office open, please?")
    assert (told["answer"], len(told["trace"][0]["said"])) == ("On Mondays.", 500)


def test_a_model_that_only_calls_is_ended(university: Any) -> None:
    model, site, _, _ = university
    same = called("weighted_average", grades=[5], credits=[6])
    model.seen.clear()
    model.script = [same, same, same, Reply(["Your average is 5.00 [2]."])]
    told = ask(site, "Average of a 5 with 6 credits?")
    assert told["answer"] == "Your average is 5.00.", told["trace"]
    assert loop.REPEATED in json.dumps(model.seen[-2])


def test_an_unknown_tool_ends_the_start(engine: Servers, tmp_path: Path) -> None:
    instance = Instance(tmp_path, engine)
    site = {"strategy": "tools", "tools": ["weighted_avrage"]}
    (tmp_path / "pagewire.yaml").write_text(yaml.safe_dump({"sites": {instance.site: site}}))
    failed = instance.run("up")
    assert failed.returncode != 0
    assert f"sites.{instance.site}.tools.0: no installed package has a tool 'weighted_avrage'" in failed.stderr
