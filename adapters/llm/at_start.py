"""Whether the server of models would be asked in vain. Answers quote the pages meanwhile, so this is for a warning."""

from __future__ import annotations

from openai import APIConnectionError, APIError, AsyncOpenAI, AuthenticationError, PermissionDeniedError

from adapters.llm.settings import OpenAISettings
from adapters.openai_key import key_of

TIMEOUT = 5.0  # seconds


async def in_vain(settings: OpenAISettings) -> str | None:
    """Why the server is asked in vain, as far as its list of models shows; None: it may not be."""
    key, url = key_of(settings.openai_api_key), settings.openai_base_url
    async with AsyncOpenAI(api_key=key, base_url=url, timeout=TIMEOUT, max_retries=0) as client:
        try:
            await client.models.with_raw_response.list()  # its body may be anything
        except APIConnectionError:
            return f"nothing answers at {client.base_url} (OPENAI_BASE_URL)"
        except (AuthenticationError, PermissionDeniedError):
            return f"{client.base_url} refuses the key (OPENAI_API_KEY)"
        except APIError:  # a server need not have such a list
            pass
    return None
