"""What no route table answers: pages for people, signing in to them, and a problem for every other path."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, cast

import msgspec
from msgspec import Struct
from quart import Response, request
from quart_trio import QuartTrio

import edgequeues
from edgequeues.core.errors import (
    InvalidRequest,
    MethodNotAllowed,
    RouteNotFound,
    TooLarge,
    UnsupportedMedia,
)
from edgequeues.dashboard import files
from edgequeues.dashboard.files import SHELL, File
from edgequeues.http import problems
from edgequeues.http.auth import Auth
from edgequeues.http.problems import RequestTimeout
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
LINKS = (
    ("/ui", "the dashboard"),
    ("/v1/spaces", "spaces"),
    ("/healthz", "is it alive"),
    ("/readyz", "does it take work"),
)

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>edgequeues</title>
<meta name="viewport" content="width=device-width">
<h1>edgequeues</h1>
<p>A durable queue server: each space is one SQLite file, and what it has confirmed is on disk.
<code>&lt;q&gt;</code> is the address of a queue, <code>dxn:queue:&lt;space&gt;:&lt;queue&gt;</code>.</p>
<ul>{routes}</ul>
<p>{links}</p>
</html>
"""

# Scripts and styles come as files of this server and from nowhere else; nothing written into a page ever runs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
GUARDS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
PRIVATE = {"cache-control": "no-store"}

LOGIN_BYTES_MAX = 4 * 1024
BODY_S = 10  # that a body may take

Answer = tuple[bytes, int, dict[str, str]]


class Login(Struct, frozen=True, forbid_unknown_fields=True):
    """What a browser sends to sign in."""

    token: str


def make_pages(auth: Auth) -> App:
    """Build the app for people. auth: whom they sign in to."""
    app = QuartTrio(__name__, static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=LOGIN_BYTES_MAX, BODY_TIMEOUT=BODY_S)
    app.url_map.merge_slashes = False  # a path is what it is, or it is none
    routes = "".join(f"<li><code>{escape(route)}</code>: {what}</li>" for route, what in ROUTES)
    links = " &middot; ".join(f'<a href="{path}">{what}</a>' for path, what in LINKS)
    page = PAGE.format(routes=routes, links=links).encode()
    there_are = files.load()

    @app.get("/")
    async def index() -> Answer:
        """Say what this is."""
        return page, 200, {**GUARDS, "content-type": "text/html; charset=utf-8"}

    @app.get("/ui")
    @app.get("/ui/")
    async def shell() -> Answer:
        """The dashboard, whose every page is this one."""
        return _file(there_are[SHELL])

    @app.get("/ui/static/<path:name>")
    async def static(name: str) -> Answer:
        """A script, a style, a picture."""
        found = there_are.get(name)
        if found is None:
            raise RouteNotFound(f"/ui/static/{name}"[:200])
        return _file(found)

    _signing(app, auth)

    @app.errorhandler(Exception)
    async def refuse(error: Exception) -> Answer:
        return _problem(error)

    return cast(App, cast(Any, app))  # the same thing, said by other types


def _signing(app: QuartTrio, auth: Auth) -> None:
    """Add what a browser signs in and out by."""

    @app.post("/ui/login")
    async def login() -> Response:
        """Trade a token for a cookie."""
        if request.mimetype != "application/json":
            raise UnsupportedMedia('a sign-in is JSON: {"token": ...}')
        try:
            given = msgspec.json.decode(await request.get_data(), type=Login)
        except (msgspec.DecodeError, UnicodeDecodeError):  # which may hold the token
            raise InvalidRequest('a sign-in is JSON: {"token": ...}') from None
        cookie = auth.sign_in(_headers(), given.token.strip(), request.remote_addr or "")
        return _nothing({"set-cookie": cookie})

    @app.post("/ui/logout")
    async def logout() -> Response:
        """Sign out."""
        return _nothing({"set-cookie": auth.sign_out(_headers())})

    @app.get("/ui/session")
    async def session() -> Answer:
        """Must somebody sign in here, and who is it?"""
        headers = _headers()
        who = auth.signed_in(headers)
        found = {
            "needs_token": auth.needs_token(headers),
            "signed_in": who is not None,
            "name": "" if who is None else who.name,
            "version": edgequeues.__version__,
        }
        return msgspec.json.encode(found), 200, {**GUARDS, **PRIVATE, "content-type": "application/json"}


def _nothing(headers: dict[str, str]) -> Response:
    """204, of which RFC 9110 wants neither a length nor a type."""
    response = Response(b"", 204, {**GUARDS, **PRIVATE, **headers})
    del response.headers["content-length"], response.headers["content-type"]
    return response


def _headers() -> Mapping[bytes, bytes]:
    return dict(request.scope["headers"])


def _file(found: File) -> Answer:
    """A browser keeps it, and asks each time whether it is still that: a new version shows at once."""
    headers = {**GUARDS, "content-type": found.media, "etag": found.etag, "cache-control": "no-cache"}
    if found.etag in request.headers.get("if-none-match", ""):
        return b"", 304, headers
    return found.content, 200, headers


def _problem(error: Exception) -> Answer:
    """What the framework refuses carries a status as `code`; what does not is ours, or a bug in a page."""
    found, headers = error, {**GUARDS, "content-type": problems.MEDIA.decode()}
    headers.update({name.decode(): value.decode() for name, value in problems.headers(error)})
    status = getattr(error, "code", None)
    if status == 404:
        found = RouteNotFound()
    elif status == 405:
        found = MethodNotAllowed()
        headers["allow"] = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
    elif status == 413:
        found = TooLarge(f"a sign-in has at most {LOGIN_BYTES_MAX} bytes")
    elif status == 408:
        found = RequestTimeout(f"the body took more than {BODY_S} s")
    elif isinstance(status, int) and 400 <= status < 500:
        found = InvalidRequest(str(getattr(error, "description", "")))
    return problems.body(found), problems.report(found, "a page").status, headers
