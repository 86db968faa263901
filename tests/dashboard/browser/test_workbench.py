"""Dead letters, lines and sessions are mended in the browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from .site import Site

pytestmark = pytest.mark.slow

T = "?tenant_id=demo"


def opened(page: Page, queue: str, part: str, asked: str = "") -> None:
    """Go to a page of a queue, and wait until it is drawn."""
    page.goto(f"/ui#/spaces/demo/queues/{queue}/{part}{asked}")
    expect(page.locator("main h1")).to_contain_text(queue)


def letters(site: Site, queue: str, *data: object, error: str = "out of paper") -> list[str]:
    """Push, have it fail for good, and return the ids of the dead letters."""
    site.push(queue, *({"data": one} for one in data))
    while site.fail(queue, error=error):
        pass
    return [one["id"] for one in site.letters(queue)]


def rows(page: Page) -> Locator:
    return page.locator("main tbody tr")


def test_a_dead_letter_is_tried_edited_and_replayed(page: Page, site: Site) -> None:
    big = 12345678901234567890
    [letter] = letters(site, "orders", {"order": "o1", "lines": [], "big": big})
    opened(page, "orders", "dead-letters")
    page.get_by_role("link", name=letter).click()
    expect(page.locator("main")).to_contain_text("out of paper")
    data = page.get_by_label("Message to send")
    assert str(big) in data.input_value()

    page.get_by_text("Try another mapping").click()
    page.get_by_label("map_to").fill("command Order.Create { first: lines[0].sku }")
    page.get_by_role("button", name="Dry-run").click()
    expect(page.locator("main")).to_contain_text("missing after lines")
    data.fill(data.input_value().replace('"lines": []', '"lines": [{"sku": "s7"}]'))
    page.get_by_role("button", name="Dry-run").click()
    expect(page.locator("main")).to_contain_text("It would become command Order.Create")
    assert site.letters("orders")[0]["id"] == letter  # trying does nothing

    data.fill("{")
    replay = page.get_by_role("button", name="Replay with these changes")
    expect(replay).to_be_disabled()
    expect(page.get_by_role("alert")).to_contain_text("This is no JSON")
    data.fill(f'{{"order": "o2", "big": {big}}}')
    replay.click()
    expect(page.get_by_role("status").last).to_contain_text("Replayed as")
    expect(page.get_by_role("button", name="Replay as it was")).to_be_disabled()
    [made] = site.peek("orders")
    assert made["data"] == {"order": "o2", "big": big}
    assert site.ask("GET", f"/admin/queues/orders/dlq/{letter}{T}")["letter"]["newMessageId"] == made["id"]


def test_letters_are_found_by_what_failed_and_by_an_expression(page: Page, site: Site) -> None:
    letters(site, "mixed", {"n": 1}, {"n": 2}, error="no paper")
    letters(site, "mixed", {"n": 3}, error="no ink")
    opened(page, "mixed", "dead-letters")
    expect(rows(page)).to_have_count(3)
    page.get_by_label("Error has").fill("paper")
    page.get_by_label("Expression").fill("n > 1")
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text('{"n":2}')
    page.reload()  # the address holds the filter
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_label("Error has")).to_have_value("paper")
    page.get_by_label("Expression").fill("n >")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("alert")).to_contain_text("line 1")
    page.get_by_role("button", name="Clear").click()
    expect(rows(page)).to_have_count(3)
    page.get_by_text("More of the filter").click()
    page.get_by_label("Failed until").fill("2001-01-01T00:00:00")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("main")).to_contain_text("No dead letter is like that.")


def test_many_are_replayed_in_parts_after_a_preview(page: Page, site: Site) -> None:
    letters(site, "many", *({"n": n} for n in range(250)))
    opened(page, "many", "dead-letters")
    expect(rows(page)).to_have_count(50)
    page.get_by_role("button", name="Replay all …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("250 letters not replayed yet. The first 10:")
    expect(dialog.locator("li")).to_have_count(10)
    assert site.peek("many") == []
    with page.expect_request(re.compile("/dlq/replay")) as asked:
        dialog.get_by_role("button", name="Replay 250 letters").click()
    assert asked.value.post_data_json == {"all": True, "limit": 100}
    expect(dialog).to_contain_text("250 letters replayed.")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    assert len(site.peek("many")) == 250
    assert site.letters("many", "&replayed=false") == []


def test_a_replay_in_parts_is_stopped(page: Page, site: Site) -> None:
    letters(site, "stopped", *({"n": n} for n in range(250)))
    opened(page, "stopped", "dead-letters")
    page.get_by_role("button", name="Replay all …").click()
    dialog = page.get_by_role("dialog")

    def stopping(route: Route) -> None:
        dialog.get_by_role("button", name="Stop").dispatch_event("click")
        route.continue_()

    page.route(re.compile("/dlq/replay"), stopping)
    dialog.get_by_role("button", name="Replay 250 letters").click()
    expect(dialog).to_contain_text("Stopped. 100 letters replayed.")
    assert len(site.letters("stopped", "&replayed=false")) == 150


def test_letters_are_deleted_only_after_the_name_of_the_queue_was_typed(page: Page, site: Site) -> None:
    letters(site, "doomed", *({"n": n} for n in range(3)))
    opened(page, "doomed", "dead-letters")
    page.get_by_role("checkbox").nth(1).check()
    page.get_by_role("button", name="Delete chosen …").click()
    dialog = page.get_by_role("dialog")
    yes = dialog.get_by_role("button", name="Delete for good")
    expect(yes).to_be_disabled()
    dialog.get_by_label("Type the queue's name").fill("doome")
    expect(yes).to_be_disabled()
    dialog.get_by_label("Type the queue's name").fill("doomed")
    yes.click()
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="Delete all …").click()
    dialog.get_by_label("Type the queue's name").fill("doomed")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("No dead letter comes from this queue.")
    assert site.letters("doomed") == []


def focused(page: Page) -> Locator:
    return page.locator(":focus")


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until the focus is there; each place on the way must be seen to have it."""
    for _ in range(80):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", page.evaluate("document.activeElement.outerHTML")
        if target.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError("Tab does not lead there")


def test_the_whole_workbench_is_walked_by_keyboard(page: Page, site: Site) -> None:
    first, second, *_ = letters(site, "keys", {"n": 1}, {"n": 2}, {"n": 3})
    opened(page, "keys", "dead-letters")
    tab_to(page, page.get_by_label("Error has"))
    page.keyboard.type("paper")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("error=paper"))
    expect(rows(page)).to_have_count(3)

    tab_to(page, page.locator(f'[data-id="{first}"]'))
    page.keyboard.press("Space")
    replay = page.get_by_role("button", name="Replay chosen …")
    expect(replay).to_be_enabled()
    page.keyboard.press("Shift+Tab")  # back to what is before the table, and from there to the button
    while not replay.evaluate("one => one === document.activeElement"):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(replay).to_be_focused()
    page.keyboard.press("Enter")
    tab_to(page, dialog.get_by_role("button", name="Replay 1 letter"))
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("1 letter replayed.")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_be_focused()

    tab_to(page, page.get_by_role("link", name=second))
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_contain_text(second)
    tab_to(page, page.get_by_label("Message to send"))
    page.keyboard.press("Control+A")
    page.keyboard.type('{"n": 22}')
    tab_to(page, page.get_by_role("button", name="Replay with these changes"))
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Replayed as")
    assert [one["data"] for one in site.peek("keys")] == [{"n": 1}, {"n": 22}]


def test_a_line_that_is_held_up_goes_on_when_its_first_message_is_retried_or_skipped(
    page: Page, site: Site
) -> None:
    site.ask(
        "PUT", "/v1/dxn:queue:demo:lined/config", {"profile": "work", "consumer": {"ordering": "per_key"}}
    )
    [head, behind] = site.push("lined", {"data": 1, "key": "anna"}, {"data": 2, "key": "anna"})
    site.fail("lined", error="no answer", permanent=False)
    opened(page, "lined", "lines")
    [row] = rows(page).all()
    for text in ("anna", head, "no answer"):
        expect(row).to_contain_text(text)
    expect(row.locator('[data-title="Blocked since"]')).to_contain_text(re.compile("ago|now"))
    row.get_by_role("button", name="Retry now").click()
    expect(page.locator("#status")).to_contain_text("is ready now")
    expect(row).to_contain_text("ready")
    expect(row.get_by_role("button", name="Retry now")).to_have_count(0)
    row.get_by_role("button", name="Skip").click()
    page.get_by_role("dialog").get_by_role("button", name="Skip it").click()
    expect(page.locator("#status")).to_contain_text("its line goes on")
    [why] = site.explain("lined", behind)["consumers"]
    assert why["why"] == "ready"


def test_a_session_is_tried_again_skipped_and_closed(page: Page, site: Site) -> None:
    for number in range(3):
        message = {"session_id": "s1", "origin": "telegram", "content": f"hello {number}"}
        site.ask("POST", "/v1/dxn:queue:demo:chat/inbound", message)
    site.fail("chat", error="the session does not answer", permanent=False)
    opened(page, "chat", "sessions")
    row = rows(page).first
    for text in ("s1", "backoff", "the session does not answer"):
        expect(row).to_contain_text(text)
    expect(row.locator("[data-title=Failures]")).to_have_text("1")
    row.get_by_role("button", name="Retry now").click()
    expect(row).to_contain_text("ready")
    row.get_by_role("button", name="Skip").click()
    page.get_by_role("dialog").get_by_role("button", name="Skip it").click()
    expect(row.locator("[data-title=Waiting]")).to_have_text("2")
    row.get_by_role("button", name="Close").click()
    page.get_by_role("dialog").get_by_role("button", name="Close it").click()
    expect(page.locator("main")).to_contain_text("No session has anything that is not finished.")
