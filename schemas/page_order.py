"""A rebuild's orders to workers, one per page, and their results: `rebuild.orders`, `rebuild.results`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.base import Message
from schemas.page import PageChange

# built: it is in the index, or one that wins over it. failed: it never will be; it is a dead letter.
# refused: no page will be, by this worker's settings.
OrderOutcome = Literal["built", "failed", "refused"]


class PageOrder(Message):
    """One change of a page, to be put into one generation of its site's index by whichever worker gets it."""

    run: str = Field(description="The run of a rebuild that ordered it and receives the result.")
    index: str = Field(description="The index to write to. If it is gone, the order is dropped.")
    partition: int = Field(ge=0, description="Where the change stands in cms.changes, ...")
    offset: int = Field(ge=0, description="... as in the heads of the index.")
    change: PageChange


class PageBuilt(Message):
    """The result of an order."""

    run: str
    index: str
    page_key: str
    partition: int = Field(ge=0, description="Of the change, as in the order.")
    offset: int = Field(ge=0)
    outcome: OrderOutcome
    pages: int = Field(default=0, description="1, unless a change that wins over it was there.")
    chunks: int = Field(default=0, description="It has so many; ...")
    embedded: int = Field(default=0, description="... so many cost a model call.")
    reason: str = Field(default="", description="Of a page that was not built, for an operator to read.")
