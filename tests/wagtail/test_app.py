"""The app in a real Wagtail, against a scripted other end: what is sent, when, in which order, and what never is."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from connectors.cms.push import signed_headers
from pipelines.ingest.documents.structured_data import structured_data_in
from schemas.page import PageEvent
from tests.acceptance.system import eventually
from tests.wagtail.peer import Editor, Wagtail
from tests.wordpress.receiver import SECRET, Receiver, result

pytestmark = pytest.mark.wagtail


@pytest.fixture(autouse=True)
def _quiet(wagtail: Wagtail, receiver: Receiver) -> Iterator[None]:
    """Each test begins and ends with an empty queue and a Pagewire that takes what comes."""
    yield
    with receiver.lock:
        receiver.answers = lambda lines: None
    wagtail.python("CourierState.objects.update(next_try=0)")
    eventually(lambda: waiting(wagtail) == 0)
    with receiver.lock:
        receiver.deliveries.clear()
        receiver.lanes.clear()


def waiting(wagtail: Wagtail) -> int:
    count: int = wagtail.python("result = PageRecord.objects.filter(waiting=True).count()")
    return count


def settled(wagtail: Wagtail, receiver: Receiver) -> dict[str, Any]:
    """What Pagewire holds when nothing waits any more: title -> page."""
    eventually(lambda: waiting(wagtail) == 0)
    return {page.title: page for page in receiver.pages.values()}


def lines_of(receiver: Receiver, page_id: str) -> list[Any]:
    with receiver.lock:
        return [line for lines in receiver.deliveries for line in lines if line.page.id == page_id]


def test_a_page_is_sent_as_its_visitors_see_it(wagtail: Wagtail, receiver: Receiver) -> None:
    wagtail.python(
        """
        from townsite.models import NewsPage
        page = ArticlePage(title="Swimming", seo_title="Swimming | Town", search_description="Pool hours",
            body=[("heading", "Pool"), *text("Open <b>daily</b>."), ("price", {"what": "A ticket", "euros": 4})],
            note="the boss does not know", live=False)
        home().add_child(instance=page)
        page.save_revision().publish()
        news = NewsPage(title="Fair", intro="Come <all>", text='<p>See <a linktype="page" id="%d">it</a></p>' % page.pk,
            live=False)
        home().add_child(instance=news)
        news.tags.add("fun", "autumn")
        news.save_revision().publish()
        own = OwnWordsPage(title="Mine", live=False)
        home().add_child(instance=own)
        own.save_revision().publish()
        """
    )
    pages = settled(wagtail, receiver)
    swimming = pages["Swimming"]
    assert (swimming.name, swimming.description, swimming.lang) == ("Swimming | Town", "Pool hours", "en")
    assert swimming.url.endswith("/en/swimming/")
    assert '<p class="price">A ticket costs 4 euros.</p>' in swimming.content
    assert "Open <b>daily</b>." in swimming.content
    assert "boss" not in swimming.content
    assert pages["Fair"].keywords == ("autumn", "fun")
    assert pages["Fair"].labels == {"tags": ("autumn", "fun")}
    assert '<a href="/en/swimming/">it</a>' in pages["Fair"].content
    own = pages["MINE"]
    assert (own.content, own.keywords) == ("<p>In our own words: Mine.</p>", ("own",))


def test_the_head_of_its_template_is_sent_and_a_template_that_fails_keeps_no_page_back(
    wagtail: Wagtail, receiver: Receiver
) -> None:
    wagtail.python(
        """
        from townsite.models import NewsPage
        for title, intro in (("Festival", "Music"), ("Broken head", "fails"), ("No head", "")):
            page = NewsPage(title=title, intro=intro, text="<p>Come all.</p>", live=False)
            home().add_child(instance=page)
            page.save_revision().publish()
        """
    )
    pages = settled(wagtail, receiver)
    found = structured_data_in(pages["Festival"].content)
    assert found is not None
    assert found.events == (PageEvent(name="Festival", start="2027-06-19"),)
    assert f'"url": "{pages["Festival"].url}", "organizer": ""' in pages["Festival"].content
    assert "Come all." in pages["Broken head"].content
    assert [structured_data_in(pages[title].content) for title in ("Broken head", "No head")] == [None, None]


def test_drafts_never_leave_and_cost_nothing(wagtail: Wagtail, receiver: Receiver) -> None:
    key = wagtail.python(
        """
        page = article("Library", "Open on Monday.")
        result = key(page)
        """
    )
    settled(wagtail, receiver)
    before = len(lines_of(receiver, key[0]))
    wagtail.python(
        """
        page = named("Library")
        page.body = text("Closed, but that is a secret until Friday.")
        page.save_revision()
        article("Never published", publish=False)
        result = None
        """
    )
    pages = settled(wagtail, receiver)
    assert "Never published" not in pages
    assert len(lines_of(receiver, key[0])) == before
    assert "secret" not in pages["Library"].content


def test_a_transaction_that_is_rolled_back_sends_nothing(wagtail: Wagtail, receiver: Receiver) -> None:
    wagtail.python(
        """
        article("Rolled back later", "old words")
        """
    )
    settled(wagtail, receiver)
    wagtail.python(
        """
        try:
            with transaction.atomic():
                article("Never was")
                page = named("Rolled back later")
                page.body = text("new words")
                page.save_revision().publish()
                Page.objects.get(title="Rolled back later").delete()
                raise KeyError
        except KeyError:
            pass
        result = PageRecord.objects.filter(waiting=True).count()
        """
    )
    pages = settled(wagtail, receiver)
    assert "Never was" not in pages
    assert "old words" in pages["Rolled back later"].content


def test_ten_saves_of_a_page_while_pagewire_is_away_are_one_line_when_it_is_back(
    wagtail: Wagtail, receiver: Receiver
) -> None:
    with receiver.lock:
        receiver.answers = lambda lines: (503, {"code": "unavailable"}, {"Retry-After": "1"})
    key = wagtail.python(
        """
        page = article("Ferry", "A ticket costs 0 euros.")
        for euros in range(1, 10):
            page.body = text(f"A ticket costs {euros} euros.")
            page.save_revision().publish()
        result = key(page)
        """
    )
    assert waiting(wagtail) == 1
    with receiver.lock:
        receiver.answers = lambda lines: None
    assert "9 euros" in settled(wagtail, receiver)["Ferry"].content
    assert len(lines_of(receiver, key[0])) == 1


def test_a_page_that_was_taken_but_not_confirmed_is_not_forgotten(wagtail: Wagtail, receiver: Receiver) -> None:
    """The answer to its first delivery is lost; then it is unpublished: Pagewire must be told."""
    taken = []

    def lost(lines: list[Any]) -> Any:
        taken.extend(line.page.title for line in lines)
        return 500, {}, {}

    with receiver.lock:
        receiver.answers = lost
    key = wagtail.python("result = key(article('Short-lived'))")
    eventually(lambda: "Short-lived" in taken)
    with receiver.lock:
        receiver.answers = lambda lines: None
        receiver.answers = lambda lines: (500, {}, {}) if any(line.op == "upsert" for line in lines) else None
    wagtail.python("named('Short-lived').unpublish()")
    settled(wagtail, receiver)
    assert [line.op for line in lines_of(receiver, key[0])] == ["delete"]


def test_a_refused_line_leaves_the_queue_and_its_reason_stays(wagtail: Wagtail, receiver: Receiver) -> None:
    errors = [{"line": 1, "code": "bad", "message": "the id is too long"}]
    with receiver.lock:
        receiver.answers = lambda lines: (200, result(rejected=1, errors=errors), {})
    key = wagtail.python("result = key(article('Refused'))")
    problem = f"result = PageRecord.objects.get(page_key={key[0]!r}, lang='en').problem"
    eventually(lambda: "the id is too long" in wagtail.python(problem))
    assert waiting(wagtail) == 0


def test_a_page_whose_template_fails_does_not_hold_up_the_others(wagtail: Wagtail, receiver: Receiver) -> None:
    key = wagtail.python(
        """
        page = OwnWordsPage(title="unspeakable", live=False)
        home().add_child(instance=page)
        page.save_revision().publish()
        article("Behind it")
        result = key(page)
        """
    )
    eventually(lambda: "Behind it" in {page.title for page in receiver.pages.values()})
    record = f"PageRecord.objects.get(page_key={key[0]!r})"
    eventually(lambda: "a template that fails" in wagtail.python(f"result = {record}.problem"))
    assert waiting(wagtail) == 1
    wagtail.python("page = named('unspeakable'); page.title = 'speakable'; page.save_revision().publish()")
    assert "SPEAKABLE" in settled(wagtail, receiver)


def test_too_large_a_delivery_is_halved_and_a_page_that_alone_is_too_large_is_refused(
    wagtail: Wagtail, receiver: Receiver
) -> None:
    def small_only(lines: list[Any]) -> Any:
        too_large = len(lines) > 2 or any(line.page.title == "Huge" for line in lines)
        return (413, {"code": "too-large", "detail": "the limit"}, {}) if too_large else None

    with receiver.lock:
        receiver.answers = lambda lines: (503, {}, {"Retry-After": "1"})
    wagtail.python("[article(f'Small {i}') for i in range(6)]; article('Huge')")
    with receiver.lock:
        receiver.answers = small_only
    pages = settled(wagtail, receiver)
    assert {f"Small {i}" for i in range(6)} <= set(pages)
    assert "Huge" not in pages


def test_what_many_pages_change_waits_behind_a_save(wagtail: Wagtail, receiver: Receiver) -> None:
    wagtail.python("section = article('Section'); [article(f'Below {i}', parent=section) for i in range(60)]")
    settled(wagtail, receiver)
    with receiver.lock:
        receiver.answers = lambda lines: (503, {}, {"Retry-After": "1"})
    wagtail.python(
        """
        section = named("Section")
        section.slug = "renamed"
        section.save_revision().publish()
        article("Urgent")
        """
    )
    with receiver.lock:
        receiver.deliveries.clear()
        receiver.lanes.clear()
        receiver.answers = lambda lines: None
    pages = settled(wagtail, receiver)
    assert all(pages[f"Below {i}"].url.endswith(f"/en/renamed/below-{i}/") for i in range(60))
    with receiver.lock:
        sent, lanes = [line.page.title for lines in receiver.deliveries for line in lines], list(receiver.lanes)
    assert sent.index("Urgent") < min(sent.index(f"Below {i}") for i in range(60))
    assert (lanes[0], lanes[-1]) == ("save", "bulk")


def test_a_page_in_another_language_is_the_same_page(wagtail: Wagtail, receiver: Receiver) -> None:
    keys = wagtail.python(
        """
        page = article("Harbour", "The harbour is deep.")
        german = page.copy_for_translation(Locale.objects.get(language_code="de"))
        german.title, german.body = "Hafen", text("Der Hafen ist tief.")
        german.save_revision().publish()
        brazilian = page.copy_for_translation(Locale.objects.get(language_code="pt-br"), alias=True)
        result = [key(page), key(german), brazilian.live]
        """
    )
    settled(wagtail, receiver)
    [english_id, _], [german_id, german], alias_is_live = keys
    assert (english_id, german, alias_is_live) == (german_id, "de", True)
    with receiver.lock:
        held = {lang: line.page.title for (id, lang), line in receiver.latest.items() if id == english_id}
    assert held == {"en": "Harbour", "de": "Hafen"}  # an alias shows nothing of its own
    wagtail.python(
        f"""
        brazilian = Page.objects.get(translation_key={english_id!r}, locale__language_code="pt-br").specific
        brazilian.alias_of = None
        brazilian.title = "Porto"
        brazilian.save_revision().publish()
        """
    )
    settled(wagtail, receiver)
    with receiver.lock:
        assert receiver.latest[(english_id, "pt-BR")].page.title == "Porto"


def test_a_page_that_changes_its_language_is_deleted_in_the_old_one(wagtail: Wagtail, receiver: Receiver) -> None:
    key = wagtail.python("result = key(article('Emigrant'))")
    settled(wagtail, receiver)
    wagtail.python(
        """
        page = named("Emigrant")
        page.move(home("de"), "last-child")
        page = named("Emigrant")
        page.locale = Locale.objects.get(language_code="de")
        page.save()
        """
    )
    settled(wagtail, receiver)
    with receiver.lock:
        assert receiver.latest[(key[0], "en")].op == "delete"
        assert receiver.latest[(key[0], "de")].op == "upsert"


def test_the_inventory_is_for_pagewire_alone(wagtail: Wagtail) -> None:
    url = f"{wagtail.url}/pagewire/inventory"
    assert httpx.get(url).status_code == 401
    now = int(time.time())
    right = signed_headers(SecretStr(SECRET), "msg_1", now, b"GET inventory?after=")
    assert httpx.get(f"{url}?after=", headers=right).status_code == 200
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    for wrong in (
        signed_headers(SecretStr(other), "msg_1", now, b"GET inventory?after="),
        signed_headers(SecretStr(SECRET), "msg_1", now - 301, b"GET inventory?after="),
        signed_headers(SecretStr(SECRET), "msg_1", now, b""),
        signed_headers(SecretStr(SECRET), "msg_1", now, b"GET pages?after="),
    ):
        answer = httpx.get(f"{url}?after=", headers=wrong)
        assert (answer.status_code, answer.json()["code"]) == (401, "bad-signature")
    assert httpx.get(f"{url}?after=", headers=right).headers["Cache-Control"].count("no-store") == 1
    assert httpx.post(url, headers=right).status_code in (403, 405)


def test_a_command_that_ends_delivers_what_it_published(wagtail: Wagtail, receiver: Receiver) -> None:
    """`publish_scheduled` is a process of its own: its thread must not be cut off."""
    wagtail.python(
        """
        page = article("Planned", publish=False)
        page.go_live_at = timezone.now() + timedelta(hours=1)
        page.save_revision().publish()
        """
    )
    assert "Planned" not in settled(wagtail, receiver)
    wagtail.python("make_due(named('Planned'))")
    published = wagtail.manage("publish_scheduled")
    assert published.returncode == 0, published.stderr
    assert "Planned" in {page.title for page in receiver.pages.values()}  # at once: the process is over
    wagtail.python("page = named('Planned'); Page.objects.filter(pk=page.pk).update(expire_at=timezone.now())")
    assert wagtail.manage("publish_scheduled").returncode == 0
    assert "Planned" not in {page.title for page in receiver.pages.values()}


def test_only_one_courier_delivers_however_many_there_are(wagtail: Wagtail, receiver: Receiver) -> None:
    """Two workers with their threads and a command, at once: no page is sent twice, none is forgotten."""
    with receiver.lock:
        receiver.answers = lambda lines: (503, {}, {"Retry-After": "1"})
    wagtail.python("[article(f'Crowd {i}') for i in range(30)]")
    command = wagtail.start("pagewire_deliver", "--watch")
    try:
        with receiver.lock:
            receiver.deliveries.clear()
            receiver.answers = lambda lines: time.sleep(0.2)
        pages = settled(wagtail, receiver)
    finally:
        assert command.stop() == 0
    assert {f"Crowd {i}" for i in range(30)} <= set(pages)
    with receiver.lock:
        sent = [line.page.title for lines in receiver.deliveries for line in lines if "Crowd" in line.page.title]
    assert sorted(sent) == sorted({f"Crowd {i}" for i in range(30)})


def test_the_commands_say_what_is_wrong(wagtail: Wagtail, receiver: Receiver) -> None:
    right = wagtail.manage("pagewire_check")
    assert "Pagewire answers" in right.stdout, right.stderr
    other = "whsec_" + base64.b64encode(b"y" * 32).decode()
    wrong = wagtail.manage("pagewire_check", TOWN_PAGEWIRE_SECRET=other)
    assert wrong.returncode != 0
    assert "is PAGEWIRE['secret'] the one in pagewire.yaml?" in wrong.stderr
    short = wagtail.manage("check", TOWN_PAGEWIRE_SECRET="hunter2")
    assert "PAGEWIRE['secret'] must be whsec_" in short.stderr
    assert "hunter2" not in short.stderr + short.stdout
    assert SECRET not in wagtail.log


def test_the_report_tells_superusers_what_was_refused(wagtail: Wagtail, receiver: Receiver) -> None:
    errors = [{"line": 1, "code": "too-large", "message": "over <4 MiB"}]
    with receiver.lock:
        receiver.answers = lambda lines: (200, result(rejected=1, errors=errors), {})
    wagtail.python("article('Novel')")
    eventually(lambda: waiting(wagtail) == 0)
    editor = Editor(wagtail)
    report = editor.read("/admin/reports/pagewire/")
    editor.close()
    assert "Novel" in report
    assert "too-large: over &lt;4 MiB" in report
    assert httpx.get(f"{wagtail.url}/admin/reports/pagewire/").status_code == 302  # to the login


def test_the_widget_is_put_into_the_page(wagtail: Wagtail, receiver: Receiver) -> None:
    wagtail.python("article('With a chat')")
    html = httpx.get(f"{wagtail.url}/en/with-a-chat/").text
    assert f'<script src="{receiver.url}/widget.js" data-site="town" data-lang="en" defer></script>' in html
