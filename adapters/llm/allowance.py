"""Limits the output of a model's call in characters, since some servers ignore `max_tokens` or never stop.

    max_tokens × characters of a token      ─▶ limit of the text and of the arguments of tool calls
    thinking tokens × characters of a token ─▶ limit of the reasoning, visible or not

Beyond a limit the connection is closed. An English text has 4 to 5 characters a token, so a server that keeps to its
limit of tokens stays far below.
"""

from __future__ import annotations

DEFAULT_TOKENS = 4_000  # of a call without `max_tokens`
# Most servers count reasoning against `max_tokens`. For those that do not, this limit applies, which is generous for a
# question and a few passages.
FREE_THINKING_TOKENS = 8_000
EVENT_BYTES = 1_024  # of an event with one token: some 200 to 500 on the wire


class OutputAllowance:
    """The remaining output of one call.

    Args:
        tokens: limit of the text. thinking: limit of the reasoning.
        token_chars: most characters of a token, on average over the text.
    """

    def __init__(self, tokens: int | None, thinking: int, token_chars: int) -> None:
        tokens, thinking = tokens or DEFAULT_TOKENS, max(thinking, FREE_THINKING_TOKENS)
        self._token_chars = token_chars
        self._text = tokens * token_chars
        self._thinking = thinking * token_chars
        self.most_bytes = (tokens + thinking) * EVENT_BYTES  # of the whole response

    def take_text(self, text: str) -> str:
        """Count the text, and return as much of it as fits."""
        fits = text[: max(0, self._text)]
        self._text -= len(text)
        return fits

    def count_call(self, chars: int) -> None:
        """Count the characters of a tool's name and arguments."""
        self._text -= chars

    def count_reasoning(self, chars: int) -> None:
        """Count an event's characters of reasoning. An empty event stands for one hidden token."""
        self._thinking -= chars or self._token_chars

    @property
    def exceeded(self) -> bool:
        return self._text < 0 or self._thinking < 0
