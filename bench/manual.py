"""A website by strangers: the manual of npm's command line, as its package ships it.

npm pack (the registry that npm is configured for) ─▶ checked by SHA-256 ─▶ one PageDocument for each HTML page

83 pages in English, under the Artistic License 2.0. They are read when a benchmark runs and never committed. What a CMS
would hold is the body of a page; its banner and table of contents are the theme's.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from selectolax.lexbor import LexborHTMLParser

PACKAGE = "npm@11.6.2"
SHA256 = "585f95094ee5cb2788ee11d90f2a518a7c9ef6e083fa141d0b63ca3383675a20"
LANGUAGE = "en"
PAGES = "package/docs/output/"
TWICE = {"npm-global", "npm-json"}  # other addresses of `folders` and `package-json`


class OtherManual(Exception):
    """What was downloaded is not the package that the questions were written for."""


def documents(base_url: str) -> Iterator[dict[str, Any]]:
    """The pages as PageDocuments. `base_url`: where they would answer. Needs npm. Raises: OtherManual."""
    with tempfile.TemporaryDirectory(prefix="pagewire-manual-") as folder:
        yield from read(_downloaded(Path(folder)), base_url)


def read(tarball: Path, base_url: str) -> Iterator[dict[str, Any]]:
    """The pages of a package that is here already."""
    with tarfile.open(tarball) as members:
        for member in sorted(members, key=lambda each: each.name):
            page_id = PurePosixPath(member.name).stem
            if member.name.startswith(PAGES) and member.name.endswith(".html") and page_id not in TWICE:
                file = members.extractfile(member)
                assert file is not None, member.name
                yield _document(page_id, file.read().decode(), base_url)


def text(document: Mapping[str, Any]) -> str:
    """What a reader sees of a page."""
    return f"{document['title']}\n{document['description']}\n{LexborHTMLParser(document['content']).text()}"


def _downloaded(folder: Path) -> Path:
    command = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (tarball,) = folder.iterdir()
    if (found := hashlib.sha256(tarball.read_bytes()).hexdigest()) != SHA256:
        raise OtherManual(f"{PACKAGE}: SHA-256 is {found}, not {SHA256}")
    return tarball


def _document(page_id: str, html: str, base_url: str) -> dict[str, Any]:
    page = LexborHTMLParser(html)
    title, description, body = (page.css(each)[0] for each in ("h1 > span", "header .description", "#_content"))
    return {
        "id": page_id,
        "lang": LANGUAGE,
        "url": f"{base_url}/{LANGUAGE}/{page_id}",
        "name": title.text(strip=True),
        "title": title.text(strip=True),
        "description": description.text(strip=True),
        "content": body.html,
    }
