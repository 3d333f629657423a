"""Datasets: questions, and what makes an answer to them right.

A dataset is a YAML file, an NDJSON file, or a folder of YAML files that are one dataset. It has a version, which every
run names: the one that its author gives it, and a fingerprint of what its cases say, which changes with them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from pipelines.runtime.errors import WrongUse
from prompts.strict_yaml import load_plain, load_safe
from schemas.base import GivenLang, PageId, SiteId, problems
from schemas.correction import CorrectionList
from schemas.query import MAX_QUESTION

NDJSON = (".ndjson", ".jsonl")
YAML = (".yaml", ".yml")
FINGERPRINT = 12  # hexadecimal digits
OTHER_NAMES = {"page": "pages", "page_id": "pages", "answer": "answers", "kind": "tags"}

Expect = Literal["answer", "refuse", "courtesy"]


class Frozen(BaseModel):
    """A shape of evaluations, none of which changes."""

    model_config = ConfigDict(frozen=True)


class BadDataset(WrongUse):
    """A file cannot be used as a dataset."""

    code = "bad-dataset"


def _several(value: Any) -> Any:
    """One is written as it is, several as a list, none as null."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


def _spellings(value: Any) -> Any:
    """A statement is written as it is, or as a list of its spellings."""
    return [_several(fact) for fact in value] if isinstance(value, list | tuple) else value


Question = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUESTION)]
Strings = Annotated[tuple[str, ...], BeforeValidator(_several)]


class Case(Frozen, extra="forbid"):
    """A question, and what makes an answer to it right. What is not given is not measured."""

    id: str = Field(min_length=1)
    question: Question
    lang: GivenLang | None = None  # of the question, and of the answer
    site: SiteId | None = None  # None: any
    history: tuple[Question, ...] = ()  # the visitor's questions before it
    now: datetime | None = None  # local time of the site that the answer hangs on
    pages: Annotated[tuple[PageId, ...], BeforeValidator(_several)] = ()  # where the answer stands
    page_lang: GivenLang | None = None  # None: in any language
    answers: Strings = ()  # reference answers, any of them
    facts: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_spellings)] = ()  # to be said, in any spelling
    never: Strings = ()  # must not be said
    must_say: Strings = ()  # statements that must follow from the answer, in whatever words: a judge decides
    must_not_say: Strings = ()  # and those that must not
    expect: Expect | None = None  # None: no label
    tags: Strings = ()
    note: str = ""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, entry: Any) -> Any:
        """Shorter ways of writing a case."""
        if not isinstance(entry, dict):
            return entry
        read = {OTHER_NAMES.get(name, name): value for name, value in entry.items()}
        if len(read) < len(entry):
            raise ValueError(f"the same under two names: {', '.join(map(str, entry))}")
        answerable = read.pop("answerable", None)
        if read.get("expect") is None:
            labelled = any(read.get(name) for name in ("pages", "answers", "facts", "must_say"))
            if answerable is False:
                read["expect"] = "refuse"
            elif answerable is True or labelled:
                read["expect"] = "answer"
        if "id" not in read:
            read["id"] = digest([read.get("question"), read.get("lang"), read.get("history")])[:FINGERPRINT]
        return read


@dataclass(frozen=True)
class Dataset:
    """Cases under a name."""

    name: str
    cases: tuple[Case, ...]
    version: str = ""  # that its author gave it
    added: frozenset[str] = frozenset()  # ids of cases that are not its author's, and no part of its fingerprint

    def joined(self, other: Dataset) -> Dataset:
        """With the cases of another whose questions it does not ask. Runs before and after can still be compared."""
        asked = {(case.question, case.lang) for case in self.cases} | {(case.id, None) for case in self.cases}
        more = [case for case in other.cases if not asked & {(case.question, case.lang), (case.id, None)}]
        return replace(self, cases=(*self.cases, *more), added=self.added | {case.id for case in more})

    @property
    def fingerprint(self) -> str:
        """Of what the cases say, whatever their order."""
        return digest(sorted((_said(case) for case in self._own), key=lambda one: one["id"]))[:FINGERPRINT]

    @property
    def _own(self) -> Iterable[Case]:
        return (case for case in self.cases if case.id not in self.added)

    @property
    def label(self) -> str:
        """As a run names it: "town 3 (1c0ffee00ddf)"."""
        return " ".join(part for part in (self.name, self.version, f"({self.fingerprint})") if part)

    def groups(self) -> dict[str, frozenset[str]]:
        """Ids of the cases in each language ("lang de") and of each tag ("tag prices"), by their names."""
        found: dict[str, set[str]] = {}
        for case in self.cases:
            names = [f"lang {case.lang}"] if case.lang else []
            for name in names + [f"tag {tag}" for tag in case.tags]:
                found.setdefault(name, set()).add(case.id)
        return {name: frozenset(ids) for name, ids in sorted(found.items())}


def text_of(path: Path) -> str:
    """What a file says, without the mark that some programs begin it with. Raises: BadDataset."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as err:
        raise BadDataset(f"{path}: cannot be read: {err}") from err


def load_dataset(path: Path) -> Dataset:
    """Read a dataset. Raises: BadDataset: says where and what."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in YAML)
        if not files:
            raise BadDataset(f"{path}: no YAML files in it")
        parts = [load_dataset(file) for file in files]
        versions = "+".join(dict.fromkeys(part.version for part in parts if part.version))
        return _made(path, path.resolve().name, versions, [case for part in parts for case in part.cases])
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix in NDJSON:
            document: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            document = load_safe(text)
    except (OSError, ValueError, OverflowError, yaml.YAMLError) as err:
        raise BadDataset(f"{path}: cannot be read as a dataset: {err}") from err
    return _dataset(path, path.stem, document)


def parse_dataset(text: str, name: str) -> Dataset:
    """A dataset that came over HTTP, as YAML or NDJSON. Raises: BadDataset."""
    try:
        if text.lstrip().startswith("{"):
            return _dataset(Path(name), name, [json.loads(line) for line in text.splitlines() if line.strip()])
        return _dataset(Path(name), name, load_plain(text))
    except (ValueError, OverflowError) as err:
        raise BadDataset(f"{name}: cannot be read as a dataset: {err}") from err


def _dataset(path: Path, name: str, document: Any) -> Dataset:
    """Of a list of cases with a head before them or without one, or of a head with the cases in it."""
    head: Any = {}
    entries = document
    if _is_head(document):
        head, entries = document, document.get("cases")
    elif isinstance(document, list) and document and _is_head(document[0]):
        head, entries = document[0], document[1:]
    if not isinstance(entries, list):
        raise BadDataset(f"{path}: must be a list of cases, or {{name, version, cases}}")
    cases = []
    for number, entry in enumerate(entries, 1):
        try:
            cases.append(Case.model_validate(entry))
        except ValidationError as err:
            raise BadDataset(f"{path}, entry {number}: {problems(err)}") from err
    return _made(path, str(head.get("name") or name), str(head.get("version") or ""), cases)


def dumped(dataset: Dataset, suffix: str) -> str:
    """A dataset as a file of this suffix holds it. Raises: BadDataset: it is neither YAML's nor NDJSON's."""
    head = {"name": dataset.name, "version": dataset.version}
    entries = [case.model_dump(mode="json", exclude_defaults=True) for case in dataset.cases]
    return _written((head, *entries), {**head, "cases": entries}, suffix)


def appendable(case: Case, suffix: str) -> str:
    """A case as it is put at the end of a dataset's file: a line of NDJSON, or an entry of the list that YAML has.

    Raises: BadDataset: no suffix of either.
    """
    entry = case.model_dump(mode="json", exclude_defaults=True)
    return _written([entry], [entry], suffix)


def _written(lines: Sequence[Any], document: Any, suffix: str) -> str:
    if suffix in NDJSON:
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    if suffix in YAML:
        return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=120)
    raise BadDataset(f"{suffix or 'no suffix'}: a dataset is written as {', '.join(YAML + NDJSON)}")


def _is_head(entry: Any) -> bool:
    return isinstance(entry, dict) and "question" not in entry and ("cases" in entry or "name" in entry)


def _made(path: Path, name: str, version: str, cases: Sequence[Case]) -> Dataset:
    if not cases:
        raise BadDataset(f"{path}: it has no cases")
    twice = sorted(id for id, count in Counter(case.id for case in cases).items() if count > 1)
    if twice:
        raise BadDataset(f"{path}: cases with the same id: {', '.join(twice[:5])}")
    return Dataset(name, tuple(cases), version)


def of_site(cases: Iterable[Case], site: str) -> list[Case]:
    """Those that are asked of a site."""
    return [case for case in cases if case.site in (None, site)]


def _said(case: Case) -> dict[str, Any]:
    """Fields that came later count where they are used, so that datasets without them keep their fingerprints."""
    later = {name for name in ("must_say", "must_not_say") if not getattr(case, name)}
    return case.model_dump(mode="json", exclude={"note", *later})


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, as hexadecimal digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


TAG = "corrected"


def corrected_cases(corrections: CorrectionList) -> Dataset:
    """A case for each question of each correction that is in force."""
    cases: dict[str, Case] = {}
    for one in corrections.corrections:  # the newest first: of the same question it counts
        said = one.correction
        if one.state != "in-force":
            continue
        for question in said.questions:
            told: dict[str, Any] = {"expect": "refuse" if said.kind == "refusal" else "answer"}
            if said.page is not None:
                told["pages"] = said.page.page_id
            if said.kind == "answer":
                told["answers"] = said.text
            case = Case.model_validate(
                {"question": question, "lang": said.lang, "site": corrections.site, "tags": TAG, **told}
            )
            cases.setdefault(case.id, case)
    return Dataset(f"{corrections.site}-corrections", tuple(cases.values()))
