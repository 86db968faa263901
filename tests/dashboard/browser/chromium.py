"""Debian's chromium, driven by Playwright: no browser is downloaded, and none looks anywhere but at the server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Request,
    ViewportSize,
    sync_playwright,
)

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
)
MISSING = (
    "The tests of the dashboard drive Chromium, and there is none. Install it with `apt-get install chromium`, "
    "or name another by the variable CHROMIUM=/path/to/chromium."
)
WIDE: ViewportSize = {"width": 1280, "height": 800}


def program() -> str:
    """Where the browser is. Raises FileNotFoundError, which says what to install."""
    found = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    if found is None:
        raise FileNotFoundError(MISSING)
    return found


@contextmanager
def browsing() -> Iterator[Browser]:
    """Run a browser without a window until the block ends."""
    path = program()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def watched(context: BrowserContext, url: str) -> list[str]:
    """Keep what a page must never do: ask another server, run what the policy forbids, open a dialog, fail."""
    faults: list[str] = []

    def asked(one: Request) -> None:
        if not one.url.startswith((url, "data:")):
            faults.append(f"asked {one.url}")

    def opened(one: Dialog) -> None:
        faults.append(f"dialog {one.message}")
        one.dismiss()

    def logged(one: ConsoleMessage) -> None:
        if "Content Security Policy" in one.text:
            faults.append(one.text)

    context.on("request", asked)
    context.on("dialog", opened)
    context.on("console", logged)
    context.on("weberror", lambda one: faults.append(f"threw {one.error}"))
    return faults
