"""Checks the model server at the start. It is only for a warning, since answers quote the pages without a model."""

from __future__ import annotations

from openai import APIConnectionError, APIError, AsyncOpenAI, AuthenticationError, PermissionDeniedError

from adapters.llm.settings import OpenAISettings, key_of

TIMEOUT = 5.0  # seconds


async def server_problem(settings: OpenAISettings) -> str | None:
    """Why requests to the server would fail, as far as its list of models shows; None: no problem is known."""
    key, url = key_of(settings.openai_api_key), settings.openai_base_url
    async with AsyncOpenAI(api_key=key, base_url=url, timeout=TIMEOUT, max_retries=0) as client:
        try:
            await client.models.with_raw_response.list()  # raw: the body does not matter
        except APIConnectionError:
            return f"nothing answers at {client.base_url} (OPENAI_BASE_URL)"
        except (AuthenticationError, PermissionDeniedError):
            return f"{client.base_url} refuses the key (OPENAI_API_KEY)"
        except APIError:  # some servers have no list of models
            pass
    return None
