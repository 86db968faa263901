"""Where a shard's file lies: names to paths and back, safe on file systems that fold case.

A name's letters keep their place; a `+` switches between lower and upper case, so `aBC` is `a+bc` and no two
names differ in case only. A name that would get too long that way is written in lower case, then `++` and a
hexadecimal number whose bits say which letters are not. 256 subfolders, picked by a hash of the name, keep each
folder short.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from shards.errors import InvalidName

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}")
SUFFIX = ".db"
SWITCHED_MAX = 200  # letters and switches; file systems allow 255, and suffixes are added


def check_name(name: str) -> str:
    """Return `name` or raise InvalidName. A name is never a path."""
    if not NAME.fullmatch(name):
        raise InvalidName(repr(name[:160]))
    return name


def path_of(folder: Path, name: str) -> Path:
    """Return the file of shard `name` below `folder`."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return folder / digest[:2] / (encode(name) + SUFFIX)


def encode(name: str) -> str:
    """Return the file name (without suffix) of shard `name`."""
    parts, upper = [], False
    for letter in check_name(name):
        if letter.isalpha() and letter.isupper() != upper:
            upper = not upper
            parts.append("+")
        parts.append(letter.lower())
    if len(parts) > SWITCHED_MAX:
        return f"{name.lower()}++{int(''.join(str(int(letter.isupper())) for letter in name), 2):x}"
    return "".join(parts)


def decode(stem: str) -> str | None:
    """Return the shard name of a file name without suffix, None if it is not one of ours."""
    lower, marked, bits = stem.partition("++")
    if marked:
        case = f"{int(bits, 16):0{len(lower)}b}" if re.fullmatch(r"[0-9a-f]{1,32}", bits) else ""
        name = "".join(a.upper() if bit == "1" else a for a, bit in zip(lower, case, strict=False))
    else:
        name = "".join(run.upper() if index % 2 else run for index, run in enumerate(stem.split("+")))
    return name if NAME.fullmatch(name) and encode(name) == stem else None


def walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name, path) of every shard below `folder`, in no order. Blocking."""
    for sub in folder.iterdir() if folder.is_dir() else ():
        if sub.is_dir() and len(sub.name) == 2:
            for path in sub.glob("*" + SUFFIX):
                name = decode(path.name.removesuffix(SUFFIX))
                if name is not None and path_of(folder, name) == path:
                    yield name, path


def identity(path: Path) -> str:
    """Tell this file from any copy of it: the inode of the file and of its folder."""
    return f"{path.stat().st_ino}.{path.parent.stat().st_ino}"
