"""The text of a mail: bytes in whatever charset, and HTML without what only a browser makes something of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from string import ascii_uppercase

HTML_CHARS_MAX = 128 * 1024  # that a text is made of
TEXT_BYTES_MAX = 16 * 1024  # of a text that goes into an event; the rest is an object

_UNSEEN = frozenset({"script", "style", "head", "title", "template", "noscript"})
_BLOCKS = re.compile(
    "address|article|aside|blockquote|br|dd|div|dl|dt|footer|form|h[1-6]|header|hr|li|main|nav|ol|p|pre|section|table|tr|ul"
)
_LOWER = {ord(letter): letter.lower() for letter in ascii_uppercase}  # keeps every place where it is
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BLANKS = re.compile(r"[ \t\r\f\v\xa0]+")
_GAP = re.compile(r"\n{3,}")
_TAG = re.compile(r"<!--|<(?:([a-z][a-z0-9]*)|/([a-z][a-z0-9]*)|[!?/])")  # how one begins


def decoded(data: bytes, charset: str | None) -> str:
    """Bytes as text. What the charset does not have, or where there is no such charset, is replaced."""
    for name in (charset or "utf-8", "utf-8"):
        try:
            return data.decode(name, "replace")
        except (LookupError, UnicodeError, ValueError):  # unknown, or one of Python's that is none of texts
            continue
    return data.decode("ascii", "replace")


def clean(text: str) -> str:
    """Text without control characters and halves of pairs, its lines ended by one character."""
    whole = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub("", whole.replace("\r\n", "\n").replace("\r", "\n"))


def cut(text: str, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """The beginning of a text, of so many bytes at most, without half a character at its end."""
    data = text.encode()
    return text if len(data) <= bytes_max else data[:bytes_max].decode("utf-8", "ignore")


def text_of(html: str) -> str:
    """What a reader sees of HTML, roughly: no markup, no scripts, a line for each block.

    In one pass, whatever it holds: Python's own parser takes minutes for some 100 KiB.
    """
    seen = unescape("".join(_seen(html[:HTML_CHARS_MAX])))
    lines = [_BLANKS.sub(" ", line).strip() for line in seen.split("\n")]
    return _GAP.sub("\n\n", "\n".join(lines)).strip()


def _seen(html: str) -> Iterator[str]:
    lower = html.translate(_LOWER)
    at = 0
    while (start := html.find("<", at)) >= 0:
        yield html[at:start].replace("\n", " ")
        tag = _TAG.match(lower, start)
        if tag is None:
            yield "<"
            at = start + 1
            continue
        end = html.find("-->", tag.end()) + 2 if tag[0] == "<!--" else html.find(">", tag.end())
        if end < start:
            return  # a tag or a comment without an end
        at = end + 1
        if tag[1] in _UNSEEN:
            at = lower.find(f"</{tag[1]}", at)
            if at < 0:
                return
        if _BLOCKS.fullmatch(tag[1] or tag[2] or ""):
            yield "\n"
    yield html[at:].replace("\n", " ")
