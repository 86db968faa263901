"""One server and one browser a module, and a window of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from .chromium import WIDE, browsing, watched
from .site import Site, serving

PATIENCE_MS = 20_000  # this machine may be busy


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("site") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with browsing() as running:
        yield running


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A window that has looked at nothing yet. What no page of the dashboard may do fails the test."""
    context = browser.new_context(viewport=WIDE, base_url=site.url)
    context.set_default_timeout(PATIENCE_MS)
    faults = watched(context, site.url)
    yield context.new_page()
    context.close()
    assert faults == []
