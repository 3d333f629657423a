"""Any endpoint with OpenAI's embeddings API: hosted, or a local server such as vLLM, Ollama, TEI."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import openai
from more_itertools import constrained_batches
from pydantic import SecretStr

from adapters.embedders.base import Dimensions, ModelIll, NoVectors, Vectors, readable, unit_vectors
from adapters.llm.settings import key_of
from pipelines.query.search.ports import EmbedderProfile
from pipelines.runtime import tracing
from pipelines.runtime.errors import READ_AGAIN, Kind, PagewireError, Permanent, Retryable, SettingsError
from pipelines.runtime.try_limit import progressed

BATCH = 64  # texts a request
BATCH_CHARS = 200_000  # hosted endpoints take some 300,000 tokens a request
PAGES_TIMEOUT = 60.0  # seconds
QUESTION_TIMEOUT = 15.0  # seconds; a visitor waits
HARMLESS = "Pagewire"  # a text that tests whether an endpoint works


class EmbedderRefuses(Permanent):
    """The embeddings endpoint refuses a request: this text, or every one (no such model)."""

    code = "embedder-refuses"
    kind = Kind.UNKNOWN


class OpenAIEmbedder(Dimensions):
    """`openai:MODEL`. Implements `Embedder`. Pages and questions are embedded the same way."""

    # The model is unknown, so the floors refuse little. Calibrate with bench/floors.py.
    profile = EmbedderProfile(short_floor=0.3, content_floor=0.15)

    def __init__(self, model: str, *, base_url: str | None, api_key: SecretStr | None, dims: int | None = None) -> None:
        """`dims`: shortens the vectors where the model can; default: the model's own length."""
        self.spec = f"openai:{model}"
        self._name = model
        self._wanted = dims
        self._dims = dims
        # The stage retries (pipelines.runtime).
        self._client = openai.AsyncOpenAI(
            base_url=base_url, api_key=key_of(api_key), timeout=PAGES_TIMEOUT, max_retries=0
        )

    @property
    def device(self) -> str:
        return str(self._client.base_url)

    @property
    def fingerprint(self) -> str:
        return f"{self.spec}-{self.dims}"

    async def start(self) -> None:
        if self._dims is None:
            await self.recheck()

    async def recheck(self) -> None:
        vectors = await self._embed([HARMLESS], QUESTION_TIMEOUT, self._wanted)
        self._dims = vectors.shape[1]

    async def aclose(self) -> None:
        await self._client.close()

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        await self.start()
        batches = constrained_batches(texts, BATCH_CHARS, BATCH, strict=False)
        try:
            made = [await self._embed(some, PAGES_TIMEOUT, self._dims) for some in batches]
        except (NoVectors, EmbedderRefuses) as err:
            await self._blame(err)
            raise
        return np.concatenate([np.empty((0, self.dims), np.float32), *made])

    async def query(self, text: str) -> Vectors:
        await self.start()
        vector: Vectors = (await self._embed([text], QUESTION_TIMEOUT, self._dims))[0]
        return vector

    async def _blame(self, failure: PagewireError) -> None:
        """Return if the texts caused the failure, by embedding a harmless text.

        Raises:
            ModelIll: the harmless text fails as well.
            Retryable, SettingsError: the endpoint is unreachable meanwhile, or refuses our key.
        """
        try:
            await self._embed([HARMLESS], QUESTION_TIMEOUT, self._dims)
        except (NoVectors, EmbedderRefuses) as err:
            raise ModelIll(f"{failure}; a harmless text fares no better") from err

    async def _embed(self, texts: Sequence[str], timeout: float, dims: int | None) -> Vectors:
        # Hosted endpoints refuse an empty text.
        safe = [readable(text).strip() or " " for text in texts]
        try:
            with tracing.inference("embeddings", self._name, str(self._client.base_url)) as asked:
                answer = await self._client.embeddings.create(
                    model=self._name,
                    input=safe,
                    encoding_format="float",
                    dimensions=openai.omit if self._wanted is None else self._wanted,
                    timeout=timeout,
                    extra_headers=asked.headers,
                )
            progressed()  # a page may need many requests, each with its own timeout
            rows = [(item.index, item.embedding) for item in answer.data]
        except openai.APIConnectionError as err:  # includes timeouts
            raise Retryable(f"the embeddings endpoint of {self.spec} is away: {type(err).__name__}") from err
        except openai.APIStatusError as err:
            raise self._refused(err.status_code) from err
        except (openai.APIError, ValueError, AttributeError, TypeError) as err:  # the client's errors on other JSON
            raise NoVectors(f"{self.spec} answered with something that is no vectors") from err
        if sorted(place for place, _ in rows) != list(range(len(texts))):
            raise NoVectors(f"{self.spec} answered with {len(rows)} vectors for {len(texts)} texts")
        return unit_vectors([vector for _, vector in sorted(rows)], len(texts), dims, self.spec)

    def _refused(self, status: int) -> PagewireError:
        if status in (401, 403):
            return SettingsError(f"OPENAI_API_KEY: refused by the embeddings endpoint of {self.spec}; {READ_AGAIN}")
        if status in (408, 409, 429) or status >= 500:
            return Retryable(f"the embeddings endpoint of {self.spec} is busy: HTTP {status}")
        return EmbedderRefuses(f"the embeddings endpoint of {self.spec} refuses: HTTP {status}")
