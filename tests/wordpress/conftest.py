"""One WordPress is built per run; each module gets a fresh copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
