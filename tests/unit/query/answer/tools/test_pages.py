"""A whole page is looked up with the rights of the visitor who asked, and of nobody else."""

from __future__ import annotations

from pipelines.query.answer.tools.pages import Pages
from schemas.query import Retrieved, Source
from tests.asking import retrieved, source


class Site:
    """Finds the page whose title is asked for; remembers for whom."""

    def __init__(self, *pages: Source) -> None:
        self.pages = pages
        self.asked: list[tuple[Retrieved, str]] = []

    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        raise AssertionError("a page was asked for")

    async def page(self, retrieved: Retrieved, name: str) -> tuple[Source, ...]:
        self.asked.append((retrieved, name))
        return tuple(page for page in self.pages if page.title == name)


async def test_a_page_becomes_a_source_for_the_question_at_hand() -> None:
    page, question = source(1, "Open daily."), retrieved()
    site = Site(page)
    said = await Pages(site, question, lambda: ()).page(page.title)
    assert said.sources == (page,)
    [(asked_for, name)] = site.asked
    assert asked_for is question
    assert name == page.title


async def test_a_page_that_is_not_there_is_said_to_be_missing() -> None:
    said = await Pages(Site(), retrieved(), lambda: ()).page("Ferry")
    assert (said.text, said.sources) == ("there is no such page", ())


async def test_a_word_is_looked_up_in_what_was_found() -> None:
    pages = Pages(
        Site(), retrieved(), lambda: (source(1, "The pool opens at 9. It is heated."), source(2, "It rains."))
    )
    assert await pages.lookup("it") == "[1] It is heated.\n[2] It rains."
    assert await pages.lookup("The POOL") == "[1] The pool opens at 9."
    assert await pages.lookup("unicorn") == await pages.lookup("?") == "no sentence has it"
