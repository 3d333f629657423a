"""Addresses that are said to have changed, in IndexNow's shape (https://www.indexnow.org/documentation)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from schemas.base import Revision, Wire

LONGEST_URL, LONGEST_KEY = 4_000, 300  # characters

Address = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_URL)]


class ChangedOrder(Wire):
    """The addresses. What IndexNow sends besides (`host`, `key`, `keyLocation`) is ignored: the bearer key counts."""

    model_config = ConfigDict(extra="ignore")

    urlList: tuple[Address, ...] = Field(min_length=1, description="100 at most.")  # noqa: N815  # IndexNow's name


class IndexNowOrder(ChangedOrder):
    """What a website pushes to a search engine. `keyLocation` is ignored: the connector's `indexnow_key` counts."""

    host: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    key: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_KEY)]


class ChangedAddress(Wire):
    """The outcome for one address."""

    url: str
    state: Literal["accepted", "deleted", "refused", "failed"] = Field(
        description="`refused`: not of this website, forbidden, or no page for the search; `failed`: send it again."
    )
    page_key: str | None = Field(default=None, description="Whose receipt tells the rest.")
    revision: Revision | None = None
    detail: str = ""


class ChangedResult(Wire):
    """One outcome for each address, in order."""

    addresses: tuple[ChangedAddress, ...]
