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


@pytest.mark.parametrize("wrong", [{"output": "12 euros [7]."}, {"question": " "}, {"colour": "red"}])
async def test_a_wrong_example_is_refused(client: httpx.AsyncClient, wrong: dict[str, Any]) -> None:
    assert_problem(await client.post(EXAMPLES, json=ANSWER | wrong), 422, "invalid")
    assert (await client.get(EXAMPLES)).json() == {"examples": []}


async def test_only_operators_may(client: httpx.AsyncClient) -> None:
    for method in ("GET", "POST"):
        assert_problem(await client.request(method, EXAMPLES, headers=bearer(CHAT_ANYWHERE)), 403, "forbidden")
