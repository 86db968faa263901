"""What the pages show of queues that change; that looking changes nothing, and that nothing in a message runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from .site import Site

pytestmark = pytest.mark.slow

HOSTILE = (
    "<img src=x onerror=\"document.body.dataset.pwned='1';alert(1)\"><script>document.body.dataset.pwned='1'</script>"
    '"><svg onload=alert(2)><a href="javascript:alert(3)">x</a>'
)


def test_a_push_shows_on_a_page_that_is_open(page: Page, site: Site) -> None:
    site.push("live", {"data": 1})
    page.goto("/ui#/spaces/demo")
    row = page.get_by_role("row").filter(has_text="live")
    ready = row.locator("[data-title=Ready]")
    expect(ready).to_have_text("1")
    page.evaluate("document.body.dataset.mark = 'not reloaded'")
    site.push("live", {"data": 2}, {"data": 3})
    expect(ready).to_have_text("3")
    assert page.locator("body").get_attribute("data-mark") == "not reloaded"


def test_a_pause_shows_at_once_and_is_what_the_queue_says(page: Page, site: Site) -> None:
    site.push("paused", {"data": 1})
    page.goto("/ui#/spaces/demo")
    page.get_by_role("button", name="Pause paused").click()
    expect(page.get_by_role("button", name="Resume paused")).to_be_visible()
    assert site.ask("GET", "/v1/dxn:queue:demo:paused/config")["paused"] is True


@pytest.mark.parametrize("part", ["", "/messages", "/messages/{id}", "/dead-letters", "/lines", "/sessions"])
def test_looking_leaves_a_message_as_it_was(page: Page, site: Site, part: str) -> None:
    queue = f"looked{part.count('/')}{len(part)}"
    [waits, failed] = site.push(queue, {"data": 1}, {"data": 2, "delay_ms": 3_600_000})
    before = [site.explain(queue, one) for one in (waits, failed)]
    page.goto(f"/ui#/spaces/demo/queues/{queue}{part.format(id=waits)}")
    expect(page.locator("main[aria-busy]")).to_have_count(0)
    expect(page.locator("main h1")).to_be_visible()
    page.wait_for_load_state("load")
    page.reload()
    expect(page.locator("main h1")).to_be_visible()
    after = [site.explain(queue, one) for one in (waits, failed)]
    assert after == before


def test_markup_in_a_message_is_shown_as_text_and_runs_nothing(page: Page, site: Site) -> None:
    """The page's fixture fails the test where a dialog opens, the policy is broken, or another server is asked."""
    site.push(
        "hostile", {"data": {HOSTILE: HOSTILE}, "key": HOSTILE[:200], "type": "x<b>y"}, {"data": HOSTILE}
    )
    site.fail("hostile", error=HOSTILE)
    [one, other] = site.letters("hostile")
    page.goto("/ui#/spaces/demo/queues/hostile/dead-letters")
    expect(page.locator("main tbody tr")).to_have_count(2)
    expect(page.locator("main")).to_contain_text("<img src=x onerror=")
    for letter in (one, other):
        page.goto(f"/ui#/spaces/demo/queues/hostile/dead-letters/{letter['id']}")
        expect(page.locator("main h1")).to_contain_text(letter["id"])
        expect(page.locator("main pre").first).to_contain_text("<script>")
    page.get_by_role("button", name="Dry-run").click()
    expect(page.get_by_label("map_to")).to_be_focused()  # the queue has no mapping of its own
    page.get_by_label("map_to").fill("command Page.Show { text: message.nothing }")
    page.get_by_role("button", name="Dry-run").click()
    expect(page.locator("#status")).to_contain_text("It would")
    page.goto("/ui#/spaces/demo/queues/hostile/dead-letters")
    page.get_by_role("button", name="Replay all …").click()
    expect(page.get_by_role("dialog")).to_contain_text("<img src=x onerror=")
    assert page.locator("main img, main svg[onload], main script, dialog img, dialog script").count() == 0
    assert page.locator("[href^=javascript]").count() == 0
    assert page.locator("body").get_attribute("data-pwned") is None


def test_markup_in_an_address_is_shown_as_text(page: Page, site: Site) -> None:
    page.goto("/ui#/spaces/%3Cimg%20src=x%20onerror=alert(1)%3E/queues/a%3Cscript%3E/dead-letters")
    expect(page.get_by_role("alert").or_(page.locator("main h1")).first).to_be_visible()
    page.goto("/ui#/no/such/page")
    expect(page.locator("main h1")).to_have_text("No such page")
    page.goto("/ui#/spaces/demo/queues/%E0%A4%A/lines")  # no encoding at all
    expect(page.locator("main h1")).to_be_visible()
    assert page.locator("main img, main script").count() == 0


def test_a_server_that_is_gone_is_told_and_asked_again(page: Page, site: Site) -> None:
    site.push("away", {"data": 1})
    site.fail("away", error="no")
    page.goto("/ui#/spaces/demo/queues/away/dead-letters")
    expect(page.locator("main tbody tr")).to_have_count(1)
    page.context.set_offline(True)
    page.get_by_role("link", name="Lines").click()
    expect(page.get_by_role("alert")).to_contain_text("The server did not answer")
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("main h1")).to_have_text("Lines of away")


def test_a_space_is_downloaded_whole(page: Page, site: Site) -> None:
    site.push("jobs", {"data": "kept"}, space="saved")
    page.goto("/ui#/spaces/saved")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download a backup").click()
    download = waiting.value
    assert download.suggested_filename == "saved.db"
    with closing(sqlite3.connect(download.path())) as db:
        assert db.execute("SELECT data FROM queue_entries").fetchall() == [('"kept"',)]


def test_a_filter_that_is_typed_as_its_page_is_left_leads_nowhere(page: Page, site: Site) -> None:
    site.push("jobs", {"data": 1})
    page.goto("/ui#/spaces")
    page.get_by_label("Filter by name").press_sequentially("dem")
    page.get_by_role("link", name="demo", exact=True).click()
    expect(page.locator("main h1")).to_have_text("demo")
    page.wait_for_timeout(400)  # longer than a pause of typing
    assert page.url.endswith("#/spaces/demo")
