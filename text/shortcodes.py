"""Recognizes WordPress's shortcodes that no plugin renders, such as `[gallery ids="4,5"]`: visitors see text."""

from __future__ import annotations

import re

LONGEST = 4_000  # characters of a text that may be nothing but shortcodes
_SHORTCODE = re.compile(r"\[(?P<end>/?)(?P<name>[A-Za-z][\w-]{0,60})(?P<attributes>(?:\s[^\[\]]*)?)\]")
_ATTRIBUTE = re.compile(r"\s[\w-]{1,60}=\S")
# WordPress's own that need no attributes
_OWN = frozenset(("audio", "caption", "embed", "gallery", "playlist", "video"))


def is_shortcodes(text: str) -> bool:
    """Whether a text is nothing but shortcodes.

    Each has an attribute, a name with an underscore, or one of WordPress's own names; or it ends another one. So
    `[1]`, `[sic]` and `[see below]` are words in brackets.
    """
    if "[" not in text:
        return False
    text = text.strip()
    found = list(_SHORTCODE.finditer(text)) if text.startswith("[") and len(text) <= LONGEST else []
    return bool(found) and not _SHORTCODE.sub("", text).strip() and all(map(_is_certain, found))


def _is_certain(match: re.Match[str]) -> bool:
    name = match["name"]
    return bool(match["end"]) or "_" in name or name in _OWN or _ATTRIBUTE.search(match["attributes"]) is not None
