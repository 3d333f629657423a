"""Pagewire is away during ten saves: WordPress does not notice, and afterwards nothing is missing."""

from __future__ import annotations

import pytest

from tests.engine_fixture import Servers
from tests.wordpress.peer import WordPress
from tests.wordpress.town import content, joined

pytestmark = [pytest.mark.wordpress, pytest.mark.engine]


def test_nothing_is_lost_while_pagewire_is_down(
    wordpress: WordPress, engine: Servers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    town = joined(wordpress, engine, tmp_path_factory.mktemp("down"))
    with town.up():
        with wordpress.admin() as admin:
            admin.press("pagewire_send_everything")
        old = town.create(says="Before the cut.", title="Old")
        gone = town.create(says="Goes meanwhile.", title="Gone")
        town.agree()
    posts = [town.create(says=f"Saved while it was away, number {n}.", title=f"Number {n}") for n in range(4)]
    for n in range(4):
        wordpress.change(posts[0], content=content(f"Edited while it was away, {n}."))
    wordpress.change(old, status="private")
    wordpress.remove(gone, force=True)
    assert len(wordpress.queue()) == 6
    with town.up():
        wordpress.due()
        town.agree()
        town.nothing_to_reconcile()
        assert set(town.found()) == {f"post-{post['id']}" for post in posts}
