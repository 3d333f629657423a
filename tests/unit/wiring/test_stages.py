"""Which stages a worker runs, in which lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from adapters.elastic.bundle import Elastic
from adapters.kafka import group_id
from pipelines.operate.chat_switches import ChatSwitches
from pipelines.runtime.errors import Permanent, SettingsError
from pipelines.runtime.record import LANES, Lane
from pipelines.runtime.settings import JudgeName, SamplingSettings
from pipelines.runtime.stage import Stage, all_groups
from wiring import stages
from wiring.query import judging
from wiring.settings import Settings, SiteSettings
from wiring.stages import GROUPS, in_lanes, stage_names, work

INGEST, QUERY = GROUPS["ingest"], GROUPS["query"]
# Nobody is asked: clients connect when they are first used.
SETTINGS = Settings(kafka="127.0.0.1:9", elasticsearch="http://127.0.0.1:9", topic_prefix="t.")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Stage]:
    """The stages a worker would have run."""
    given: list[Stage] = []

    async def run(stages: Sequence[Stage], settings: Settings, *, on_ready: Callable[[], None]) -> int:
        given.extend(stages)
        return 0

    async def look(switch: ChatSwitches) -> bool:
        """At the start; it would ask a server."""
        return False

    monkeypatch.setattr(stages, "run_stages", run)
    monkeypatch.setattr(ChatSwitches, "look", look)
    return given


async def test_one_worker_works_on_both_lanes_upstream_first(ran: list[Stage]) -> None:
    await work(stage_names(["all"]), SETTINGS, lambda: None)
    assert [(stage.name, stage.lane) for stage in ran] == [
        ("chunk", "save"),
        ("chunk", "bulk"),
        ("embed", "save"),
        ("embed", "bulk"),
        ("index", "save"),
        ("index", "bulk"),
        ("rebuild", "bulk"),
        ("rephrase", None),
        ("retrieve", None),
        ("answer", None),
        ("judge", None),
        ("log", None),
    ]
    # What status asks the broker about is what workers do.
    assert {(stage.name, stage.lane): tuple(stage.routes) for stage in ran} == {
        tuple(group): entry.reads for group, entry in all_groups()
    }
    assert len({group_id(SETTINGS, stage.name, stage.lane) for stage in ran}) == len(ran)


async def test_answers_are_judged_only_where_there_is_a_model(ran: list[Stage]) -> None:
    site = SiteSettings(judging=SamplingSettings(share=0.1))
    settings = SETTINGS.model_copy(update={"sites": {"town": site}})
    with pytest.raises(SettingsError, match=r"sites\.town\.judging\.share: there is no model: set judging_model"):
        await work(["judge"], settings, lambda: None)
    for model in ({"llm_model": "small"}, {"judging_model": "large"}, {"llm_model": "small", "judging_model": "large"}):
        named = settings.model_copy(update=model)
        await work(["judge"], named, lambda: None)
        assert named.judge_of_answers == model.get("judging_model", "small")
    for stage in ran:
        assert stage.patient
        assert stage.teardown is not None
        await stage.teardown()


@pytest.mark.parametrize("lane", LANES)
async def test_a_worker_can_be_for_one_lane(ran: list[Stage], lane: Lane) -> None:
    await work(INGEST, SETTINGS, lambda: None, [lane])
    assert [(stage.name, stage.lane) for stage in ran] == [
        (name, lane) for name in INGEST if name != "rebuild" or lane == "bulk"
    ]


async def test_each_lane_writes_at_its_own_pace(ran: list[Stage], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Lane] = []

    class Noted(Elastic):
        def __init__(self, url: str, settings: Settings, lane: Lane) -> None:
            super().__init__(url, settings, lane)
            made.append(lane)

    monkeypatch.setattr(stages, "Elastic", Noted)
    await work(["index"], SETTINGS, lambda: None)
    assert made == ["save", "bulk"]


async def test_groups_of_saves_are_those_of_versions_without_lanes() -> None:
    assert group_id(SETTINGS, "chunk", "save") == group_id(SETTINGS, "chunk") == "t.pagewire-chunk"
    assert group_id(SETTINGS, "chunk", "bulk") == "t.pagewire-chunk-bulk"


def test_a_stage_without_lanes_is_not_for_bulk_work_alone() -> None:
    assert in_lanes(INGEST, ["bulk"]) == INGEST
    with pytest.raises(SettingsError, match="rephrase"):
        in_lanes([*INGEST, *QUERY], ["bulk"])


def test_a_stage_of_bulk_work_alone_is_not_for_saves() -> None:
    assert in_lanes(["rebuild"], ["bulk"]) == ("rebuild",)
    assert in_lanes([*INGEST, *QUERY], ["save"]) == (*(name for name in INGEST if name != "rebuild"), *QUERY)
    with pytest.raises(SettingsError, match="rebuild"):
        in_lanes(["rebuild"], ["save"])


async def test_a_reranker_without_weights_is_told_before_the_first_question(ran: list[Stage], tmp_path: Path) -> None:
    """Not as a dead letter of each question."""
    settings = SETTINGS.model_copy(update={"reranker": f"bge:{tmp_path / 'none'}"})
    await work(["retrieve"], settings, lambda: None)
    [stage] = ran
    assert stage.setup is not None
    with pytest.raises(Permanent, match="reranker's weights are not there"):
        await stage.setup()
    assert stage.teardown is not None
    await stage.teardown()


async def test_a_reranker_that_judges_is_there_before_the_first_answer(ran: list[Stage], tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(
        update={"judge": "reranker", "llm_model": "scripted", "reranker": f"bge:{tmp_path / 'none'}"}
    )
    await work(["answer"], settings, lambda: None)
    [stage] = ran
    assert stage.setup is not None
    assert stage.teardown is not None
    with pytest.raises(Permanent, match="reranker's weights are not there"):
        await stage.setup()
    with pytest.raises(SettingsError, match="PAGEWIRE_RERANKER is none"):
        await work(["answer"], settings.model_copy(update={"reranker": "none"}), lambda: None)


@pytest.mark.parametrize(
    ("judge", "model", "used"),
    [("none", "scripted", {"none"}), ("model", "scripted", {"model"}), ("reranker", None, set())],
)
def test_only_the_judge_in_use_is_made(judge: JudgeName, model: str | None, used: set[JudgeName]) -> None:
    assert judging(SETTINGS.model_copy(update={"judge": judge, "llm_model": model})) == used


async def test_a_slow_model_may_rewrite_a_question_until_half_of_its_time_is_over(ran: list[Stage]) -> None:
    """A try that ended before would ask the model again, and again end before."""
    settings = SETTINGS.model_copy(update={"llm_model": "slow", "llm_timeout": 600.0})
    await work(["rephrase"], settings, lambda: None)
    [stage] = ran
    assert stage.try_timeout is not None
    assert stage.try_timeout > settings.question_timeout / 2
