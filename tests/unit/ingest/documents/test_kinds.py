"""What is fetched at all, by what is said of it."""

from __future__ import annotations

import pytest

from pipelines.ingest.documents.attachments import file_name
from pipelines.ingest.documents.kinds import Kind, NotADocument, expected
from schemas.page import Attachment

UNKNOWN = "application/octet-stream"


@pytest.mark.parametrize(
    ("said", "name", "kind"),
    [
        ("application/pdf", "", "pdf"),
        ("Text/HTML; charset=utf-8", "a.mp4", "html"),  # a type that says something goes before the name
        (UNKNOWN, "Fees 2026.PDF", "pdf"),
        ("", "fees.docx", "docx"),
        ("application/zip", "fees.docx", "docx"),
        (UNKNOWN, "minutes.eml", "eml"),
        # only the bytes can tell
        (UNKNOWN, "", None),
        (UNKNOWN, "download.php", None),
        (UNKNOWN, "statute v1.2", None),
        (UNKNOWN, "a.bin", None),
        ("application/zip", "", None),
        ("application/x-pdf", "", None),
        ("application/msword", "fees.docx", None),  # what many systems say of every file of Word
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.template", "", None),
        ("application/vnd.ms-word.document.macroEnabled.12", "fees.docm", None),
        (UNKNOWN, "fees.dot", None),
    ],
)
def test_what_may_be_a_document_is_fetched(said: str, name: str, kind: Kind | None) -> None:
    assert expected(said, name) == kind


@pytest.mark.parametrize(
    ("said", "name", "why"),
    [
        ("image/png", "fees.pdf", "image/png: not a kind"),
        ("video/mp4", "", "video/mp4"),
        ("application/gzip", "", "application/gzip"),
        ("application/json", "", "application/json"),
        ("text/css", "", "text/css"),
        (UNKNOWN, "film.MP4", "video/mp4"),
        ("", "photo.jpeg", "image/jpeg"),
        (UNKNOWN, "all.zip", "application/zip"),
        (UNKNOWN, "all.tar.gz", "gzip"),
        (UNKNOWN, "fees.doc", "before 2007"),
        ("application/msword", "fees.doc", "before 2007"),
    ],
)
def test_what_cannot_be_one_is_not(said: str, name: str, why: str) -> None:
    with pytest.raises(NotADocument, match=why):
        expected(said, name)


@pytest.mark.parametrize(
    ("attachment", "name"),
    [
        (Attachment(url="https://town.com"), ""),
        (Attachment(url="https://town.zip?x=/a.mp4#b.mp4"), ""),
        (Attachment(url="https://town.example/Fees%202026.pdf?v=1.mp4", title="A film.mp4"), "Fees 2026.pdf"),
        (Attachment(url="https://town.example/get.php?id=1", title="minutes.eml"), "minutes.eml"),
        (Attachment(path="a/photo.jpg", title="Photo"), "photo.jpg"),
        (Attachment(data_base64="", link="/files/a.txt", title="Rules"), "a.txt"),
        (Attachment(data_base64="", title="No. 5"), "No. 5"),
        (Attachment(url="http://[", title=""), ""),
    ],
)
def test_what_a_file_is_called(attachment: Attachment, name: str) -> None:
    assert file_name(attachment) == name
