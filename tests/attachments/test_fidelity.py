"""What an author wrote into an office file, and what is searched of it: each figure as it was, under its own names."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from datetime import datetime, time, timedelta
from email.message import EmailMessage
from typing import Any

import pytest

from adapters.extraction.cell_formats import formatted
from adapters.extraction.documents import Unreadable, read
from pipelines.ingest.documents.kinds import Kind
from tests import office_files as made
from tests.office_files import wp, wr
from text.loss import Words

pytestmark = pytest.mark.attachments

FIRST = datetime.fromisoformat("2026-03-01")  # spreadsheets know no time zones


def text_of(kind: Kind, data: bytes) -> str:
    [section] = read(kind, data, 1_000_000).sections
    return section.text


def box(text: str) -> str:
    """What is in a text box, as old programs read it."""
    return f"<w:txbxContent>{wp(wr(text))}</w:txbxContent>"


def shape(text: str) -> str:
    return f'<w:drawing><x:wsp xmlns:x="urn:wps"><x:txbx>{box(text)}</x:txbx></x:wsp></w:drawing>'


def numbered(level: int, numbers: int = 1) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{numbers}"/></w:numPr>'


NUMBERING = (
    '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/><w:start w:val="1"/>'
    '<w:lvlText w:val="§ %1"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/><w:start w:val="1"/>'
    '<w:lvlText w:val="(%2)"/></w:lvl></w:abstractNum><w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0">'
    '<w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
)
STYLES = (
    '<w:style w:type="character" w:styleId="Unseen"><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Draft"><w:basedOn w:val="Unseen"/></w:style>'
    '<w:style w:type="character" w:styleId="Raised"><w:rPr><w:vertAlign w:val="superscript"/></w:rPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="TOC1"><w:name w:val="toc 1"/></w:style>'
)
FRACTION = (
    "<m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b+1</m:t></m:r></m:den></m:f></m:oMath>"
)
WORD = {
    # python-openxml/python-docx issue 1123
    "tracked changes": (
        wp(
            wr("The fee is ")
            + f"<w:del><w:r><w:delText>12</w:delText></w:r></w:del><w:ins>{wr('15')}</w:ins>{wr(' €.')}"
        ),
        "The fee is 15 €.",
    ),
    # toxicphreAK/python-docx-ng issue 70
    "content control": (
        f"<w:sdt><w:sdtContent>{wp(wr('INSIDE'))}</w:sdtContent></w:sdt>{wp(wr('OUTSIDE'))}",
        "INSIDE\n\nOUTSIDE",
    ),
    "nobody filled in": (
        f"<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{wp(wr('Click'))}</w:sdtContent></w:sdt>{wp(wr('a'))}",
        "a",
    ),
    "text box, once": (
        wp(
            f"<mc:AlternateContent><mc:Choice>{shape('BOX')}</mc:Choice>"
            f"<mc:Fallback><w:pict>{box('BOX')}</w:pict></mc:Fallback></mc:AlternateContent>{wr('Around')}"
        ),
        "Around\n\nBOX",
    ),
    "shape of a newer Word alone": (wp(f"<w:r>{shape('BOX')}</w:r>"), "BOX"),
    "field": (wp(f"<w:fldSimple>{wr('2026')}</w:fldSimple>"), "2026"),
    "cents": (wp(wr("7") + wr("50", '<w:vertAlign w:val="superscript"/>') + wr(" €")), "7.50 €"),
    "cents by a style": (wp(wr("7") + wr("50", '<w:rStyle w:val="Raised"/>') + wr(" €")), "7.50 €"),
    "struck out": (wp(wr("20 €", "<w:dstrike/>") + wr(" 15 €")), "~~20 €~~ 15 €"),
    "hidden": (wp(wr("a") + wr("LEAK", "<w:vanish/>") + wr("LEAK", '<w:rStyle w:val="Unseen"/>')), "a"),
    "hidden paragraph": (wp(wr("LEAK"), '<w:pStyle w:val="Draft"/>') + wp(wr("a")), "a"),
    "not hidden": (wp(wr("a", '<w:vanish w:val="0"/>')), "a"),
    "table of contents": (wp(wr("Fees 3"), '<w:pStyle w:val="TOC1"/>') + wp(wr("a")), "a"),
    "formula": (wp(wr("x = ") + FRACTION), "x = a/(b+1)"),
    "note below its paragraph": (
        wp(wr("A dog: 12") + '<w:r><w:footnoteReference w:id="2"/></w:r>' + wr(" €.")) + wp(wr("End.")),
        "A dog: 12 €.\n\nFrom 2026: 15 €.\n\nEnd.",
    ),
    "numbers": (
        wp(wr("one"), numbered(0))
        + wp(wr("sub"), numbered(1))
        + wp(wr("text"))
        + wp(wr("two"), numbered(0))
        + wp(wr("sub"), numbered(1)),
        "- § 1 one\n  - (a) sub\n\ntext\n\n- § 2 two\n  - (a) sub",
    ),
    "bullets": (wp(wr("one"), numbered(0, 2)) + wp(wr("two"), numbered(0, 2)), "- one\n- two"),
    "spans": (
        "<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr>"
        f'<w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{wp(wr("Ticket"))}</w:tc>'
        f'<w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{wp(wr("Price"))}</w:tc></w:tr>'
        f"<w:tr><w:trPr><w:tblHeader/></w:trPr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{wp('')}</w:tc>"
        f"<w:tc>{wp(wr('Adult'))}</w:tc><w:tc>{wp(wr('Child'))}</w:tc></w:tr>"
        f"<w:tr><w:tc>{wp(wr('Day'))}</w:tc><w:tc>{wp(wr('9'))}{wp(wr('10'))}</w:tc><w:tc>{wp(wr('5'))}</w:tc></w:tr></w:tbl>",
        "| Ticket | Price: Adult | Price: Child |\n| --- | --- | --- |\n| Day | 9; 10 | 5 |",
    ),
}


@pytest.mark.parametrize(("body", "right"), WORD.values(), ids=WORD)
@pytest.mark.parametrize("form", [bytes, made.strict], ids=["transitional", "strict"])
def test_word(form: Callable[[bytes], bytes], body: str, right: str) -> None:
    notes = f'<w:footnote w:id="2">{wp(wr("From 2026: 15 €."))}</w:footnote>'
    document = made.word(body, styles=STYLES, numbering=NUMBERING, footnotes=notes)
    assert text_of("docx", form(document)) == right


def test_raised_cents_get_the_decimal_sign_of_the_document() -> None:
    cents = wp(wr("Sauna 12") + wr("50", '<w:vertAlign w:val="superscript"/>') + wr(" €"))
    language = '<w:docDefaults><w:rPrDefault><w:rPr><w:lang w:val="de-DE" w:eastAsia="en-US"/></w:rPr></w:rPrDefault>'
    german = made.word(cents, styles=f"{language}</w:docDefaults>")
    assert text_of("docx", german) == text_of("docx", made.strict(german)) == "Sauna 12,50 €"
    assert text_of("docx", made.word(cents)) == "Sauna 12.50 €"
    raised = OPEN_STYLES + styled("all", 'fo:language="de" fo:country="AT"')
    assert text_of("odt", made.odt(p('7<text:span text:style-name="up">50</text:span> €'), raised)) == "7,50 €"
    assert text_of("html", b'<html lang="de"><p>7<sup>50</sup> &euro;') == "7,50 €"


CHART = (
    "<c:chartSpace><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Visitors</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    "<c:plotArea><c:barChart>{}{}</c:barChart><c:valAx><c:title><a:p><a:r><a:t>in thousands</a:t></a:r></a:p></c:title>"
    "</c:valAx></c:plotArea></c:chart></c:chartSpace>"
)
YEARS = (
    "<c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>2025</c:v></c:pt><c:pt idx='1'><c:v>2026</c:v></c:pt></c:strCache>"
    "</c:strRef></c:cat>"
)
NODES = (
    "<dgm:dataModel><dgm:ptLst><dgm:pt><dgm:t><a:p><a:r><a:t>Apply</a:t></a:r></a:p></dgm:t></dgm:pt>"
    "<dgm:pt type='pres'><dgm:t><a:p><a:r><a:t>x</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"
)
OFFICE = "http://schemas.openxmlformats.org"
DRAWN = {
    "c": f"{OFFICE}/drawingml/2006/chart",
    "a": f"{OFFICE}/drawingml/2006/main",
    "dgm": f"{OFFICE}/drawingml/2006/diagram",
    "r": f"{OFFICE}/officeDocument/2006/relationships",
    "pic": f"{OFFICE}/drawingml/2006/picture",
}


def named(xml: str) -> str:
    """With the namespaces of drawings."""
    return re.sub(r"^<[\w:]+", lambda tag: tag[0] + "".join(f' xmlns:{p}="{uri}"' for p, uri in DRAWN.items()), xml)


def series(name: str, *values: str, categories: str = YEARS, pattern: str = "0.0") -> str:
    points = "".join(f"<c:pt idx='{at}'><c:v>{value}</c:v></c:pt>" for at, value in enumerate(values))
    return (
        f"<c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>{name}</c:v></c:pt></c:strCache></c:strRef></c:tx>"
        f"{categories}<c:val><c:numRef><c:numCache><c:formatCode>{pattern}</c:formatCode>{points}</c:numCache></c:numRef></c:val></c:ser>"
    )


def drawing(kind: str, inside: str) -> str:
    return named(f'<w:drawing><a:graphicData uri="{DRAWN["a"]}/{kind}">{inside}</a:graphicData></w:drawing>')


def related(*targets: str) -> str:
    return (
        "<Relationships>"
        + "".join(f'<Relationship Id="r{n}" Target="{t}"/>' for n, t in enumerate(targets))
        + "</Relationships>"
    )


def test_charts_and_smart_art_are_read_and_what_has_no_text_is_counted() -> None:
    good = CHART.format(series("Pool", "1.25", "2"), series("Sauna", "#N/A", "3"))
    other = CHART.format(series("a", "1", "2"), series("b", "1", categories=YEARS.replace("2025", "2020")))
    dates = CHART.format(
        series(
            "a",
            "1",
            categories=YEARS.replace("str", "num").replace(
                "<c:pt idx='0'", "<c:formatCode>mmm yy</c:formatCode><c:pt idx='0'"
            ),
        ),
        "",
    )
    charts = [drawing("chart", f"<c:chart r:id='r{n}'/>") for n in (0, 2, 3)]
    smart_art = drawing("diagram", "<dgm:relIds r:dm='r1'/>")
    body = (
        wp(f"<w:r>{charts[0]}</w:r><w:r>{smart_art}</w:r>")
        + wp(f"<w:r>{charts[1]}{charts[2]}</w:r>")
        + wp(f"<w:r>{drawing('picture', '<pic:pic/>')}</w:r>")
        + wp(wr("End.") + "<w:del><w:r><w:delText>12</w:delText></w:r></w:del>" + wr("LEAK", "<w:vanish/>"))
    )
    parts = {
        "word/_rels/document.xml.rels": related(
            "charts/chart1.xml", "diagrams/data1.xml", "/word/charts/c2.xml", "charts/c3.xml"
        ),
        "word/charts/chart1.xml": named(good),
        "word/charts/c2.xml": named(other),
        "word/charts/c3.xml": named(dates),
        "word/diagrams/data1.xml": named(NODES),
    }
    remark = f'<w:comment w:id="1">{wp(wr("Why?"))}</w:comment>'
    document = read("docx", made.with_parts(made.word(body, comments=remark), parts), 999)
    assert document.sections[0].text == (
        "Visitors\n\nin thousands\n\n"
        "|  | Pool | Sauna |\n| --- | --- | --- |\n| 2025 | 1.3 |  |\n| 2026 | 2.0 | 3.0 |\n\nApply\n\nEnd."
    )
    assert document.left_out == {"charts": 2, "pictures": 1, "hidden passages": 1, "deletions": 1, "comments": 1}
    assert document.words == Words(15, 15, {})  # "1.3" is two


def test_what_is_not_in_the_text_is_counted() -> None:
    odt = made.odt(f'<text:section text:display="none">{p("LEAK")}{p("LEAK")}</text:section>{p("a")}')
    assert read("odt", odt, 99).left_out == {"hidden passages": 1}
    assert read("odt", made.odt(p("a")), 99).left_out == {}
    long = read("docx", made.word(wp(wr("one two three four"))), 8)
    assert (long.words, long.note) == (
        Words(4, 2, {"over the limit": 2}),
        "too long, all but its end is searchable; 2 of 4 words are searchable",
    )


def styled(name: str, properties: str) -> str:
    return f'<style:style style:name="{name}"><style:text-properties {properties}/></style:style>'


OPEN_STYLES = (
    styled("up", 'style:text-position="super 58%"')
    + styled("gone", 'text:display="none"')
    + styled("old", 'style:text-line-through-style="solid"')
)


def p(xml: str) -> str:
    return f"<text:p>{xml}</text:p>"


def cell(xml: str, attributes: str = "") -> str:
    return f"<table:table-cell {attributes}>{xml}</table:table-cell>"


def row(*cells: str) -> str:
    return f"<table:table-row>{''.join(cells)}</table:table-row>"


OPEN = {
    "white space": (p('Monday<text:tab/>9-12<text:line-break/>one<text:s text:c="2"/>two'), "Monday 9-12\none two"),
    "note below its paragraph": (
        p(
            "Fee 12<text:note><text:note-citation>1</text:note-citation><text:note-body>"
            f"{p('From 2026: 15 euros.')}</text:note-body></text:note> euros."
        ),
        "Fee 12 euros.\n\nFrom 2026: 15 euros.",
    ),
    "remark of a reviewer": (p(f"a<office:annotation>{p('LEAK')}</office:annotation>"), "a"),
    "cents": (p('7<text:span text:style-name="up">50</text:span> €'), "7.50 €"),
    "struck out": (p('<text:span text:style-name="old">20 €</text:span> 15 €'), "~~20 €~~ 15 €"),
    "hidden": (p('a<text:span text:style-name="gone">LEAK</text:span>'), "a"),
    "hidden section": (f'<text:section text:display="none">{p("LEAK")}</text:section>{p("a")}', "a"),
    "spans and repeats": (
        "<table:table><table:table-header-rows>"
        + row(cell(p("Day")), cell(p("Price"), 'table:number-columns-spanned="2"'), "<table:covered-table-cell/>")
        + "</table:table-header-rows>"
        + row(cell(p("Monday"), 'table:number-rows-spanned="2"'), cell(p("9") + p("10")), cell(p("x")))
        + row("<table:covered-table-cell/>", cell(p("5"), 'table:number-columns-repeated="2"'))
        + "</table:table>",
        "| Day | Price | Price |\n| --- | --- | --- |\n| Monday | 9; 10 | x |\n| Monday | 5 | 5 |",
    ),
}


@pytest.mark.parametrize(("body", "right"), OPEN.values(), ids=OPEN)
def test_open_document(body: str, right: str) -> None:
    assert text_of("odt", made.odt(body, OPEN_STYLES)) == right


@pytest.mark.parametrize(
    ("value", "pattern", "right"),
    [
        (0.25, "0%", "25%"),
        (0.25, "0 %", "25 %"),
        (12.5, '0.00 "€"', "12.50 €"),
        (1234.5, "#,##0.00\\ [$€-407]", "1234.50 €"),
        (2.675, "0.00", "2.68"),
        (0.1 + 0.2, "General", "0.3"),
        (1067, "00000", "01067"),
        (12, "0.##", "12"),
        (1_200_000, '0.0,,"M"', "1.2M"),
        (-5, "0;[Red]0", "-5"),
        (-0.3, "0%", "-30%"),
        (0, '_(* #,##0_);_(* \\(#,##0\\);_(* "-"??_);_(@_)', "-"),
        (5, ";;;", ""),
        ("x", ";;;", ""),
        ("x", "@", "x"),
        # What has no certain reading is the value itself.
        (1.5, "# ?/?", "1.5"),
        (150_000, "0.00E+00", "150000"),
        (5, "[<10]0.0;0", "5"),
        (5_551_234, "000-0000", "5551234"),
        (float("inf"), "0", "Infinity"),
        (True, "General", "TRUE"),
        (FIRST, "dd.mm.yyyy", "01.03.2026"),
        (FIRST, "yyyy\\-mm\\-dd;@", "2026-03-01"),
        (datetime.combine(FIRST, time(9, 5)), "d.m.yy h:mm", "1.3.26 9:05"),
        (FIRST, "mm-dd-yy", "2026-03-01"),  # the format that each system shows in its own way
        (FIRST, "d. mmmm yyyy", "2026-03-01"),
        (time(9, 30), "h:mm", "9:30"),
        (time(21, 30), "h:mm AM/PM", "21:30"),
        (timedelta(hours=26, minutes=5), "[h]:mm", "26:05"),
    ],
)
def test_a_cell_says_what_its_format_shows(value: object, pattern: str, right: str) -> None:
    assert formatted(value, pattern) == right


def saved(book: Any) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


@pytest.mark.parametrize("form", [bytes, made.strict], ids=["transitional", "strict"])
def test_a_sheet_as_its_reader_sees_it(form: Callable[[bytes], bytes]) -> None:
    import openpyxl
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont
    from openpyxl.styles import Font

    book = openpyxl.Workbook()
    sheet = book.active
    raised = TextBlock(InlineFont(vertAlign="superscript"), "50")
    rows: list[list[object]] = [
        ["Fees of the pool"],
        ["Ticket", "Adults", "Children", "Cost"],
        ["Day", 12.5, 0.25, 99],
        [None, CellRichText("7", raised, " €"), FIRST, 99],
        ["Staff", 1, 2, 99],
        ["Year", "3|4", "- 5 °C", 99],
        ["- 5 % in May"],
        [],
        ["Season", "Opens"],
        ["Summer", time(9)],
    ]
    for each in rows:
        sheet.append(each)
    for each in sheet[2]:
        each.font = Font(bold=True)
    sheet["B3"].number_format, sheet["C3"].number_format, sheet["C4"].number_format = '0.00 "€"', "0 %", "dd.mm.yyyy"
    sheet["B10"].number_format = "h:mm"
    sheet["B6"].font = Font(strike=True)
    sheet.merge_cells("A3:A4")
    sheet.row_dimensions[5].hidden = sheet.column_dimensions["D"].hidden = True
    for state in ("hidden", "veryHidden"):
        more = book.create_sheet(state)
        more["A1"], more.sheet_state = "LEAK", state
    document = read("xlsx", form(saved(book)), 1_000_000)
    assert [section.text for section in document.sections] == [
        "Fees of the pool\n\n"
        "| **Ticket** | **Adults** | **Children** |\n| --- | --- | --- |\n| Day | 12.50 € | 25 % |\n"
        "| Day | 7.50 € | 01.03.2026 |\n| Year | ~~3\\|4~~ | - 5 °C |\n\n"
        "\\- 5 % in May\n\n|  |  |\n| --- | --- |\n| Season | Opens |\n| Summer | 9:00 |"
    ]
    assert document.left_out == {"hidden sheets": 2, "hidden rows": 1, "hidden columns": 1}
    assert document.words.visible == document.words.indexed


def test_a_sheet_is_as_large_as_what_is_in_it() -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "first", "last"
    for n in range(1, 3_000):
        book.active.cell(n, n, n)
    assert text_of("xlsx", saved(book)).endswith("last")


def test_a_table_of_excel_names_its_columns() -> None:
    import openpyxl
    from openpyxl.worksheet.table import Table

    book = openpyxl.Workbook()
    for each in (["Name", "Room"], ["Anna", "12"], ["Ben", "14"]):
        book.active.append(each)
    book.active.add_table(Table(displayName="Rooms", ref="A1:B3"))
    assert text_of("xlsx", saved(book)) == "| Name | Room |\n| --- | --- |\n| Anna | 12 |\n| Ben | 14 |"


@pytest.mark.parametrize("form", [bytes, made.strict], ids=["transitional", "strict"])
def test_hidden_slides_are_left_out(form: Callable[[bytes], bytes]) -> None:
    import pptx

    show = pptx.Presentation(io.BytesIO(made.pptx([("Intro", "Welcome"), ("LEAK", "LEAK"), ("Fees", "96 euros")])))
    show.slides[1].element.set("show", "0")
    document = read("pptx", form(saved(show)), 1_000_000)
    assert [(each.label, each.text) for each in document.sections] == [
        ("1/3", "Intro\n\nWelcome"),
        ("3/3", "Fees\n\n96 euros"),
    ]
    assert document.left_out == {"hidden slides": 1}
    assert document.words == Words(5, 5, {})


def test_raised_and_struck_runs_of_slides() -> None:
    import pptx

    show = pptx.Presentation(io.BytesIO(made.pptx([("Fees", "")])))
    paragraph = show.slides[0].placeholders[1].text_frame.paragraphs[0]
    for text, style, value in (
        ("was 7 €", "strike", "sngStrike"),
        (" now 6", "strike", "noStrike"),
        ("50", "baseline", "30000"),
        (" € for 20 m", "baseline", "0"),
        ("2", "baseline", "30%"),
        (", H", "b", "1"),
        ("2", "baseline", "-25000"),
        ("O", "b", "1"),
    ):
        run = paragraph.add_run()
        run.text = text
        run.font._element.set(style, value)
    document = read("pptx", saved(show), 1_000_000)
    assert [each.text for each in document.sections] == ["Fees\n\nnow 6.50 € for 20 m2, H2O"]
    assert document.left_out == {"deletions": 1}


def test_mails_with_odd_attachments() -> None:
    inner = EmailMessage()
    inner["Subject"] = "Inside"
    inner.set_content("A cat is free.")
    mail = EmailMessage()
    mail["Subject"] = "Fees"
    mail.set_content("A dog: 12 euros.")
    mail.add_alternative("<p>A dog: <b>12</b> euros.</p><table><tr><th>a<th>b<tr><td>1<td>2</table>", subtype="html")
    mail.add_attachment(b"ID3\x04", maintype="audio", subtype="mpeg", filename="a.mp3")
    mail.add_attachment(inner)
    assert text_of("eml", bytes(mail)) == "# Fees\n\nA dog: **12** euros.\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
    blank = EmailMessage()
    blank.set_content("A dog: 12 euros.")
    blank.add_alternative("<img src=cid:1>", subtype="html")
    assert text_of("eml", bytes(blank)) == "A dog: 12 euros."
    mail.replace_header("Content-Type", "multipart/encrypted")
    with pytest.raises(Unreadable, match="encrypted"):
        read("eml", bytes(mail), 99)
    digest = EmailMessage()
    digest["Subject"] = "All of May"
    digest["Content-Type"] = "multipart/digest"
    digest.attach(inner)
    assert "A cat is free." in text_of("eml", bytes(digest))
