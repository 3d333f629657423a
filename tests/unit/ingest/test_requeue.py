"""Heal: a change goes through the pipeline once more as it stands in the log, and nothing else ever does."""

from __future__ import annotations

import pytest

from pipelines.ingest import requeue as module
from pipelines.ingest.accept import reference
from pipelines.ingest.requeue import Requeuer
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.page import PageChange, PageDocument
from schemas.topics import CHANGES
from tests.fakes.pages import FakeSender
from tests.making import NOON


def saved(revision: int, page_id: str = "fees") -> PageChange:
    return PageChange(
        op="upsert",
        site="town",
        lang="en",
        page_id=page_id,
        revision=revision,
        accepted_at=NOON,
        source="push",
        page=PageDocument(id=page_id, lang="en", title=f"Revision {revision}"),
    )


class FakeLog:
    """`cms.changes`, one partition; None is compacted away."""

    def __init__(self, *changes: PageChange | None) -> None:
        self._changes = changes

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        assert partition == 0
        stretch = list(enumerate(self._changes))[start:end]
        return [Record("cms.changes", 0, at, c.page_key.encode(), c.encode()) for at, c in stretch if c is not None]


WINNER = reference(saved(5), partition=0, offset=1)


async def test_the_winner_is_sent_again_as_it_stands_in_the_log() -> None:
    sender = FakeSender()
    await Requeuer(FakeLog(saved(3), saved(5), saved(4))).send_again(WINNER, sender)
    assert [(s.topic, s.key, s.message, s.lane) for s in sender.sent] == [(CHANGES, "town:en:fees", saved(5), "bulk")]


@pytest.mark.parametrize(
    "there", [None, saved(6), saved(5, "other")], ids=["compacted away", "another revision", "another page"]
)
async def test_what_is_not_the_winner_any_more_is_left_alone_and_reported(
    there: PageChange | None, caplog: pytest.LogCaptureFixture
) -> None:
    sender = FakeSender()
    await Requeuer(FakeLog(saved(3), there, saved(4))).send_again(WINNER, sender)
    assert sender.sent == []
    assert "cannot requeue town:en:fees: revision 5 is not at 0/1 of cms.changes" in caplog.text


async def test_a_delete_that_was_compacted_away_is_made_again_from_what_the_head_knows() -> None:
    sender = FakeSender()
    winner = WINNER.model_copy(update={"op": "delete"})
    await Requeuer(FakeLog(saved(3), None, saved(4))).send_again(winner, sender)
    [sent] = sender.sent
    assert isinstance(sent.message, PageChange)
    assert reference(sent.message, partition=0, offset=1) == winner


async def test_a_log_that_cannot_be_read_is_tried_again() -> None:
    class Away(FakeLog):
        async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
            raise Retryable("no broker")

    with pytest.raises(Retryable):
        await Requeuer(Away()).send_again(WINNER, FakeSender())


async def test_a_winner_is_sent_again_once_as_long_as_its_page_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 1)
    requeuer, sender = Requeuer(FakeLog(saved(3), saved(5), saved(5, "other"))), FakeSender()
    for winner in (WINNER, WINNER, reference(saved(5, "other"), partition=0, offset=2), WINNER):
        await requeuer.send_again(winner, sender)
    assert [sent.key for sent in sender.sent] == ["town:en:fees", "town:en:other", "town:en:fees"]
