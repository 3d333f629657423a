"""Fidelity of DOCX: which paragraphs of all kinds arrive. They are found in the XML, by other code than reads them."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from adapters.extraction.documents import Unreadable, read
from text.markdown import plain
from text.words import words

COLUMNS = ("folder", "documents", "read", "kind", "paragraphs", "kept", "share")
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_PARTS = {"word/document.xml": "body", "word/footnotes.xml": "notes", "word/endnotes.xml": "notes"}
_UNSEEN = (W + "del", W + "moveFrom", _FALLBACK)
_KINDS = {W + "txbxContent": "text boxes", W + "sdt": "content controls", W + "ins": "insertions"}
LIMIT = 100_000_000  # characters


def lines(folders: Iterable[Path]) -> Iterator[tuple[object, ...]]:
    """In the order of `COLUMNS`, for each kind."""
    for folder in folders:
        files = sorted(folder.rglob("*.docx"))
        counts: Counter[tuple[str, bool]] = Counter()
        done = 0
        for file in files:
            if (found := _of_file(file.read_bytes())) is not None:
                counts += found
                done += 1
        kinds = dict.fromkeys(kind for kind, _ in counts)
        for kind in (*kinds, "all"):
            kept, lost = (
                sum(n for (k, is_kept), n in counts.items() if kind in (k, "all") and is_kept is wanted)
                for wanted in (True, False)
            )
            yield (str(folder), len(files), done, kind, kept + lost, kept, kept / max(kept + lost, 1))


def _of_file(data: bytes) -> Counter[tuple[str, bool]] | None:
    """How many paragraphs of each kind are kept, and how many are not; None: the document cannot be read."""
    try:
        text = _key(plain("\n\n".join(section.text for section in read("docx", data, LIMIT).sections)))
        return Counter((kind, _key(paragraph) in text) for kind, paragraph in paragraphs(data))
    except Unreadable:
        return None
    except Exception as err:  # noqa: BLE001 - the child process reports all of these as damaged
        print(f"damaged: {type(err).__name__}")
        return None


def paragraphs(data: bytes) -> Iterator[tuple[str, str]]:
    """Kind and text of each paragraph that readers see, without page headers, footers and tables of contents."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in _PARTS.keys() & set(archive.namelist()):
            root = etree.fromstring(archive.read(name).replace(_STRICT, W[1:-1].encode()))
            for paragraph in root.iter(W + "p"):
                if next(paragraph.iterancestors(*_UNSEEN), None) is None and (text := _text(paragraph)):
                    above = next((_KINDS[each.tag] for each in paragraph.iterancestors(*_KINDS)), _PARTS[name])
                    yield above if above != "body" or paragraph.find(W + "ins") is None else "insertions", text


def _text(paragraph: Any) -> str:
    style = paragraph.find(f"{W}pPr/{W}pStyle")
    if style is not None and style.get(W + "val", "").lower().startswith(("toc", "verzeichnis")):
        return ""
    texts = []
    for node in paragraph.iter(W + "t", W + "tab", W + "br"):
        nearest = next(node.iterancestors(W + "p", *_UNSEEN))
        run = node.getparent()
        if nearest is paragraph and run.find(f"{W}rPr/{W}vanish") is None and run.find(f"{W}rPr/{W}vertAlign") is None:
            texts.append(node.text or "" if node.tag == W + "t" else " ")
    return " ".join("".join(texts).split())


def _key(text: str) -> str:
    return " ".join(words(text))
