"""Documents that a page links to are its attachments, as long as everybody may open them."""

from __future__ import annotations

import pytest

from tests.acceptance.system import eventually
from tests.wagtail.peer import Wagtail
from tests.wordpress.receiver import Receiver

pytestmark = pytest.mark.wagtail

DOCUMENT = """
from django.core.files.base import ContentFile
from wagtail.documents import get_document_model
from wagtail.models import Collection, CollectionViewRestriction

def document(title, name, collection=None):
    return get_document_model().objects.create(
        title=title, file=ContentFile(b"%PDF-1.4", name), collection=collection or Collection.get_first_root_node()
    )

def linked(title, *documents):
    links = "".join(f'<a linktype="document" id="{one.pk}">{one.title}</a> ' for one in documents)
    page = NewsPage(title=title, text=f"<p>{links}</p>")
    home().add_child(instance=page)
    page.save_revision().publish()
    return page
"""


def test_linked_documents_are_attachments_and_private_ones_are_not(wagtail: Wagtail, receiver: Receiver) -> None:
    id, fees, plan = wagtail.python(
        DOCUMENT
        + """
staff = Collection.get_first_root_node().add_child(name="Staff")
CollectionViewRestriction.objects.create(collection=staff, restriction_type="login")
fees, plan = document("Fees & more", "fees 2026.pdf"), document("Plan", "plan.docx")
page = linked("Offices", fees, plan, fees, document("Wages", "wages.pdf", staff), document("Logo", "logo.zip"))
result = [key(page)[0], fees.url, plan.url]
"""
    )
    eventually(lambda: id in receiver.pages, timeout=60)
    site = receiver.pages[id].url.removesuffix("/en/offices/")
    assert [(one.url, one.title, one.media_type) for one in receiver.pages[id].attachments] == [
        (f"{site}{fees}", "Fees & more", "application/pdf"),
        (f"{site}{plan}", "Plan", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ]


def test_a_document_that_changes_or_goes_sends_its_pages(wagtail: Wagtail, receiver: Receiver) -> None:
    id = wagtail.python(DOCUMENT + "result = key(linked('Rules', document('Rules', 'rules.pdf')))[0]")
    eventually(lambda: id in receiver.pages and bool(receiver.pages[id].attachments), timeout=60)
    change = "one = get_document_model().objects.get(title__startswith='Rules'); "
    wagtail.python(DOCUMENT + change + "one.title = 'Rules of 2026'; one.save()")
    eventually(lambda: [one.title for one in receiver.pages[id].attachments] == ["Rules of 2026"], timeout=60)
    wagtail.python(DOCUMENT + change + "one.delete()")
    eventually(lambda: not receiver.pages[id].attachments, timeout=60)


def test_documents_that_the_storage_serves_are_found_by_their_files(wagtail: Wagtail) -> None:
    found = wagtail.python(
        DOCUMENT
        + """
from pagewire_wagtail.documents import attachments
one = document("Map", "town map.pdf")
content = f'<a href="{one.file.url}">Map</a><a href="/media/none.pdf">x</a><a href="https://[">x</a><a href="">x</a>'
result = [one.file.url, attachments(content, "https://www.town.example/en/")]
"""
    )
    assert found[1] == [{"url": f"https://www.town.example{found[0]}", "title": "Map", "media_type": "application/pdf"}]
