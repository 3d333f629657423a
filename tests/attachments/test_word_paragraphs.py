"""The paragraphs of a DOCX that arrive are counted by other code than reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.word_paragraphs import lines
from tests import office_files as made
from tests.office_files import wp, wr

pytestmark = pytest.mark.attachments


def test_paragraphs_of_all_kinds(tmp_path: Path) -> None:
    control = f"<w:sdt><w:sdtContent>{wp(wr('INSIDE'))}</w:sdtContent></w:sdt>"
    lost = f"<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{wp(wr('Click'))}</w:sdtContent></w:sdt>"
    body = wp(wr("a ") + f"<w:ins>{wr('b')}</w:ins>") + wp(wr("LEAK", "<w:vanish/>")) + control + lost
    (tmp_path / "a.docx").write_bytes(made.word(body))
    (tmp_path / "b.docx").write_bytes(b"no")
    assert [line[1:6] for line in lines([tmp_path])] == [
        (2, 1, "insertions", 1, 1),
        (2, 1, "content controls", 2, 1),
        (2, 1, "all", 3, 2),
    ]
