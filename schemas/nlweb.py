"""What NLWeb's `/ask` takes and gives (nlweb-rest-api.md in NLWeb's documentation)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, field_validator

from schemas.base import Wire
from schemas.query import MAX_QUESTION

MAX_PREV = 40  # earlier queries that are looked at, the newest

NlwebMode = Literal["list", "summarize", "generate"]


class NlwebQuery(Wire):
    """The parameters of `/ask`. Others are ignored."""

    model_config = ConfigDict(extra="ignore")

    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION)] = Field(
        description="In natural language."
    )
    site: str = Field(default="", max_length=200, description="Ignored: the path names the site.")
    prev: tuple[str, ...] = Field(
        default=(), description="Earlier queries, the oldest first; text is cut at its commas. Not used by `list`."
    )
    decontextualized_query: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_QUESTION)] = Field(
        default="", description="Goes before `query` and `prev`."
    )
    streaming: bool = Field(default=True, description="Events; `0` or `false`: one JSON object.")
    query_id: str = Field(default="", max_length=200, description="Comes back; default: a new one.")
    mode: NlwebMode = Field(default="list", description="`list`: results; the others also ask for an answer.")

    @field_validator("prev", mode="before")
    @classmethod
    def _at_commas(cls, value: Any) -> Any:
        """`a,b`, `["a,b"]` as a query string has it, or a list of queries as JSON has it."""
        given = [value] if isinstance(value, str) else value
        if isinstance(given, (list, tuple)) and len(given) == 1 and isinstance(given[0], str):
            given = given[0].removeprefix("[").removesuffix("]").split(",")
        if isinstance(given, (list, tuple)):
            said = (one.strip() if isinstance(one, str) else one for one in given[-MAX_PREV:])
            return tuple(one for one in said if one != "")
        return value

    @property
    def question(self) -> str:
        return self.decontextualized_query or self.query

    @property
    def earlier(self) -> tuple[str, ...]:
        """Empty where the query says that it stands for itself."""
        return () if self.decontextualized_query else self.prev


class NlwebResult(Wire):
    """A page, with its best passage."""

    url: str
    name: str
    site: str
    score: float = Field(description="For the order alone; no share of anything.")
    description: str = Field(description="The passage, as the page has it.")
    schema_object: dict[str, Any] = Field(description="The page as a `WebPage` of schema.org.")


class NlwebAnswer(Wire):
    """The whole answer of `/ask`."""

    query_id: str
    results: tuple[NlwebResult, ...]
    summary: dict[str, Any] | None = Field(default=None, description="`message`: the answer, for `summarize`.")
    nlws: dict[str, Any] | None = Field(
        default=None, description="`answer`, and the results as `items`, for `generate`."
    )
