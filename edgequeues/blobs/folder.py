"""Blobs in a folder: on disk before they count, and nowhere but in that folder.

obstore syncs nothing. So bytes are written aside, synced, and only then given their name: after a power cut there
is the whole blob or none. A file's name ends in `@`, which no folder's does, so that `a` and `a/b` can both be
objects.
"""

from __future__ import annotations

import errno
import itertools
import shutil
from pathlib import Path

import obstore
from obstore.store import LocalStore

from edgequeues.blobs.objects import Objects
from edgequeues.core.errors import BlobStoreDown
from shards.disk import Disk

MARK = "@"
STAGED = ".staged"  # no space's folder has this name
TRIES = 100  # at making a folder that somebody else tidies away
LINK_S_MAX = 30 * 86_400


class FolderBlobs(Objects):
    """Blobs below `root`, which is there and is a path without symbolic links."""

    link_s_max = LINK_S_MAX
    link_margin_s = 0

    def __init__(self, root: Path, disk: Disk) -> None:
        super().__init__(LocalStore(root, automatic_cleanup=True), disk)
        self._root = root
        self._numbers = itertools.count(1)

    async def put(self, path: str, data: bytes, media: str) -> bool:
        """Keep bytes, durably; False: the same were there before. Raises BlobConflict, BlobStoreDown."""
        staged = f"{STAGED}/{next(self._numbers)}"
        return await self._run(lambda: self._put(staged, path, data))

    async def sign(self, path: str, lifetime_s: int) -> str | None:
        """None: whoever serves the folder signs."""
        return None

    def _put(self, staged: str, path: str, data: bytes) -> bool:
        target = self._root / self._place(path)
        self._no_link(self._root / staged)
        obstore.put(self._store, staged, data, use_multipart=False)
        try:
            self._disk.sync_file(self._root / staged)
            new = self._name(self._root / staged, target)
        finally:
            self._disk.remove(self._root / staged)
        if not new:
            self._compare(path, data)
        self._sync_up(target.parent)  # also for what another one has just named
        return new

    def _name(self, staged: Path, target: Path) -> bool:
        """Give a file its name; False: it is taken."""
        for _ in range(TRIES):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._disk.link(staged, target)
            except FileExistsError:
                return False
            except FileNotFoundError:
                continue  # with the last blob beside it, the folder went
            return True
        raise OSError(errno.EBUSY, "its folder is removed again and again", str(target))

    def _delete(self, path: str) -> None:
        super()._delete(path)
        self._sync_up((self._root / path).parent)

    def _sync_up(self, folder: Path) -> None:
        """Make the names of a folder, and of those above it, durable; those that are gone were empty."""
        while folder != self._root.parent:
            try:
                self._disk.sync_folder(folder)
            except FileNotFoundError:
                assert folder != self._root
            folder = folder.parent

    def _place(self, path: str) -> str:
        """The name of the file. Raises OSError where a symbolic link would lead elsewhere."""
        self._no_link(self._root / (path + MARK))
        return path + MARK

    def _no_link(self, path: Path) -> None:
        if path.resolve() != path:
            raise OSError(errno.ELOOP, "a symbolic link in the folder of blobs", str(path))


async def open_folder(root: Path, disk: Disk) -> FolderBlobs:
    """Open the folder, made if absent; what was staged when it was last closed is removed. Raises BlobStoreDown."""

    def opened() -> FolderBlobs:
        root.mkdir(exist_ok=True)
        disk.sync_folder(root.parent)
        shutil.rmtree(root / STAGED, ignore_errors=True)
        return FolderBlobs(root.resolve(), disk)

    try:
        return await disk.run(opened)
    except OSError as error:
        raise BlobStoreDown(f"the folder of blobs: {error.strerror}") from error
