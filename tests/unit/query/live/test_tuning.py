"""Settings of a site that are changed while the system runs: held to what is there, and in force for all."""

from __future__ import annotations

import pytest
import yaml

from pipelines.query.live.live_texts import LiveTexts
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.live.site_texts import site_texts
from pipelines.query.live.text_changes import BadText, Place, TextChanges, UnknownText
from pipelines.query.live.tuning import SiteTuning, filed_settings, read_settings
from prompts.loader import PromptError
from schemas.query import Trial, Tuned
from schemas.text_version import NewText, TextChange, TextVersion
from schemas.trial import AnswerSettings
from tests.asking import NOON, question
from tests.fakes.stores import FakeTextStore
from wiring.settings import Settings, SiteSettings

PLACE = Place("town", "settings", "answers")
SITES = {"town": SiteSettings(strategy="react"), "village": SiteSettings()}
SETTINGS = Settings(sites=SITES, llm_model="large", steps={"rephrase": {"model": "small"}}, gate_threshold=0.3)
ALL = """strategy: retrieval-gate
model: small
temperature: 0.25
examples: 0
think: true
rerank: false
sure_threshold: 0.2
flow: original
retriever: vectors
short_floor: 0.6
content_floor: 0.1
hits: 8
short_hits: 2
neighbours: 1
short_question_words: 2
context_chars: 4000
rephrase: repeat
sentence_check: drop
courtesies: true
gate: true
gate_threshold: 0.4
"""


def version(text: str, site: str = "town", number: int = 1) -> TextVersion:
    given = {"site": site, "kind": "settings", "name": "answers", "version": number, "by": "anna", "at": NOON}
    return TextVersion.model_validate(given | {"text": text})


def new(text: str) -> NewText:
    return NewText(text=text)


def taken(*versions: TextVersion, settings: Settings = SETTINGS) -> SiteTuning:
    tuning = SiteTuning(settings)
    tuning.take(versions)
    return tuning


def test_all_settings_are_read() -> None:
    written = yaml.safe_load(ALL) | {"temperature": 0.2}
    assert read_settings(ALL).model_dump() == written
    assert set(written) == set(AnswerSettings.model_fields)
    assert read_settings("{}").model_dump(exclude_none=True) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hits: 0", "hits: Input should be greater than or equal to 1"),
        ("hits: 101", "hits: Input should be less than or equal to 100"),
        ("hits: '8'", "hits: Input should be a valid integer"),
        ("hits: 8.5", "hits: Input should be a valid integer"),
        ("think: 'yes'", "think: Input should be a valid boolean"),
        ("temperature: 3", "temperature: Input should be less than or equal to 2"),
        ("temperature: .nan", "temperature: Input should be"),
        ("gate_threshold: 1", "gate_threshold: Input should be less than 1"),
        ("strategy: oracle", "strategy: Input should be 'quote', 'plain'"),
        ("shots: 3", "no setting 'shots' can be changed here; there are: flow, retriever"),
        ("prompt: x", "no setting 'prompt'"),
        ("1: 2", "no setting 1 "),
        ("hits", "must be lines such as `hits: 8`; there are: flow"),
        ("- hits", "must be lines"),
        ("hits: 8\n---\nhits: 9", "one YAML document"),
        ("hits: &a 8\nexamples: *a", "settings"),
        ("hits: [", "settings"),
    ],
)
def test_what_cannot_be_a_setting_is_refused_by_its_name(text: str, said: str) -> None:
    with pytest.raises(PromptError, match="settings") as refused:
        read_settings(text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: huge", "pagewire.yaml names no model 'huge'; it names: large, small"),
        ("rerank: true", "no reranker is configured"),
        ("hits: 0", "hits: Input should be"),
    ],
)
async def test_what_cannot_be_followed_here_is_not_kept(text: str, said: str) -> None:
    store = FakeTextStore()
    changes = TextChanges(store, SETTINGS, lambda: NOON)
    for act in (changes.put, changes.propose):
        with pytest.raises(BadText, match=said):
            await act(PLACE, new(text), "anna")
    assert store.kept == {}
    with pytest.raises(UnknownText):
        await changes.history(Place("town", "settings", "others"))


async def test_settings_are_proposed_put_to_use_and_taken_back() -> None:
    store, tuning, prompts = FakeTextStore(), SiteTuning(SETTINGS), SitePrompts()
    changes, live = TextChanges(store, SETTINGS, lambda: NOON), LiveTexts(store, prompts.take, tuning.take)
    candidate = await changes.propose(PLACE, new("hits: 8"), "anna")
    assert await live.look()
    assert tuning.of("town") is None
    await changes.restore(PLACE, candidate.version, TextChange(over=0), "anna")
    await changes.put(PLACE, new(ALL), "ben")
    assert await live.look()
    assert (tuning.of("town"), tuning.of("village")) == (Tuned(**read_settings(ALL).model_dump()), None)
    assert prompts.of("town") is prompts.filed("town")  # no text of the site
    shown = site_texts(SETTINGS, "town", await store.live("town"))
    assert (shown.settings, shown.settings_live) == (tuning.of("town"), 3)
    assert site_texts(SETTINGS, "village", await store.live()).settings_live is None
    for expected in (Tuned(hits=8), None):
        await changes.roll_back(PLACE, TextChange(), "anna")
        assert await live.look()
        assert tuning.of("town") == expected


def test_what_can_be_followed_no_more_counts_for_nothing_and_stops_nobody() -> None:
    fine, gone = version("hits: 4"), version("{hits: 9, model: small}", "village", 2)
    assert taken(fine, gone).of("village") == Tuned(hits=9, model="small")
    without = Settings(sites=SITES, llm_model="large")
    for other in (gone, version("hits: 4_000", "village"), version("x: [", "village")):
        tuning = taken(fine, other, settings=without)
        assert (tuning.of("town"), tuning.of("village")) == (Tuned(hits=4), None)


def test_what_pagewire_yaml_says_can_be_read_as_settings() -> None:
    filed = read_settings(filed_settings(SETTINGS, "town")).model_dump(exclude_none=True)
    assert filed == {"strategy": "react", "flow": "pagewire", "hits": 10, "gate_threshold": 0.3}
    reading = Settings(sites=SITES, reranker="onnx:models/reranker")  # keeps hits of its own number
    assert filed_settings(reading, "village") == "strategy: plain\nflow: pagewire"


def test_a_trial_goes_before_what_is_live() -> None:
    live = question().model_copy(update={"tuned": Tuned(hits=4, think=True)})
    assert question().under == Tuned()
    assert live.under == Tuned(hits=4, think=True)
    tried = live.model_copy(update={"trial": Trial(think=False, examples=0, index="pagewire-town-000001")})
    assert tried.under == Tuned(hits=4, think=False, examples=0)
    switched = live.model_copy(update={"trial": Trial(flow="original", neighbours=1)})
    assert switched.under == Tuned(flow="original", neighbours=1, think=True)  # nothing is left of the flow below
