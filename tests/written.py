"""Pages as editors write them in WordPress, with the answers that visitors must get."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Written:
    """A page, what of it stands in its Markdown, and questions with what their answers must say.

    The content is that of the block editor, or of the classic one where it has no block comments.
    """

    title: str
    content: str
    lang: str
    markdown: tuple[str, ...]
    asked: tuple[tuple[str, str], ...] = ()
    never: tuple[str, ...] = ()  # must be in neither


def _paragraphs(*said: str) -> str:
    return "\n\n".join(f"<!-- wp:paragraph -->\n<p>{one}</p>\n<!-- /wp:paragraph -->" for one in said)


def _table(rows: str, caption: str = "") -> str:
    below = f'<figcaption class="wp-element-caption">{caption}</figcaption>' if caption else ""
    table = f'<figure class="wp-block-table"><table>{rows}</table>{below}</figure>'
    return f"<!-- wp:table -->\n{table}\n<!-- /wp:table -->"


SPANS = """<thead><tr><th rowspan="2">Platz</th><th colspan="2">Gebühr je Nacht</th></tr>
<tr><th>Sommer</th><th>Winter</th></tr></thead>
<tbody><tr><td>Zelt</td><td>14 €</td><td>9 €</td></tr>
<tr><td>Wohnmobil</td><td colspan="2">22 €</td></tr>
<tr><td rowspan="2">Hütte</td><td>48 €</td><td>39 €</td></tr>
<tr><td>ab 4 Personen 61 €</td><td>ab 4 Personen 52 €</td></tr></tbody>"""
ROW_HEADERS = """<tbody><tr><th scope="row">Telefon</th><td>06421 998-10</td></tr>
<tr><th scope="row">Leihfrist</th><td>28 Tage</td></tr>
<tr><th scope="row">Mahngebühr</th><td>1,20 € je Woche</td></tr></tbody>"""
NO_HEADERS = """<tbody><tr><td>Kegelbahn</td><td>11 € je Stunde</td></tr>
<tr><td>Billard</td><td>6,50 € je Stunde</td></tr>
<tr><td>Dartautomat</td><td>2 € je Spiel</td></tr></tbody>"""
ADMISSION = """<thead><tr><th>Wer</th><th>Eintritt</th></tr></thead>
<tbody><tr><td>Erwachsene</td><td>8,50 €</td></tr><tr><td>Kinder</td><td>3 €</td></tr></tbody>"""
ACCORDION = """<!-- wp:html -->
<div class="faq">
<h3><button type="button" aria-expanded="false" aria-controls="faq-1">Was kostet ein Angelschein?</button></h3>
<div id="faq-1" hidden><p>Der Angelschein kostet 37 € im Jahr.</p></div>
<h3><button type="button" aria-expanded="false" aria-controls="faq-2">Wo darf geangelt werden?</button></h3>
<div id="faq-2" hidden="hidden"><p>Geangelt wird am Mühlweiher und an der Ohm.</p></div>
</div>
<!-- /wp:html -->"""
DETAILS = """<!-- wp:details -->
<details class="wp-block-details"><summary>Wie lange gilt ein Bewohnerparkausweis?</summary>
<!-- wp:paragraph --><p>Der Bewohnerparkausweis gilt 24 Monate.</p><!-- /wp:paragraph --></details>
<!-- /wp:details -->"""
BLOCKS = f"""<!-- wp:columns --><div class="wp-block-columns">
<!-- wp:column --><div class="wp-block-column">
<!-- wp:heading --><h2>Museum</h2><!-- /wp:heading -->
{_paragraphs("Das Museum öffnet um 11 Uhr.")}
</div><!-- /wp:column -->
<!-- wp:column --><div class="wp-block-column">
<!-- wp:heading --><h2>Turm</h2><!-- /wp:heading -->
{_paragraphs("Der Turm öffnet um 14 Uhr.")}
</div><!-- /wp:column --></div><!-- /wp:columns -->
{_table(ADMISSION, "Eintritt für Museum und Turm, Stand 2026")}
<!-- wp:list --><ul><!-- wp:list-item --><li>Führungen nach Anmeldung</li><!-- /wp:list-item -->
<!-- wp:list-item --><li>Hunde dürfen nicht hinein</li><!-- /wp:list-item --></ul><!-- /wp:list -->
<!-- wp:file {{"id":7}} --><div class="wp-block-file"><a href="/plan.pdf">Lageplan</a>
<a href="/plan.pdf" class="wp-block-file__button" download>Herunterladen</a></div><!-- /wp:file -->
<!-- wp:shortcode -->[old_gallery ids="4,5"]<!-- /wp:shortcode -->"""
CLASSIC = """Das Hallenbad hat ein neues Becken.

Die Sauna kostet 16 € für vier Stunden.
Kinder unter 6 zahlen nichts.

Dienstag ist <strong>Frauentag</strong>."""
STRUCK = """Das Jahresabo kostet <del>49 €</del> <ins>39 €</ins> im ersten Jahr.

Die Monatskarte kostet <span style="text-decoration: line-through;">12 €</span> 11 €.

Der Kurzfilm kostet <strong>7</strong><sup><strong>50</strong></sup> €, das Filmbuch €14<sup>2</sup>."""
RANKS = """<!-- wp:list {"ordered":true,"reversed":true,"start":5} -->
<ol reversed start="5" class="wp-block-list"><!-- wp:list-item --><li>Wasserturm</li><!-- /wp:list-item -->
<!-- wp:list-item --><li>Stadtmauer</li><!-- /wp:list-item --></ol><!-- /wp:list -->"""
ICONS = """<!-- wp:html -->
<h3><button class="wp-block-accordion-heading__toggle" aria-expanded="false" aria-controls="boot-1">
<span>Was kostet ein Ruderboot?</span><span class="wp-block-accordion-heading__toggle-icon" aria-hidden="true">+</span>
</button></h3><div id="boot-1" class="wp-block-accordion-panel" hidden><p>Ein Ruderboot kostet 13 € je Stunde.</p></div>
<!-- /wp:html -->"""
HOURS = """<thead><tr><th>Tag</th><th>Zeiten</th></tr></thead>
<tbody><tr><td>Montag</td><td>9–12 Uhr<br>14–18 Uhr</td></tr><tr><td>Dienstag</td><td>geschlossen</td></tr></tbody>"""

PAGES = (
    Written(
        "Mittagstisch",
        _paragraphs("Das Tagesgericht kostet 7<sup>50</sup> € mit Suppe."),
        "de", ("7,50 €",), (("Was kostet das Tagesgericht?", "7,50"),), ("750", "7 50", "7⁵⁰"),
    ),
    Written(
        "Playground fund",
        _paragraphs("The council spends £150,000² on the new playground.", "² Without the cost of the land."),
        "en", ("£150,000²",), (("How much does the council spend on the playground?", "£150,000"),), ("150,0002",),
    ),
    Written(
        "Campingplatz", _table(SPANS), "de",
        ("| Platz | Gebühr je Nacht: Sommer | Gebühr je Nacht: Winter |", "| Zelt | 14 € | 9 € |",
         "| Wohnmobil | 22 € | 22 € |", "| Hütte | ab 4 Personen 61 € | ab 4 Personen 52 € |"),
        (("Was kostet ein Zelt im Winter auf dem Campingplatz?", "9 €"),),
    ),
    Written(
        "Stadtbücherei", _table(ROW_HEADERS), "de",
        ("| Telefon | 06421 998-10 |", "| Leihfrist | 28 Tage |"),
        (("Wie hoch ist die Mahngebühr der Stadtbücherei?", "1,20 €"),),
    ),
    Written(
        "Freizeitkeller", _table(NO_HEADERS), "de",
        ("| Kegelbahn | 11 € je Stunde |", "| Billard | 6,50 € je Stunde |"),
        (("Was kostet die Kegelbahn?", "11 €"), ("Was kostet Billard?", "6,50 €")),
    ),
    Written(
        "Recyclinghof",
        _paragraphs("Der Recyclinghof hat an Feiertagen andere Zeiten.", "3. Oktober: geschlossen",
                    "24. Dezember: 9 bis 12 Uhr"),
        "de", ("3\\. Oktober: geschlossen", "24\\. Dezember: 9 bis 12 Uhr"),
        (("Hat der Recyclinghof am 3. Oktober offen?", "geschlossen"),), ("1. Oktober",),
    ),
    Written(
        "Wasserverbrauch",
        _paragraphs("Veränderung des Wasserverbrauchs gegenüber dem Vorjahr:", "- 30,3 %"),
        "de", (" 30,3 %",),  # behind a dash, in WordPress a long one
    ),
    Written(
        "Angeln", ACCORDION, "de",
        ("Was kostet ein Angelschein?", "Der Angelschein kostet 37 € im Jahr.", "am Mühlweiher und an der Ohm"),
        (("Was kostet ein Angelschein?", "37 €"), ("Wo darf geangelt werden?", "Mühlweiher")),
    ),
    Written(
        "Parkausweis", DETAILS, "de", ("Wie lange gilt ein Bewohnerparkausweis?", "gilt 24 Monate"),
        (("Wie lange gilt ein Bewohnerparkausweis?", "24 Monate"),),
    ),
    Written(
        "Müll &amp; Recycling &#8211; „Gelber Sack“",
        _paragraphs("Der Gelbe Sack wird alle 14 Tage abgeholt."), "de",
        ("alle 14 Tage",), (("Wie oft wird der Gelbe Sack abgeholt?", "14 Tage"),), ("&amp;", "&#8211;"),
    ),
    Written(
        "Burg", BLOCKS, "de",
        ("## Museum", "Das Museum öffnet um 11 Uhr.", "| Erwachsene | 8,50 € |",
         "Eintritt für Museum und Turm, Stand 2026", "- Führungen nach Anmeldung", "Lageplan"),
        (("Wann öffnet der Turm?", "14 Uhr"), ("Was kostet der Eintritt für Kinder in Museum und Turm?", "3 €")),
        ("wp:", "old_gallery"),
    ),
    Written(
        "Hallenbad", CLASSIC, "de",
        ("Die Sauna kostet 16 € für vier Stunden.\n", "Kinder unter 6 zahlen nichts.", "Dienstag ist **Frauentag**."),
        (("Was kostet die Sauna?", "16 €"),),
    ),
    Written(
        "Freibad", _paragraphs("Eine Tageskarte kostet 5,50 €, eine Zehnerkarte 47,50 €."), "de", ("5,50 €",),
        (("Was bekomme ich für 47.50 €?", "47,50 €"), ("Kostet die Tageskarte im Freibad 5.50 Euro?", "5,50 €")),
    ),
    Written(
        "Filmklub", STRUCK, "de", ("~~49 €~~ 39 €", "~~12 €~~ 11 €", "**7**,50 €", "€14."),
        (("Was kostet das Jahresabo im Filmklub?", "39 €"), ("Was kostet die Monatskarte im Filmklub?", "11 €"),
         ("Was kostet der Kurzfilm?", ",50 €")),
        ("**50", "€14^2", "€142"),
    ),
    Written("Wahrzeichen", RANKS, "de", ("5. Wasserturm\n4. Stadtmauer",)),
    Written(
        "Bootsverleih", ICONS, "de", ("### Was kostet ein Ruderboot?\n",),
        (("Was kostet ein Ruderboot?", "13 €"),), ("?+",),
    ),
    Written("Bauhof", _table(HOURS), "de", ("| Montag | 9–12 Uhr; 14–18 Uhr |",)),
    Written(
        "東京タワー",
        _paragraphs("<ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>タワーは九時に開きます。"), "de",
        ("東京タワーは九時に開きます。",), (), ("とうきょう",),
    ),
)  # fmt: skip
