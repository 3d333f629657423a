"""The structured data of a page (schema.org, OpenGraph): what it says of itself for machines."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from schemas.base import Wire, form, optional

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
