"""What docs/howto/wordpress.md says, done by a site's owner in a browser: the zip, the settings, a save, the chat.

wp-admin in Chromium ─▶ Upload Plugin ─▶ Settings ─▶ block editor: Publish ─▶ ... ─▶ the chat on the post's page
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from connectors.cms.package import pack
from tests.chromium import Browser
from tests.engine_fixture import Servers
from tests.wordpress.peer import PASSWORD, USER, WordPress
from tests.wordpress.receiver import SECRET
from tests.wordpress.town import MARK, Town, joined

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.wordpress, pytest.mark.browser, pytest.mark.engine]

UNINSTALLED = """require ABSPATH . 'wp-admin/includes/plugin.php'; require ABSPATH . 'wp-admin/includes/file.php';
deactivate_plugins('pagewire/pagewire.php'); if (delete_plugins(array('pagewire/pagewire.php')) !== true) { exit(1); }
"""
QUESTION = "How much is a ferry ticket for adults?"


async def test_from_the_zip_to_a_save_that_shows_in_the_chat(
    browser: Browser, wordpress: WordPress, engine: Servers, tmp_path: Path
) -> None:
    town = joined(wordpress, engine, tmp_path)
    wordpress.php(UNINSTALLED)
    with town.started() as address:
        admin = await logged_in(browser, wordpress)
        await install(admin, wordpress, pack("wordpress", tmp_path))
        await connect(admin, town, address)

        editor = await wrote(admin, wordpress, "Lake ferry", "A ferry ticket costs 4 euros for adults.")
        await agreed(town)
        [(link, _)] = town.public().values()
        visitor = await browser.open(link)
        types: list[str] = []
        visitor.on("response", lambda response: types.append(response.headers.get("content-type", "")))
        await visitor.get_by_role("button", name="Ask a question").click()
        assert "4 euros" in await asked(visitor)
        await visitor.get_by_role("button", name="1 Lake ferry").click()
        assert (await visitor.locator(".sources a").first.get_attribute("href") or "").startswith(f"{link}#:~:text=")
        assert any(each.startswith("text/event-stream") for each in types)

        await edited(editor, "A ferry ticket costs 5 euros for adults.")
        await agreed(town)
        answer = await asked(visitor)
        assert "5 euros" in answer
        assert "4 euros" not in answer

        await trashed(admin, wordpress, "Lake ferry")
        await agreed(town)
        assert "euros" not in await asked(visitor)
        await pictured(admin, wordpress, Path(os.environ.get("PICTURES") or tmp_path))


async def logged_in(browser: Browser, wordpress: WordPress) -> Page:
    page = await browser.open(f"{wordpress.url}/wp-login.php", height=1000)
    await page.get_by_label("Username or Email Address").fill(USER)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Log In").click()
    await page.locator("#wpadminbar").wait_for()
    return page


async def install(admin: Page, wordpress: WordPress, packed: Path) -> None:
    await admin.goto(f"{wordpress.url}/wp-admin/plugin-install.php?tab=upload")
    await admin.locator("input[name=pluginzip]").set_input_files(packed)
    await admin.get_by_role("button", name="Install Now").click()
    await admin.get_by_role("link", name="Activate Plugin").click()
    await admin.get_by_text("Plugin activated.").wait_for()


async def connect(admin: Page, town: Town, address: str) -> None:
    await admin.goto(f"{town.wordpress.url}/wp-admin/options-general.php?page=pagewire")
    await admin.get_by_label("Address of Pagewire").fill(address)
    await admin.get_by_label("Site", exact=True).fill(town.instance.site)
    await admin.get_by_label("Connector").fill("wordpress")
    await admin.get_by_label("Secret").fill(SECRET)
    await admin.get_by_label("Show the chat on every page").check()
    await admin.get_by_role("button", name="Save Changes").click()
    await admin.get_by_text("Settings saved.").wait_for()
    await admin.get_by_role("button", name="Test connection").click()
    await admin.get_by_text("The connection works: Pagewire took a signed test delivery").wait_for()
    await admin.get_by_role("button", name="Send everything").click()
    await admin.get_by_text("are being sent. Saves go first").wait_for()


async def wrote(admin: Page, wordpress: WordPress, title: str, says: str) -> Page:
    """A post by the block editor, published; the editor's page."""
    editor = await admin.context.new_page()
    await editor.goto(f"{wordpress.url}/wp-admin/post-new.php")
    close = editor.get_by_role("button", name="Close dialog")  # the editor welcomes who is here for the first time
    await close.click()
    await editor.get_by_role("textbox", name="Add title").fill(title)
    await editor.keyboard.press("Enter")
    await editor.keyboard.type(f"{MARK} {says}")
    await editor.get_by_role("button", name="Publish", exact=True).click()
    await editor.get_by_role("region", name="Editor publish").get_by_role("button", name="Publish", exact=True).click()
    await editor.get_by_text("is now live.").first.wait_for()
    await editor.get_by_role("button", name="Close panel").click()
    return editor


async def edited(editor: Page, says: str) -> None:
    paragraph = editor.get_by_role("document", name="Paragraph block")
    await paragraph.click()
    await editor.keyboard.press("Control+A")
    await editor.keyboard.type(f"{MARK} {says}")
    await editor.get_by_role("button", name="Update", exact=True).click()
    await editor.get_by_text("Post updated.").first.wait_for()


async def trashed(admin: Page, wordpress: WordPress, title: str) -> None:
    await admin.goto(f"{wordpress.url}/wp-admin/edit.php")
    await admin.get_by_role("link", name=f"“{title}” (Edit)").hover()
    await admin.get_by_role("link", name=f"Move “{title}” to the Trash").click()
    await admin.get_by_text("1 post moved to the Trash.").wait_for()


async def agreed(town: Town) -> None:
    await asyncio.to_thread(town.agree)


async def asked(visitor: Page) -> str:
    """The whole answer to the question, as the visitor reads it."""
    await visitor.get_by_role("textbox", name="Your question").fill(QUESTION)
    await visitor.keyboard.press("Enter")
    last = visitor.locator(".turn").last
    await last.locator(".actions button").first.wait_for()
    return await last.inner_text()


async def pictured(admin: Page, wordpress: WordPress, folder: Path) -> None:
    """The settings as docs/howto/wordpress.md shows them, with the names it uses."""
    await admin.goto(f"{wordpress.url}/wp-admin/options-general.php?page=pagewire")
    await admin.get_by_label("Address of Pagewire").fill("https://pagewire.example.org")
    await admin.get_by_label("Site", exact=True).fill("town")
    await admin.screenshot(path=folder / "wordpress-settings.png", full_page=True)
