"""Signing in and out with a token, as a person at a browser does."""

from __future__ import annotations

import re
import time
import urllib.error

import pytest
from playwright.sync_api import Page, expect

from .site import Site

pytestmark = pytest.mark.slow


def heeds(site: Site, token: str) -> bool:
    """Does the server ask for a token by now, and know this one?"""
    if not site.ask("GET", "/ui/session")["needs_token"]:
        return False
    try:
        site.ask("GET", "/v1/spaces", token=token)
    except urllib.error.HTTPError:
        return False
    return True


def made(site: Site, name: str, *more: str) -> str:
    """Make a token, and return it once the server heeds it: it looks once a second whether there are more."""
    token = site.token("create", name, *more)
    deadline = time.monotonic() + 30
    while not heeds(site, token):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return token


def enter(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_token_leads_to_the_page_that_was_asked_for_and_back_out(page: Page, site: Site) -> None:
    token = made(site, "anna")
    site.ask("POST", "/v1/dxn:queue:demo:jobs/push", {"entries": [{"data": 1}]}, token=token)
    page.goto("/ui#/spaces/demo")
    expect(page.locator("main h1")).to_have_text("Sign in")
    expect(page.locator("main")).not_to_contain_text("jobs")

    enter(page, "eq_no_such_token")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Token")).to_be_focused()
    enter(page, token)
    expect(page.get_by_role("link", name="jobs")).to_be_visible()
    expect(page.locator("#who")).to_contain_text("anna")
    kept = page.context.cookies()
    assert [(one["httpOnly"], one["sameSite"], one["path"]) for one in kept] == [(True, "Strict", "/")]
    stored = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
    )
    assert token not in stored
    assert token not in page.content()

    page.reload()
    expect(page.get_by_role("link", name="jobs")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("main h1")).to_have_text("Sign in")
    assert page.context.cookies() == []
    page.reload()
    expect(page.locator("main h1")).to_have_text("Sign in")


def test_one_whose_token_is_revoked_is_put_out(page: Page, site: Site) -> None:
    token = made(site, "bert")
    site.ask("POST", "/v1/dxn:queue:demo:jobs/push", {"entries": [{"data": 1}]}, token=token)
    page.goto("/ui#/spaces/demo")
    enter(page, token)
    expect(page.get_by_role("button", name="Pause jobs")).to_be_visible()
    site.token("revoke", "bert")
    # The stream ends, and is refused when the page connects again; nobody has to press anything.
    expect(page.locator("main h1")).to_have_text("Sign in", timeout=45_000)


def test_a_token_that_may_only_read_is_told_what_it_may_not(page: Page, site: Site) -> None:
    root = made(site, "root")
    site.ask("POST", "/v1/dxn:queue:demo:jobs/push", {"entries": [{"data": 1}]}, token=root)
    reader = made(site, "reader", "--verbs", "read,list")
    page.goto("/ui#/spaces/demo")
    enter(page, reader)
    page.get_by_role("button", name="Pause jobs").click()
    expect(page.locator("#status")).to_contain_text(re.compile("Not done"))
    assert site.ask("GET", "/v1/dxn:queue:demo:jobs/config", token=root)["paused"] is False
