"""The files of the dashboard: read once, from the package, and found by name alone. No path leads anywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import NamedTuple

SHELL = "index.html"  # the one page there is; everything on it is made by scripts
MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/vnd.microsoft.icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}


class File(NamedTuple):
    """What is served under one name. etag: as the header has it."""

    content: bytes
    media: str
    etag: str


def load() -> Mapping[str, File]:
    """Read every file whose kind is known, by its name below `static`, such as `pages/audit.js`."""
    return dict(_walk(files("edgequeues.dashboard") / "static", ""))


def _walk(folder: Traversable, above: str) -> Iterator[tuple[str, File]]:
    for one in folder.iterdir():
        name = above + one.name
        if one.is_dir():
            yield from _walk(one, name + "/")
            continue
        media = MEDIA.get(PurePosixPath(name).suffix)
        if media is not None:
            content = one.read_bytes()
            yield name, File(content, media, f'"{sha256(content).hexdigest()[:32]}"')
