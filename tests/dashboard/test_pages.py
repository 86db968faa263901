"""The shell of the dashboard and its files: what a browser gets, and what it is told never to run."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from edgequeues.dashboard.files import MEDIA, load
from tests.http.asgi import Client
from tests.http.fronted import only

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
INLINE = re.compile(rb"<script(?![^>]*\bsrc=)|<style\b|\sstyle=|\son\w+=|javascript:|https?://")


@pytest.mark.parametrize("path", ["/ui", "/ui/"])
async def test_the_shell_is_served_and_all_it_names_is_there(client: Client, path: str) -> None:
    shell = await client.get(path)
    assert (shell.status, shell.headers["content-type"]) == (200, "text/html; charset=utf-8")
    named = re.findall(r'(?:href|src)="(/[^"]*)"', shell.body.decode())
    assert {name.rpartition(".")[2] for name in named} >= {"css", "js"}
    for name in named:
        assert (await client.get(name)).status == 200, name


async def test_what_a_browser_may_run_is_said_with_every_answer(client: Client) -> None:
    for path in ("/", "/ui", "/ui/static/app.css", "/ui/static/no-such-file.js"):
        headers = (await client.get(path)).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"


async def test_the_pages_hold_nothing_that_the_policy_forbids(client: Client) -> None:
    for path in ("/", "/ui"):
        assert not INLINE.search((await client.get(path)).body), path


def test_every_file_of_the_folder_has_a_known_kind() -> None:
    folder = files("edgequeues.dashboard") / "static"
    there = [one.name for one in folder.iterdir() if one.is_file()]
    unknown = [name for name in there if not name.endswith(tuple(MEDIA))]
    assert there
    assert not unknown
    assert {file.media for name, file in load().items() if name.endswith(".js")} == {
        "text/javascript; charset=utf-8"
    }


async def test_a_file_that_a_browser_has_is_not_sent_again(client: Client) -> None:
    first = await client.get("/ui/static/app.css")
    assert (first.status, first.headers["cache-control"]) == (200, "no-cache")
    again = await client.get("/ui/static/app.css", (b"if-none-match", first.headers["etag"].encode()))
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])
    other = await client.get("/ui/static/app.css", (b"if-none-match", b'"of another version"'))
    assert (other.status, other.body) == (200, first.body)


@pytest.mark.parametrize(
    "name",
    [
        "no-such-file.js",
        "../__init__.py",
        "..%2f__init__.py",
        "%2e%2e/views.py",
        "/etc/passwd",
        "app.css/",
        "app.css%00",
        "pages",
        "",
    ],
)
async def test_no_path_leads_out_of_the_folder(client: Client, name: str) -> None:
    reply = await client.get(f"/ui/static/{name}")
    assert (reply.status, reply.code) == (404, "not_found")


@only("lane", "hypercorn", why="it is the front that leaves the body out")
async def test_a_head_is_answered_without_a_body_and_a_post_is_refused(client: Client) -> None:
    reply = await client.ask("HEAD", "/ui")
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.headers["content-length"]) == len((await client.get("/ui")).body)
    reply = await client.ask("POST", "/ui", b"{}")
    assert (reply.status, reply.code) == (405, "method_not_allowed")


async def test_a_page_of_another_site_gets_nothing_of_it(client: Client) -> None:
    reply = await client.get("/ui", (b"origin", b"https://example.org"))
    assert (reply.status, reply.code) == (403, "forbidden_origin")
    reply = await client.ask("GET", "/ui", headers=[(b"host", b"example.org")], host=False)
    assert (reply.status, reply.code) == (421, "misdirected")
