"""Requests in the shape of each provider's, with made-up content, signed with the secrets beside them."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import NamedTuple

from edgequeues.core.signatures import Signed, Verifier, verifier

FOLDER = Path(__file__).parent / "payloads"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


class Capture(NamedTuple):
    """One request, and how to check it. secrets: the first is in use, others were or will be."""

    scheme: str
    header: str
    secrets: list[str]
    now_s: int
    request: Signed

    def verifier(self) -> Verifier:
        return verifier(self.scheme, header=self.header, secrets=self.secrets)

    def value(self) -> bytes:
        """Of the header with the signature."""
        return dict(self.request.headers)[self.header.lower().encode()]

    def signed(self, *values: bytes) -> Signed:
        """The same request with these in place of that header."""
        name = self.header.lower().encode()
        others = [(key, value) for key, value in self.request.headers if key != name]
        return self.request._replace(headers=[*others, *((name, value) for value in values)])


def capture(name: str) -> Capture:
    read = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    headers = [(key.lower().encode(), value.encode()) for key, value in read["headers"]]
    is_form = b"form-urlencoded" in dict(headers)[b"content-type"]
    request = Signed(headers, b64decode(read["body_b64"]), read["url"], is_form)
    return Capture(read["scheme"], read["header"], read["secrets"], read["now_s"], request)
