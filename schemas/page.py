"""The page as a CMS sends it (PageDocument), and its change event (`cms.changes`).

The structured data of a page (schema.org, OpenGraph): what it says of itself for machines.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal, Self, get_args

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from schemas.base import GivenLang, Lang, Message, PageId, Revision, SiteId, Wire, form, optional
from schemas.keys import page_key
from schemas.labels import MAX_LABELS, Labels

# A type of schema.org. A later version may give others than `_KINDS` of structured_data.py has.
PageKind = Annotated[str, form(r"^[A-Za-z]{0,40}$", "letters, 40 at most")]
Availability = Literal["", "in-stock", "out-of-stock", "pre-order"]

Line = Annotated[str, StringConstraints(max_length=500)]
Day = Annotated[int, Field(ge=0, le=6, description="0 is Monday.")]
ClockTime = Annotated[str, form(r"^(?:[01]\d|2[0-4]):[0-5]\d$", "a time such as 09:30")]
IsoDate = Annotated[
    str, form(r"^\d{4}-\d\d-\d\d(?:T[\d:.]{5,15}(?:Z|[+-]\d\d:?\d\d)?)?$", "a date, and maybe a time, of ISO 8601")
]


class PageStamp(Wire):
    """What a page is and of when, as its sources show it."""

    page_kind: PageKind = optional("", description="What the page is (schema.org); empty: it does not say so.")
    published_at: AwareDatetime | None = optional()
    changed_at: AwareDatetime | None = optional(description="As the page says, else as its CMS does.")


class PageQuestion(Wire):
    """A question of a FAQPage with its answer."""

    question: Line
    answer: Annotated[str, StringConstraints(max_length=5_000)] = Field(description="Markdown.")


class PageEvent(Wire):
    """An event that the page is about or lists."""

    name: Line
    start: IsoDate
    end: IsoDate | None = optional()
    place: Line = optional("")


class PageProduct(Wire):
    """A product with its price."""

    name: Line
    price: Annotated[Decimal, Field(ge=0, max_digits=14, decimal_places=4)] | None = optional()
    currency: Annotated[str, form(r"^(?:[A-Z]{3})?$", "three capital letters (ISO 4217), or empty")] = optional(
        "", description="ISO 4217."
    )
    availability: Availability = optional("")


class DayHours(Wire):
    """Hours of one day; without times it is closed."""

    day: Day
    opens: ClockTime | None = optional()
    closes: ClockTime | None = optional()


class OpeningHours(Wire):
    """Regular opening hours of a place. Days that are not in there are not known."""

    name: Line = optional("", description="Of the place.")
    url: Annotated[str, StringConstraints(max_length=4_000)] = optional("", description="Its own page.")
    hours: tuple[DayHours, ...] = Field(max_length=50)


class PageMetadata(PageStamp):
    """What a page says of itself for machines."""

    authors: tuple[Line, ...] = optional((), max_length=20, description="Names.")
    breadcrumbs: tuple[Line, ...] = optional((), max_length=20, description="Names of the pages above, the top first.")
    faq: tuple[PageQuestion, ...] = optional((), max_length=50)
    events: tuple[PageEvent, ...] = optional((), max_length=50)
    products: tuple[PageProduct, ...] = optional((), max_length=50)
    opening: tuple[OpeningHours, ...] = optional((), max_length=10)


FieldName = Literal["name", "title", "description", "keywords", "content"]
FIELDS: tuple[FieldName, ...] = get_args(FieldName)
Op = Literal["upsert", "delete"]

ShortText = Annotated[str, StringConstraints(max_length=20_000)]
Group = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class Attachment(Wire):
    """A file of a page: exactly one of `url`, `path`, `data_base64`."""

    url: str | None = None
    path: str | None = None
    data_base64: str | None = None
    media_type: str = "application/octet-stream"
    title: str = ""
    link: Annotated[str, StringConstraints(max_length=4_000)] = optional(
        "", description="Where visitors open it; default: its `url`, else that of the page."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(v is not None for v in (self.url, self.path, self.data_base64)) != 1:
            raise ValueError("exactly one of url, path, data_base64")
        return self


class PageDocument(Wire):
    """A page with its five searchable fields."""

    id: PageId
    lang: GivenLang | None = Field(default=None, description="Default: the site's first language.")
    url: Annotated[str, StringConstraints(max_length=4_000)] = ""
    name: ShortText = ""
    title: ShortText = ""
    description: ShortText = ""
    keywords: tuple[ShortText, ...] = Field(default=(), max_length=1_000)
    content: str = Field(default="", description="HTML.")
    left_out: dict[Annotated[str, StringConstraints(max_length=100)], Annotated[int, Field(ge=0)]] = optional(
        {}, max_length=20, description="Of a web page, words that are not in `content`, by why, for its receipt."
    )
    revision: Revision | None = Field(default=None, description="Default: milliseconds, strictly growing per page.")
    changed_at: AwareDatetime | None = None
    metadata: PageMetadata | None = optional(
        description="What the page says of itself for machines; default: what its `content` has of it."
    )
    attachments: tuple[Attachment, ...] = Field(default=(), max_length=200)
    groups: tuple[Group, ...] | None = Field(
        default=None, max_length=1_000, description="Access groups that may see the page; null = everybody."
    )
    labels: Labels = optional(
        {},
        description=f"Keys with values to filter searches by, for example `kind: [form]`; {MAX_LABELS} values at most.",
    )


class _Change(Wire):
    op: Op
    site: SiteId
    lang: Lang
    page_id: PageId
    revision: Revision
    accepted_at: AwareDatetime

    @property
    def page_key(self) -> str:
        return page_key(self.site, self.lang, self.page_id)


class PageChange(_Change, Message):
    """One accepted change of one page: the source of truth, from which all else is derived."""

    source: str = Field(description="Who handed it over: `push`, `import`, or a connector's name.")
    page: PageDocument | None = Field(default=None, description="The page; null for a delete.")

    @model_validator(mode="after")
    def _page_fits_op(self) -> Self:
        if (self.page is None) != (self.op == "delete"):
            raise ValueError("an upsert carries a page, a delete carries none")
        return self


class ChangeRef(_Change):
    """A reference to the change that a later message belongs to; passed on from the chunk stage to the receipt."""

    partition: int = Field(ge=0, description="Where the change stands in cms.changes, ...")
    offset: int = Field(ge=0, description="... so that the index stage can put it back on top of the log.")


class AttachmentPlace(Wire):
    """The place of a chunk in one of the page's attachments."""

    file: int = Field(ge=0, description="Which attachment of the page, from 0.")
    title: str = Field(description="What a hit shows instead of the page's title.")
    url: str = Field(description="What it links to instead of the page: opens the attachment there if it can.")


class PageMeta(PageStamp):
    """The data of a page that its hits show."""

    title: str
    url: str
    groups: tuple[str, ...] | None = None
    labels: Labels = optional({})
