"""Pages as editors write them (tests/written.py), converted. tests/wordpress asks the product about the same."""

from __future__ import annotations

import html

import pytest

from pipelines.ingest.documents.convert import convert
from schemas.page import PageDocument
from tests.written import PAGES, Written

BLOCKS = [page for page in PAGES if page.content.startswith("<!--")]  # WordPress makes paragraphs of the others


@pytest.mark.parametrize("page", BLOCKS, ids=lambda page: page.title)
def test_a_page_is_converted_as_it_was_written(page: Written) -> None:
    fields = convert(PageDocument(id="p", title=page.title, content=page.content), page.lang).fields
    assert fields["title"] == html.unescape(page.title)
    assert [said for said in page.markdown if said not in fields["content"]] == [], fields["content"]
    assert [said for said in page.never if said in fields["content"]] == [], fields["content"]
