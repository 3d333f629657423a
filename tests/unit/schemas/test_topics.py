"""The map of topics: what it says is what Kafka gets."""

from __future__ import annotations

import re

import pytest

from schemas.base import Message
from schemas.topics import (
    ANSWERS,
    BUDGETS,
    CHANGES,
    DAY,
    HOUR,
    MAX_MESSAGE_BYTES,
    OUTCOMES,
    PAUSES,
    RATES,
    REQUESTS,
    RESULTS,
    STOPS,
    TOPICS,
    VERDICTS,
    Topic,
    all_topics,
    dead_letter_topic,
)


def test_every_topic_has_a_name_of_its_own_that_kafka_takes() -> None:
    names = [topic.name for topic in all_topics()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+\.[a-z]+(\.dlq)?", name) for name in names)


def test_the_topics_are_those_of_the_contract() -> None:
    assert {topic.name for topic in TOPICS} == {
        "cms.changes",
        "ingest.chunks",
        "ingest.embeddings",
        "ingest.receipts",
        "rebuild.orders",  # how a rebuild has the workers make its pages
        "rebuild.results",  # how it hears of them
        "query.requests",
        "query.rephrased",
        "query.retrieved",
        "answer.events",
        "query.outcomes",  # how what became of a question gets into the log
        "query.verdicts",  # how what a judge finds of an answer gets there, too
        "worker.pauses",  # how `status` learns on any machine which stages wait
        "limits.rates",  # how gateways learn what visitors did at the others
        "limits.budgets",  # how all learn what was spent of a site's day
        "answer.stops",  # how a stop gets to whoever writes the answer
    }


def test_every_topic_that_a_stage_reads_has_dead_letters() -> None:
    dead = {topic.name for topic in all_topics()} - {topic.name for topic in TOPICS}
    read_by_no_stage = (ANSWERS, STOPS, PAUSES, RATES, BUDGETS, RESULTS)
    assert dead == {f"{topic.name}.dlq" for topic in TOPICS if topic not in read_by_no_stage}


@pytest.mark.parametrize("topic", all_topics(), ids=lambda topic: topic.name)
def test_every_topic_takes_the_largest_message_and_keeps_it_as_long_as_it_says(topic: Topic) -> None:
    config = topic.config
    assert int(config["max.message.bytes"]) > MAX_MESSAGE_BYTES
    assert all(isinstance(value, str) for value in config.values())
    if topic.compacted:
        assert topic.retention_ms is None
        assert config["cleanup.policy"] == "compact"
        assert "retention.ms" not in config
    else:
        assert config["cleanup.policy"] == "delete"
        assert int(config["retention.ms"]) == topic.retention_ms
        # What is in a file goes with its newest message, so a file must not be written for long.
        assert int(config["segment.ms"]) <= int(config["retention.ms"]) / 24


def test_what_comes_from_editors_is_kept_for_ever_and_all_else_a_day_or_a_week() -> None:
    for topic in TOPICS:
        editors = topic.name.startswith(("cms.", "ingest."))
        assert topic.compacted is editors
        # The question log's own week: nobody waits for its stage, so it may be away for longer than the others.
        others = {OUTCOMES: 7 * DAY, VERDICTS: 7 * DAY, RATES: HOUR, RESULTS: HOUR}.get(topic, DAY)
        assert topic.retention_ms == (None if editors else others)


def test_a_change_that_lost_is_not_compacted_before_it_is_healed() -> None:
    assert CHANGES.config["min.compaction.lag.ms"] == str(7 * DAY)


def test_a_dead_letter_holds_bytes_and_lasts_two_weeks() -> None:
    letters = dead_letter_topic(REQUESTS)
    assert (letters.name, letters.key, letters.value) == ("query.requests.dlq", REQUESTS.key, None)
    assert letters.config["retention.ms"] == str(14 * DAY)


def test_a_topic_without_an_end_says_so_to_kafka() -> None:
    assert Topic("a.b", "page", Message, "kept").config["retention.ms"] == "-1"
