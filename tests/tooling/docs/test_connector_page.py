"""The connector of docs/howto/connector.md is a source, as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from connectors.cms.fetching import Fetched, FetchRefused
from connectors.cms.frame import CmsSource, Listed, UnreadablePage
from pipelines.runtime.errors import Permanent
from schemas.page import PageDocument

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "connector.md"
FEES = {"id": "fees", "url": "https://cms.test/fees", "title": "Fees", "html": "<p>12 euros</p>", "changed_ms": 17}


class Answers:
    """What a CMS says, by path; stands in for SafeFetch."""

    def __init__(self, **more: Any) -> None:
        self._says = {"/pages": [{"id": "fees", "changed_ms": 17}], "/pages/fees": FEES, "/clock": {"ms": 99}} | more

    async def get(self, url: str) -> Fetched:
        says = self._says.get(url.removeprefix("https://cms.test"), FetchRefused("not there", 404))
        if isinstance(says, Exception):
            raise says
        return Fetched(url, 200, says if isinstance(says, bytes) else json.dumps(says).encode(), {})


def source(**more: Any) -> CmsSource:
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    made: CmsSource = names["JsonSource"]("https://cms.test/", Answers(**more), "en")
    return made


async def test_it_lists_and_fetches_pages_and_knows_the_time() -> None:
    cms = source()
    listed = [one async for one in cms.inventory()]
    assert listed == [Listed("fees", "en", 17)]
    [page] = [one async for one in cms.fetch(listed)]
    assert isinstance(page, PageDocument)
    assert (page.id, page.lang, page.revision, page.title) == ("fees", "en", 17, "Fees")
    assert await cms.now() == 99


async def test_a_page_that_is_gone_is_left_out_and_one_that_cannot_be_read_is_told() -> None:
    cms = source(**{"/pages/locked": FetchRefused("forbidden", 403)})
    fetched = cms.fetch([Listed("gone", "en", 1), Listed("locked", "en", 1), Listed("fees", "en", 17)])
    unreadable, page = [one async for one in fetched]
    assert isinstance(unreadable, UnreadablePage)
    assert unreadable.listed.page_id == "locked"
    assert isinstance(page, PageDocument)


async def test_a_list_that_cannot_be_read_is_an_error_and_no_empty_list() -> None:
    with pytest.raises(Permanent):
        [one async for one in source(**{"/pages": b"<html>login"}).inventory()]
