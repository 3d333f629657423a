"""Any endpoint that speaks OpenAI's embeddings API: hosted, or a local server such as vLLM, Ollama, TEI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import openai

from adapters.embedders.base import EmbedderProfile, Vectors, readable, unit_vectors
from pipelines.runtime.errors import Permanent, Retryable, SettingsError

BATCH = 64  # texts a request
BATCH_CHARS = 200_000  # hosted endpoints take some 300,000 tokens a request
PAGES_TIMEOUT = 60.0  # seconds
QUESTION_TIMEOUT = 15.0  # seconds; a visitor waits


class OpenAIEmbedder:
    """`openai:MODEL`. Implements `Embedder`. Pages and questions are embedded alike."""

    # Unknown models: floors that refuse little. Calibrate with bench/floors.py.
    profile = EmbedderProfile(short_floor=0.3, content_floor=0.15)

    def __init__(self, model: str, *, base_url: str | None, api_key: str | None, dims: int | None = None) -> None:
        """`dims`: shortens the vectors where the model can; default: the model's own length."""
        self.spec = f"openai:{model}"
        self._name = model
        self._wanted = dims
        self._dims = dims
        # Servers on one's own machine want no key, the client wants some. Retries are the stage's (pipelines.runtime).
        self._client = openai.AsyncOpenAI(
            base_url=base_url, api_key=api_key or "none", timeout=PAGES_TIMEOUT, max_retries=0
        )

    @property
    def dims(self) -> int:
        if self._dims is None:
            raise RuntimeError(f"{self.spec} is not started: its dimensions are not known yet")
        return self._dims

    @property
    def fingerprint(self) -> str:
        return f"{self.spec}-{self.dims}"

    async def start(self) -> None:
        if self._dims is None:
            await self._embed(["Pagewire"], QUESTION_TIMEOUT)

    async def aclose(self) -> None:
        await self._client.close()

    async def passages(self, texts: Sequence[str]) -> Vectors:
        await self.start()
        made = [await self._embed(some, PAGES_TIMEOUT) for some in _batches(texts)]
        return np.concatenate([np.empty((0, self.dims), np.float32), *made])

    async def query(self, text: str) -> Vectors:
        await self.start()
        vector: Vectors = (await self._embed([text], QUESTION_TIMEOUT))[0]
        return vector

    async def _embed(self, texts: Sequence[str], timeout: float) -> Vectors:
        # Hosted endpoints refuse an empty text.
        safe = [readable(text).strip() or " " for text in texts]
        try:
            answer = await self._client.embeddings.create(
                model=self._name,
                input=safe,
                encoding_format="float",
                dimensions=openai.omit if self._wanted is None else self._wanted,
                timeout=timeout,
            )
        except (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError) as err:
            raise Retryable(f"the embeddings endpoint of {self.spec} is away or busy: {_reason(err)}") from err
        except (openai.AuthenticationError, openai.PermissionDeniedError) as err:
            raise SettingsError(f"OPENAI_API_KEY: refused by the embeddings endpoint of {self.spec}") from err
        except openai.APIError as err:
            raise Permanent(f"the embeddings endpoint of {self.spec} refuses: {_reason(err)}") from err
        if sorted(item.index for item in answer.data) != list(range(len(texts))):
            raise Permanent(f"{self.spec} answered with {len(answer.data)} vectors for {len(texts)} texts")
        rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        vectors = unit_vectors(rows, len(texts), self._dims, self.spec)
        self._dims = vectors.shape[1]
        return vectors


def _reason(err: openai.APIError) -> str:
    status = getattr(err, "status_code", None)
    return f"HTTP {status}" if status else type(err).__name__


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    chars = 0
    for text in texts:
        if batch and (len(batch) == BATCH or chars + len(text) > BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(text)
        chars += len(text)
    if batch:
        yield batch
