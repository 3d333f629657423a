"""What the builder of the documentation lets pass is found in what it has built."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site import dead_ends, unlisted

GUIDE = '<html><head><link rel="stylesheet" href="../style.css"></head><body><h2 id="begin">x</h2>{}</body></html>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "guide").mkdir()
    (tmp_path / "style.css").write_text("")
    (tmp_path / "schema.json").write_text("{}")
    (tmp_path / "index.html").write_text('<p id="top">x</p>')
    return tmp_path


def found(site: Path, body: str) -> list[str]:
    (site / "guide" / "index.html").write_text(GUIDE.format(body))
    return list(dead_ends(site))


@pytest.mark.parametrize(
    "body",
    [
        '<a href="../">home</a>',
        '<a href="../#top">home</a>',
        '<a href="#begin">here</a>',
        '<a href="">here</a>',
        '<a href="../schema.json">a file</a>',
        '<a href="https://example.org/page">another site</a>',
        '<a href="mailto:somebody@example.org">write</a>',
        '<!-- <a href="gone/">a comment</a> -->',
    ],
)
def test_what_leads_somewhere_is_fine(site: Path, body: str) -> None:
    assert found(site, body) == []


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ('<a href="gone/">x</a>', "gone/ leads nowhere"),
        ('<a href="../../pyproject.toml">x</a>', "../../pyproject.toml leads nowhere"),
        ('<img src="../pictures/gone.png">', "../pictures/gone.png leads nowhere"),
        ('<a href="#end">x</a>', "#end names no heading there"),
        ('<a href="../#bottom">x</a>', "../#bottom names no heading there"),
        ('<script src="https://cdn.example/x.js"></script>', "fetches https://cdn.example/x.js from elsewhere"),
        ('<img src="//cdn.example/x.png">', "fetches //cdn.example/x.png from elsewhere"),
        (
            '<link rel="stylesheet" href="https://cdn.example/x.css">',
            "fetches https://cdn.example/x.css from elsewhere",
        ),
    ],
)
def test_a_dead_end_is_told_with_its_page(site: Path, body: str, wrong: str) -> None:
    assert found(site, body) == [f"guide/index.html: {wrong}"]


def test_the_navigation_names_every_page_once(tmp_path: Path) -> None:
    (tmp_path / "guides").mkdir()
    for name in ("index.md", "guides/first.md", "guides/forgotten.md"):
        (tmp_path / name).write_text("# x")
    nav = [{"Home": "index.md"}, {"Guides": [{"First": "guides/first.md"}, {"Again": "guides/first.md"}, "gone.md"]}]
    assert list(unlisted(nav, tmp_path)) == [
        "zensical.toml: nav names gone.md, which is not there",
        "zensical.toml: nav does not name guides/forgotten.md",
        "zensical.toml: nav names guides/first.md twice",
    ]
