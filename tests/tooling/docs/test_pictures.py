"""Every screen of the console is in the documentation, with a picture."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi.routing import APIRoute

from gateway.console import console
from tests.console_pictures import PICTURE_OF

DOCS = Path(__file__).parents[3] / "docs"


def test_every_screen_has_a_picture() -> None:
    screens = {
        route.path
        for module in (console, *console.SCREENS)
        for route in module.router.routes
        if isinstance(route, APIRoute) and "GET" in route.methods
    }
    assert screens == set(PICTURE_OF)


def test_every_picture_is_there_and_shown() -> None:
    shown = {
        found
        for page in (DOCS / "howto").glob("*.md")
        for found in re.findall(r"!\[[^\]]+\]\(\.\./pictures/console-([\w-]+)\.png\)", page.read_text("utf-8"))
    }
    assert shown == set(PICTURE_OF.values())
    assert {name for name in shown if not (DOCS / f"pictures/console-{name}.png").exists()} == set()
