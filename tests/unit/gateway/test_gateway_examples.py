"""Worked examples over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.edge import CHAT_ANYWHERE, assert_problem, bearer

EXAMPLES = "/v1/admin/sites/town/examples"
ANSWER = {
    "kind": "answer",
    "question": "What is a card?",
    "sources": [{"title": "Fees", "text": "A card costs 12 euros."}],
    "output": "12 euros [1].",
}


async def test_an_example_is_added_listed_replaced_and_removed(client: httpx.AsyncClient) -> None:
    added = await client.post(EXAMPLES, json=ANSWER)
    assert added.status_code == 201, added.text
    example = added.json()
    assert (example["site"], example["lang"], example["output"]) == ("town", "en", "12 euros [1].")
    again = await client.post(EXAMPLES, json=ANSWER | {"output": "12 euros a year [1]."})
    assert again.json()["id"] == example["id"]
    other = await client.post(EXAMPLES, json={"question": "And on Sundays?", "output": "Is it open?", "lang": "DE"})
    assert (other.json()["kind"], other.json()["lang"]) == ("rephrase", "de")
    listed = (await client.get(EXAMPLES)).json()["examples"]
    assert [each["output"] for each in listed] == ["12 euros a year [1].", "Is it open?"]
    assert (await client.delete(f"{EXAMPLES}/{example['id']}")).status_code == 204
    assert_problem(await client.delete(f"{EXAMPLES}/{example['id']}"), 404, "unknown-example")


async def test_examples_are_found_by_kind_language_and_words(client: httpx.AsyncClient) -> None:
    for new in (ANSWER, {"question": "Und sonntags?", "output": "Ist sonntags offen?", "lang": "de-AT"}):
        await client.post(EXAMPLES, json=new)

    async def found(**wanted: str) -> list[str]:
        return [one["question"] for one in (await client.get(EXAMPLES, params=wanted)).json()["examples"]]

    assert await found() == ["What is a card?", "Und sonntags?"]
    assert await found(kind="rephrase") == ["Und sonntags?"]
    assert await found(lang="DE") == await found(lang="de-at") == ["Und sonntags?"]
    assert await found(lang="d") == []
    assert await found(text="A CARD costs") == ["What is a card?"]
    assert await found(text="sonntags", kind="answer") == []
    assert_problem(await client.get(EXAMPLES, params={"kind": "x"}), 422, "invalid")


async def test_what_a_new_one_is_like_is_told_before_it_is_added(client: httpx.AsyncClient) -> None:
    for question, more in (
        ("What is a card?", {}),
        ("what is a card", {"output": "Twelve euros [1]."}),
        ("Where may dogs swim?", {}),
        ("What is a card?", {"lang": "de"}),
        ("What is a card?", {"kind": "rephrase", "sources": [], "output": "What is a card?"}),
    ):
        assert (await client.post(EXAMPLES, json=ANSWER | {"question": question} | more)).status_code == 201
    answer = await client.post(f"{EXAMPLES}:like", json=ANSWER)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert [(one["example"]["question"], one["same"], one["replaced"]) for one in told["like"]] == [
        ("What is a card?", True, True),
        ("what is a card", True, False),
    ]
    assert told["like"][0]["cosine"] == pytest.approx(1, abs=1e-4)
    assert told["least"] == 0.5
    assert len((await client.get(EXAMPLES)).json()["examples"]) == 5
    assert_problem(await client.post(f"{EXAMPLES}:like", json=ANSWER | {"output": "12 [7]."}), 422, "invalid")


@pytest.mark.parametrize("wrong", [{"output": "12 euros [7]."}, {"question": " "}, {"colour": "red"}])
async def test_a_wrong_example_is_refused(client: httpx.AsyncClient, wrong: dict[str, Any]) -> None:
    assert_problem(await client.post(EXAMPLES, json=ANSWER | wrong), 422, "invalid")
    assert (await client.get(EXAMPLES)).json() == {"examples": []}


async def test_only_operators_may(client: httpx.AsyncClient) -> None:
    for method in ("GET", "POST"):
        assert_problem(await client.request(method, EXAMPLES, headers=bearer(CHAT_ANYWHERE)), 403, "forbidden")
