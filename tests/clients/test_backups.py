"""Backups with the client: whole files over a real socket, on trio, on asyncio, and with the client that blocks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from hashlib import sha256

import pytest

from edgequeues.client import Client, Refused

from .ways import Run

LARGE = "x" * 100_000


async def whole(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


def in_pieces(content: bytes) -> Iterable[bytes]:
    return (content[at : at + 50_000] for at in range(0, len(content), 50_000))


def test_a_space_is_taken_along_and_put_back(run: Run, space: str, q: str) -> None:
    async def test(client: Client) -> None:
        await client.append(q, [LARGE, "kept"])
        backup = await whole(client.backup(space))
        await client.append(q, ["lost"])
        digest = sha256(backup).hexdigest()
        restored = await client.restore(space, in_pieces(backup), sha256=digest, replace=True)
        assert (restored.replaced, restored.bytes, restored.sha256) == (True, len(backup), digest)
        assert [entry.data async for entry in client.iterate(q)] == [LARGE, "kept"]
        other = await client.restore(f"{space}b", backup)
        assert (other.space, other.replaced, other.specs) == (f"{space}b", False, [])
        assert [entry.data async for entry in client.iterate(f"dxn:queue:{space}b:q")] == [LARGE, "kept"]

    run(test)


def test_what_is_refused_is_said_even_where_much_is_sent(run: Run, space: str, q: str) -> None:
    """The server answers before it has read all, and what it says must not be lost with the rest."""

    async def test(client: Client) -> None:
        await client.append(q, [LARGE] * 100)
        backup = await whole(client.backup(space))
        with pytest.raises(Refused) as refused:
            await client.restore(space, in_pieces(backup))
        assert refused.value.code == "space_exists"
        with pytest.raises(Refused) as refused:
            await client.restore(space, in_pieces(backup[:-100]), replace=True)
        assert refused.value.code == "invalid_backup"
        with pytest.raises(Refused) as refused:
            await client.restore(space, in_pieces(backup), sha256="00" * 32, replace=True)
        assert refused.value.code == "invalid_backup"
        with pytest.raises(Refused) as refused:
            await whole(client.backup("nosuchspace"))
        assert refused.value.code == "queue_not_found"
        assert len((await client.read(q, limit=1_000)).entries) == 100

    run(test)


def test_the_control_file_comes_whole(run: Run) -> None:
    async def test(client: Client) -> None:
        assert (await whole(client.backup_control())).startswith(b"SQLite format 3\0")

    run(test)
