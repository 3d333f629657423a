"""Ask: whoever follows an answer sees each of its events once, in order, whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.conversations import ask as module
from pipelines.conversations import replay
from pipelines.conversations.ask import Asker, BadPosition, Followed, Position, UnknownAnswer
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.answer import Accepted, Answered, AnswerEvent, Done, Event, Failed, Restart, Token
from schemas.base import Message
from schemas.query import LogPlace, Stop
from schemas.topics import REQUESTS, STOPS, Topic
from tests.asking import question
from tests.fakes.pages import FakeSender

OURS = "request-0001"
OTHER = "request-0002"
PARTITION = 3
MORE = 5  # a partition that the topic gets


class FakeLog:
    """`answer.events`, of one partition until it grows: what is written is delivered when the test says so."""

    def __init__(self) -> None:
        self.records: list[Record] = []  # of all partitions, as they were written
        self.next = 0  # the tail's: how many it has delivered
        self.home = PARTITION  # where events of our requests go
        self.known = {PARTITION}
        self.reads: list[tuple[int, int | None]] = []
        self.read_from: set[int] = set()
        self.followed: Counter[int] = Counter()
        self.site: str | None = "town"
        self.while_reading: Callable[[], None] = lambda: None
        self._seqs: Counter[tuple[str, int]] = Counter()

    def make_tail(self, deliver: Callable[[Record], None]) -> FakeLog:
        self._deliver = deliver
        return self

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...

    own: frozenset[int] = frozenset()

    @asynccontextmanager
    async def following(self, partitions: Iterable[int]) -> AsyncIterator[None]:
        for partition in partitions:
            self.position(partition)
        self.followed.update(partitions)
        try:
            yield
        finally:
            self.followed.subtract(partitions)

    def grow(self) -> None:
        """The topic has got a partition, and our requests' events belong there now."""
        self.home = MORE
        self.known.add(MORE)

    def partition_of(self, key: str) -> int:
        return self.home

    def position(self, partition: int) -> int:
        if partition not in self.known:
            raise Retryable("not heard of it yet")
        return sum(record.partition == partition for record in self.records[: self.next])

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        assert partition in self.known
        assert start >= 0
        self.reads.append((start, end))
        self.read_from.add(partition)
        own = [record for record in self.records if record.partition == partition]
        found = [r for r in own if r.offset >= start and (end is None or r.offset < end)]
        self.while_reading()
        await asyncio.sleep(0)
        return found

    def write(
        self,
        *events: Event,
        request: str = OURS,
        attempt: int = 1,
        seq: int | None = None,
        partition: int = PARTITION,
    ) -> None:
        """As one worker does it; `seq`: as a second one does, who has got so far by itself."""
        for event in events:
            number = self._seqs[request, attempt]
            if seq is None:
                self._seqs[request, attempt] += 1
            else:
                number, seq = seq, seq + 1
            message = AnswerEvent(request_id=request, site=self.site, attempt=attempt, seq=number, event=event)
            offset = sum(record.partition == partition for record in self.records)
            self.records.append(Record("answer.events", partition, offset, request.encode(), message.encode()))

    def deliver(self, count: int | None = None) -> None:
        """The tail hands out what it has not yet (at most `count` records), as one fetch: without a pause."""
        end = len(self.records) if count is None else self.next + count
        while self.next < end:
            self.next += 1
            self._deliver(self.records[self.next - 1])

    def say(self, *texts: str, request: str = OURS, attempt: int = 1, partition: int = PARTITION) -> None:
        """Write tokens and deliver them."""
        self.write(*(Token(text=text) for text in texts), request=request, attempt=attempt, partition=partition)
        self.deliver()


class Bench:
    def __init__(self, sender: FakeSender | None = None) -> None:
        self.log = FakeLog()
        self.sender = sender or FakeSender()
        self.asker = Asker(self.sender, self.log, self.log.make_tail)

    def ask(self) -> AsyncGenerator[Followed, None]:
        return self.asker.ask(question())

    def resume(self, position: str, site: str = "town") -> AsyncGenerator[Followed, None]:
        return self.asker.resume(site, OURS, position)


async def take(events: AsyncGenerator[Followed, None], count: int) -> list[Any]:
    """The next events, in short."""
    async with asyncio.timeout(5):
        return [short((await anext(events)).event.event) for _ in range(count)]


async def rest(events: AsyncGenerator[Followed, None]) -> list[Any]:
    async with asyncio.timeout(5):
        return [short(followed.event.event) async for followed in events]


def short(event: Event) -> str:
    match event:
        case Token(text=text):
            return text
        case Restart(attempt=attempt):
            return f"restart {attempt}"
    return event.type


async def test_a_question_goes_into_the_log_before_it_counts_as_accepted() -> None:
    bench = Bench()
    events = bench.ask()
    first = await anext(events)
    assert first.event.event == Accepted(request_id=OURS, conversation_id="conversation-1")
    [sent] = bench.sender.sent
    asked = question().model_copy(update={"begins": LogPlace(partition=PARTITION, offset=0)})
    assert (sent.topic, sent.key, sent.message) == (REQUESTS, "conversation-1", asked)
    await events.aclose()


async def test_a_question_the_broker_does_not_take_is_not_accepted() -> None:
    class Down(FakeSender):
        async def send(self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None) -> None:
            raise Retryable("no broker")

    bench = Bench(Down())
    with pytest.raises(Retryable):
        await anext(bench.ask())
    assert bench.asker._listeners == {}


async def test_the_events_come_as_they_are_written_and_end_with_the_final_one() -> None:
    bench = Bench()
    bench.log.say("before", request=OTHER)
    events = bench.ask()
    assert await take(events, 1) == ["accepted"]
    bench.log.say("a")
    bench.log.say("not ours", request=OTHER)
    bench.log.say("b")
    assert await take(events, 2) == ["a", "b"]
    bench.log.write(Done())
    bench.log.say("too late")
    assert await rest(events) == ["done"]
    assert bench.log.reads == []
    assert bench.asker._listeners == {}


async def test_events_that_come_together_say_so_up_to_the_end_which_is_kept_first() -> None:
    bench = Bench()
    events = bench.ask()
    bench.log.write(Token(text="before"), request=OTHER)
    await take(events, 1)
    bench.log.write(Token(text="a"), Token(text="b"), Token(text="c"), seq=0)
    bench.log.write(Token(text="not ours"), request=OTHER)
    bench.log.write(Token(text="a zombie's"), seq=1)
    bench.log.write(WHOLE, Done(), seq=3)
    bench.log.deliver()
    together = [(short(each.event.event), each.more) async for each in events]
    assert together == [("a", True), ("b", True), ("c", False), ("answer", True), ("done", False)]


async def test_a_reader_who_leaves_as_the_next_event_comes_harms_nobody() -> None:
    bench = Bench()
    leaving, staying = bench.ask(), bench.ask()
    await take(leaving, 1)
    await take(staying, 1)
    waiting = asyncio.create_task(take(leaving, 1))
    await asyncio.sleep(0)
    waiting.cancel()
    bench.log.say("a")
    assert await take(staying, 1) == ["a"]
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_answer_that_is_quicker_than_the_confirmation_of_its_question_is_not_missed() -> None:
    class Quick(FakeSender):
        async def send(self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None) -> None:
            bench.log.write(Token(text="quick"), Done())
            bench.log.deliver()

    bench = Bench(Quick())
    assert await rest(bench.ask()) == ["accepted", "quick", "done"]


async def test_positions_resume_at_the_exact_event() -> None:
    bench = Bench()
    events = bench.ask()
    accepted = await anext(events)
    bench.log.say("a", "b")
    a = await anext(events)
    await events.aclose()
    bench.log.write(Token(text="c"), Done())
    bench.log.deliver()
    assert await rest(bench.resume(accepted.position)) == ["a", "b", "c", "done"]
    assert await rest(bench.resume(a.position)) == ["b", "c", "done"]


async def test_resuming_while_the_answer_goes_on_joins_log_and_tail() -> None:
    bench = Bench()
    bench.log.say("a", "b")
    bench.log.write(Token(text="c"))  # in the log, but not delivered yet
    events = bench.resume(str(Position(PARTITION, 0, 1)))
    assert await take(events, 1) == ["b"]
    bench.log.deliver()
    bench.log.write(Done())
    bench.log.deliver()
    assert await rest(events) == ["c", "done"]


async def test_events_that_come_while_the_log_is_read_follow_it() -> None:
    bench = Bench()
    bench.log.say("a", "b")
    bench.log.while_reading = lambda: bench.log.say("c") if len(bench.log.records) < 3 else None
    events = bench.resume("")
    assert await take(events, 3) == ["a", "b", "c"]
    bench.log.write(Done())
    bench.log.deliver()
    assert await rest(events) == ["done"]


async def test_without_a_position_the_answer_comes_from_its_beginning() -> None:
    bench = Bench()
    bench.log.say("other", request=OTHER)
    bench.log.write(Token(text="a"), Done())
    bench.log.deliver()
    assert await rest(bench.resume("")) == ["a", "done"]


async def test_after_the_final_event_nothing_follows() -> None:
    bench = Bench()
    bench.log.write(Token(text="a"), Done())
    bench.log.deliver()
    assert await rest(bench.resume(str(Position(PARTITION, 1, 1)))) == []


async def test_a_long_log_is_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "STRETCH", 2)
    bench = Bench()
    bench.log.write(Token(text="a"), Token(text="b"), Token(text="c"), Token(text="d"), Done())
    bench.log.deliver()
    assert await rest(bench.resume("")) == ["a", "b", "c", "d", "done"]
    assert bench.log.reads == [(0, 2), (2, 4), (4, 5)]


async def test_those_who_come_back_together_share_one_reading() -> None:
    bench = Bench()
    bench.log.write(Token(text="a"), Token(text="b"), Done())
    for n in range(20):
        bench.log.write(Token(text=str(n)), request=f"request-1{n:03}")
    bench.log.deliver()
    answers = await asyncio.gather(*(rest(bench.resume(str(Position(PARTITION, -1, 1)))) for _ in range(200)))
    assert answers == [["a", "b", "done"]] * 200
    assert bench.log.reads == [(0, 23)]
    assert bench.asker._listeners == {}


async def test_who_comes_while_the_log_is_read_misses_nothing_of_what_was_written_since() -> None:
    bench = Bench()
    bench.log.say("a")
    late: list[asyncio.Task[list[Any]]] = []

    def meanwhile() -> None:
        if not late:
            bench.log.say("b")
            late.append(asyncio.create_task(rest(bench.resume(""))))

    bench.log.while_reading = meanwhile
    first = bench.resume("")
    assert await take(first, 2) == ["a", "b"]
    bench.log.write(Done())
    bench.log.deliver()
    assert await rest(first) == ["done"]
    assert await late[0] == ["a", "b", "done"]


async def test_one_who_leaves_does_not_end_the_reading_of_the_others() -> None:
    bench = Bench()
    bench.log.write(Token(text="a"), Done())
    bench.log.deliver()
    leaver, stayer = (asyncio.create_task(rest(bench.resume(""))) for _ in range(2))
    await asyncio.sleep(0)
    leaver.cancel()
    assert await stayer == ["a", "done"]
    await asyncio.gather(leaver, return_exceptions=True)


async def test_what_is_recorded_is_read_without_waiting_for_more() -> None:
    bench = Bench()
    place = await bench.asker.here(OURS)
    bench.log.say("other", request=OTHER)
    bench.log.say("a", "b")
    assert await rest(bench.asker.recorded("town", OURS, place)) == ["a", "b"]
    bench.log.write(Done())
    bench.log.deliver()
    assert await rest(bench.asker.recorded("town", OURS, place)) == ["a", "b", "done"]
    with pytest.raises(BadPosition):
        await anext(bench.asker.recorded("town", OURS, "4.1"))


async def test_ids_fall_into_the_share_of_their_gateway() -> None:
    bench = Bench()
    bench.log.partition_of = lambda key: ord(key[0]) % 4  # type: ignore[method-assign]
    bench.log.own = frozenset({1, 2})
    made = {bench.asker.new_id() for _ in range(40)}
    assert len(made) == 40
    assert {bench.log.partition_of(one) for one in made} == {1, 2}


async def test_where_no_id_falls_into_the_share_any_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ID_TRIES", 5)
    bench = Bench()
    bench.log.own = frozenset({99})
    assert bench.asker.new_id() != bench.asker.new_id()


async def test_partitions_are_followed_as_long_as_somebody_listens() -> None:
    bench = Bench()
    bench.log.known.add(MORE)
    asking, resumed = bench.ask(), bench.resume(str(Position(MORE, -1, 1)))
    await anext(asking)
    bench.log.say("a", partition=MORE)
    assert await take(resumed, 1) == ["a"]
    assert bench.log.followed == {PARTITION: 2, MORE: 1}
    await resumed.aclose()
    assert +bench.log.followed == {PARTITION: 1}
    await asking.aclose()
    assert not +bench.log.followed


async def test_a_stop_goes_into_the_log_under_the_key_of_its_request() -> None:
    bench = Bench()
    await bench.asker.stop("town", OURS)
    [sent] = bench.sender.sent
    assert (sent.topic, sent.key, sent.message) == (STOPS, OURS, Stop(request_id=OURS, site="town"))


@pytest.mark.parametrize("position", ["", str(Position(PARTITION, 0, 1)), str(Position(PARTITION, 2, 1))])
async def test_an_answer_of_another_site_is_unknown(position: str) -> None:
    """From its beginning, from the middle, and after its end."""
    bench = Bench()
    bench.log.write(Token(text="a"), Token(text="b"), Done())
    bench.log.deliver()
    with pytest.raises(UnknownAnswer):
        await anext(bench.resume(position, site="other"))
    assert bench.asker._listeners == {}


async def test_an_answer_of_another_site_is_unknown_as_soon_as_it_begins() -> None:
    bench = Bench()
    events = asyncio.create_task(rest(bench.resume("", site="other")))
    await asyncio.sleep(0)
    bench.log.say("a")
    with pytest.raises(UnknownAnswer):
        await events


async def test_events_that_do_not_say_whose_they_are_are_read_by_who_knows_of_them() -> None:
    bench = Bench()
    bench.log.site = None
    bench.log.say("a")
    bench.log.write(Done())
    bench.log.deliver()
    assert await rest(bench.resume("", site="other")) == ["a", "done"]


WHOLE = Answered(text="whole", citations=(), sources=(), extractive=True)


async def test_two_workers_at_one_attempt_are_not_mixed_up() -> None:
    """The reader follows the sequence; who ends first has the last word, and only one has it."""
    bench = Bench()
    events = bench.ask()
    await take(events, 1)
    bench.log.write(Token(text="a"), Token(text="b"))
    bench.log.write(Token(text="A"), Token(text="B"), seq=0)  # the second one repeats what is there
    bench.log.write(Token(text="far ahead"), seq=9)
    bench.log.write(Token(text="c"))
    bench.log.write(WHOLE, seq=2)
    bench.log.write(Token(text="too late"), WHOLE)
    bench.log.write(Done(), seq=3)
    bench.log.deliver()
    assert await rest(events) == ["a", "b", "c", "answer", "done"]


async def test_a_reader_who_comes_back_goes_on_in_sequence() -> None:
    bench = Bench()
    bench.log.write(Token(text="a"), Token(text="b"))
    bench.log.write(Token(text="A"), seq=0)
    bench.log.write(Token(text="c"), Done())
    bench.log.deliver()
    assert await rest(bench.resume(str(Position(PARTITION, 1, 1)))) == ["c", "done"]


async def test_an_error_ends_an_answer_wherever_it_stands() -> None:
    bench = Bench()
    events = bench.ask()
    await take(events, 1)
    bench.log.say("a")
    bench.log.write(Failed(code="internal", message="no"), Done(), seq=7)
    bench.log.deliver()
    assert await rest(events) == ["a", "error", "done"]


async def test_what_a_worker_that_was_given_up_writes_on_is_dropped() -> None:
    bench = Bench()
    events = bench.ask()
    await take(events, 1)
    bench.log.say("a")
    bench.log.write(Restart(attempt=2), attempt=2)
    bench.log.say("zombie")
    bench.log.say("A", attempt=2)
    bench.log.write(Done())  # the zombie's
    bench.log.write(Token(text="B"), Done(), attempt=2)
    bench.log.deliver()
    assert await rest(events) == ["a", "restart 2", "A", "B", "done"]


async def test_a_position_remembers_the_attempt() -> None:
    bench = Bench()
    bench.log.write(Restart(attempt=2), attempt=2)
    bench.log.write(Token(text="zombie"), Done())
    bench.log.write(Token(text="A"), Done(), attempt=2)
    bench.log.deliver()
    assert await rest(bench.resume(str(Position(PARTITION, 0, 2)))) == ["A", "done"]


async def test_a_reader_too_slow_for_its_buffer_goes_on_from_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUFFERED", 3)
    bench = Bench()
    events = bench.ask()
    await take(events, 1)
    bench.log.say("a")
    assert await take(events, 1) == ["a"]
    texts = [str(n) for n in range(10)]
    bench.log.say(*texts)
    bench.log.write(Done())
    bench.log.deliver()
    assert await rest(events) == [*texts, "done"]
    assert bench.log.reads != []


async def test_a_fetch_that_overruns_a_waiting_reader_leaves_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUFFERED", 3)
    bench = Bench()
    events = bench.ask()
    await take(events, 1)
    waiting = asyncio.create_task(rest(events))
    await asyncio.sleep(0)  # it waits for the first record now
    texts = [str(n) for n in range(10)]
    bench.log.write(*(Token(text=text) for text in texts), Done())
    bench.log.deliver()
    assert await waiting == [*texts, "done"]


async def test_a_log_that_cannot_be_read_is_told_and_nothing_is_left_behind() -> None:
    bench = Bench()

    async def away(partition: int, start: int, end: int | None = None) -> list[Record]:
        raise Retryable("no broker")

    bench.log.read = away  # type: ignore[method-assign]
    bench.log.say("a")
    with pytest.raises(Retryable):
        await anext(bench.resume(""))
    assert bench.asker._listeners == {}


@pytest.mark.parametrize(
    "position",
    ["x", "3", "3.1", "3.1.1.1", "3.-2.1", "-1.1.1", "3.1.-1", "3.1.1 ", "٣.1.1", "3.1e3.1", "3." + "9" * 19 + ".1"],
)
async def test_what_is_no_position_is_refused(position: str) -> None:
    with pytest.raises(BadPosition, match="not a position"):
        await anext(Bench().resume(position))


async def test_a_position_in_a_partition_that_is_not_known_here_yet_is_for_later() -> None:
    """Another gateway has heard of it first."""
    with pytest.raises(Retryable, match="not heard of"):
        await anext(Bench().resume("7.1.1"))


async def test_an_answer_that_goes_on_in_a_new_partition_is_followed_there() -> None:
    """Its worker has heard of more partitions in the middle of it; there the offsets begin at 0."""
    bench = Bench()
    bench.log.write(*(Token(text="x") for _ in range(3)), request=OTHER)
    bench.log.deliver()
    events = bench.ask()
    assert await take(events, 1) == ["accepted"]
    bench.log.say("a")
    bench.log.grow()
    bench.log.say("b", partition=MORE)
    bench.log.write(Done(), partition=MORE)
    bench.log.deliver()
    followed = [each async for each in events]
    assert [short(each.event.event) for each in followed] == ["a", "b", "done"]
    assert [each.position for each in followed] == [f"{PARTITION}.3.1", f"{MORE}.0.1", f"{MORE}.1.1"]


@pytest.mark.parametrize(
    ("position", "then"),
    [
        (f"{PARTITION}.-1.1", ["a", "b", "c", "d", "done"]),
        (f"{PARTITION}.0.1", ["b", "c", "d", "done"]),
        (f"{MORE}.0.1", ["d", "done"]),
    ],
)
async def test_who_comes_back_finds_an_answer_that_moved_on_the_way(position: str, then: list[str]) -> None:
    bench = Bench()
    bench.log.say("a", "b")
    bench.log.grow()
    bench.log.say("c", "d", partition=MORE)
    assert await rest(bench.asker.recorded("town", OURS, position)) == then[:-1]
    bench.log.write(Done(), partition=MORE)
    bench.log.deliver()
    assert await rest(bench.resume(position)) == then


async def test_an_answer_that_stayed_where_it_began_is_found_after_its_topic_has_grown() -> None:
    """Positions from before stay good; nothing is looked for elsewhere when the answer's end is there."""
    bench = Bench()
    bench.log.say("a")
    bench.log.write(Done())
    bench.log.deliver()
    bench.log.grow()
    bench.log.write(Token(text="x"), request=OTHER, partition=MORE)
    bench.log.deliver()
    assert await rest(bench.resume(f"{PARTITION}.-1.1")) == ["a", "done"]
    assert bench.log.read_from == {PARTITION}


@pytest.mark.parametrize("position", [Position(0, -1, 1), Position(999_999, 10**17, 7)])
def test_a_position_is_what_it_was(position: Position) -> None:
    assert Position.parse(str(position)) == position


@given(
    answer=st.lists(st.sampled_from(["ours", "other", "deliver", "read"]), max_size=40),
    buffered=st.integers(1, 4),
    resumed=st.booleans(),
)
async def test_each_event_comes_once_and_in_order(answer: Sequence[str], buffered: int, resumed: bool) -> None:
    """Whatever is written, delivered and read when, with any buffer, from the start or resumed."""
    bench = Bench()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BUFFERED", buffered)
        written: list[str] = []
        seen: list[str] = []

        async def read(events: AsyncGenerator[Followed, None]) -> None:
            async for followed in events:
                seen.append(short(followed.event.event))
                await allowed.acquire()

        allowed = asyncio.Semaphore(0)
        reader = asyncio.create_task(read(bench.resume("") if resumed else bench.ask()))
        await asyncio.sleep(0)
        for step in answer:
            match step:
                case "ours":
                    written.append(str(len(written)))
                    bench.log.write(Token(text=written[-1]))
                case "other":
                    bench.log.write(Token(text="other"), request=OTHER)
                case "deliver":
                    bench.log.deliver()
                case "read":
                    allowed.release()
                    await asyncio.sleep(0)
        bench.log.write(Done())
        bench.log.deliver()
        for _ in range(len(written) + 2):
            allowed.release()
        async with asyncio.timeout(5):
            await reader
    assert seen == [*([] if resumed else ["accepted"]), *written, "done"]
