"""Chromium for the tests of pages. A page that complains, or asks for anything but its own files, fails its test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; in CI a missing one is a failure, elsewhere a skip."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("There is no chromium, or no playwright: apt-get install chromium; pip install playwright.")
        pytest.skip("needs chromium and playwright")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page and afterwards checks that nothing was complained about and nothing was asked for.

    A page may ask for what lies below `folder`; without one it may ask for nothing but itself.
    """
    said: list[str] = []
    contexts = []

    def opened(path: Path, folder: Path | None = None, **options: Any) -> Any:
        context = browser.new_context(
            **{"viewport": {"width": 1100, "height": 900}, "accept_downloads": True, **options}
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        allowed = ("data:", "blob:", path.as_uri() if folder is None else f"{folder.as_uri()}/")
        page.on("request", lambda r: None if r.url.startswith(allowed) else said.append(f"request: {r.url}"))
        page.goto(path.as_uri())
        settled(page)
        page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []


def settled(page: Any) -> None:
    page.wait_for_selector("body[data-busy=false]", timeout=60_000)
