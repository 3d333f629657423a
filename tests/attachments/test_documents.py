"""Real documents, read by the real child process: text with its places, and limits that hold."""

from __future__ import annotations

import asyncio
import os
import signal
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from time import monotonic

import pytest

from adapters.extraction import reader as reading
from adapters.extraction.reader import DocumentReader, ReaderDied
from pipelines.ingest.documents.attachments import Sections, Unread
from pipelines.ingest.documents.kinds import NotADocument
from tests import office_files as made

pytestmark = pytest.mark.attachments

LIMIT = 1_000_000  # characters
LONG_PDF = made.pdf([f"This is page {n}. " + "Many words stand here. " * 3 for n in range(1_500)])


@pytest.fixture
async def reader() -> AsyncIterator[DocumentReader]:
    reader = DocumentReader(memory=2_048, seconds=120)
    yield reader
    await reader.aclose()
    assert reader.pid is None


async def read(reader: DocumentReader, data: bytes, media_type: str, name: str = "") -> Sections:
    return await reader.read(data, media_type, name.rpartition(".")[2], LIMIT)


async def until(true: Callable[[], bool]) -> None:
    end = monotonic() + 60
    while not true():
        assert monotonic() < end
        await asyncio.sleep(0.01)


async def test_a_pdf_page_by_page(reader: DocumentReader) -> None:
    document = await read(reader, made.pdf(["First (1).", "", "A dog costs 96 euros."]), "application/octet-stream")
    assert [(s.page, s.label, s.text) for s in document.sections] == [
        (1, "1/3", "First (1)."),
        (3, "3/3", "A dog costs 96 euros."),
    ]
    assert document.note == "left out: pages without text: 1"


async def test_office_files(reader: DocumentReader) -> None:
    docx = made.docx("Fees", ["A dog costs 96 euros.", "A cat: nothing."], [["what", "euros"], ["a|b", "96"]])
    [section] = (await read(reader, docx, made.DOCX)).sections
    assert section.text == (
        "# Fees\n\nA dog costs 96 euros.\n\nA cat: nothing.\n\n| what | euros |\n| --- | --- |\n| a\\|b | 96 |"
    )
    pptx = made.pptx([("Intro", "Welcome"), ("Fees", "Dogs\n96 euros")])
    slides = (await read(reader, pptx, "")).sections
    assert [(s.label, s.page) for s in slides] == [("1/2", None), ("2/2", None)]
    assert slides[1].text == "Fees\n\nDogs\n\n96 euros"
    xlsx = made.xlsx({"Income 2026": [["what", "euros"], ["dogs", 96]], "Empty": [], "Costs": [["pool", 5.5]]})
    sheets = (await read(reader, xlsx, made.XLSX)).sections
    assert [(s.label, s.text) for s in sheets] == [
        ("Income 2026", "|  |  |\n| --- | --- |\n| what | euros |\n| dogs | 96 |"),
        ("Costs", "|  |  |\n| --- | --- |\n| pool | 5.5 |"),
    ]


async def test_open_document_text(reader: DocumentReader) -> None:
    body = (
        '<text:h text:outline-level="2">Fees</text:h><text:section><text:p>A dog <text:span>costs</text:span> 96.'
        "</text:p></text:section><text:list><text:list-item><text:p>one</text:p></text:list-item><text:list-item>"
        "<text:p>two</text:p></text:list-item></text:list><text:tracked-changes><text:p>gone</text:p>"
        "</text:tracked-changes><table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
        "</table:table-row></table:table>"
    )
    [section] = (await read(reader, made.odt(body), made.ODT)).sections
    assert section.text == "## Fees\n\nA dog costs 96.\n\n- one\n- two\n\na"


async def test_mails_and_texts(reader: DocumentReader) -> None:
    mail = made.eml("Fees: 2026 für alle", "A dog costs 96 euros – a year.\n")
    [section] = (await read(reader, mail, "", "fees.EML")).sections
    assert section.text == "# Fees: 2026 für alle\n\nA dog costs 96 euros – a year."
    for data, text in (
        (b"\xef\xbb\xbfGeb\xc3\xbchr\r\n", "Gebühr"),
        (b"Geb\xfchr", "Gebühr"),
        ("Gebühr".encode("utf-16"), "Gebühr"),
    ):
        [section] = (await read(reader, data, "text/plain; charset=x")).sections
        assert section.text == text
    for data, media_type, text in (
        ("Цена: 5".encode("cp1251"), "text/plain; charset=windows-1251", "Цена: 5"),
        ("図書館の開館時間".encode("shift_jis"), "text/plain", "図書館の開館時間"),
        ('<meta charset="iso-8859-2"><p>őszi nyitvatartás</p>'.encode("iso-8859-2"), "text/html", "őszi nyitvatartás"),
    ):
        [section] = (await read(reader, data, media_type)).sections
        assert section.text == text
    with pytest.raises(Unread, match="not a text in an encoding that can be told"):
        await read(reader, b"\xff" * 99, "text/plain")
    [section] = (await read(reader, b"<h1>Fees</h1><script>x</script><p>96", "text/html")).sections
    assert section.text == "# Fees\n\n96"


async def test_long_documents_are_read_as_far_as_the_limit_goes(reader: DocumentReader) -> None:
    document = await reader.read(made.pdf(["x" * 60] * 5), made.PDF, "", 150)
    assert [len(s.text) for s in document.sections] == [60, 60, 30]
    assert document.cut == "only the first 3 of 5 places in it"


@pytest.mark.parametrize(
    ("data", "said", "why"),
    [
        (made.pdf(["a"])[:200], made.PDF, "damaged"),
        (b"%PDF-1.7 and nothing", made.PDF, "damaged"),
        (made.pdf_of_a_million_pages(), made.PDF, "damaged"),
        (made.pdf_bomb(), made.PDF, "damaged"),
        (made.zip_bomb(), made.DOCX, "unpacks to more than 200 MiB"),
        (made.zip_bomb(150), made.DOCX, "damaged"),
        (made.laughing_odt(), made.ODT, "damaged"),
        (made.deep_odt(), made.ODT, "damaged"),
        (made.archive({"xl/workbook.xml": "no"}), made.XLSX, "damaged"),
        (made.archive({"word/document.xml": "no"})[:40], made.DOCX, "damaged"),
        (b"GIF89a", made.PDF, "said to be application/pdf, which it is not"),
        (made.pdf(["a"]), made.DOCX, "but it is PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1...", made.DOCX, "in the format of an Office before 2007"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "", "protected by a password"),
        (made.odt("", **{"META-INF/manifest.xml": "<x:encryption-data/>"}), made.ODT, "protected by a password"),
        (made.archive({"word/document.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"}), made.DOCX, "damaged"),
        (b"a\0b", "text/plain", "not a text"),
    ],
    ids=lambda each: each if isinstance(each, str) else "data",  # not the bytes: archives say when they were made
)
async def test_what_is_broken_made_to_hurt_or_mislabelled(
    reader: DocumentReader, data: bytes, said: str, why: str
) -> None:
    with pytest.raises(Unread, match=why):
        await read(reader, data, said)
    # The next one is read as if nothing had been.
    assert (await read(reader, made.pdf(["fine"]), made.PDF)).sections[0].text == "fine"


async def test_behind_a_password(reader: DocumentReader) -> None:
    with pytest.raises(Unread, match="password"):
        await read(reader, made.encrypted(made.pdf(["a"]), "secret"), made.PDF)
    # Anybody may read what only its owner may change.
    assert (await read(reader, made.encrypted(made.pdf(["a"]), ""), made.PDF)).sections[0].text == "a"


@pytest.mark.parametrize(("data", "said"), [(b"\x89PNG", "image/png"), (b"\0", ""), (made.archive({"a": "b"}), "")])
async def test_what_is_no_document_is_not_an_error(reader: DocumentReader, data: bytes, said: str) -> None:
    for _ in range(2):  # found out, and remembered
        with pytest.raises(NotADocument, match="not a kind of document that is read"):
            await read(reader, data, said)


async def test_archives_are_opened_in_the_child_alone(reader: DocumentReader, monkeypatch: pytest.MonkeyPatch) -> None:
    crafted, plain = made.archive_of_many_names(20_000), made.docx("Fees", ["96 euros."], [])

    def opened(*_: object) -> None:
        raise AssertionError("opened by the worker")

    monkeypatch.setattr(zipfile, "ZipFile", opened)
    with pytest.raises(Unread, match="said to be"):
        await read(reader, crafted, made.DOCX)
    assert (await read(reader, plain, made.DOCX)).sections


async def test_memory_is_limited() -> None:
    reader = DocumentReader(memory=512, seconds=120)
    paragraph = "<text:p>x</text:p>"
    with pytest.raises(Unread, match=r"512 MiB|damaged"):
        await read(reader, made.odt(paragraph * 4_000_000), made.ODT)
    assert (await read(reader, made.pdf(["fine"]), made.PDF)).sections[0].text == "fine"
    await reader.aclose()


async def test_time_is_limited() -> None:
    reader = DocumentReader(memory=2_048, seconds=0.01)
    with pytest.raises(Unread, match=r"more than 0\.01 s"):
        await read(reader, LONG_PDF, made.PDF)
    assert reader.pid is None


async def killed_while_it_reads(reader: DocumentReader, times: int) -> Sections:
    reads = asyncio.create_task(read(reader, LONG_PDF, made.PDF))
    killed: list[int | None] = [None]
    for _ in range(times):
        await until(lambda: reader.pid not in killed)
        assert reader.pid
        killed.append(reader.pid)
        os.kill(reader.pid, signal.SIGKILL)
    return await reads


async def test_a_child_that_is_killed_is_replaced_and_nothing_is_lost(reader: DocumentReader) -> None:
    document = await killed_while_it_reads(reader, 1)
    assert len(document.sections) == 1_500


async def test_what_kills_each_child_is_given_up_and_tried_again_another_time(reader: DocumentReader) -> None:
    with pytest.raises(ReaderDied, match=r"2 times \(SIGKILL\)"):
        await killed_while_it_reads(reader, 2)
    assert (await read(reader, LONG_PDF, made.PDF)).sections


async def test_who_no_longer_wants_the_text_leaves_no_answer_for_the_next(reader: DocumentReader) -> None:
    reads = asyncio.create_task(read(reader, LONG_PDF, made.PDF))
    await until(lambda: reader.pid is not None)
    reads.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reads
    assert (await read(reader, made.pdf(["fine"]), made.PDF)).sections[0].text == "fine"


async def test_the_same_file_again_is_not_read_again(reader: DocumentReader) -> None:
    once = await read(reader, made.pdf(["fine"]), made.PDF)
    await reader.aclose()
    assert await read(reader, made.pdf(["fine"]), made.PDF) is once
    assert reader.pid is None


async def test_the_child_goes_when_there_is_nothing_to_read(
    reader: DocumentReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "IDLE", 0.05)
    await read(reader, made.pdf(["fine"]), made.PDF)
    await until(lambda: reader.pid is None)
    assert (await read(reader, made.pdf(["again"]), made.PDF)).sections[0].text == "again"


async def test_how_large_its_parent_is_is_not_held_against_the_child(reader: DocumentReader) -> None:
    ours = bytearray(1_200 * 2**20)
    await read(reader, made.pdf(["fine"]), made.PDF)
    assert reader.pid is not None
    del ours


async def test_how_a_child_ended_is_known(reader: DocumentReader) -> None:
    for _ in range(20):  # we see that it ended before it has been waited for
        child = await reader._started()
        assert child.stdout
        os.kill(child.pid, signal.SIGUSR1)
        await child.stdout.read()
        assert await reader._end() == -signal.SIGUSR1


async def test_the_child_knows_no_secrets(reader: DocumentReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    monkeypatch.setenv("PAGEWIRE_ADMIN_KEY", "hush")
    await read(reader, made.pdf(["fine"]), made.PDF)
    environment = Path(f"/proc/{reader.pid}/environ").read_bytes()  # noqa: ASYNC240 - no disk behind it
    assert b"PATH=" in environment
    assert b"hush" not in environment


async def test_where_memory_runs_short_the_child_ends_first(reader: DocumentReader) -> None:
    await read(reader, made.pdf(["fine"]), made.PDF)
    assert Path(f"/proc/{reader.pid}/oom_score_adj").read_text().strip() == "1000"  # noqa: ASYNC240 - no disk behind it


async def test_many_at_once_wait_for_each_other(reader: DocumentReader) -> None:
    reads: list[Awaitable[Sections]] = [read(reader, made.pdf([f"number {n}"]), made.PDF) for n in range(8)]
    found = await asyncio.gather(*reads)
    assert [each.sections[0].text for each in found] == [f"number {n}" for n in range(8)]
