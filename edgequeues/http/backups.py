"""Backups over HTTP: the whole file of a space, as SQLite reads it. docs/protocol/admin.md, Backups."""

from __future__ import annotations

from base64 import b64encode

from edgequeues.core import ids
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import QueueNotFound
from edgequeues.http import params
from edgequeues.http.routes import Request, Response, Route
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by

BACKUP = "/admin/spaces/{space}/backup"
MEDIA = b"application/vnd.sqlite3"


def routes(router: Router) -> list[Route]:
    """What is asked of the file of a space."""

    async def backup(request: Request) -> Response:
        """The file of a space as it is at one instant; the space goes on meanwhile."""
        params.only(request.query, ())
        space = ids.check_space(request.params["space"])
        found = await router.find_shard(Dxn(space, "").shard)
        if found is None:
            raise QueueNotFound(f"space {space}")
        copy = await request.while_connected(lambda: router.copies.take(found.name))
        noted = by(request.caller.who, SpaceShard.backed_up)
        await found.call(noted, copy.bytes, copy.sha256)
        headers = [
            (b"content-length", b"%d" % copy.bytes),
            (b"content-disposition", f'attachment; filename="{space}.db"'.encode()),
            (b"cache-control", b"no-store"),
            (b"repr-digest", digest(copy.sha256)),
            (b"edgequeues-taken", b"%d" % copy.taken_ms),
            (b"x-content-type-options", b"nosniff"),
        ]
        return Response(router.copies.pieces(copy), media=MEDIA, headers=headers, compress=False)

    return [Route("GET", BACKUP, backup, "backup")]


def digest(sha256: str) -> bytes:
    """A SHA-256 in hex as the header `Repr-Digest` has it: RFC 9530."""
    return b"sha-256=:" + b64encode(bytes.fromhex(sha256)) + b":"
