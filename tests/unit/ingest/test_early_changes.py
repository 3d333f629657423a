"""What goes ahead of the embedder: deletes, and groups that may not see a page any more."""

from __future__ import annotations

from datetime import datetime

import pytest

from pipelines.ingest.early_changes import early_part
from pipelines.ingest.index import IndexOutcome, index_part
from schemas.head import Head
from schemas.ingest import Chunk, Chunker, PageChunks, PageEmbeddings
from schemas.page import ChangeRef, FieldName, PageMeta
from tests.fakes.pages import FakePages
from tests.making import NOON, change, parts_of

KEY = change().page_key
CHUNKER = Chunker(mode="content", size=1000, overlap=0.2)
Groups = tuple[str, ...] | None


def now() -> datetime:
    return NOON


def page(ref: ChangeRef, text: str = "One.", groups: Groups = None) -> PageChunks:
    """As the chunk stage sends it."""
    upsert = ref.op == "upsert"
    meta = PageMeta(title="Fees", url="/fees", groups=groups) if upsert else None
    chunks = (Chunk(field="content", ord=0, text=text), Chunk(field="content", ord=1, text="More."))
    return PageChunks(change=ref, meta=meta, chunker=CHUNKER, chunks=chunks if upsert else ())


def ahead(ref: ChangeRef, text: str = "One.", groups: Groups = None) -> PageEmbeddings:
    part = early_part(page(ref, text, groups))
    assert part is not None
    return part


def embedded(ref: ChangeRef, text: str = "One.", groups: Groups = None) -> list[PageEmbeddings]:
    """As the embed stage sends it, in two parts."""
    cut = page(ref, text, groups)
    texts: dict[FieldName, list[str]] = {"content": [chunk.text for chunk in cut.chunks]} if cut.chunks else {}
    return [
        part.model_copy(update={"meta": cut.meta, "digest": cut.digest}) for part in parts_of(ref, texts, per_part=1)
    ]


async def apply(pages: FakePages, *parts: PageEmbeddings) -> IndexOutcome:
    """The outcome of the last part."""
    outcome = IndexOutcome()
    for at, part in enumerate(parts, 20 * parts[0].change.revision):
        outcome = await index_part(part, pages, now, at)
    return outcome


async def head(pages: FakePages) -> Head:
    return (await pages.heads("town", [KEY]))[KEY]


def test_what_everybody_may_see_has_nothing_to_send_ahead() -> None:
    assert early_part(page(change())) is None
    assert early_part(page(change(), groups=())) is not None
    assert early_part(page(change(op="delete"))) is not None


async def test_a_deleted_page_is_gone_before_the_delete_comes_the_usual_way() -> None:
    pages = FakePages()
    await apply(pages, *embedded(change(1)))
    outcome = await apply(pages, ahead(change(2, "delete")))
    told = outcome.receipt
    assert outcome.again is None  # where it stands in the topics is not known before it comes the usual way
    assert told
    assert (told.state, told.chunks.removed) == ("deleted", 2)
    assert pages.index.texts(KEY) == {}
    assert (await head(pages)).parts == 2  # the embed stage overwrites them
    assert (await apply(pages, *embedded(change(1, offset=1)))).receipt is not None
    assert pages.index.texts(KEY) == {}
    again = await apply(pages, *embedded(change(2, "delete")))
    assert again.receipt == told
    assert ((await head(pages)).ahead, (await head(pages)).parts) == (False, 1)
    assert await apply(pages, ahead(change(2, "delete"))) == IndexOutcome()  # late, of a worker that was taken for dead
    assert not (await head(pages)).ahead


async def test_without_an_index_nothing_goes_ahead_and_none_is_made() -> None:
    class Empty(FakePages):
        async def there(self, site: str) -> None:
            return None

    pages = Empty()
    assert await apply(pages, ahead(change(2, "delete"))) == IndexOutcome()
    assert await pages.heads("town", [KEY]) == {}


async def test_groups_lose_sight_of_the_old_text_at_once_and_of_what_is_still_under_way() -> None:
    pages = FakePages()
    await apply(pages, *embedded(change(1)))
    assert await apply(pages, ahead(change(3), "Secret.", ("staff", "board"))) == IndexOutcome()
    assert pages.index.groups(KEY) == {("staff", "board")}
    assert pages.index.texts(KEY)["content", 0] == (1, "One.")
    await apply(pages, *embedded(change(2), "Two.", ("board", "press")))
    assert pages.index.texts(KEY)["content", 0] == (2, "Two.")
    assert pages.index.groups(KEY) == {("board",)}
    await apply(pages, *embedded(change(1)))  # a replay
    await apply(pages, *embedded(change(3), "Secret.", ("staff", "board")))
    assert pages.index.groups(KEY) == {("staff", "board")}
    assert (await head(pages)).narrowed is None
    await apply(pages, *embedded(change(4), "All of it."))
    assert pages.index.groups(KEY) == {None}


async def test_an_older_limit_changes_nothing_and_a_newer_one_takes_its_place() -> None:
    pages = FakePages()
    await apply(pages, *embedded(change(1)))
    await apply(pages, ahead(change(3), "Three.", ("staff",)))
    await apply(pages, ahead(change(2), "Two.", ("press",)))
    assert pages.index.groups(KEY) == {("staff",)}
    await apply(pages, ahead(change(4), "Four.", ("press",)))
    assert pages.index.groups(KEY) == {()}


async def test_where_only_groups_change_the_page_is_shown_to_the_new_ones_without_an_embedder() -> None:
    pages = FakePages()
    await apply(pages, *embedded(change(1), groups=("staff",)))
    told = (await apply(pages, ahead(change(2), groups=("press", "staff")))).receipt
    assert told
    assert (told.state, told.change.revision, told.chunks.reused) == ("searchable", 2, 2)
    assert pages.index.groups(KEY) == {("press", "staff")}
    assert pages.index.texts(KEY) == {("content", 0): (2, "One."), ("content", 1): (2, "More.")}
    usual = await apply(pages, *embedded(change(2), groups=("press", "staff")))
    assert usual.receipt == told
    assert not (await head(pages)).ahead


async def test_a_chunk_that_is_missing_is_not_passed_over_when_only_groups_change() -> None:
    pages = FakePages()
    await apply(pages, *embedded(change(1), groups=("staff",)))
    await pages.index.remove(change(1), [("content", 1)])
    assert await apply(pages, ahead(change(2), groups=("press",))) == IndexOutcome()
    assert pages.index.groups(KEY) == {()}
    assert (await head(pages)).change.revision == 1


async def test_of_a_page_never_shown_no_older_revision_comes_to_light() -> None:
    pages = FakePages()
    assert await apply(pages, ahead(change(2), "Secret.", ("staff",))) == IndexOutcome()
    assert (await head(pages)).unseen
    late = (await apply(pages, *embedded(change(1)))).receipt
    assert late
    assert late.state == "superseded"
    assert pages.index.texts(KEY) == {}
    told = (await apply(pages, *embedded(change(2), "Secret.", ("staff",)))).receipt
    assert told
    assert told.state == "searchable"
    assert pages.index.groups(KEY) == {("staff",)}


@pytest.mark.parametrize("op", ["upsert", "delete"])
async def test_what_is_shown_already_stays_as_it_is(op: str) -> None:
    pages = FakePages()
    ref = change(2, op)  # type: ignore[arg-type]
    await apply(pages, *embedded(ref, groups=("staff",)))
    before = await head(pages)
    assert await apply(pages, ahead(ref, groups=("staff",))) == IndexOutcome()
    assert await head(pages) == before
