"""Attachments of a page: what is read, where it stands, and what is said of the rest. No process, no socket."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest import handlers
from pipelines.ingest.chunk import AttachmentPiece, chunk_page, pieces_of
from pipelines.ingest.documents.attachments import (
    AT_ONCE,
    Attached,
    Attachments,
    AttachmentsAway,
    Limits,
    Missing,
    Section,
    Sections,
    Unread,
    name_of,
)
from pipelines.ingest.documents.kinds import Kind, Mislabelled, kind_of
from pipelines.ingest.embedding_plan import plan
from pipelines.ingest.heads import superseded
from pipelines.ingest.index import index_part
from pipelines.runtime.dead_letters import describe
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.record import Record
from schemas.ingest import Chunk, Chunker, EmbeddedChunk, PageChunks
from schemas.page import Attachment, AttachmentPlace, ChangeRef, PageChange, PageDocument
from tests import skipping_time
from tests.fakes.pages import FakePages, FakeSender
from tests.making import NOON, change, newest, no_attachments, parts_of

PDF = b"%PDF-1.4 "
CHUNKER = Chunker(mode="content", size=100, overlap=0.2)
THREE = Sections(tuple(Section(f"Text of page {n}.", f"{n}/3", n) for n in (1, 2, 3)))


@dataclass
class Got:
    body: bytes
    content_type: str = "application/pdf"
    length: int | None = None


class FakeFetch:
    """Answers by URL; None: away. Notes what was asked for, and whose body came."""

    def __init__(self, files: Mapping[str, Got | None]) -> None:
        self._files = files
        self.asked: list[str] = []
        self.came: list[str] = []

    async def get(self, url: str, *, limit: int, answered: Callable[[Got], None]) -> Got:
        self.asked.append(url)
        if url not in self._files:
            raise Permanent(f"{url}: the server answered 404")
        got = self._files[url]
        if got is None:
            raise Retryable(f"{url}: no connection")
        answered(replace(got, body=b""))
        self.came.append(url)
        return got

    async def aclose(self) -> None: ...


class FakeReader:
    """Reads `%PDF-1.4 ` as three pages, other bytes as text, and `bomb` not at all."""

    def __init__(self, installed: bool = True) -> None:
        self._installed = installed
        self.limits: list[int] = []
        self.types: list[str] = []

    def can_read(self, kind: Kind) -> bool:
        return self._installed or kind == "text"

    async def read(self, data: bytes, media_type: str, suffix: str, limit: int) -> Sections:
        self.limits.append(limit)
        self.types.append(media_type)
        try:
            kind = kind_of(data, media_type, f".{suffix}")
        except Mislabelled as err:
            raise Unread(str(err)) from err
        if not self.can_read(kind):
            raise Missing
        if data.endswith(b"bomb"):
            raise Unread("needs more than 1024 MiB of memory to read")
        if data.endswith(b"scan"):
            return Sections(())
        if data.endswith(b"hidden"):
            return replace(THREE, left_out={"hidden sheets": 2, "hidden rows": 1})
        return THREE if kind == "pdf" else Sections((Section(data.decode()),), "its beginning")

    async def aclose(self) -> None: ...


def attachments(
    files: Mapping[str, Got | None] | None = None,
    *,
    installed: bool = True,
    text: int = 1_000,
    folder: Path | None = None,
) -> Attachments:
    folders = {"town": folder} if folder else {}
    return Attachments(FakeFetch(files or {}), FakeReader(installed), Limits(100, text, 1_000, folders))


def data(content: bytes) -> str:
    return base64.b64encode(content).decode()


def page(*attached: Attachment) -> PageDocument:
    return PageDocument(id="fees", title="Fees", url="https://town.example/fees#top", attachments=attached)


async def test_each_page_of_a_file_has_a_place_of_its_own() -> None:
    url = "https://town.example/files/Fees%202026.pdf?v=2#x"
    read = await attachments({url: Got(PDF)}).read("town", page(Attachment(url=url)))
    assert [piece.text for piece in read.pieces] == ["Text of page 1.", "Text of page 2.", "Text of page 3."]
    assert read.pieces[2].place == AttachmentPlace(
        file=0, title="Fees – Fees 2026.pdf · 3/3", url="https://town.example/files/Fees%202026.pdf?v=2#page=3"
    )
    assert (read.notes, read.failed) == ((), ())
    own = Attachment(url=url, title="Fees.pdf")
    read = await attachments({url: Got(PDF)}).read("town", PageDocument(id="f", title="Fees.pdf", attachments=(own,)))
    assert [piece.place.title for piece in read.pieces] == [f"Fees.pdf · {n}/3" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("attachment", "title", "url"),
    [
        (Attachment(data_base64=data(PDF)), "Fees · 1/3", "https://town.example/fees#page=1"),
        (
            Attachment(data_base64=data(PDF), title="Statute"),
            "Fees – Statute · 1/3",
            "https://town.example/fees#page=1",
        ),
        (Attachment(data_base64=data(PDF), link="/f/a.pdf"), "Fees – a.pdf · 1/3", "/f/a.pdf#page=1"),
        (
            Attachment(data_base64=data(b"Hello"), media_type="text/plain", link="/f/a.txt"),
            "Fees – a.txt",
            "/f/a.txt",
        ),
    ],
)
async def test_where_a_citation_leads(attachment: Attachment, title: str, url: str) -> None:
    read = await attachments().read("town", page(attachment))
    assert (read.pieces[0].place.title, read.pieces[0].place.url) == (title, url)


async def test_what_cannot_be_read_does_not_keep_the_rest_from_being_searchable() -> None:
    read = await attachments({"https://x.example/away.pdf": None}).read(
        "town",
        page(
            Attachment(data_base64=data(PDF + b"bomb"), title="Bomb"),
            Attachment(data_base64="%%%", title="Torn"),
            Attachment(data_base64=data(b"GIF"), media_type="application/pdf", title="Lie"),
            Attachment(data_base64=data(b"x" * 101), title="Large"),
            Attachment(url="https://x.example/gone.pdf"),
            Attachment(url="https://x.example/away.pdf"),
            Attachment(path="../../etc/passwd"),
            Attachment(data_base64=data(b"\x89PNG"), media_type="image/png", title="Photo"),
            Attachment(data_base64=data(PDF + b"scan"), title="Scan"),
            Attachment(data_base64=data(PDF), title="Good"),
        ),
    )
    assert {piece.place.file for piece in read.pieces} == {9}
    assert read.failed == (
        "Bomb is not searchable: needs more than 1024 MiB of memory to read",
        "Torn is not searchable: its data is not base64: Only base64 data is allowed",
        "Lie is not searchable: said to be application/pdf, which it is not",
        "Large is not searchable: larger than 100 bytes",
        "gone.pdf is not searchable: https://x.example/gone.pdf: the server answered 404",
        "away.pdf is not searchable: https://x.example/away.pdf: no connection",
        "passwd is not searchable: files of this machine are not read; setting "
        "sites.town.attachment_folder may permit one folder",
    )
    assert read.notes == (
        "Photo is not searchable: image/png: not a kind of document that is read",
        "Scan is not searchable: it holds no text (a scan?)",
        *read.failed,
    )
    assert read.away


async def test_what_is_hidden_in_a_file_is_named() -> None:
    file = Attachment(data_base64=data(PDF + b"hidden"), title="Fees")
    read = await attachments().read("town", page(file))
    assert read.notes == ("Fees: left out: hidden sheets: 2, hidden rows: 1",)
    assert (len(read.pieces), read.failed) == (3, ())


async def test_what_nobody_here_can_read_is_named_with_the_command_that_changes_that() -> None:
    pdf = Attachment(data_base64=data(PDF))
    read = await attachments(installed=False).read("town", page(pdf))
    assert read.notes == (
        "1 attachment is kept but not searchable; `make setup-attachments` installs what reads such files",
    )
    both = await attachments(installed=False).read(
        "town", page(pdf, Attachment(data_base64=data(b"Hi"), media_type="text/plain"), pdf)
    )
    assert both.notes[-1].startswith("2 attachments are kept")
    assert [piece.text for piece in both.pieces] == ["Hi"]
    assert both.failed == ()


async def test_what_cannot_be_read_is_not_fetched() -> None:
    urls = {
        "https://x.example/film.mp4": Got(b"film", "application/pdf"),
        "https://x.example/1": Got(b"film", "video/mp4"),
        "https://x.example/2": Got(b"film", "video/mp4"),
        "https://x.example/3": Got(b"\x89PNG", "image/png"),
        "https://x.example/4": Got(PDF),
    }
    film, one, two, three, four = urls
    fetch = FakeFetch(urls)
    read = await Attachments(fetch, FakeReader(), Limits(100, 1_000, 1_000)).read(
        "town",
        page(
            Attachment(url=film),
            Attachment(url=one),
            Attachment(url=two, media_type="application/pdf", title="Fees"),
            Attachment(url=three, media_type="image/png"),
            Attachment(url=four),
        ),
    )
    assert fetch.asked == [one, two, four]
    assert fetch.came == [four]
    assert {piece.place.file for piece in read.pieces} == {4}
    assert read.failed == ("Fees is not searchable: said to be application/pdf, but its server says video/mp4",)
    assert read.notes[:3] == (
        "film.mp4 is not searchable: video/mp4: not a kind of document that is read",
        "1 is not searchable: video/mp4: not a kind of document that is read",
        "3 is not searchable: image/png: not a kind of document that is read",
    )


@pytest.mark.parametrize(
    ("said", "sent", "read_as"),
    [
        ("", "text/plain; charset=windows-1251", "text/plain; charset=windows-1251"),
        ("text/plain", "text/plain; charset=windows-1251", "text/plain; charset=windows-1251"),
        ("text/plain; charset=utf-8", "text/plain; charset=windows-1251", "text/plain; charset=utf-8"),
        ("text/plain", "text/plain", "text/plain"),
    ],
)
async def test_the_encoding_that_a_server_names_is_handed_on(said: str, sent: str, read_as: str) -> None:
    url = "https://x.example/a.txt"
    reader = FakeReader()
    attached = Attachment(url=url, media_type=said) if said else Attachment(url=url)
    await Attachments(FakeFetch({url: Got(b"Hi", sent)}), reader, Limits(100, 1_000, 1_000)).read(
        "town", page(attached)
    )
    assert reader.types == [read_as]


async def test_what_nobody_here_can_read_is_not_fetched_either() -> None:
    by_type, by_name, by_headers = (f"https://x.example/{name}" for name in ("a", "b.pdf", "c"))
    fetch = FakeFetch(dict.fromkeys((by_type, by_name, by_headers), Got(PDF)))
    read = await Attachments(fetch, FakeReader(installed=False), Limits(100, 1_000, 1_000)).read(
        "town",
        page(
            Attachment(url=by_type, media_type="application/pdf"), Attachment(url=by_name), Attachment(url=by_headers)
        ),
    )
    assert (fetch.asked, fetch.came) == ([by_headers], [])
    assert read.notes[0].startswith("3 attachments are kept")


class Crowd:
    """Pages whose files are fetched, and read, slowly; counts what is held."""

    def __init__(self, fetching: float = 0.0, reading: float = 0.0, length: int | None = None) -> None:
        self._seconds = fetching, reading
        self._length = length
        self.fetching = self.most_fetching = self.reading = self.most_reading = self.held = self.most_held = 0
        self.read_urls: list[bytes] = []

    async def get(self, url: str, *, limit: int, answered: Callable[[Got], None]) -> Got:
        answered(Got(b"", "text/plain", self._length))
        self.fetching += 1
        self.held += 1
        self.most_held = max(self.most_held, self.held)
        self.most_fetching = max(self.most_fetching, self.fetching)
        await asyncio.sleep(self._seconds[0])
        self.fetching -= 1
        return Got(url.encode(), "text/plain")

    def can_read(self, kind: Kind) -> bool:
        return True

    async def read(self, data: bytes, media_type: str, suffix: str, limit: int) -> Sections:
        self.reading += 1
        self.most_reading = max(self.most_reading, self.reading)
        await asyncio.sleep(self._seconds[1])
        self.reading -= 1
        self.held -= 1
        self.read_urls.append(data)
        return Sections((Section(data.decode()),))

    async def aclose(self) -> None: ...

    async def pages(self, count: int, budget: int) -> list[Attached]:
        """All at once; every second one of an import."""
        both = Attachments(self, self, Limits(100, 1_000, budget))
        return await asyncio.gather(
            *(both.read("town", page(Attachment(url=f"{n}")), urgent=n % 2 == 1) for n in range(count)),
        )


async def test_no_more_is_fetched_than_there_is_room_for() -> None:
    crowd = Crowd(0.001)
    assert all(read.pieces for read in await crowd.pages(20, 250))
    assert (crowd.most_fetching, crowd.most_reading) == (2, 1)


async def test_what_is_known_to_be_small_takes_little_room() -> None:
    crowd = Crowd(0.001, length=1)
    assert all(read.pieces for read in await crowd.pages(20, 250))
    assert crowd.most_fetching == AT_ONCE


async def test_what_turns_out_to_be_small_waits_in_little_room_to_be_read() -> None:
    crowd = Crowd(0.0, 0.001)
    assert all(read.pieces for read in await crowd.pages(20, 110))
    assert crowd.most_held == AT_ONCE


async def test_a_file_larger_than_all_room_is_fetched_alone() -> None:
    crowd = Crowd(0.001)
    assert all(read.pieces for read in await crowd.pages(20, 1))
    assert crowd.most_fetching == 1


async def test_files_of_saves_are_read_before_those_of_imports() -> None:
    crowd = Crowd()
    await crowd.pages(8, 100)
    assert crowd.read_urls == [b"0", b"1", b"3", b"5", b"7", b"2", b"4", b"6"]


def test_waiting_for_others_files_is_not_held_against_a_page() -> None:
    crowd = Crowd(60.0, 60.0, length=1)  # eight are fetched, seven wait to be read
    assert all(read.pieces for read in skipping_time.run(crowd.pages(64, 200)))


def test_what_a_page_takes_itself_is() -> None:
    crowd = Crowd(90.0, 60.0)
    two = page(Attachment(url="0", title="A"), Attachment(url="1", title="B"))
    read = skipping_time.run(Attachments(crowd, crowd, Limits(100, 1_000, 100)).read("town", two))
    assert read.failed == ("B is not searchable: the attachments of the page take more than 240 s to read",)
    assert [piece.text for piece in read.pieces] == ["0"]


async def test_a_pages_attachments_share_one_limit() -> None:
    reader = FakeReader()
    one = Attachment(data_base64=data(PDF), title="One")
    read = await Attachments(FakeFetch({}), reader, Limits(100, 60, 1_000)).read("town", page(one, one, one))
    assert reader.limits == [60, 15]
    assert read.notes == ("One is not searchable: the page has 60 characters of attachments before it",)


async def test_files_come_from_the_sites_own_folder_alone(tmp_path: Path) -> None:
    files = {
        "town/sub/a.txt": "Hello",
        "town/.env": "secret",
        "town/.git/notes.txt": "secret",
        "town/.hidden.txt": "secret",
        "town/config.php": "secret",
        "town/id_rsa": "secret",
        "school/a.txt": "secret",
        "secret.txt": "secret",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    town, school = tmp_path / "town", tmp_path / "school"
    (town / "link.txt").symlink_to(tmp_path / "secret.txt")
    (town / "others").symlink_to(school)
    (town / "loop.txt").symlink_to("loop.txt")
    os.mkfifo(town / "pipe.txt")
    elsewhere, hidden = "leads out of its folder", "a hidden file"
    kinds = "files of this machine are read by `path` when their names end in csv, docx"
    paths = {
        "../school/a.txt": elsewhere,
        str(school / "a.txt"): elsewhere,
        "others/a.txt": elsewhere,
        "link.txt": elsewhere,
        "../none.txt": elsewhere,
        ".git/notes.txt": hidden,
        ".hidden.txt": hidden,
        ".env": kinds,
        ".git/config": kinds,
        "config.php": kinds,
        "id_rsa": kinds,
        "sub": kinds,
        "no.txt": "cannot be read: No such file or directory",
        "a\0b.txt": "embedded null",
        "loop.txt": "a link that leads in a circle",
        "pipe.txt": "not a regular file",
    }
    asked = [Attachment(path=path, title="T", media_type="text/plain") for path in ("sub/a.txt", *paths)]
    attached = Attachments(FakeFetch({}), FakeReader(), Limits(100, 1_000, 1_000, {"town": town, "school": school}))
    read = await attached.read("town", page(*asked))
    assert [(piece.place.file, piece.text) for piece in read.pieces] == [(0, "Hello")]
    assert len(read.failed) == len(paths)
    for said, wanted in zip(read.failed, paths.values(), strict=True):
        assert said.startswith(f"T is not searchable: {wanted}")
        assert str(tmp_path) not in said
    read = await attached.read("harbour", page(asked[0]))
    assert not read.pieces


@given(st.builds(Attachment, url=st.text(max_size=30), title=st.text(max_size=3)))
def test_any_attachment_has_a_name(attachment: Attachment) -> None:
    assert name_of(attachment, 0).strip()


PLACES = st.integers(0, 3).map(lambda n: AttachmentPlace(file=n // 2, title=f"t{n}", url=f"u{n}"))
TEXTS = st.text(alphabet="ab .\n", max_size=300)


@given(TEXTS, st.lists(st.tuples(PLACES, TEXTS), max_size=5, unique_by=lambda each: each[0]))
def test_cores_of_a_place_laid_end_to_end_are_its_text(own: str, attached: list[tuple[AttachmentPlace, str]]) -> None:
    given = [AttachmentPiece(place, text) for place, text in attached if text.strip()]
    chunks = chunk_page({"title": "T", "content": own}, CHUNKER, given)
    assert pieces_of(chunks) == given
    content = [chunk for chunk in chunks if chunk.field == "content"]
    assert [chunk.ord for chunk in content] == list(range(len(content)))
    assert "".join(c.text for c in content if c.place is None) == (own if own.strip() else "")
    assert chunks == chunk_page({"title": "T", "content": own}, CHUNKER) + tuple(c for c in chunks if c.place)


def test_what_is_embedded_reaches_over_the_pages_of_a_file_and_never_from_file_to_file() -> None:
    cores = {0: ["a" * 10, "b" * 10], 1: ["c" * 10]}
    attached = [
        AttachmentPiece(AttachmentPlace(file=file, title="", url=f"#{n}"), text)
        for file, texts in cores.items()
        for n, text in enumerate(texts)
    ]
    chunks = chunk_page({"content": "own"}, CHUNKER, attached)
    page = handlers.chunked(changed(), CHUNKER, 0, 0).model_copy(update={"chunks": chunks})
    assert [each.text for each in plan(page, "m")] == ["own", "a" * 10 + "bb", "aa" + "b" * 10, "c" * 10]


def changed(*attached: Attachment) -> PageChange:
    return PageChange(
        op="upsert",
        site="town",
        lang="en",
        page_id="fees",
        revision=5,
        accepted_at=NOON,
        source="push",
        page=PageDocument(id="fees", lang="en", title="Fees", content="Free.", attachments=attached),
    )


def record(change: PageChange, attempt: int = 1) -> Record:
    return Record("any", 2, 9, change.page_key.encode(), change.encode(), attempt=attempt)


async def chunker(site: str) -> Chunker:
    return CHUNKER


async def test_a_page_without_attachments_is_the_same_bytes_as_ever() -> None:
    sender = FakeSender()
    await handlers.chunk_handler(chunker, no_attachments, newest)(record(changed()), sender)
    assert sender.sent[0].message.encode() == (
        b'{"v":1,"change":{"op":"upsert","site":"town","lang":"en","page_id":"fees","revision":5,'
        b'"accepted_at":"2026-05-04T12:00:00Z","partition":2,"offset":9},'
        b'"meta":{"title":"Fees","url":"","groups":null},'
        b'"chunker":{"mode":"content","size":100,"overlap":0.2,"titled":false},'
        b'"chunks":[{"field":"title","ord":0,"text":"Fees"},{"field":"content","ord":0,"text":"Free."}],"notes":[],'
        b'"reading":{"reader":"2","words":null}}'
    )
    embedded = EmbeddedChunk(field="title", ord=0, text="Fees", embed_hash="x", vector=np.zeros(1, np.float32))
    assert b"place" not in embedded.model_dump_json().encode()


async def test_a_place_travels() -> None:
    place = AttachmentPlace(file=1, title="Statute · 3/9", url="/s.pdf#page=3")
    chunk = Chunk(field="content", ord=4, text="x", place=place)
    assert Chunk.model_validate_json(chunk.model_dump_json()) == chunk


async def handled(
    read: Attached, attempt: int = 1, is_superseded: Callable[[ChangeRef], Awaitable[bool]] = newest
) -> tuple[list[PageChunks], Exception | None]:
    async def reads(site: str, page: PageDocument) -> Attached:
        assert site == "town"
        return read

    sender, error = FakeSender(), None
    try:
        handle = handlers.chunk_handler(chunker, reads, is_superseded)
        await handle(record(changed(Attachment(path="a")), attempt), sender)
    except (Permanent, Retryable) as err:
        error = err
    messages = [sent.message for sent in sender.sent]
    return [message for message in messages if isinstance(message, PageChunks)], error


async def test_an_attachment_that_cannot_be_read_is_a_dead_letter_beside_a_searchable_page() -> None:
    [sent], error = await handled(Attached(notes=("a is not searchable: x",), failed=("a is not searchable: x",)))
    assert [chunk.text for chunk in sent.chunks] == ["Fees", "Free."]
    assert sent.notes == ("a is not searchable: x",)
    assert isinstance(error, Unread)
    # Whoever waits for the page must not be told that it failed.
    sender, letter = FakeSender(), describe(record(changed()), "chunk", error, 1, NOON)
    await handlers.failed_receipt("chunk", handlers.change_in_log)(record(changed()), letter, sender)
    assert sender.sent == []
    assert (letter.code, letter.message) == ("unreadable-attachment", "a is not searchable: x")


@pytest.mark.parametrize(("shown", "buried"), [(None, True), (4, True), (5, True), (6, False)])
async def test_a_superseded_page_leaves_no_dead_letter_of_its_attachments(shown: int | None, buried: bool) -> None:
    pages = FakePages()
    if shown is not None:
        await index_part(parts_of(change(shown))[0], pages, lambda: NOON, 0, 0)
    [sent], error = await handled(Attached(failed=("x",)), is_superseded=partial(superseded, pages))
    assert len(sent.chunks) == 2
    assert isinstance(error, Unread) is buried


async def test_a_page_does_not_wait_for_a_server_that_is_away() -> None:
    away = Attached(notes=("x",), failed=("x",), away=True)
    [sent], error = await handled(away, 1)
    assert isinstance(error, AttachmentsAway)
    assert error.code == "attachments-away"
    assert len(sent.chunks) == 2
    sent_again, error = await handled(away, 2)
    assert sent_again == []
    assert isinstance(error, AttachmentsAway)
    [_], error = await handled(away, handlers.AWAY_TRIES)
    assert isinstance(error, Unread)


async def test_attachments_never_make_a_page_too_large_for_the_bus() -> None:
    place = AttachmentPlace(file=0, title="T" * 4_000, url="u")
    pieces = tuple(AttachmentPiece(place, "x" * 90 + f" {n}") for n in range(3_000))
    [sent], error = await handled(Attached(pieces))
    assert error is None
    assert [chunk.text for chunk in sent.chunks] == ["Fees", "Free."]
    assert "too large" in sent.notes[0]
