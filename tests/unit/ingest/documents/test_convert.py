from __future__ import annotations

from pipelines.ingest.documents.convert import convert
from schemas.page import PageDocument


def test_fields_are_the_text_to_cut() -> None:
    page = PageDocument(
        id="1",
        name="Town &amp; <b>country</b>",
        title="Vector<int> &lt;explained&gt;",
        description="<p>One</p><p>Two<br>three</p><script>x()</script>",
        keywords=("a, b", " ", "c &amp; d"),
        content="<h1>T</h1><p>text</p>",
    )
    assert convert(page).fields == {
        "name": "Town & country",
        "title": "Vector<int> <explained>",
        "description": "One Two three",
        "keywords": "a, b, c & d",
        "content": "# T\n\ntext",
    }
