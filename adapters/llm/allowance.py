"""Allowance: what a call of a model may still write. Servers were seen that ignore `max_tokens`, or have no end.

    tokens that were asked for × characters of a token ─▶ what it may say, the arguments of its calls included
              tokens to think with × characters ─▶ what it may think, aloud or out of sight

Past them the call is hung up on. Characters can be counted without the server; a text has 4 to 5 of them for each token
in English, so one whose server keeps to its limit does not come near.
"""

from __future__ import annotations

UNSTATED_TOKENS = 4_000  # of a call that names no limit
# Most servers count what a model thinks against its limit, and end it there. With those that do not it may think this
# much, which is long for a question and a few passages, without being given anything for it.
FREE_THINKING_TOKENS = 8_000
EVENT_BYTES = 1_024  # of an event with one token: some 200 to 500 on the wire


class Allowance:
    """Of one call.

    Args:
        tokens: that it may say. thinking: that it was given to think with.
        token_chars: characters that a token may have, over the whole text.
    """

    def __init__(self, tokens: int | None, thinking: int, token_chars: int) -> None:
        tokens, thinking = tokens or UNSTATED_TOKENS, max(thinking, FREE_THINKING_TOKENS)
        self._token_chars = token_chars
        self._saying = tokens * token_chars
        self._thinking = thinking * token_chars
        self.most_bytes = (tokens + thinking) * EVENT_BYTES  # of all that its server sends

    def say(self, text: str) -> str:
        """As much of a text as may still be said."""
        fits = text[: max(0, self._saying)]
        self._saying -= len(text)
        return fits

    def call(self, chars: int) -> None:
        """A tool's name and arguments have so many."""
        self._saying -= chars

    def think(self, chars: int) -> None:
        """An event has so many characters that are not said; with none at all it stands for a token out of sight."""
        self._thinking -= chars or self._token_chars

    @property
    def over(self) -> bool:
        return self._saying < 0 or self._thinking < 0
