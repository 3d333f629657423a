"""The whole way: TYPO3's DataHandler, which the backend's forms call, and what Pagewire finds after each step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.system import eventually
from tests.typo3.conftest import Town

pytestmark = [pytest.mark.engine, pytest.mark.typo3]


@pytest.fixture(autouse=True)
def _audited(town: Town) -> Iterator[None]:
    """After each story the index is what the log says."""
    yield
    audit = town.instance.run("audit", town.instance.site)
    assert audit.returncode == 0, audit.stdout + audit.stderr


def test_a_page_is_published_edited_hidden_and_deleted(town: Town) -> None:
    page, text = town.typo3.page("Sauna", "The sauna costs 8 euros.")
    town.shows("sauna euros", "The sauna costs 8 euros.")
    town.typo3.change("tt_content", text, bodytext="The sauna costs 9 euros.")
    town.shows("sauna euros", "The sauna costs 9 euros.")
    town.typo3.change("pages", page, hidden=1)
    town.shows("sauna euros")
    town.typo3.change("pages", page, hidden=0)
    town.shows("sauna euros", "The sauna costs 9 euros.")
    town.typo3.command("pages", page, delete=1)
    town.shows("sauna euros")


def test_a_page_with_another_address_is_one_page(town: Town) -> None:
    page, _ = town.typo3.page("Museum", "The museum shows ships.")
    town.shows("museum ships", "The museum shows ships.")
    town.typo3.change("pages", page, slug="/ships")
    town.shows("museum ships", "The museum shows ships.")


def test_a_text_that_moves_leaves_its_page(town: Town) -> None:
    _, text = town.typo3.page("Quay", "The quay has a crane.")
    other, _ = town.typo3.page("Pier", "The pier is long.")
    town.shows("quay crane", "The quay has a crane.")
    town.typo3.command("tt_content", text, move=other)
    town.typo3.send()

    def pages() -> set[str]:
        with town.site() as site:
            hits = site.get("/search", params={"q": "quay crane", "mode": "keyword"}).json()["hits"]
        return {hit["url"].rpartition("/")[2] for hit in hits if "crane" in hit["text"]}

    eventually(lambda: pages() == {"pier"}, timeout=60)


def test_pages_for_members_and_those_below_go(town: Town) -> None:
    parent, _ = town.typo3.page("Club", "The club has rules.")
    town.typo3.page("Board", "The board meets on Monday.", pid=parent)
    town.shows("board monday", "The board meets on Monday.")
    town.typo3.change("pages", parent, fe_group="-2", extendToSubpages=1)
    town.shows("board monday")
    assert town.found("club rules") == []


def test_a_translation_is_a_page_of_its_own(town: Town) -> None:
    page, text = town.typo3.page("Ferry", "The ferry leaves at nine.")
    town.typo3.command("pages", page, localize=1)
    town.typo3.command("tt_content", text, localize=1)
    translated = town.typo3.php(
        "$all = fn ($table) => \\TYPO3\\CMS\\Core\\Utility\\GeneralUtility::makeInstance("
        "\\TYPO3\\CMS\\Core\\Database\\ConnectionPool::class)->getConnectionForTable($table)"
        '->fetchFirstColumn("SELECT uid FROM $table WHERE sys_language_uid = 1 ORDER BY uid DESC");'
        "$result = [$all('pages')[0], $all('tt_content')[0]];"
    )
    town.typo3.change("pages", translated[0], title="Fähre", slug="/faehre", hidden=0)
    town.typo3.change("tt_content", translated[1], bodytext="Die Fähre fährt um neun.", hidden=0)
    town.shows("Fähre neun", "Die Fähre fährt um neun.", lang="de")
    town.shows("ferry nine", "The ferry leaves at nine.")


def test_what_cannot_be_sent_waits(town: Town) -> None:
    town.typo3.page("Mill", "The mill turns.")
    town.typo3.connect("http://127.0.0.1:1", town.instance.site, "key")
    assert "waiting: Pagewire does not answer" in town.typo3.typo3("pagewire:send", ok=False)
    town.typo3.connect(town.pagewire, town.instance.site, "another key")
    assert "does not know the key" in town.typo3.typo3("pagewire:send", ok=False)
    town.typo3.connect(town.pagewire, town.instance.site, "key-of-the-acceptance-ring")
    town.shows("mill turns", "The mill turns.")
