"""Reads the sample site from disk, strictly, so that a typo in a page fails here and not in a wrong answer.

```
demo/site.yaml            name, languages, groups, labels, example questions  -> SampleSite
demo/pages/<lang>/<id>.html   YAML front matter + the HTML a CMS would hold   -> SamplePage
demo/questions.yaml       questions with the page that answers them           -> SampleQuestion
```
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError, model_validator

from prompts.strict_yaml import load_safe
from schemas.base import problems

DEMO = Path(__file__).parent / "demo"
DATASETS = DEMO  # folder with the datasets of evaluations

_FENCE = "---\n"
_OF_AN_ANSWER = ("page", "page_lang", "answer")


class SampleSiteError(ValueError):
    """A file of the sample site is not as it must be; the message names the file and the key."""


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Shape = TypeVar("Shape", bound=_Shape)
Text = Annotated[str, Field(min_length=1)]


def _midnight(day: object) -> object:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if isinstance(day, date) else day


class SamplePage(_Shape):
    """One page in one language, with the fields of a PageDocument."""

    id: Text
    lang: str
    name: Text
    title: Text
    description: Text
    keywords: Annotated[tuple[Text, ...], Field(min_length=1)]
    path: Text
    """Below the site's address, always `/{lang}/{id}`."""
    changed_at: Annotated[datetime, BeforeValidator(_midnight)]
    """Midnight UTC of the day in the front matter."""
    content: str
    """The body as the CMS holds it, noise included."""

    @property
    def revision(self) -> int:
        """Milliseconds since the epoch of the last change, so that a second import changes nothing."""
        return int(self.changed_at.timestamp() * 1000)


class Contact(_Shape):
    """How to reach the town hall, for the foot of every page."""

    address: Text
    phone: Text
    email: Text


class Labels(_Shape):
    """What the frame of the pages says in one language."""

    language: Text
    skip: Text
    menu: Text
    breadcrumb: Text
    home: Text
    languages: Text
    untranslated: Text
    popular: Text
    related: Text
    updated: Text
    months: Text
    table: Text
    contact: Text
    phone: Text
    fiction: Text


class Group(_Shape):
    """A heading of the navigation and the ids of its pages, in order."""

    id: Text
    title: Mapping[str, Text]
    pages: Annotated[tuple[Text, ...], Field(min_length=1)]


class SampleSite(_Shape):
    """Everything about the site that is not one page. Mappings are keyed by language."""

    id: Text
    town: Text
    languages: Annotated[tuple[Text, ...], Field(min_length=1)]
    """The first one is the site's own; it answers at the bare address."""
    name: Mapping[str, Text]
    tagline: Mapping[str, Text]
    intro: Mapping[str, Text]
    contact: Contact
    popular: tuple[Text, ...]
    groups: tuple[Group, ...]
    example_questions: Mapping[str, tuple[Text, ...]]
    labels: Mapping[str, Labels]
    pages: tuple[SamplePage, ...]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if stray := {page.lang for page in self.pages} ^ set(self.languages):
            raise ValueError(f"languages: {sorted(stray)} listed without pages or the other way round")
        grouped, there = [page_id for group in self.groups for page_id in group.pages], {page.id for page in self.pages}
        if sorted(grouped) != sorted(there):
            odd = sorted(set(grouped) ^ there) or sorted(grouped)
            raise ValueError(f"groups: every page belongs to exactly one group, see {odd}")
        if unknown := [page_id for page_id in self.popular if page_id not in grouped]:
            raise ValueError(f"popular: no page {unknown[0]!r}")
        spoken = {name: getattr(self, name) for name in ("name", "tagline", "intro", "example_questions", "labels")}
        for name, said in (spoken | {f"groups.{group.id}.title": group.title for group in self.groups}).items():
            if set(said) != set(self.languages):
                raise ValueError(f"{name}: must have exactly the languages {', '.join(self.languages)}")
        return self

    def page(self, lang: str, page_id: str) -> SamplePage | None:
        """The page in that language, or None: not every page is translated."""
        return next((page for page in self.pages if (page.lang, page.id) == (lang, page_id)), None)

    def group_of(self, page_id: str) -> Group:
        """The one group that lists the page."""
        return next(group for group in self.groups if page_id in group.pages)

    def members(self, group: Group, lang: str) -> list[SamplePage]:
        """The group's pages that exist in the language, in the group's order."""
        return [page for page_id in group.pages if (page := self.page(lang, page_id))]


class SampleQuestion(_Shape):
    """A question and where its answer stands; `page`, `page_lang` and `answer` are None if nowhere."""

    lang: Text
    question: Text
    answerable: StrictBool
    page: Text | None
    page_lang: Text | None
    answer: Text | None
    """The words as the page has them, for example `5,50 Euro`."""

    @model_validator(mode="after")
    def _stands_somewhere_or_not(self) -> Self:
        for name in _OF_AN_ANSWER:
            if (getattr(self, name) is None) == self.answerable:
                raise ValueError(f"{name}: must be null where the question is unanswerable, and there alone")
        return self


def load_site(root: Path = DEMO) -> SampleSite:
    """The site with all its pages. Raises SampleSiteError naming file and key."""
    where = root / "site.yaml"
    return _shaped(SampleSite, where, _yaml(where, where.read_text("utf-8")), pages=load_pages(root))


def load_pages(root: Path = DEMO) -> list[SamplePage]:
    """Every page below `root/pages/<lang>/`, by language and id.

    Raises SampleSiteError for an unknown, missing or mistyped front matter key, naming file and key.
    """
    return [_page(path) for path in sorted((root / "pages").glob("*/*.html"))]


def page_documents(root: Path, base_url: str) -> Iterator[dict[str, Any]]:
    """The pages as PageDocuments, ready for `PUT` or a bulk import.

    `base_url` is where the rendered site answers, without a slash at its end; `url` = base_url + path.
    """
    for page in load_pages(root):
        said = page.model_dump(mode="json", exclude={"path"})
        yield said | {"url": base_url + page.path, "revision": page.revision}


def load_questions(root: Path = DEMO) -> list[SampleQuestion]:
    """The questions in the file's order. Raises SampleSiteError naming entry and key."""
    where = root / "questions.yaml"
    entries = _yaml(where, where.read_text("utf-8"))
    if not isinstance(entries, list):
        raise SampleSiteError(f"{where}: must be a list of questions")
    return [_shaped(SampleQuestion, f"{where}: entry {number}", entry) for number, entry in enumerate(entries, 1)]


def _page(path: Path) -> SamplePage:
    opening, fence, rest = path.read_text("utf-8").partition(_FENCE)
    front, closing, content = rest.partition(_FENCE)
    if opening or not fence or not closing:
        raise SampleSiteError(f"{path}: must open with YAML front matter between two lines of '---'")
    lang = path.parent.name
    page = _shaped(SamplePage, path, _yaml(path, front), lang=lang, content=content)
    for key, expected in {"id": path.stem, "path": f"/{lang}/{path.stem}"}.items():
        if (said := getattr(page, key)) != expected:
            raise SampleSiteError(f"{path}: {key}: is {said!r}, the file's place says {expected!r}")
    return page


def _yaml(where: Path, text: str) -> object:
    try:
        return load_safe(text)
    except yaml.YAMLError as err:
        raise SampleSiteError(f"{where}: not YAML: {err}") from err


def _shaped(shape: type[Shape], where: object, raw: object, **more: object) -> Shape:
    """`raw` and `more` as this shape."""
    try:
        return shape.model_validate({**raw, **more} if isinstance(raw, dict) else raw)
    except ValidationError as err:
        raise SampleSiteError(f"{where}: {problems(err)}") from err
