"""Backups over HTTP: whole files, as SQLite reads them, given and taken. docs/protocol/admin.md, Backups."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator
from hashlib import sha256

from msgspec import Struct

from edgequeues.backups import Backups
from edgequeues.control import ControlError
from edgequeues.core import ids
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidRequest
from edgequeues.http import codec, params
from edgequeues.http.problems import NotReady
from edgequeues.http.routes import Request, Response, Route, media
from edgequeues.specs import Renewed

BACKUP = "/admin/spaces/{space}/backup"
CONTROL = "/admin/control/backup"
MEDIA = b"application/vnd.sqlite3"
DIGEST = re.compile(r"(?:^|[\s,])sha-256=:([A-Za-z0-9+/]{43}=):")


class RestoredOut(Struct, frozen=True):
    """What was put in place. bytes, sha256: of what was sent. specs: of the space, each with why it does not hold."""

    space: str
    bytes: int
    sha256: str
    replaced: bool
    specs: list[Renewed]


def routes(backups: Backups) -> list[Route]:
    """What is asked of whole files."""

    async def backup(request: Request) -> Response:
        """The file of a space as it is at one instant; the space goes on meanwhile."""
        params.only(request.query, ("tag",))
        of = _named(request)
        copy = await request.while_connected(lambda: backups.take(of, request.caller.who))
        headers = [
            (b"content-length", b"%d" % copy.bytes),
            *_headers(of.shard, copy.sha256),
            (b"edgequeues-taken", b"%d" % copy.taken_ms),
        ]
        return Response(backups.pieces(copy), media=MEDIA, headers=headers, compress=False)

    async def restore(request: Request) -> Response:
        """Put a backup in the place of a space: 201 there was none, 200 it was replaced."""
        params.only(request.query, ("replace", "tag"))
        to, replace = _named(request), params.flag(request.query, "replace")
        media(request, MEDIA.decode(), "application/octet-stream")
        stated = request.headers.get(b"repr-digest")
        restored = await backups.restore(
            to,
            _pieces(request),
            sha256=None if stated is None else read_digest(stated),
            replace=replace,
            who=request.caller.who,
            stranger=request.caller.stranger,
        )
        placed = restored.placed
        told = RestoredOut(to.space, placed.bytes, placed.sha256, placed.replaced, restored.specs)
        return Response(codec.encode(told), status=200 if placed.replaced else 201)

    async def control(request: Request) -> Response:
        """The file of tokens and specs as it is now. Raises NotReady where somebody writes it for long."""
        params.only(request.query, ())
        try:
            image = await backups.control()
        except ControlError as error:
            raise NotReady(str(error)) from error
        headers = _headers("control", sha256(image).hexdigest())
        return Response(image, media=MEDIA, headers=headers, compress=False)

    return [
        Route("GET", BACKUP, backup, "backup"),
        Route("PUT", BACKUP, restore, "restore"),
        Route("GET", CONTROL, control, "backup"),
    ]


def _named(request: Request) -> Dxn:
    return Dxn(ids.check_space(request.params["space"]), "", tag=params.tag(request.query))


def _headers(name: str, digest: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-disposition", f'attachment; filename="{name}.db"'.encode()),
        (b"cache-control", b"no-store"),
        (b"repr-digest", write_digest(digest)),
        (b"x-content-type-options", b"nosniff"),
    ]


async def _pieces(request: Request) -> AsyncGenerator[bytes, None]:
    while piece := await request.piece():
        yield piece


def read_digest(given: bytes) -> str:
    """The SHA-256 of a header `Repr-Digest`, in hex. Raises InvalidRequest."""
    found = DIGEST.search(given.decode("latin-1"))
    if found is None:
        raise InvalidRequest("repr-digest: write sha-256=:<44 characters of base64>:, or leave it out")
    return b64decode(found[1]).hex()


def write_digest(digest: str) -> bytes:
    """A SHA-256 in hex as the header `Repr-Digest` has it: RFC 9530."""
    return b"sha-256=:" + b64encode(bytes.fromhex(digest)) + b":"
