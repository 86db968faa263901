"""Keys of objects: where the bytes of an event lie. They hold no address and no number, whatever a file is called."""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256
from urllib.parse import unquote

from edgequeues.core import times

NAME_CHARS_MAX = 80  # all of one byte
_LOOKED_AT = 1_024  # characters of a file's name as it came

_ADDRESS = re.compile(r'(?:"[^"]*"|[^\s@]*)(?:\s*@\s*[^\s@]*)+')
# Digits, and what is put between them in numbers that are called.
_NUMBER = re.compile(r"[0-9](?:[._-]*[0-9]){6,}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_END = re.compile(r"[^A-Za-z0-9]+\Z")
_EXTENSION = re.compile(r"\.(?=[0-9]{0,2}[A-Za-z])[A-Za-z0-9]{1,5}\Z")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_SCOPE = re.compile(r"(?=[0-9._-]*[A-Za-z])[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def email_html(event_id: str, received_ms: int) -> str:
    """Where the HTML of a mail lies."""
    return f"email/{_day(received_ms)}/{_scope(event_id)}/body.html"


def email_attachment(event_id: str, received_ms: int, number: int, filename: str) -> str:
    """Where a part of a mail lies. number: keeps apart those of one name."""
    return f"email/{_day(received_ms)}/{_scope(event_id)}/att/{number}-{safe_filename(filename)}"


def sms_media(sid: str, received_ms: int, number: int) -> str:
    """Where a medium of a text message lies. sid: Twilio's id of the message."""
    return f"sms/{_day(received_ms)}/{_scope(sid)}/media-{number}"


def safe_filename(filename: str) -> str:
    """A name like a file's own, of letters and digits of ASCII, and `.`, `_`, `-`; `file` where nothing is left.

    Folders before it, addresses and runs of seven or more digits, with what stands between digits of phone numbers,
    are left out. It has at most NAME_CHARS_MAX characters, begins and ends with none of the signs, and is the name
    of no device. Its extension is kept.
    """
    plain = unicodedata.normalize("NFKC", unquote(filename[:_LOOKED_AT]))
    name = re.split(r"[/\\]", plain)[-1]
    for _ in range(NAME_CHARS_MAX):  # what is taken out may bring an extension to the end, or digits together
        before, name = name, _safer(name)
        if name == before:
            break
    return name


def _safer(plain: str) -> str:
    """A name with what may not stay taken out, once."""
    plain = _END.sub("", plain)
    ending = _EXTENSION.search(plain)
    stem, extension = (plain, "") if ending is None else (plain[: ending.start()], ending[0])
    if "@" in stem:
        stem = _ADDRESS.sub(" ", stem)
    stem = re.sub("-{2,}", "-", _NUMBER.sub("", _UNSAFE.sub("-", stem))).strip("._-")
    stem = stem[: NAME_CHARS_MAX - len(extension)].rstrip("._-") or "file"
    if _NUMBER.search(stem + extension):  # one that reaches into what looked like an extension
        extension = ""
    name = stem + extension
    return f"file-{name[: NAME_CHARS_MAX - 5]}" if _DEVICE.fullmatch(name) else name


def _day(unix_ms: int) -> str:
    """The folder of a day, of the calendar of UTC."""
    return times.utc(unix_ms)[:10].replace("-", "/")


def _scope(event_id: str) -> str:
    """An id as a part of a key: itself, or a digest of it where it could be, or lead to, something else."""
    if _SCOPE.fullmatch(event_id):
        return event_id
    return "x" + sha256(event_id.encode(errors="surrogatepass")).hexdigest()[:31]
