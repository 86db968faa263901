"""Webhooks in the browser: where they are, and what becomes of their calls."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .site import Site
from .world import SHOP

pytestmark = pytest.mark.slow


def test_what_becomes_of_calls_shows_while_the_page_is_open(page: Page, site: Site) -> None:
    page.goto("/ui#/hooks")
    expect(page.locator("main")).to_contain_text("No spec of this server declares a webhook.")
    site.ask("PUT", "/v1/spaces/demo/specs/shop", SHOP)
    page.get_by_role("button", name="Look again").click()
    row = page.locator("main tbody tr")
    expect(row).to_contain_text("/hook/demo/payment")
    expect(row.locator('[data-title="Last calls"]')).to_have_text("none yet")
    assert site.call("demo/payment", {"payment": 1}) == 202
    assert site.call("demo/payment", {"payment": 1}) == 202
    assert site.call("demo/payment", {"payment": 2}, signed=False) == 401
    last = row.locator('[data-title="Last calls"] li')
    expect(last).to_have_count(3)  # nobody pressed anything
    for line, (status, outcome) in enumerate((("401", "refused"), ("202", "duplicate"), ("202", "queued"))):
        expect(last.nth(line)).to_contain_text(status)
        expect(last.nth(line)).to_contain_text(outcome)
    expect(row.locator("[data-title=Calls]")).to_contain_text("1 queued")
    row.get_by_role("link", name="payments").click()
    expect(page.locator("main h1")).to_contain_text("payments")
