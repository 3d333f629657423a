"""The whole way: an editor in Wagtail's admin, and what Pagewire finds and answers; after each step both agree."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.acceptance.system import eventually
from tests.wagtail.conftest import Town

pytestmark = [pytest.mark.engine, pytest.mark.wagtail]


@pytest.fixture(autouse=True)
def _audited(town: Town) -> Iterator[None]:
    """After each story the index is what the log says."""
    yield
    audit = town.instance.run("audit", town.instance.site)
    assert audit.returncode == 0, audit.stdout + audit.stderr


def test_an_editor_publishes_edits_unpublishes_and_deletes(town: Town) -> None:
    home = town.python("result = home().pk")
    town.editor.publish(f"add/townsite/articlepage/{home}", "Sauna", "The sauna costs 8 euros.", slug="sauna")
    pk, *key = town.python("page = named('Sauna'); result = [page.pk, *key(page)]")
    town.agree()
    shown = town.instance.run("search", town.instance.site, "sauna euros")
    assert "8 euros" in shown.stdout
    with town.site() as site:
        asked = {"question": "How much does the sauna cost?", "lang": "en"}
        answer = site.post("/chat", json=asked).json()
    assert "8 euros" in answer["answer"]
    assert httpx.get(answer["sources"][0]["url"]).status_code == 200

    town.editor.save_draft(f"{pk}/edit", "Sauna", "The sauna will cost 90 euros.")
    town.editor.publish(f"{pk}/edit", "Sauna", "The sauna costs 9 euros.")
    town.agree()
    assert [hit["text"] for hit in town.found("sauna euros") if hit["field"] == "content"] == [
        "The sauna costs 9 euros."
    ]

    town.editor.unpublish(pk)
    town.agree()
    assert town.found("sauna euros") == []
    town.editor.publish(f"{pk}/edit", "Sauna", "The sauna costs 10 euros.")
    town.agree()
    assert "10 euros" in town.found("sauna euros")[0]["text"]
    town.editor.delete(pk)
    town.agree((key[0], key[1]))
    assert town.found("sauna euros") == []


def test_a_moved_or_renamed_section_takes_its_pages_along(town: Town) -> None:
    section, there = town.python(
        """
        section = article("Museum", "The museum is old.")
        rooms = article("Rooms", "There are many rooms.", parent=section)
        article("Attic", "The attic is dusty.", parent=rooms)
        result = [section.pk, article("Culture", "Culture is for all.").pk]
        """
    )
    town.agree()
    town.editor.publish(f"{section}/edit", "Museum", "The museum is old.", slug="art")
    town.agree()
    assert town.found("attic dusty")[0]["url"].endswith("/en/art/rooms/attic/")
    town.editor.move(section, there)
    town.agree()
    assert town.found("attic dusty")[0]["url"].endswith("/en/culture/art/rooms/attic/")
    keys = town.python("result = [key(p) for p in Page.objects.filter(title__in=['Museum', 'Rooms', 'Attic'])]")
    town.editor.delete(section)
    town.agree(*((id, lang) for id, lang in keys))
    assert town.found("attic dusty") == []


def test_a_restricted_section_is_gone_until_it_is_public_again(town: Town) -> None:
    section = town.python(
        """
        section = article("Council", "The council meets in camera.")
        minutes = article("Minutes", "The minutes mention a treasure.", parent=section)
        result = section.pk
        """
    )
    town.agree()
    assert town.found("minutes treasure")
    for kind in ("login", "password"):
        town.editor.restrict(section, kind)
        town.agree()
        assert town.found("minutes treasure") == []
        town.python("article('Protocol', 'The protocol is private.', parent=named('Council'))")
        town.agree()
        assert town.found("protocol private") == []
        town.python("named('Protocol').delete()")
    town.editor.restrict(section, "none")
    town.agree()
    assert town.found("minutes treasure")
    # A public page moved into a private section, and out of it.
    town.editor.restrict(section, "login")
    pk = town.python("result = article('Budget', 'The budget has a hole.').pk")
    town.agree()
    town.editor.move(pk, section)
    town.agree()
    assert town.found("budget hole") == []
    town.editor.move(pk, town.python("result = home().pk"))
    town.agree()
    assert town.found("budget hole")


def test_a_planned_page_appears_and_expires_when_it_is_due(town: Town) -> None:
    town.python(
        """
        page = article("Fireworks", "The fireworks start at midnight.", publish=False)
        page.go_live_at = timezone.now() + timedelta(hours=1)
        page.save_revision().publish()
        live = article("Market", "The market is on Monday.")
        live.body, live.go_live_at = text("The market is on Tuesday."), timezone.now() + timedelta(hours=1)
        live.save_revision().publish()
        """
    )
    town.agree()
    assert town.found("fireworks midnight") == []
    assert "Monday" in town.found("market Monday Tuesday")[0]["text"]
    town.python("make_due(named('Fireworks')); make_due(named('Market'))")
    assert town.wagtail.manage("publish_scheduled").returncode == 0
    town.agree()
    assert town.found("fireworks midnight")
    assert "Tuesday" in town.found("market Monday Tuesday")[0]["text"]
    town.python("Page.objects.filter(title='Fireworks').update(expire_at=timezone.now())")
    assert town.wagtail.manage("publish_scheduled").returncode == 0
    town.agree()
    assert town.found("fireworks midnight") == []


def test_translations_are_found_in_their_language(town: Town) -> None:
    town.python(
        """
        page = article("Tower", "The tower is high.")
        german = page.copy_for_translation(Locale.objects.get(language_code="de"))
        page.copy_for_translation(Locale.objects.get(language_code="pt-br"), alias=True)
        """
    )
    town.agree()
    assert town.found("tower high", "de") == []  # still a draft
    town.python(
        """
        german = Page.objects.get(slug__startswith="tower", locale__language_code="de").specific
        german.title, german.body = "Turm", text("Der Turm ist hoch.")
        german.save_revision().publish()
        """
    )
    town.agree()
    [german, *_] = town.found("Turm hoch", "de")
    [english, *_] = town.found("tower high", "en")
    assert german["page_id"] == english["page_id"]
    assert {hit["lang"] for hit in town.found("tower high")} == {"en"}


def test_two_hundred_pages_at_once(town: Town) -> None:
    town.python(
        """
        section = article("Archive", "The archive.")
        with transaction.atomic():
            for i in range(200):
                article(f"Box {i}", f"Box {i} holds letters.", parent=section)
        """
    )
    town.agree()
    keys = town.python("result = [key(p) for p in named('Archive').get_descendants(inclusive=True)]")
    town.editor.delete(town.python("result = named('Archive').pk"))
    town.agree(*((id, lang) for id, lang in keys))
    assert town.found("box letters") == []


def test_saves_while_pagewire_is_down_arrive_when_it_is_up(town: Town) -> None:
    home = town.python("result = home().pk")
    town.editor.publish(f"add/townsite/articlepage/{home}", "Bridge", "The bridge is 0 years old.", slug="bridge")
    pk = town.python("result = named('Bridge').pk")
    town.agree()
    town.stop_pagewire()
    for years in range(1, 11):
        town.editor.publish(f"{pk}/edit", "Bridge", f"The bridge is {years} years old.")
    town.python("article('Built meanwhile', 'A tunnel was built meanwhile.')")
    assert town.python("result = PageRecord.objects.filter(waiting=True).count()") == 2
    assert town.wagtail.manage("pagewire_deliver").returncode != 0
    town.start_pagewire()
    town.agree()
    assert "10 years" in town.found("bridge years old")[0]["text"]
    assert town.found("tunnel built")


def test_reconcile_finds_what_nobody_was_told(town: Town) -> None:
    town.python(
        """
        for name in ("Lamp", "Chair", "Table"):
            article(name, f"The {name} is made of oak.")
        """
    )
    town.agree()
    town.python(
        """
        brass = json.dumps([{"type": "text", "value": "<p>The lamp is brass.</p>"}])
        ArticlePage.objects.filter(title="Lamp").update(body=brass)
        Page.objects.filter(title="Chair").update(live=False)
        PageViewRestriction.objects.bulk_create([PageViewRestriction(page=named("Table"), restriction_type="login")])
        """
    )
    reconciled = town.instance.run("reconcile", town.instance.site, "wagtail", "--json")
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    town.agree()
    eventually(lambda: "brass" in town.found("lamp brass")[0]["text"])
    assert town.found("chair oak") == []
    assert town.found("table oak") == []
    town.python("Page.objects.filter(title='Chair').update(live=True)")
    town.python("PageViewRestriction.objects.all()._raw_delete('default')")
    assert town.instance.run("reconcile", town.instance.site, "wagtail").returncode == 0
    town.agree()
    assert town.found("chair oak")
    assert town.found("table oak")
    again = town.instance.run("reconcile", town.instance.site, "wagtail", "--dry-run", "--json")
    assert again.returncode == 0, again.stdout
    [one] = json.loads(again.stdout)
    assert (one["missing"], one["newer"], one["gone"]) == (0, 0, 0)


def test_an_import_reads_what_the_app_says(town: Town) -> None:
    town.python("article('Well', 'The well is deep.')")
    town.agree()
    imported = town.instance.run("import", town.instance.site, "wagtail", "--json")
    assert imported.returncode == 0, imported.stdout + imported.stderr
    town.agree()
