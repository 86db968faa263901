"""What holds on every page: whom it shuts out (axe-core), how it fits a phone, and that it asks this server alone."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, ViewportSize, expect

from .chromium import watched
from .conftest import PATIENCE_MS
from .site import Site
from .world import PAGES, World, filled

pytestmark = pytest.mark.slow

PHONE: ViewportSize = {"width": 360, "height": 740}
FAULTS = """() => [...document.querySelectorAll('main *')]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(one).clipPath === 'none')
  .slice(0, 5).map((one) => one.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def world(site: Site) -> World:
    return filled(site)


def drawn(page: Page, address: str) -> None:
    page.goto(f"/ui{address}")
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main[aria-busy]")).to_have_count(0)
    assert page.locator("main h1").inner_text() not in ("No such page", "This page has a fault")


def serious(found: dict[str, Any]) -> list[str]:
    """Faults of axe that shut somebody out."""
    return [
        f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_shuts_anybody_out(browser: Browser, site: Site, world: World, scheme: Any) -> None:
    context = browser.new_context(
        base_url=site.url, color_scheme=scheme, viewport={"width": 1280, "height": 900}
    )
    context.set_default_timeout(PATIENCE_MS)
    faults = watched(context, site.url)
    page = context.new_page()
    found: list[str] = []
    for address in PAGES:
        drawn(page, address.format(**world))
        found += [f"{address} {fault}" for fault in serious(Axe().run(page).response)]
    drawn(page, "#/spaces/demo/queues/orders/dead-letters")
    for name in ("Replay all …", "Delete all …"):
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        found += [f"{name} {fault}" for fault in serious(Axe().run(page).response)]
        page.keyboard.press("Escape")
    context.close()
    assert found == []
    assert faults == []


def test_axe_finds_what_it_is_for(page: Page, world: World) -> None:
    drawn(page, "#/spaces")
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert any(one.startswith("button-name") for one in serious(Axe().run(page).response))


def test_no_page_is_wider_than_a_phone(browser: Browser, site: Site, world: World) -> None:
    context = browser.new_context(base_url=site.url, viewport=PHONE, is_mobile=True, has_touch=True)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    wide: dict[str, list[str]] = {}
    for address in PAGES:
        drawn(page, address.format(**world))
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide[address] = page.evaluate(FAULTS)
    context.close()
    assert wide == {}
