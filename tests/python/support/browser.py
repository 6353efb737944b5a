"""Debian's Chromium, driven by Playwright: one browser for a module's tests, a fresh page for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
LIMIT_MS = 60_000

expect.set_options(timeout=LIMIT_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Starts the browser, without its sandbox if the user is root."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    assert program, "Chromium is needed: apt-get install chromium"
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments, timeout=LIMIT_MS)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page, and everything that it did and shouldn't have done."""

    def __init__(self, browser: Browser, *, width: int = 1280, dark: bool = False) -> None:
        self.page: Page = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        self.page.set_default_timeout(LIMIT_MS)
        self.troubles: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", self._dialog)

    def _dialog(self, dialog: object) -> None:
        self.troubles.append(f"dialog: {dialog}")
        dialog.dismiss()  # type: ignore[attr-defined]

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.page.close()

    def open(self, url: str) -> Page:
        """Opens a page and waits until it shows something."""
        self.page.goto(url)
        self.page.wait_for_selector(".view")
        return self.page
