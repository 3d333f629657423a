"""The console's pages of examples over the gateway's fakes."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from bs4 import BeautifulSoup

from gateway.console import examples as module
from tests.console import EVIL, EXAMPLES, console_ports, fill
from tests.edge import EDIT_TOWN, VIEW_TOWN
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

LIST = "/console/examples"
NEW = f"{LIST}/new?site=town&kind="
REWRITTEN = {"lang": "en", "question": "And on Sundays?", "output": "Is the pool open on Sundays?"}
ANSWER = {
    "lang": "en",
    "question": "Where do I park?",
    "title1": "Parking",
    "text1": "Behind the town hall.",
    "title2": "Sundays",
    "text2": "Free on Sundays.",
    "output": "Behind the town hall [1],\r\nfree on Sundays [2].",
}


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


@pytest.fixture
async def editor(stranger: httpx.AsyncClient, fakes: FakePorts) -> httpx.AsyncClient:
    await fill(fakes)
    assert (await sign_in(stranger, EDIT_TOWN)).status_code == 303
    return stranger


async def send(client: httpx.AsyncClient, path: str, **form: str) -> httpx.Response:
    token = str(one(page_of(await client.get(LIST)), ".who input[name=token]")["value"])
    return await client.post(path, data={"token": token} | form, headers=OURS)


def questions(page: BeautifulSoup) -> list[str]:
    return [each.rpartition("→ ")[2] for each in said(page, ".rows .question")]


async def test_examples_are_listed_with_what_they_are_for(editor: httpx.AsyncClient) -> None:
    page = page_of(await editor.get(LIST))
    assert page.select("header nav a[aria-current]")[0].get_text() == "Examples"
    assert questions(page) == [example.question for example in EXAMPLES[::-1]]
    rows = page.select(".rows > li")
    assert said(rows[0], ".question") == ["Wann ist das Bad offen? → Täglich ab 9. → Und mit Hund?"]
    assert said(rows[0], ".badge") == ["rewriting a question"]
    assert said(rows[1], ".badge") == ["a good answer", "says that the pages do not contain it"]
    assert f"No dogs. {EVIL}" in rows[1].get_text()
    assert said(page, ".hint")[0] == "1 to 3 of 3, the newest first"


@pytest.mark.parametrize(
    ("query", "found"),
    [("kind=rephrase", [2]), ("lang=en", [1, 0]), ("text=PARROT", [1]), ("kind=answer&text=hund", []), ("skip=2", [0])],
)
async def test_examples_are_found(editor: httpx.AsyncClient, query: str, found: list[int]) -> None:
    page = page_of(await editor.get(f"{LIST}?{query}"))
    assert questions(page) == [EXAMPLES[n].question for n in found]
    if not found:
        assert said(page, ".empty") == ["No example matches this filter."]


async def test_many_come_in_pages(editor: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTED", 1)
    page = page_of(await editor.get(f"{LIST}?site=town&done=removed"))
    seen = questions(page)
    for _ in range(2):
        [link] = [str(link["href"]) for link in page.select(".paging a") if link.get_text() == "Older"]
        assert "done" not in parse_qs(link[1:])
        page = page_of(await editor.get(f"{LIST}{link}"))
        seen += questions(page)
    assert seen == [example.question for example in EXAMPLES[::-1]]
    assert [link.get_text() for link in page.select(".paging a")] == ["Newer"]


async def test_an_example_of_a_rewriting_is_added(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    page_of(await editor.get(f"{NEW}rephrase"))
    sent = REWRITTEN | {"before": "Is the pool open?", "answered": "Yes."}
    done = await send(editor, f"{NEW}rephrase", **sent)
    assert (done.status_code, done.headers["location"]) == (303, f"{LIST}?site=town&done=added")
    kept = list(fakes.examples.kept.values())[-1]
    assert (kept.kind, kept.lang, kept.question, kept.output) == ("rephrase", "en", *list(REWRITTEN.values())[1:])
    assert [(turn.question, turn.answer) for turn in kept.history] == [("Is the pool open?", "Yes.")]
    assert said(page_of(await editor.get(done.headers["location"])), "[role=status]") == [
        "✓ The example is saved and used within seconds."
    ]
    [entry] = fakes.audit_log.kept
    assert (entry.who, entry.via, entry.action, entry.site, entry.target) == (
        "editor",
        "console",
        "examples.put",
        "town",
        kept.id,
    )


async def test_an_example_of_an_answer_is_added_with_its_sources(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    assert (await send(editor, f"{NEW}answer", **ANSWER, text3="", declines="yes")).status_code == 303
    kept = list(fakes.examples.kept.values())[-1]
    assert [(source.title, source.text) for source in kept.sources] == [
        ("Parking", "Behind the town hall."),
        ("Sundays", "Free on Sundays."),
    ]
    assert (kept.output, kept.declines) == ("Behind the town hall [1],\nfree on Sundays [2].", True)


@pytest.mark.parametrize(
    ("kind", "wrong", "named"),
    [
        ("answer", {"output": "Behind it [3]."}, "cites [3]"),
        ("answer", {"text1": ""}, "sources.0.text"),
        ("rephrase", {"question": " "}, "question"),
        ("rephrase", {"answered": "Yes."}, "history"),
        ("rephrase", {"lang": "x"}, "lang"),
    ],
)
async def test_what_is_wrong_is_said_and_what_was_typed_stays(
    editor: httpx.AsyncClient, fakes: FakePorts, kind: str, wrong: dict[str, str], named: str
) -> None:
    page = page_of(await send(editor, f"{NEW}{kind}", **(ANSWER if kind == "answer" else REWRITTEN) | wrong), 422)
    assert named in said(page, "[role=alert]")[0]
    assert one(page, "#output").get_text() == ((ANSWER | wrong) if kind == "answer" else REWRITTEN)["output"].replace(
        "\r\n", "\n"
    )
    assert len(fakes.examples.kept) == len(EXAMPLES)


async def test_others_like_it_are_shown_before_it_is_added(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    card = {"lang": "en", "question": "what is a library card", "output": "It costs 12 euros."}
    page = page_of(await send(editor, f"{NEW}answer", **card), 409)
    assert questions(page) == ["What is a library card?"]
    assert said(page, ".rows .badge")[-1] == "asks the same; the newer example is used"
    assert one(page, "#output").get_text() == card["output"]
    assert len(fakes.examples.kept) == len(EXAMPLES)
    assert (await send(editor, f"{NEW}answer", **card, sure="yes")).status_code == 303
    page = page_of(await send(editor, f"{NEW}answer", **card | {"output": "12 euros."}), 409)
    assert "the new one would replace it" in said(page, ".rows .badge")
    assert len(fakes.audit_log.kept) == 1


async def test_an_example_is_removed_when_it_is_meant(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    path = f"{LIST}/{EXAMPLES[0].id}/remove?site=town"
    page_of(await send(editor, path), 422)
    page_of(await editor.post(path, data={"sure": "yes"}, headers=OURS), 403)
    assert len(fakes.examples.kept) == len(EXAMPLES)
    assert (await send(editor, path, sure="yes")).headers["location"] == f"{LIST}?site=town&done=removed"
    assert EXAMPLES[0].id not in {id for _, id in fakes.examples.kept}
    page_of(await send(editor, path, sure="yes"), 404)
    assert [(entry.action, entry.target, entry.outcome) for entry in fakes.audit_log.kept] == [
        ("examples.remove", EXAMPLES[0].id, "done"),
        ("examples.remove", EXAMPLES[0].id, "failed"),
    ]


async def test_whoever_may_only_look_finds_no_form(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    await sign_in(stranger, VIEW_TOWN)
    page = page_of(await stranger.get(LIST))
    assert len(questions(page)) == len(EXAMPLES)
    assert page.select("main form[method=post]") == []
    assert [link for link in page.select("main a") if urlsplit(str(link["href"])).path == f"{LIST}/new"] == []
