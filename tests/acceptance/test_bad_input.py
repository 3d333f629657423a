"""Bad input, from the outside: each has a clear answer, and a page beside it does not suffer."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import System
from tests.acceptance.system import eventually
from tests.acceptance.test_story import found, put

pytestmark = pytest.mark.engine

# Content, and the word by which it is found; words differ from their first letters on (keywords search by those).
ODD_PAGES: dict[str, tuple[str, str | None]] = {
    "empty": ("", None),
    "only-tags": ("<div><p> </p><br><img src='x.png'><span></span></div>", None),
    "broken": ("<p>Unclosed <b>bold <table><tr><td>cell</div></p> kestrel", "kestrel"),
    "long-word": ("<p>" + "x" * 10_000 + " magnolia</p>", "magnolia"),
    "emoji": ("<p>👩‍👩‍👧‍👦 🇩🇪 quartz ✨</p>", "quartz"),
    "rtl": ("<p>مسبح المدينة مفتوح</p>", "مسبح"),
    "nul": ("<p>before\u0000after juniper</p>", "juniper"),
    "script": ("<script>obsidian()</script><p>walnut</p>", "walnut"),
    "deep": ("<div>" * 3_000 + "heliotrope" + "</div>" * 3_000, "heliotrope"),
}


@pytest.mark.parametrize("name", ODD_PAGES)
def test_an_odd_page_is_indexed_as_far_as_it_has_text(system: System, name: str) -> None:
    content, word = ODD_PAGES[name]
    saved = put(system.site, f"odd-{name}", content)
    assert (saved.status_code, saved.json()["state"]) == (200, "searchable"), saved.text
    if word is None:
        assert saved.json()["chunks"]["total"] == 0
    else:
        assert found(system.site, word, "keyword") == [f"odd-{name}"]
    assert found(system.site, "obsidian", "keyword") == []


REFUSED = {
    "not JSON": (b"{", 400, "bad-json"),
    "wrong type": (b'{"id": "refused", "title": 7}', 422, "invalid"),
    "unknown field": (b'{"id": "refused", "colour": "red"}', 422, "invalid"),
    "lone surrogate": (b'{"id": "refused", "title": "\\ud800"}', 422, "invalid"),
    "too large": (json.dumps({"id": "refused", "content": "x" * (4 * 1024 * 1024 + 1)}).encode(), 413, "too-large"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_page_is_refused_by_name(system: System, name: str) -> None:
    body, status, code = REFUSED[name]
    answer = system.site.put("/pages/refused", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert system.site.get("/pages/refused/receipt").status_code == 404


@pytest.mark.parametrize(
    ("question", "code"), [("", "question-empty"), (" \n", "question-empty"), ("why " * 25_000, "question-too-long")]
)
def test_what_is_no_question_is_refused(system: System, question: str, code: str) -> None:
    answer = system.site.post("/chat", json={"question": question})
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_an_unknown_site_is_named(system: System) -> None:
    url = f"{system.url}/v1/sites/nowhere/search?q=x"
    answer = system.site.get(url)
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-site")


def test_deleting_the_unknown_is_fine_and_guards_against_what_was_older(system: System) -> None:
    gone = system.site.delete("/pages/never", params={"revision": 5, "wait": "searchable", "timeout": 60})
    assert (gone.status_code, gone.json()["state"]) == (200, "deleted")
    late = put(system.site, "never", "<p>basalt</p>", 4)
    assert late.headers["Pagewire-Superseded"] == "true"


def test_duplicates_and_old_revisions_in_a_bulk_end_in_the_newest_and_bad_lines_harm_no_other(system: System) -> None:
    def line(revision: int, text: str) -> str:
        return json.dumps({"page": {"id": "twice", "lang": "en", "revision": revision, "content": f"<p>{text}</p>"}})

    body = "\n".join([line(1, "cinnabar"), "no json", line(3, "lazurite"), line(2, "feldspar")])
    answer = system.site.post("/pages:bulk", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 200
    result = answer.json()
    assert (result["accepted"], result["superseded"], [e["line"] for e in result["errors"]]) == (2, 1, [2])

    def receipt() -> dict[str, object]:
        return dict(system.site.get("/pages/twice/receipt", params={"lang": "en"}).json())

    eventually(lambda: receipt().get("searchable_revision") == 3)
    assert found(system.site, "lazurite", "keyword") == ["twice"]
    assert found(system.site, "cinnabar feldspar", "keyword") == []
