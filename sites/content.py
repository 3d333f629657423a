"""Reads the sample site from disk, strictly, so that a typo in a page fails here and not in a wrong answer.

```
demo/site.yaml            name, languages, groups, labels, example questions  -> Site
demo/pages/<lang>/<id>.html   YAML front matter + the HTML a CMS would hold   -> SamplePage
demo/questions.yaml       questions with the page that answers them           -> SampleQuestion
```
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import yaml

from prompts.strict_yaml import load_safe

DEMO = Path(__file__).parent / "demo"
DATASETS = DEMO  # folder with the datasets of evaluations

_FENCE = "---\n"
_PAGE_KEYS: dict[str, type] = {
    "id": str,
    "name": str,
    "title": str,
    "description": str,
    "keywords": list,
    "path": str,
    "changed_at": date,
}
_SITE_KEYS: dict[str, type] = {
    "id": str,
    "name": dict,
    "town": str,
    "languages": list,
    "tagline": dict,
    "intro": dict,
    "contact": dict,
    "popular": list,
    "groups": list,
    "example_questions": dict,
    "labels": dict,
}
_CONTACT_KEYS: dict[str, type] = {"address": str, "phone": str, "email": str}
_LABEL_KEYS: dict[str, type] = dict.fromkeys(
    (
        "language",
        "skip",
        "menu",
        "breadcrumb",
        "home",
        "languages",
        "untranslated",
        "popular",
        "related",
        "updated",
        "months",
        "table",
        "contact",
        "phone",
        "fiction",
    ),
    str,
)
_GROUP_KEYS: dict[str, type] = {"id": str, "title": dict, "pages": list}
_QUESTION_KEYS: dict[str, type] = {
    "lang": str,
    "question": str,
    "answerable": bool,
    "page": str,
    "page_lang": str,
    "answer": str,
}
_NULL_WHEN_UNANSWERABLE = ("page", "page_lang", "answer")


class SampleSiteError(ValueError):
    """A file of the sample site is not as it must be; the message names the file and the key."""


@dataclass(frozen=True)
class SamplePage:
    """One page in one language, with the fields of a PageDocument."""

    id: str
    lang: str
    name: str
    title: str
    description: str
    keywords: tuple[str, ...]
    path: str
    """Below the site's address, always `/{lang}/{id}`."""
    changed_at: datetime
    """Midnight UTC of the day in the front matter."""
    content: str
    """The body as the CMS holds it, noise included."""

    @property
    def revision(self) -> int:
        """Milliseconds since the epoch of the last change, so that a second import changes nothing."""
        return int(self.changed_at.timestamp() * 1000)


@dataclass(frozen=True)
class Contact:
    """How to reach the town hall, for the foot of every page."""

    address: str
    phone: str
    email: str


@dataclass(frozen=True)
class Group:
    """A heading of the navigation and the ids of its pages, in order."""

    id: str
    title: Mapping[str, str]
    pages: tuple[str, ...]


@dataclass(frozen=True)
class SampleSite:
    """Everything about the site that is not one page. Mappings are keyed by language."""

    id: str
    town: str
    languages: tuple[str, ...]
    """The first one is the site's own; it answers at the bare address."""
    name: Mapping[str, str]
    tagline: Mapping[str, str]
    intro: Mapping[str, str]
    contact: Contact
    popular: tuple[str, ...]
    groups: tuple[Group, ...]
    example_questions: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, Mapping[str, str]]
    pages: tuple[SamplePage, ...]

    def page(self, lang: str, page_id: str) -> SamplePage | None:
        """The page in that language, or None: not every page is translated."""
        return next((page for page in self.pages if (page.lang, page.id) == (lang, page_id)), None)

    def group_of(self, page_id: str) -> Group:
        """The one group that lists the page (`load_site` made sure that there is one)."""
        return next(group for group in self.groups if page_id in group.pages)

    def members(self, group: Group, lang: str) -> list[SamplePage]:
        """The group's pages that exist in the language, in the group's order."""
        return [page for page_id in group.pages if (page := self.page(lang, page_id))]


@dataclass(frozen=True)
class SampleQuestion:
    """A question and where its answer stands; `page`, `page_lang` and `answer` are None if nowhere."""

    lang: str
    question: str
    answerable: bool
    page: str | None
    page_lang: str | None
    answer: str | None
    """The words as the page has them, for example `5,50 Euro`."""


def load_site(root: Path = DEMO) -> SampleSite:
    """The site with all its pages. Raises SampleSiteError naming file and key."""
    where = root / "site.yaml"
    raw = _checked(where, _yaml(where, where.read_text("utf-8")), _SITE_KEYS)
    languages = _strings(where, "languages", raw["languages"])
    pages = tuple(load_pages(root))
    if stray := {page.lang for page in pages} ^ set(languages):
        raise SampleSiteError(f"{where}: languages: {sorted(stray)} listed without pages or the other way round")
    groups = tuple(_group(where, entry, languages) for entry in raw["groups"])
    grouped = [page_id for group in groups for page_id in group.pages]
    if sorted(grouped) != sorted({page.id for page in pages}):
        odd = sorted(set(grouped) ^ {page.id for page in pages}) or sorted(grouped)
        raise SampleSiteError(f"{where}: groups: every page belongs to exactly one group, see {odd}")
    popular = _strings(where, "popular", raw["popular"])
    for page_id in popular:
        if page_id not in grouped:
            raise SampleSiteError(f"{where}: popular: no page {page_id!r}")
    by_lang = {key: _by_language(where, key, raw[key], languages) for key in ("example_questions", "labels")}
    return SampleSite(
        id=raw["id"],
        town=raw["town"],
        languages=languages,
        name=_by_language(where, "name", raw["name"], languages),
        tagline=_by_language(where, "tagline", raw["tagline"], languages),
        intro=_by_language(where, "intro", raw["intro"], languages),
        contact=Contact(**_checked(where, raw["contact"], _CONTACT_KEYS)),
        popular=popular,
        groups=groups,
        example_questions={
            lang: _strings(where, f"example_questions.{lang}", questions)
            for lang, questions in by_lang["example_questions"].items()
        },
        labels={lang: _checked(where, texts, _LABEL_KEYS) for lang, texts in by_lang["labels"].items()},
        pages=pages,
    )


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
        yield {
            "id": page.id,
            "lang": page.lang,
            "url": base_url + page.path,
            "name": page.name,
            "title": page.title,
            "description": page.description,
            "keywords": list(page.keywords),
            "content": page.content,
            "revision": page.revision,
            "changed_at": page.changed_at.isoformat(),
        }


def load_questions(root: Path = DEMO) -> list[SampleQuestion]:
    """The questions in the file's order. Raises SampleSiteError naming entry and key."""
    where = root / "questions.yaml"
    entries = _yaml(where, where.read_text("utf-8"))
    if not isinstance(entries, list):
        raise SampleSiteError(f"{where}: must be a list of questions")
    return [_question(f"{where}: entry {number}", entry) for number, entry in enumerate(entries, 1)]


def _page(path: Path) -> SamplePage:
    opening, fence, rest = path.read_text("utf-8").partition(_FENCE)
    front, closing, content = rest.partition(_FENCE)
    if opening or not fence or not closing:
        raise SampleSiteError(f"{path}: must open with YAML front matter between two lines of '---'")
    raw = _checked(path, _yaml(path, front), _PAGE_KEYS)
    lang = path.parent.name
    for key, expected in {"id": path.stem, "path": f"/{lang}/{path.stem}"}.items():
        if raw[key] != expected:
            raise SampleSiteError(f"{path}: {key}: is {raw[key]!r}, the file's place says {expected!r}")
    changed: date = raw.pop("changed_at")
    return SamplePage(
        **{**raw, "keywords": _strings(path, "keywords", raw["keywords"])},
        lang=lang,
        changed_at=datetime(changed.year, changed.month, changed.day, tzinfo=UTC),
        content=content,
    )


def _group(where: Path, entry: object, languages: tuple[str, ...]) -> Group:
    raw = _checked(where, entry, _GROUP_KEYS)
    return Group(
        id=raw["id"],
        title=_by_language(where, f"groups.{raw['id']}.title", raw["title"], languages),
        pages=_strings(where, f"groups.{raw['id']}.pages", raw["pages"]),
    )


def _question(where: str, entry: object) -> SampleQuestion:
    # Null stands for "nowhere" and is right exactly when the question cannot be answered.
    fields = dict(entry) if isinstance(entry, dict) else {}
    nullable = () if fields.get("answerable") is not False else _NULL_WHEN_UNANSWERABLE
    for key in nullable:
        if fields.get(key, "") is not None:
            raise SampleSiteError(f"{where}: {key}: must be null, the question is marked unanswerable")
    checked = _checked(where, entry, {k: type(None) if k in nullable else v for k, v in _QUESTION_KEYS.items()})
    return SampleQuestion(**checked)


def _yaml(where: Path, text: str) -> object:
    try:
        return load_safe(text)
    except yaml.YAMLError as err:
        raise SampleSiteError(f"{where}: not YAML: {err}") from err


def _checked(where: object, raw: object, keys: dict[str, type]) -> dict[str, Any]:
    """`raw` as a dict with exactly these keys, each of its type."""
    if not isinstance(raw, dict):
        raise SampleSiteError(f"{where}: must be a mapping with the keys {', '.join(keys)}")
    for problem, odd in {"unknown": set(raw) - set(keys), "missing": set(keys) - set(raw)}.items():
        if odd:
            raise SampleSiteError(f"{where}: {problem} key {', '.join(sorted(map(str, odd)))}")
    for key, kind in keys.items():
        if type(raw[key]) is not kind or raw[key] in ("", [], {}):
            raise SampleSiteError(f"{where}: {key}: must be a non-empty {kind.__name__}, is {raw[key]!r}")
    return cast(dict[str, Any], dict(raw))


def _strings(where: Path, key: str, raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(item, str) and item for item in raw):
        raise SampleSiteError(f"{where}: {key}: must be a list of texts, is {raw!r}")
    return tuple(raw)


def _by_language(where: Path, key: str, raw: Any, languages: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(raw, dict) or set(raw) != set(languages):
        raise SampleSiteError(f"{where}: {key}: must have exactly the languages {', '.join(languages)}")
    return cast(dict[str, Any], raw)
