"""Loads prompts and checks them strictly, so that a typo shows at start and not in an answer.

    answer.yaml = front matter (id, version, language, variables, examples)
                  ---
                  system: segments of the system message      {title, content, when?}
                  user:   segments of the user message

A `{name}` in a segment's content is a variable. Values are inserted once and not parsed, so the text of a page or a
visitor cannot name a variable. A site's own file of the same name replaces ours.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from prompts.strict_yaml import NotPlain, UniqueKeys, check_plain

HERE = Path(__file__).parent
Role = Literal["system", "user", "assistant", "tool"]

Model = TypeVar("Model", bound=BaseModel)

_VARIABLE = re.compile(r"\{([a-z][a-z_]*)\}")


class PromptError(ValueError):
    """A prompt file or its values are wrong; names the file and the variable or key."""


@dataclass(frozen=True)
class ToolCall:
    """A model's call of a tool. `arguments` is the model's JSON, unchecked.

    `id` and `extra` are from the model's server: they go back with the call, to match it with the tool's result.
    """

    name: str
    arguments: str
    id: str = field(default="", compare=False)
    extra: Any = field(default=None, compare=False)

    def __str__(self) -> str:
        r"""As people and masks read it: an address may be written as `anna\u0040mail.example`."""
        try:
            arguments = json.dumps(json.loads(self.arguments), ensure_ascii=False)
        except (ValueError, RecursionError):
            arguments = self.arguments
        return f"{self.name}({arguments})"


@dataclass(frozen=True)
class ChatMessage:
    """One message to a chat model; `calls` of the assistant's, `answers` (the call's id) of a tool's."""

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Segment(_Strict):
    """A titled part of a message."""

    title: str = Field(min_length=1)
    content: str = Field(min_length=1)
    when: str | None = Field(default=None, description="Left out where this variable is empty.")


class _FrontMatter(_Strict):
    id: str = Field(pattern=r"^[a-z][a-z-]*$")
    version: int = Field(ge=1)
    language: str = Field(min_length=1, description="Which parts are in which language, for whoever edits it.")
    variables: dict[str, str] = Field(description="Name -> what is put there.")
    examples: bool = Field(default=False, description="Worked examples go before the user message.")


class _Body(_Strict):
    system: tuple[Segment, ...] = Field(min_length=1)
    user: tuple[Segment, ...] = Field(min_length=1)


class Example(_Strict):
    """Values of the user message's variables, and the right output."""

    title: str = Field(min_length=1)
    variables: dict[str, str]
    output: str = Field(min_length=1)
    declines: bool = Field(default=False, description="Of an answer: it says that the sources do not hold it.")
    verbatim: bool = Field(default=False, description="It was written for no prompt: braces in it name no variable.")

    def used(self) -> set[str]:
        if self.verbatim:
            return set(self.variables)
        return set(self.variables) | _used([*self.variables.values(), self.output])


class _Examples(_Strict):
    prompt: str
    language: str
    examples: tuple[Example, ...] = Field(min_length=1)


class _Sentences(RootModel[dict[str, dict[str, Annotated[str, Field(min_length=1)]]]]):
    pass


class _Table(RootModel[dict[str, str]]):
    pass


@dataclass(frozen=True)
class Prompt:
    """A checked prompt."""

    path: Path
    id: str
    version: int
    variables: Mapping[str, str]
    system: tuple[Segment, ...]
    user: tuple[Segment, ...]
    examples: Mapping[str, tuple[Example, ...]]  # by language

    @property
    def fingerprint(self) -> str:
        """Version and content, for traces: `answer-1-3fa9c2d1`."""
        text = repr((self.system, self.user, sorted(self.examples.items())))
        return f"{self.id}-{self.version}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def examples_in(self, lang: str) -> tuple[Example, ...]:
        """The worked examples in a language, else in English."""
        return self.examples.get(lang.partition("-")[0]) or self.examples.get("en", ())

    def messages(
        self, values: Mapping[str, str], lang: str, examples: Sequence[Example] | None = None
    ) -> tuple[ChatMessage, ...]:
        """System message, the worked examples (by default all in `lang`), user message.

        Raises: PromptError: a value is missing, or is for no variable.
        """
        _compare(self.path, "value for variable", set(values), set(self.variables))
        found = [ChatMessage("system", _fill(self.system, values))]
        for example in self.examples_in(lang) if examples is None else examples:
            given = example.variables
            if not example.verbatim:
                given = {name: _put(text, values) for name, text in given.items()}
            own = {**values, **given}
            output = example.output if example.verbatim else _put(example.output, own)
            found.append(ChatMessage("user", _fill(self.user, own)))
            found.append(ChatMessage("assistant", output))
        return (*found, ChatMessage("user", _fill(self.user, values)))


def load(name: str, overrides: Path | None = None) -> Prompt:
    """The prompt `name` ("answer", "evaluate/claims"), from the site's folder `overrides` if it has one of that name.

    If the site has only examples of the prompt, they replace ours language by language.

    Raises: PromptError: names the file and the fault.
    """
    ours = _ours(name)
    theirs = overrides / f"{name}.yaml" if overrides else None
    if overrides is None or theirs is None:
        return ours
    if not theirs.is_file():
        own = _examples(overrides / "examples", name, set(ours.variables))
        if own and not ours.examples:
            raise PromptError(f"{overrides / 'examples'}: the prompt {name} has no examples")
        return replace(ours, examples={**ours.examples, **own})
    prompt = _read(theirs, overrides / "examples", name)
    # The code supplies exactly these: another one has no value, and a missing one drops data that the answer needs.
    _compare(theirs, "variable", set(prompt.variables), set(ours.variables))
    return prompt


def tried(text: str, own: Prompt) -> Prompt:
    """A prompt that replaces `own` and keeps its examples if it uses examples; checked like a site's file.

    It comes over HTTP, so anchors, aliases, tags and deep nesting are refused before it is parsed: with them, a short
    text can keep YAML's parser busy for hours or crash it.

    Raises: PromptError: names the fault.
    """
    path = Path(own.path.name)
    _plain(path, text)
    prompt, examples = _checked(path, _loaded(path, text))
    _compare(path, "variable", set(prompt.variables), set(own.variables))
    return replace(prompt, examples=own.examples if examples else {})


def plain(name: str, text: str) -> Any:
    """A parsed YAML document from HTTP, with the checks of a tried prompt. Raises: PromptError: names the fault."""
    path = Path(name)
    _plain(path, text)
    documents = _loaded(path, text)
    if len(documents) != 1:
        raise PromptError(f"{path}: must be one YAML document")
    return documents[0]


def written(name: str, overrides: Path | None = None) -> str:
    """The text of the prompt `name`, the site's own or ours. Raises: PromptError."""
    theirs = overrides / f"{name}.yaml" if overrides else None
    return _text(theirs if theirs is not None and theirs.is_file() else HERE / f"{name}.yaml")


def sentences(name: str, overrides: Path | None = None) -> dict[str, dict[str, str]]:
    """Sentences by name and language; those of the site's folder replace ours.

    Raises: PromptError: a malformed file, an unknown name, or a sentence without English.
    """
    path = HERE / f"{name}.yaml"
    found = {key: dict(said) for key, said in _parse(path, _Sentences, _one(path)).root.items()}
    for key, said in own_sentences(name, overrides).items():
        if key not in found:
            raise PromptError(f"{overrides}/{name}.yaml: unknown name {key!r}; there are: {_names(found)}")
        found[key].update(said)
    for key, said in found.items():
        if "en" not in said:
            raise PromptError(f"{path}: {key} has no English sentence")
    return found


def own_sentences(name: str, overrides: Path | None) -> dict[str, dict[str, str]]:
    """The sentences of the site's folder only. Raises: PromptError: a malformed file."""
    theirs = overrides / f"{name}.yaml" if overrides else None
    if theirs is None or not theirs.is_file():
        return {}
    return _parse(theirs, _Sentences, _one(theirs)).root


def table(name: str) -> dict[str, str]:
    """A file of plain `key: value` lines. Raises: PromptError."""
    path = HERE / f"{name}.yaml"
    return dict(_parse(path, _Table, _one(path)).root)


def fence(request_id: str) -> str:
    """A word for the marks around data. No page contains it, because it depends on the request.

    The same request gets the same word, so that a repeated request repeats its prompt.
    """
    return hashlib.sha256(f"fence {request_id}".encode()).hexdigest()[:16]


@cache
def _ours(name: str) -> Prompt:
    """One of our own files, cached, because they do not change while a process runs."""
    return _read(HERE / f"{name}.yaml", HERE / "examples", name)


def _read(path: Path, examples: Path, name: str) -> Prompt:
    prompt, wanted = _checked(path, _documents(path))
    return replace(prompt, examples=_examples(examples, name, set(prompt.variables)) if wanted else {})


def _checked(path: Path, documents: Sequence[Any]) -> tuple[Prompt, bool]:
    """The prompt without examples, and whether it uses examples."""
    if len(documents) != 2:
        raise PromptError(f"{path}: must have front matter, a line `---`, and the segments")
    front = _parse(path, _FrontMatter, documents[0])
    body = _parse(path, _Body, documents[1])
    if front.id != path.stem:
        raise PromptError(f"{path}: id is {front.id!r}, must be {path.stem!r}")
    segments = (*body.system, *body.user)
    _compare(path, "variable", set(front.variables), _used(s.content for s in segments))
    if unknown := {s.when for s in segments if s.when} - set(front.variables):
        raise PromptError(f"{path}: `when` names an unknown variable: {_names(unknown)}")
    return Prompt(path, front.id, front.version, front.variables, body.system, body.user, {}), front.examples


def _plain(path: Path, text: str) -> None:
    """Raises: PromptError: it has YAML features that are not allowed over HTTP."""
    try:
        check_plain(text)
    except NotPlain as err:
        raise PromptError(f"{path}: {err}") from err


def _examples(folder: Path, name: str, variables: set[str]) -> dict[str, tuple[Example, ...]]:
    found: dict[str, tuple[Example, ...]] = {}
    for file in sorted(folder.glob(f"{name}.*.yaml")):
        set_ = _parse(file, _Examples, _one(file))
        if set_.prompt != name:
            raise PromptError(f"{file}: prompt is {set_.prompt!r}, must be {name!r}")
        for example in set_.examples:
            if stray := example.used() - variables:
                raise PromptError(f"{file}: example {example.title!r}: unknown variable {_names(stray)}")
        found[set_.language] = set_.examples
    return found


def _documents(path: Path) -> list[Any]:
    return _loaded(path, _text(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise PromptError(f"{path}: cannot be read: {err}") from err


def _loaded(path: Path, text: str) -> list[Any]:
    try:
        return list(yaml.load_all(text, UniqueKeys))
    except (yaml.YAMLError, ValueError, OverflowError) as err:  # the last two: an invalid date or number
        raise PromptError(f"{path}: cannot be read: {err}") from err


def _one(path: Path) -> Any:
    documents = _documents(path)
    if len(documents) != 1:
        raise PromptError(f"{path}: must be one YAML document")
    return documents[0]


def _parse(path: Path, model: type[Model], value: Any) -> Model:
    try:
        return model.model_validate(value)
    except ValidationError as err:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in err.errors(include_url=False))
        raise PromptError(f"{path}: {problems}") from None


def _used(texts: Iterable[str]) -> set[str]:
    return {name for text in texts for name in _VARIABLE.findall(text)}


def _compare(path: Path, what: str, have: set[str], want: set[str]) -> None:
    if missing := want - have:
        raise PromptError(f"{path}: {what} missing: {_names(missing)}")
    if unknown := have - want:
        raise PromptError(f"{path}: {what} unknown or unused: {_names(unknown)}")


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _fill(segments: Sequence[Segment], values: Mapping[str, str]) -> str:
    shown = (segment for segment in segments if segment.when is None or values[segment.when])
    return "\n\n".join(f"# {segment.title}\n{_put(segment.content, values)}" for segment in shown)


def _put(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values[match.group(1)], text)
