"""Builds the documentation site strictly: `make check` fails where a reader would meet a dead end.

    docs/*.md ─zensical, strict─▶ site/ ─▶ every link, picture and anchor is followed ─▶ 0, or 1 and what is wrong

python -m docs.site            builds into site/
python -m docs.site --serve    shows it on loopback, built again with every change

The builder looks at links between pages and at their anchors. What it lets pass is looked for here, in what it has
built: pages that no entry of the navigation names, entries without a page, pictures and files that are not there,
links that lead out of the site, and anything that a reader's browser would fetch from elsewhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lxml import html

from docs.figures import notes

ROOT = Path(__file__).resolve().parents[1]
BUILDER = Path(sys.executable).with_name("zensical")
LOOPBACK = "127.0.0.1:8010"  # not the gateway's port
BUILD_TIMEOUT = 120  # seconds
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# Of what a browser fetches by itself to show a page, the attribute that says where from.
FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
PASSIVE = {"canonical", "prev", "next", "alternate"}  # links in a page's head that nothing is fetched from


def main() -> int:
    if "--serve" in sys.argv[1:]:
        return subprocess.run([BUILDER, "serve", "--dev-addr", LOOPBACK], cwd=ROOT, check=False).returncode  # noqa: S603
    if not _built():
        return 1
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    wrong = [*unlisted(config["nav"], ROOT / config["docs_dir"]), *dead_ends(ROOT / config["site_dir"])]
    for line in wrong:
        print(line, file=sys.stderr)
    for line in notes():  # not the fault of the person who builds the site
        print(f"note: {line}")
    return 1 if wrong else 0


def _built() -> bool:
    command = [str(BUILDER), "build", "--strict", "--clean"]
    built = subprocess.run(  # noqa: S603 - our own command
        command, cwd=ROOT, check=False, timeout=BUILD_TIMEOUT, capture_output=True, text=True
    )
    if built.returncode:
        # In colours whatever it writes to, and with the stack of its own command line behind it.
        said = COLOURS.sub("", built.stdout + built.stderr).partition("Traceback (most recent call last)")[0]
        print(said, file=sys.stderr)
    return built.returncode == 0


def unlisted(nav: Any, folder: Path) -> Iterator[str]:
    """What the navigation and the folder of pages do not agree on."""
    listed = list(_entries(nav))
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    yield from (f"zensical.toml: nav names {page}, which is not there" for page in sorted(set(listed) - there))
    yield from (f"zensical.toml: nav does not name {page}" for page in sorted(there - set(listed)))
    yield from (f"zensical.toml: nav names {page} twice" for page in sorted({p for p in listed if listed.count(p) > 1}))


def _entries(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
        return
    for entry in nav.values() if isinstance(nav, Mapping) else nav:
        yield from _entries(entry)


def dead_ends(site: Path) -> Iterator[str]:
    """Links, pictures and anchors of the built pages that lead nowhere, and what would be fetched from elsewhere."""
    pages = {path: html.fromstring(path.read_bytes()) for path in sorted(site.rglob("*.html"))}
    anchors = {path: {*page.xpath("//@id"), *page.xpath("//a/@name")} for path, page in pages.items()}
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # shown at any address, so its links begin at the server's root
        name = path.relative_to(site).as_posix()
        for element, where in _references(page):
            target = urlsplit(where)
            if target.scheme or target.netloc:
                if _is_fetched(element):
                    yield f"{name}: fetches {where} from elsewhere"
                continue
            file = _file(path, target.path)
            if not file.is_relative_to(site) or not file.is_file():
                yield f"{name}: {where} leads nowhere"
            elif target.fragment and file in anchors and unquote(target.fragment) not in anchors[file]:
                yield f"{name}: {where} names no heading there"


def _references(page: Any) -> Iterator[tuple[Any, str]]:
    for element in page.iter():
        if not isinstance(element.tag, str):
            continue  # a comment
        for attribute in {"href" if element.tag == "a" else "", FETCHED.get(element.tag, "")} - {""}:
            where = element.get(attribute)
            if where is not None:
                yield element, where


def _is_fetched(element: Any) -> bool:
    return element.tag in FETCHED and not (element.tag == "link" and set((element.get("rel") or "").split()) & PASSIVE)


def _file(page: Path, path: str) -> Path:
    """Which file a web server gives for a path that stands in a page."""
    if not path:
        return page
    there = (page.parent / unquote(path)).resolve()
    return there / "index.html" if path.endswith("/") or there.is_dir() else there


if __name__ == "__main__":
    sys.exit(main())
