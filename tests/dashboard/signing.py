"""A browser, as far as signing in goes: its cookie, and where its pages come from."""

from __future__ import annotations

import json
from http.cookies import SimpleCookie

from tests.http.asgi import Client, Pairs, Reply

OWN = (b"origin", b"http://localhost:8700")


def text(header: tuple[bytes, bytes]) -> str:
    """The token that a header carries."""
    return header[1].decode().removeprefix("Bearer ")


class Browser:
    """Keeps the cookie that it was given, and sends it along with every request."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.cookie: tuple[bytes, bytes] | None = None
        self.set_cookie = ""

    async def sign_in(self, token: tuple[bytes, bytes], *headers: tuple[bytes, bytes]) -> Reply:
        return await self.login(text(token), *(headers or (OWN,)))

    async def login(self, token: str, *headers: tuple[bytes, bytes]) -> Reply:
        body = json.dumps({"token": token}).encode()
        return self._taken(await self.client.ask("POST", "/ui/login", body, headers=list(headers)))

    async def sign_out(self) -> Reply:
        return self._taken(await self.ask("POST", "/ui/logout", b"", OWN))

    async def ask(
        self, method: str, target: str, body: bytes | None = None, *headers: tuple[bytes, bytes]
    ) -> Reply:
        cookie: Pairs = [] if self.cookie is None else [self.cookie]
        return await self.client.ask(method, target, body, headers=[*cookie, *headers])

    async def get(self, target: str, *headers: tuple[bytes, bytes]) -> Reply:
        return await self.ask("GET", target, None, *headers)

    def _taken(self, reply: Reply) -> Reply:
        self.set_cookie = reply.headers.get("set-cookie", "")
        for name, morsel in SimpleCookie(self.set_cookie).items():
            gone = morsel["max-age"] == "0"
            self.cookie = None if gone else (b"cookie", f"theme=dark; {name}={morsel.value}; x=y".encode())
        return reply
