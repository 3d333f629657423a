"""The base of all messages: frozen, strict, versioned, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

SCHEMA_VERSION: Literal[1] = 1
# Elasticsearch external versions are signed 64-bit; receipts spend two bits on their rank.
MAX_REVISION = 2**60 - 1

_KEPT_TAG = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_WRITTEN_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")

_SITE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62})")

# What a pattern allows, in words, for messages.
_WORDS: dict[str, str] = {}


def form(pattern: str, words: str, **more: Any) -> StringConstraints:
    """The form of a string. `words`: what is allowed, as messages say it in place of the pattern."""
    _WORDS[pattern] = words
    return StringConstraints(pattern=pattern, **more)


def message(error: ErrorDetails) -> str:
    """What is wrong with a value, for people; `error` as `ValidationError.errors` has it, with its context."""
    words = _WORDS.get(error.get("ctx", {}).get("pattern", ""))
    return f"must be {words}" if words else error["msg"].removeprefix("Value error, ")


SiteId = Annotated[
    str,
    form(f"^{_SITE.pattern}$", "small letters, digits and `-`, 63 at most"),
    Field(description="Site, as named in pagewire.yaml; part of the Elasticsearch index name."),
]
Lang = Annotated[
    str,
    form(f"^{_KEPT_TAG.pattern}$", "a language tag such as `de` or `pt-BR`"),
    Field(description="BCP 47 language tag with a lower-case primary language, for example `de` or `pt-BR`."),
]
PageId = Annotated[
    str,
    # No control characters: ids travel in headers, URLs and logs.
    form(r"^[^\x00-\x1f\x7f]+$", "one line", min_length=1, max_length=256),
    Field(description="The CMS's own id of the page, the same in every language."),
]


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("true and false are no numbers")
    return value


Revision = Annotated[
    int,
    Field(ge=0, le=MAX_REVISION, description="Order of a page's changes; the highest wins, whenever it arrives."),
    BeforeValidator(_no_flag),  # pydantic takes true for 1
]


def optional(default: Any = None, **more: Any) -> Any:
    """A field that is only written where it differs from its default: earlier versions read what does not use it."""
    return Field(default=default, exclude_if=lambda value: value == default, **more)


def is_site_id(text: str) -> bool:
    """Whether it is a valid site id."""
    return _SITE.fullmatch(text) is not None


def language_tag(written: str) -> str:
    """Normalise a client's language tag: `DE` -> `de`, `en_us` -> `en-US` (RFC 5646, 2.1.1).

    Tags in a form that we store stay unchanged, also Django's `pt-br`, because page keys contain them.
    """
    if _KEPT_TAG.fullmatch(written) or not _WRITTEN_TAG.fullmatch(written):
        return written
    primary, *others = written.lower().replace("_", "-").split("-")
    tag = [primary]
    for subtag in others:
        if any(len(before) == 1 for before in tag):  # extensions and private use
            tag.append(subtag)
        else:
            tag.append({2: subtag.upper(), 4: subtag.capitalize()}.get(len(subtag), subtag))
    return "-".join(tag)


def is_language_tag(text: str) -> bool:
    """Whether it is a tag in a form that we store."""
    return _KEPT_TAG.fullmatch(text) is not None


GivenLang = Annotated[
    str,
    form(f"^{_WRITTEN_TAG.pattern}$", "a language tag such as `de` or `pt-BR`"),
    AfterValidator(language_tag),
    Field(description="BCP 47 language tag, for example `de` or `pt-BR`; `DE` and `pt_BR` are understood as these."),
]


class WireError(ValueError):
    """The bytes are not a message of this kind and version."""


def problems(err: ValidationError) -> str:
    """The errors, field by field, without the content."""
    return "; ".join(
        f"{'.'.join(map(str, e['loc'])) or 'message'}: {message(e)}"
        for e in err.errors(include_input=False, include_url=False)[:5]
    )


class Wire(BaseModel):
    """An immutable value inside a message. Unknown fields are refused.

    Values from another version of ours are parsed by `stored` (messages by `decode`): a minor version may add fields,
    so unknown ones are accepted there, and kept if the value is passed on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")
    passed_on: ClassVar[bool] = True  # from stage to stage unchanged; chunks are not, each stage makes its own

    @classmethod
    def stored(cls, value: Any) -> Self:
        """Parse a value that any version of ours has stored. Raises: ValidationError."""
        try:
            return cls.model_validate(value)
        except ValidationError:
            return cls.model_validate(value, extra="allow")

    def dumped(self) -> dict[str, Any]:
        """As JSON values, with the unknown fields from parsing."""
        data = self.model_dump(mode="json")
        if _has_unknown(self):
            _add_unknown(self, data)
        return data


def _inner(model: Wire) -> Iterator[tuple[str, int | None, Wire]]:
    """The nested values that are passed on: field, place in it, value."""
    for name, value in model.__dict__.items():
        if isinstance(value, Wire):
            yield name, None, value
        elif isinstance(value, tuple) and value and isinstance(value[0], Wire) and value[0].passed_on:
            yield from ((name, place, one) for place, one in enumerate(value) if isinstance(one, Wire))


def _has_unknown(model: Wire) -> bool:
    return bool(model.__pydantic_extra__) or any(_has_unknown(value) for _, _, value in _inner(model))


def _add_unknown(model: Wire, data: dict[str, Any]) -> None:
    data.update(model.__pydantic_extra__ or {})
    for name, place, value in _inner(model):
        if name in data:  # some fields are left out when they are empty
            _add_unknown(value, data[name] if place is None else data[name][place])


class Message(Wire):
    """A whole Kafka message value."""

    v: Literal[1] = Field(default=SCHEMA_VERSION, description="Schema version; others are refused.")

    def encode(self) -> bytes:
        """UTF-8 JSON."""
        if _has_unknown(self):
            return json.dumps(self.dumped(), ensure_ascii=False, separators=(",", ":")).encode()
        return self.model_dump_json().encode()

    @classmethod
    def decode(cls, value: bytes | None, *, strict: bool = False) -> Self:
        """Parse a message value.

        Args:
            strict: Refuse unknown fields, too, because a person wrote the value.

        Raises:
            WireError: empty, not JSON, another version, or fields that do not fit; names the fields, never
                their content.
        """
        if not value:
            raise WireError(f"{cls.__name__}: empty value (deletes are explicit events, not tombstones)")
        try:
            try:
                return cls.model_validate_json(value)
            except ValidationError:  # slow, but rare: nearly every message is of this version
                if strict:
                    raise
                return cls.model_validate_json(value, extra="allow")
        except ValidationError as err:
            raise WireError(f"not a {cls.__name__} v{SCHEMA_VERSION}: {problems(err)}") from err
