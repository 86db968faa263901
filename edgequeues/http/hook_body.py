"""What a webhook was sent: its body unpacked and taken apart, within bounds, after it is known who sent it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address, ip_network

from edgequeues.core import forms, jsontext
from edgequeues.core.errors import InvalidJson, InvalidRequest, TooLarge, UnsupportedMedia
from edgequeues.core.forms import FormRule
from edgequeues.core.jsontext import write
from edgequeues.http.routes import Request

FORM = "application/x-www-form-urlencoded"
_BOM = b"\xef\xbb\xbf"


def media_of(headers: Mapping[bytes, bytes]) -> str:
    """The media type a request states, in lower case; "" where it states none."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")


def base_of(base_url: str, request: Request) -> str:
    """How the server is reached from outside.

    base_url: as in `hooks.Ingress`; where it is a scheme alone, the Host header says the rest.
    """
    if base_url.endswith("://"):
        base_url += request.headers.get(b"host", b"").decode("latin-1")
    return base_url.rstrip("/")


def url_of(base_url: str, request: Request) -> str:
    """The URL that the sender used. base_url: as in `hooks.Ingress`."""
    head = request.head
    query = f"?{head.query.decode('latin-1')}" if head.query else ""
    return base_of(base_url, request) + head.target.decode("latin-1") + query


def unpacked(headers: Mapping[bytes, bytes], body: bytes, limit: int) -> bytes:
    """The body without its content coding. Raises UnsupportedMedia, InvalidRequest, TooLarge above `limit` bytes."""
    coding = headers.get(b"content-encoding", b"identity").strip().lower()
    if coding == b"identity":
        return body
    if coding not in (b"gzip", b"x-gzip"):
        raise UnsupportedMedia(f"a body encoded as {coding[:100].decode('latin-1')!r} is not accepted")
    inflater = zlib.decompressobj(wbits=31)
    try:
        found = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise InvalidRequest(f"the body is not gzip: {error}") from None
    if len(found) > limit:
        raise TooLarge(f"the body has more than {limit} bytes when it is unpacked")
    if not inflater.eof or inflater.unused_data:
        raise InvalidRequest("the body is not one whole gzip stream")
    return found


def json_of(media: str, body: bytes, rule: FormRule) -> bytes:
    """The JSON of a body: itself, without a byte order mark, or what its form says by the rule.

    Raises InvalidJson, InvalidRequest, UnsupportedMedia.
    """
    if media == FORM:
        said = forms.payload(body, rule)
        text = said if isinstance(said, bytes) else write(said)
    elif media in ("", "application/json", "text/json", "text/plain") or media.endswith("+json"):
        text = body.removeprefix(_BOM)
    else:
        raise UnsupportedMedia(f"{media[:100]!r} is not accepted here: send JSON or a form")
    if not text.strip():
        raise InvalidJson("the body is empty")
    jsontext.check(text)
    return text


class Sources:
    """Where requests come from. trusted: addresses and networks of proxies whose X-Forwarded-For is believed."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self._trusted = [ip_network(one, strict=False) for one in trusted]

    def of(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The address that a request came from: the last one that is not of a trusted proxy."""
        if not self._is_trusted(peer):
            return peer
        hops = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
        for hop in reversed(",".join(hops).split(",")):
            address = hop.strip()
            if not _is_address(address):
                break
            peer = address
            if not self._is_trusted(address):
                break
        return peer

    def _is_trusted(self, address: str) -> bool:
        return (
            bool(self._trusted)
            and _is_address(address)
            and any(ip_address(address) in network for network in self._trusted)
        )


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
