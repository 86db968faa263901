"""What is known of a blob beside its bytes, and what its place and its facts may be."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from edgequeues.core.errors import InvalidRequest
from edgequeues.core.ids import shown

BUCKET = "switchboard-ingress"
KEY_BYTES_MAX = 1024
EVENT_CHARS_MAX = 128
FILENAME_CHARS_MAX = 255
PIXELS_MAX = 1_000_000

_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,61}[a-z0-9])")
_SOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MEDIA = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class About(Struct, frozen=True):
    """What somebody says of a blob that they store. event_id: what it belongs to, and is erased with.

    content_type: `type/subtype`; parameters are not kept. filename: as its sender had it. media_width, media_height:
    pixels.
    """

    event_id: str
    source: str
    content_type: str
    filename: str | None = None
    media_width: int | None = None
    media_height: int | None = None


class Blob(About, frozen=True, kw_only=True):
    """A stored blob. sha256: in hexadecimal. created, kept_until: unix ms; it is there before the latter."""

    bucket: str
    key: str
    size: int
    sha256: str
    created: int = 0
    kept_until: int = 0


def check_bucket(bucket: str) -> str:
    """Return a bucket's name. Raises InvalidRequest."""
    if not _BUCKET.fullmatch(bucket):
        raise InvalidRequest(f"bucket {shown(bucket)}: a name has 3 to 63 of a-z 0-9 -")
    return bucket


def check_key(key: str) -> str:
    """Return a key: segments between slashes, none of them a way up. Raises InvalidRequest."""
    if _CONTROL.search(key) or not 1 <= len(key.encode()) <= KEY_BYTES_MAX:
        raise InvalidRequest(f"key: it has 1 to {KEY_BYTES_MAX} bytes of UTF-8 without control characters")
    if any(segment in ("", ".", "..") for segment in key.split("/")):
        raise InvalidRequest("key: no segment of it is empty, . or ..")
    return key


def check_event(event_id: str) -> str:
    """Return an event's id. Raises InvalidRequest."""
    if not 1 <= len(event_id) <= EVENT_CHARS_MAX or _CONTROL.search(event_id):
        raise InvalidRequest(f"event: an id has 1 to {EVENT_CHARS_MAX} characters, none of them a control")
    return event_id


def checked(about: About) -> About:
    """The same, in the form that is kept. Raises InvalidRequest."""
    check_event(about.event_id)
    if not _SOURCE.fullmatch(about.source):
        raise InvalidRequest(f"source {shown(about.source)}: it has 1 to 64 of A-Z a-z 0-9 . _ -")
    media = about.content_type.partition(";")[0].strip().lower()
    if not _MEDIA.fullmatch(media):
        raise InvalidRequest(f"content type {shown(about.content_type)}: it is written type/subtype")
    for pixels in (about.media_width, about.media_height):
        if pixels is not None and not 1 <= pixels <= PIXELS_MAX:
            raise InvalidRequest(f"media width and height: whole numbers from 1 to {PIXELS_MAX}")
    name = about.filename
    if name is not None:  # whatever it is called, a file is taken
        name = name.encode("utf-8", "replace").decode()[:FILENAME_CHARS_MAX] or None
    return msgspec.structs.replace(about, content_type=media, filename=name)


def allows(types: list[str], media: str) -> bool:
    """Is a media type among these, of which `image/*` stands for all images?"""
    return media in types or media.partition("/")[0] + "/*" in types
