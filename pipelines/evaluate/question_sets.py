"""Datasets out of files in the formats of question sets: SQuAD, question-answer pairs, HotpotQA, OpenBookQA.

The last three may be a JSON list or a JSON object a line; the first entry shows which of them it is. Other fields of an
entry are ignored; a missing one is an error that names its place.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, ValidationError, model_validator

from pipelines.evaluate.dataset import BadDataset, Case, Frozen, digest, text_of
from pipelines.evaluate.wording import covers
from schemas.base import problems
from schemas.page import PageDocument

KindName = Literal["squad", "questions", "pairs", "hotpotqa", "openbookqa"]
TITLE = 256  # characters of a page's id and title

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Fields = TypeVar("Fields", bound=BaseModel)


class FileEntry(NamedTuple):
    """An entry of a file."""

    where: str  # "file.json, entry 3"
    entry: Any


def _listed(value: Any) -> Any:
    """One is written as it is, several as a list, none as null or nothing."""
    if value is None or value == "":
        return ()
    return (value,) if isinstance(value, str) else value


def _words(value: Any) -> Any:
    """Ids may be numbers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Several = Annotated[tuple[Text, ...], BeforeValidator(_listed)]
Id = Annotated[Text | None, BeforeValidator(_words)]


class _Pair(Frozen):
    """A question with its answer, or several that are right."""

    id: Id = None
    question: Text
    answer: Annotated[Several, Field(min_length=1)]
    context: Several = ()
    source: Id = None
    category: Several = ()


class _Hotpot(Frozen):
    """A question over several articles. `supporting_facts` are [title, sentence], `context` [title, sentences]."""

    id: Id = Field(default=None, alias="_id")
    question: Text
    answer: Text
    supporting_facts: tuple[tuple[Text, int], ...] = Field(min_length=1)
    context: tuple[tuple[Text, tuple[str, ...]], ...] = Field(min_length=1)
    type: Several = ()
    level: Several = ()

    @model_validator(mode="before")
    @classmethod
    def _read(cls, entry: Any) -> Any:
        """Some copies have columns in place of rows, and `id` in place of `_id`."""
        if not isinstance(entry, dict):
            return entry
        read = {**entry, "_id": entry.get("id") if entry.get("_id") is None else entry["_id"]}
        for name, columns in (("supporting_facts", ("title", "sent_id")), ("context", ("title", "sentences"))):
            value = read.get(name)
            if isinstance(value, dict):
                first, second = (value.get(column) for column in columns)
                if not isinstance(first, list) or not isinstance(second, list) or len(first) != len(second):
                    raise ValueError(f"{name} must have as many {columns[0]} as {columns[1]}")
                read[name] = list(zip(first, second, strict=True))
        return read


class _Choice(Frozen):
    text: Text
    label: Text


class _Stem(Frozen):
    stem: Text
    choices: tuple[_Choice, ...] = Field(min_length=2)


class _OpenBook(Frozen):
    """A question with choices, and the fact that decides it."""

    id: Id = None
    question: _Stem
    answer: Text = Field(alias="answerKey")
    fact: Text | None = Field(default=None, alias="fact1")

    @model_validator(mode="after")
    def _answer_is_a_choice(self) -> _OpenBook:
        labels = [choice.label for choice in self.question.choices]
        if labels.count(self.answer) != 1:
            raise ValueError(f"answerKey {self.answer!r} must be one of the labels {', '.join(labels)}")
        return self


def squad(path: Path, lang: str) -> tuple[list[Case], list[PageDocument]]:
    """Questions in the format of SQuAD 1.1 and 2.0 (also XQuAD, MLQA, GermanQuAD), and their articles as pages.

    A question's page is its article, and its reference answers are the marked ones; `is_impossible` cannot be answered.

    Raises: BadDataset: it is in another format.
    """
    cases, pages = [], _Pages(lang)
    try:
        for number, article in enumerate(_document(path)["data"]):
            title = str(article.get("title") or f"article {number}")
            paragraphs: list[dict[str, Any]] = article["paragraphs"]
            passages = [paragraph["context"] for paragraph in paragraphs]
            pages.add(f"{path}, article {number}", title, passages, title.replace("_", " "))
            for asked in (asked for paragraph in paragraphs for asked in paragraph["qas"]):
                answers = tuple(dict.fromkeys(answer["text"] for answer in asked.get("answers") or ()))
                wanted = (
                    {"expect": "refuse"}
                    if asked.get("is_impossible")
                    else {"expect": "answer", "pages": (title,), "page_lang": lang, "answers": answers}
                )
                told = {"id": str(asked["id"]), "question": asked["question"], "lang": lang}
                cases.append(Case.model_validate(told | wanted))
    except ValidationError as err:
        raise BadDataset(f"{path}: {problems(err)}") from err
    except (KeyError, TypeError, AttributeError) as err:
        raise BadDataset(f"{path}: not in SQuAD's format: {type(err).__name__} {err}") from err
    return cases, pages.made()


def pairs(path: Path, lang: str) -> tuple[list[Case], list[PageDocument]]:
    """Question-answer pairs: `question`, `answer`; and if they are there `id`, `context`, `source`, `category`.

    A context is a passage that the answer stands in: it becomes a page, together with others of the same source. A
    source without a context names nothing that could be imported, and goes to the note.

    Raises: BadDataset: says where and what.
    """
    pages = _Pages(lang)

    def case(pair: _Pair, where: str) -> dict[str, Any]:
        told: dict[str, Any] = {"id": pair.id, "answers": pair.answer, "tags": pair.category}
        if pair.context:
            title = pair.source or f"{path.stem}-{digest(sorted(pair.context))[:8]}"
            told |= {"pages": pages.add(where, title, pair.context), "page_lang": lang}
        elif pair.source:
            told["note"] = f"source: {pair.source}"
        return told | {"question": pair.question}

    return _cases(path, lang, _Pair, case), pages.made()


def hotpotqa(path: Path, lang: str) -> tuple[list[Case], list[PageDocument]]:
    """HotpotQA (Yang et al., 2018): the articles of the supporting facts are the right pages, all articles are pages.

    Raises: BadDataset: says where and what.
    """
    pages = _Pages(lang)

    def case(asked: _Hotpot, where: str) -> dict[str, Any]:
        found = {title: pages.add(where, title, ["".join(sentences)]) for title, sentences in asked.context}
        titles = list(dict.fromkeys(title for title, _ in asked.supporting_facts))
        if unknown := [title for title in titles if title not in found]:
            raise BadDataset(f"{where}: supporting_facts: no article {unknown[0]!r} in its context")
        return {
            "id": asked.id,
            "question": asked.question,
            "answers": (asked.answer,),
            "pages": tuple(page for title in titles for page in found[title]),
            "page_lang": lang,
            "tags": (*asked.type, *asked.level),
        }

    return _cases(path, lang, _Hotpot, case), pages.made()


def openbookqa(path: Path, lang: str) -> tuple[list[Case], list[PageDocument]]:
    """OpenBookQA (Mihaylov et al., 2018): asked with its choices, and right is who names that one and none of the
    others. Its fact is the page.

    Raises: BadDataset: says where and what.
    """
    pages = _Pages(lang)

    def case(asked: _OpenBook, where: str) -> dict[str, Any]:
        choices = asked.question.choices
        right = next(choice.text for choice in choices if choice.label == asked.answer)
        stem = " ".join((asked.question.stem, *(f"({choice.label}) {choice.text}" for choice in choices)))
        # What is a part of the right choice is said with it.
        wrong = tuple(choice.text for choice in choices if not covers(right, choice.text, lang))
        told = {"id": asked.id, "question": stem, "answers": (right,), "never": wrong, "tags": ("choices",)}
        if asked.fact is not None:
            fact = f"fact-{digest(asked.fact)[:8]}"
            told |= {"pages": pages.add(where, fact, [asked.fact], "Fact"), "page_lang": lang}
        return told

    return _cases(path, lang, _OpenBook, case), pages.made()


def recognised(path: Path) -> KindName:
    """Of which format a file is, by its content. Raises: BadDataset: of none that is known; says what it has."""
    document = _document(path)
    if isinstance(document, dict):
        if isinstance(document.get("data"), list):
            return "squad"
        if {"counts", "questions"} <= document.keys():
            return "questions"
    place = next(_entries(path, document), None)
    if place is None:
        raise BadDataset(f"{path}: it has no entries")
    entry = place.entry
    if not isinstance(entry, dict):
        raise BadDataset(f"{place.where}: must be an object, is {_kind(entry)}")
    asked = entry.get("question")
    if isinstance(asked, dict) and {"stem", "choices"} & asked.keys():
        return "openbookqa"
    if {"supporting_facts", "context"} <= entry.keys():
        return "hotpotqa"
    if {"question", "answer"} <= entry.keys():
        return "pairs"
    raise BadDataset(
        f"{place.where}: of no format that is known: it has {', '.join(map(str, entry)) or 'no fields'}; squad has "
        "data, questions counts and questions, hotpotqa supporting_facts and context, openbookqa question.stem and "
        "question.choices, pairs question and answer"
    )


class _Pages:
    """Passages by the page that they are of, each once."""

    def __init__(self, lang: str) -> None:
        self._lang = lang
        self._passages: dict[str, dict[str, None]] = {}
        self._titles: dict[str, str] = {}

    def add(self, where: str, id: str, passages: Sequence[str], title: str | None = None) -> tuple[str]:
        """The page's id, as cases name it. Raises: BadDataset: it cannot be a page's."""
        if len(id) > TITLE or not id.isprintable():
            raise BadDataset(f"{where}: {id[:40]!r}… cannot be a page's id: at most {TITLE} printable characters")
        self._passages.setdefault(id, {}).update(dict.fromkeys(passages))
        self._titles[id] = title or id
        return (id,)

    def made(self) -> list[PageDocument]:
        return [
            PageDocument(
                id=id,
                lang=self._lang,
                url=f"https://dataset.example/{self._lang}/{quote(id)}",
                title=self._titles[id],
                content="\n".join(f"<p>{html.escape(passage)}</p>" for passage in passages),
            )
            for id, passages in self._passages.items()
        ]


def _cases(path: Path, lang: str, kind: type[Fields], case: Callable[[Fields, str], Mapping[str, Any]]) -> list[Case]:
    found: dict[str, tuple[Case, str]] = {}
    for where, entry in _entries(path, _document(path)):
        try:
            told = case(kind.model_validate(entry), where)
            given = {name: value for name, value in told.items() if value is not None}
            made = Case.model_validate({"expect": "answer", "lang": lang, **given})
        except ValidationError as err:
            raise BadDataset(f"{where}: {problems(err)}") from err
        if made.id in found:
            raise BadDataset(f"{where}: the same id, or the same question without one, as in {found[made.id][1]}")
        found[made.id] = made, where
    return [made for made, _ in found.values()]


def _entries(path: Path, document: Any) -> Iterator[FileEntry]:
    """Raises: BadDataset: there is neither a list nor a line with an object."""
    if isinstance(document, list):
        yield from (FileEntry(f"{path}, entry {number}", entry) for number, entry in enumerate(document, 1))
    elif isinstance(document, dict) and "question" in document:  # a file of one line
        yield FileEntry(f"{path}, entry 1", document)
    elif isinstance(document, _Lines):
        yield from (FileEntry(f"{path}, line {number}", entry) for number, entry in document.entries)
    else:
        has = f"an object with {', '.join(document) or 'nothing'}" if isinstance(document, dict) else _kind(document)
        raise BadDataset(f"{path}: must be a list of questions, or one a line; it is {has}")


class _Lines(NamedTuple):
    """A JSON value a line."""

    entries: list[tuple[int, Any]]


def _document(path: Path) -> Any:
    text = text_of(path)
    try:
        return json.loads(text)
    except ValueError as err:
        whole = err
    read = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                read.append((number, json.loads(line)))
            except ValueError as err:
                if not read:  # not written line by line
                    raise BadDataset(f"{path}: no JSON: {whole}") from whole
                raise BadDataset(f"{path}, line {number}: no JSON: {err}") from err
    return _Lines(read)


def _kind(value: Any) -> str:
    return {str: "a text", list: "a list", dict: "an object", type(None): "null"}.get(type(value), "a number")
