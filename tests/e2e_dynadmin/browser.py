"""The browser, Debian's Chromium, installed if it is missing, and a user's actions on the page."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AXE = Path(".dynamo/page-tools/node_modules/axe-core/axe.min.js")
#: The browser's message about answers that the page expects to be refused now and then.
EXPECTED = "Failed to load resource: the server responded with a status of"


def chromium() -> str:
    """The path of a Chromium. On Debian, as root, it is installed if missing. SystemExit if that fails."""
    for name in NAMES:
        if program := shutil.which(name):
            return program
    if shutil.which("apt-get") and os.geteuid() == 0:
        for command in (
            ["apt-get", "update", "-q"],
            ["apt-get", "install", "-yq", "--no-install-recommends", NAMES[0]],
        ):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
        if program := shutil.which(NAMES[0]):
            return program
    raise SystemExit("a Chromium is needed; on Debian and Ubuntu: apt install chromium")


@asynccontextmanager
async def opened() -> AsyncIterator[Browser]:
    """A headless browser."""
    # As root Chromium has no sandbox of its own; here it only opens pages of this project.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=arguments)
        try:
            yield browser
        finally:
            await browser.close()


class Person:
    """A user at a page of the browser; records every request to another origin, and every error of the console."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.foreign: list[str] = []
        self.errors: list[str] = []
        page.set_default_timeout(60_000)
        page.on("request", lambda each: None if each.url.startswith((url, "data:")) else self.foreign.append(each.url))
        page.on("pageerror", lambda each: self.errors.append(str(each)))
        page.on("console", lambda each: self._console(each.type, each.text))

    def _console(self, kind: str, text: str) -> None:
        if kind == "error" and not text.startswith(EXPECTED) and "net::ERR" not in text:
            self.errors.append(text)

    async def sign_in(self, token: str) -> None:
        """Open the page and sign in."""
        await self.page.goto(self.url)
        await self.page.get_by_label("Token").fill(token)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.wait_for_selector(".shell")

    async def go(self, place: str) -> None:
        """Open a view by its address."""
        await self.page.evaluate("place => { location.hash = place }", place)
        await self.page.wait_for_selector("main h1")

    async def give(self, pointer: str, value: str | bool) -> None:
        """Fill in a field of the form, whatever kind of control it has."""
        field = self.page.locator(f'[name="{pointer}"]')
        details = self.page.locator("details", has=field)
        if await details.count() and not await details.first.get_attribute("open") and not await field.is_visible():
            await details.first.locator("summary").first.click()
        if isinstance(value, bool):
            await field.set_checked(value)
        elif await field.evaluate("each => each.tagName") == "SELECT":
            await field.select_option(value)
        else:
            await field.fill(value)

    async def cut_tables(self) -> list[str]:
        """Tables that exceed their card."""
        result: list[str] = await self.page.evaluate(
            "() => [...document.querySelectorAll('.card.flush, .scroll')].filter(each => each.scrollWidth > each.clientWidth)"
            ".map(each => `cut: ${each.querySelector('caption')?.textContent}`)"
        )
        return result

    async def axe(self) -> list[str]:
        """axe-core's findings in the view."""
        if not await self.page.evaluate("() => 'axe' in window"):
            await self.page.evaluate(await asyncio.to_thread(AXE.read_text))
        # Wait until transitions of colours are over.
        await self.page.evaluate("() => Promise.allSettled(document.getAnimations().map(each => each.finished))")
        result: Any = await self.page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
        return [
            f"{each['id']}: {each['nodes'][0]['html'][:160]} {each['nodes'][0].get('failureSummary', '')[:200]}"
            for each in result["violations"]
        ]
