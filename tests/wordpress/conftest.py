"""One WordPress is built per run; each module gets a fresh copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wordpress.peer import WordPress, built, running


@pytest.fixture(scope="session")
def packed_wordpress() -> Iterator[Path]:
    with built() as packed:
        yield packed


@pytest.fixture(scope="module")
def wordpress(packed_wordpress: Path) -> Iterator[WordPress]:
    with running(packed_wordpress) as site:
        yield site
        assert not site.log(), "the plugin made PHP complain"
