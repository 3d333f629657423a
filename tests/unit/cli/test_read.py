"""What would be indexed is shown, and what would not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adapters.extraction.reader import DocumentReader
from cli.main import app
from pipelines.ingest.documents.attachments import Missing

PAGE = """<html lang=en><head><title>Fees</title></head><body><nav>Home Fees</nav><main><h1>Fees</h1>
<table><tr><th>Day</th><th>Price</th></tr><tr><td rowspan=2>Monday</td><td>7<sup>50</sup> €</td></tr>
<tr><td>9 €</td></tr>
</table></main><div hidden>secret words here</div></body></html>"""


def read(*args: str, given: str = "") -> Any:
    result = CliRunner().invoke(app, ["read", *args, "--json"], input=given)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_page_is_read_as_its_connector_reads_it() -> None:
    told = read("-", "--as", "page", given=PAGE)
    assert (told["title"], told["lang"]) == ("Fees", "en")
    row = told["units"][-1]
    assert row == {
        "text": "| Monday | 9 € |",
        "kind": "row",
        "header": "| Day | Price |",
        "section": "Fees",
        "said": "Day: Monday; Price: 9 €",
    }
    assert "7.50 €" in told["markdown"]
    assert told["words"] == {"visible": 8, "indexed": 6}


def test_cents_have_the_decimal_sign_of_the_page_as_when_it_is_indexed() -> None:
    german = PAGE.replace("lang=en", "lang=de")
    assert "7,50 €" in read("-", "--as", "page", given=german)["markdown"]
    untold = german.replace(" lang=de", "").replace(
        "<h1>Fees</h1>", "<p>Der Eintritt in das Schwimmbad der Stadt kostet:"
    )
    told = read("-", "--as", "page", given=untold)
    assert told["lang"] == "de"
    assert "7,50 €" in told["markdown"]


def test_what_is_left_out_is_named_with_its_reason() -> None:
    told = read("-", "--as", "page", given=PAGE)
    left_out = {one["text"]: one["why"] for one in told["left_out"]}
    assert left_out["Home Fees"] == "menu"
    assert "Fees" not in left_out
    assert left_out["secret words here"] == "hidden"
    asked = PAGE.replace("<head>", "<head><meta name=robots content=noindex>")
    assert read("-", "--as", "page", given=asked)["left_out"][0]["why"].startswith("robots")


def test_facts_from_structured_data_are_told_apart_from_the_page() -> None:
    question = {"@type": "Question", "name": "Is it free?", "acceptedAnswer": {"text": "On Mondays."}}
    data = json.dumps({"@type": "FAQPage", "mainEntity": [question]})
    script = f'<head><script type="application/ld+json">{data}</script>'
    told = read("-", "--as", "page", given=PAGE.replace("<head>", script))
    assert told["from_structured_data"] == "## Is it free?\n\nOn Mondays."
    assert told["markdown"].endswith(told["from_structured_data"])
    assert told["structured_data"]["page_kind"] == "FAQPage"
    assert told["words"]["indexed"] == 6
    assert read("-", "--as", "page", given=PAGE)["structured_data"] is None


def test_several_files_are_told_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: Pool\nlang: en\n---\nIt is open.", "utf-8")
    (tmp_path / "b.txt").write_bytes("Das Freibad öffnet um neun Uhr, am Sonntag erst um zehn.".encode())
    page, attachment = read(str(tmp_path / "a.md"), str(tmp_path / "b.txt"))
    assert (page["title"], page["lang"], page["markdown"]) == ("Pool", "en", "It is open.")
    assert attachment["markdown"].startswith("Das Freibad öffnet")


@pytest.mark.parametrize("given", ["", "<main></main>"])
def test_of_nothing_there_is_nothing(given: str) -> None:
    told = read("-", given=given)
    assert (told["markdown"], told["units"], told["words"]["indexed"]) == ("", [], 0)


def test_a_file_whose_reader_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def missing(*args: object) -> None:
        raise Missing

    monkeypatch.setattr(DocumentReader, "read", missing)
    (tmp_path / "fees.docx").touch()
    result = CliRunner().invoke(app, ["read", str(tmp_path / "fees.docx")])
    assert (result.exit_code, result.exception.__class__) == (2, SystemExit)
    assert "`make setup-attachments` installs it" in result.stderr
