"""What no route table answers: pages for people, and a problem for every other path."""

from __future__ import annotations

from html import escape
from typing import Any, cast

from quart_trio import QuartTrio

from edgequeues.core.errors import InvalidRequest, MethodNotAllowed, RouteNotFound
from edgequeues.http import problems
from edgequeues.http.routes import App

ROUTES = (
    ("POST /v1/<q>", "append entries"),
    ("GET /v1/<q>", "read a range, or wait for it"),
    ("GET /v1/<q>/subscribe", "follow as server-sent events"),
    ("DELETE /v1/<q>", "delete by ids or by cursors"),
    ("GET, PUT, PATCH /v1/<q>/config", "settings"),
    ("GET /v1/<q>/stats", "counts"),
    ("/spaces/<tag>/<space>/queue/<queue>", "the same queues for DXOS clients"),
)
LINKS = (("/v1/spaces", "spaces"), ("/healthz", "is it alive"), ("/readyz", "does it take work"))

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>edgequeues</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:44em;margin:3em auto;padding:0 1em}}</style>
<h1>edgequeues</h1>
<p>A durable queue server: each space is one SQLite file, and what it has confirmed is on disk.
<code>&lt;q&gt;</code> is the address of a queue, <code>dxn:queue:&lt;space&gt;:&lt;queue&gt;</code>.</p>
<ul>{routes}</ul>
<p>{links}</p>
</html>
"""


Answer = tuple[bytes, int, dict[str, str]]


def make_pages() -> App:
    """Build the app for people."""
    app = QuartTrio(__name__, static_folder=None)
    routes = "".join(f"<li><code>{escape(route)}</code>: {what}</li>" for route, what in ROUTES)
    links = " &middot; ".join(f'<a href="{path}">{what}</a>' for path, what in LINKS)
    page = PAGE.format(routes=routes, links=links).encode()

    @app.get("/")
    async def index() -> Answer:
        """Say what this is."""
        return page, 200, {"content-type": "text/html; charset=utf-8"}

    @app.errorhandler(Exception)
    async def refuse(error: Exception) -> Answer:
        return _problem(error)

    return cast(App, cast(Any, app))  # the same thing, said by other types


def _problem(error: Exception) -> Answer:
    """What the framework refuses carries a status as `code`; what does not is a bug in a page."""
    found, headers = error, {"content-type": problems.MEDIA.decode()}
    status = getattr(error, "code", None)
    if status == 404:
        found = RouteNotFound()
    elif status == 405:
        found = MethodNotAllowed()
        headers["allow"] = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
    elif isinstance(status, int) and 400 <= status < 500:
        found = InvalidRequest(str(getattr(error, "description", "")))
    return problems.body(found), problems.report(found, "a page").status, headers
