"""What NLWeb's `/ask` takes and gives, without HTTP (nlweb-rest-api.md in NLWeb's documentation).

The document names the fields of a result and leaves open how a summary or an answer is written. Here they are the
messages of NLWeb's own server: a stream sends them one by one, a whole answer has all of them in one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from schemas.base import Lang
from schemas.http import SearchHit
from schemas.nlweb import NlwebAnswer, NlwebMode, NlwebResult
from schemas.query import Source

API_VERSION = "0.1"  # of the messages, as NLWeb's own server says
RESULTS = 10  # at most

Message = dict[str, Any]
"""`message_type` and what it says."""


def listed(hits: Iterable[SearchHit], site: str) -> Message:
    """The pages that a search found, each once, the best first."""
    pages: dict[tuple[str, Lang], SearchHit] = {}
    for hit in hits:
        pages.setdefault((hit.page_id, hit.lang), hit)
    return _batch([_result(hit, site) for hit in list(pages.values())[:RESULTS]])


def answered(mode: NlwebMode, text: str, sources: Sequence[Source], site: str) -> Iterator[Message]:
    """The messages of an answer: of `generate` with the pages that it cites, of `summarize` with all it was made of.
    The result of a tool is no page."""
    pages: dict[tuple[str, Lang], Source] = {}
    for source in sources:
        if source.kind == "page" and (source.cited or mode == "summarize"):
            pages.setdefault((source.page_id, source.lang), source)
    results = [_result(source, site) for source in pages.values()]
    yield _batch(results)
    if mode == "summarize":
        yield {"message_type": "summary", "message": text}
    else:
        yield {"message_type": "nlws", "answer": text, "items": results}


def merged(query_id: str, messages: Iterable[Message]) -> NlwebAnswer:
    """All messages in one object."""
    said: dict[str, Any] = {"query_id": query_id, "results": []}
    for message in messages:
        rest = {name: value for name, value in message.items() if name != "message_type"}
        if message["message_type"] == "result_batch":
            said["results"] += rest["results"]
        else:
            said[message["message_type"]] = rest
    return NlwebAnswer.model_validate(said)


def _batch(results: Sequence[Message]) -> Message:
    return {"message_type": "result_batch", "results": results}


def _result(found: SearchHit | Source, site: str) -> Message:
    page: Mapping[str, str] = {
        "@context": "https://schema.org",
        "@type": "WebPage",
        "identifier": found.page_id,
        "name": found.title,
        "url": found.url,
        "inLanguage": found.lang,
        "text": found.text,
    }
    return NlwebResult(
        url=found.url,
        name=found.title or found.page_id,
        site=site,
        score=found.score,
        description=found.text,
        schema_object={name: value for name, value in page.items() if value},
    ).model_dump(mode="json")
