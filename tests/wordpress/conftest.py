"""One WordPress is built per run; each module gets a fresh copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wordpress import odd
from tests.wordpress.peer import WordPress, built, running
from tests.wordpress.receiver import SECRET, Receiver, receiving


@pytest.fixture(scope="session")
def packed_wordpress() -> Iterator[Path]:
    with built() as packed:
        yield packed


@pytest.fixture(scope="module")
def wordpress(packed_wordpress: Path) -> Iterator[WordPress]:
    with running(packed_wordpress) as site:
        yield site
        assert not site.log(), "the plugin made PHP complain"


@pytest.fixture(scope="module")
def odd_plugins(wordpress: WordPress) -> Iterator[None]:
    odd.install(wordpress)
    yield
    odd.remove(wordpress)


@pytest.fixture
def without_posts(wordpress: WordPress) -> Iterator[None]:
    """The test begins without posts, and what it installs goes with it."""
    wordpress.sql("DELETE FROM wp_posts; DELETE FROM wp_postmeta")
    yield
    for name in ("away", "languages"):
        odd.remove(wordpress, name)


@pytest.fixture
def receiver(wordpress: WordPress) -> Iterator[Receiver]:
    """What the plugin sends to; it has sent nothing yet."""
    with receiving() as receiver:
        wordpress.sql("DELETE FROM wp_pagewire_pages; DELETE FROM wp_options WHERE option_name = 'pagewire_fill'")
        wordpress.configure(
            endpoint=receiver.url, site="town", connector="wordpress", types=["post", "page", "event"], private=True,
            lang="", widget=False, secret=SECRET,
        )  # fmt: skip
        yield receiver
