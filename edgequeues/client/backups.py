"""The verbs about backups, a part of `Client`: whole files of spaces, taken and put back while the server runs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from hashlib import sha256
from urllib.parse import quote

from msgspec import Struct

from edgequeues.client import answers
from edgequeues.client.errors import BadAnswer
from edgequeues.client.http import Transport
from edgequeues.client.wire import Call, Pairs, pairs
from edgequeues.core.dxn import Tag

COPY_PATIENCE_S = 3_600.0  # the server copies, or looks at, the whole file before it says anything
MEDIA = ("content-type", "application/vnd.sqlite3")


class SpecHeld(Struct, frozen=True):
    """A spec of the space. why: for what reason it does not hold in what was put in place; None: it does."""

    app: str
    why: str | None


class Restored(Struct, frozen=True):
    """What was put in place. bytes, sha256: of the file, the latter in hexadecimal. replaced: was another there?"""

    space: str
    bytes: int
    sha256: str
    replaced: bool
    specs: list[SpecHeld] = []


class BackupVerbs:
    """`tag="trace"` means the file of a space's traces, which is another one."""

    _transport: Transport

    def backup(self, space: str, *, tag: Tag = "data") -> AsyncGenerator[bytes, None]:
        """Yield the file of a space, an SQLite database, as it is at one instant. Write it to disk piece by piece.

        It is whole only once the iteration ends by itself: then its SHA-256 was as the server said. Raises Refused
        (`queue_not_found`), Unreachable where it breaks off, BadAnswer where the digest does not fit: begin anew.
        """
        return _pieces(self._transport, _path(space), tag)

    def backup_control(self) -> AsyncGenerator[bytes, None]:
        """Yield the file of tokens, without their secrets, and specs. As `backup`."""
        return _pieces(self._transport, "/admin/control/backup", "data")

    async def restore(
        self,
        space: str,
        pieces: bytes | bytearray | memoryview | Iterable[bytes] | AsyncIterable[bytes],
        *,
        tag: Tag = "data",
        sha256: str | None = None,
        replace: bool = False,
    ) -> Restored:
        """Put a file that `backup` gave in the place of a space, this one or another. Never repeated by itself.

        sha256: of all `pieces` in hexadecimal, which the server then compares. replace: may it take the place of a
        space that is there, with all that is in it? Raises Refused: `space_exists`, `invalid_backup` and why; then,
        and after Unavailable, nothing is changed. After Unreachable or another ServerError look at the space: the
        file is in its place, whole, or not at all. Raises ValueError for a digest that is none.
        """
        headers = (MEDIA,) if sha256 is None else (MEDIA, ("repr-digest", _digest(_parsed(sha256))))
        query = _query(tag, replace=replace)
        call = Call("PUT", _path(space), query=query, headers=headers, patience_s=COPY_PATIENCE_S)
        answer = await self._transport.send(call, _Sent(pieces))
        return answers.decoded(answer, Restored, statuses=(200, 201))


class _Sent:
    """The caller's pieces as the body of a request."""

    def __init__(
        self, pieces: bytes | bytearray | memoryview | Iterable[bytes] | AsyncIterable[bytes]
    ) -> None:
        self._pieces: Iterable[bytes] | AsyncIterable[bytes]
        if isinstance(pieces, bytes | bytearray | memoryview):
            self._pieces = [bytes(pieces)]
        else:
            self._pieces = pieces

    async def chunks(self) -> AsyncIterator[bytes]:
        if isinstance(self._pieces, AsyncIterable):
            async for piece in self._pieces:
                yield piece
        else:
            for piece in self._pieces:
                yield piece

    def repeatable(self) -> bool:
        return False


async def _pieces(transport: Transport, path: str, tag: Tag) -> AsyncGenerator[bytes, None]:
    call = Call("GET", path, query=_query(tag), repeatable=True)
    stream = await transport.repeated(
        lambda: transport.open_stream(call, read_s=COPY_PATIENCE_S), lambda: True
    )
    stated, digest = stream.headers.get("repr-digest"), sha256()
    try:
        while (piece := await stream.receive()) is not None:
            digest.update(piece)
            yield piece
    finally:
        await stream.aclose()
    if stated != _digest(digest.digest()):
        raise BadAnswer(f"what came has the digest {_digest(digest.digest())}, not {stated}: fetch it again")


def _query(tag: Tag, *, replace: bool = False) -> Pairs:
    return pairs(tag=None if tag == "data" else tag, replace="true" if replace else None)


def _parsed(sha256: str) -> bytes:
    try:
        digest = bytes.fromhex(sha256)
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise ValueError(f"{sha256!r} is no SHA-256: write 64 hexadecimal digits")
    return digest


def _digest(digest: bytes) -> str:
    """As the header `Repr-Digest` has it: RFC 9530."""
    return f"sha-256=:{b64encode(digest).decode()}:"


def _path(space: str) -> str:
    return f"/admin/spaces/{quote(space, safe='')}/backup"
