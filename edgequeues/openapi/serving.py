"""The document over HTTP, at `/openapi.json`: open to all, since it holds nothing but what this version can do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from edgequeues.http import codec, params, problems
from edgequeues.http.reading import known_tags
from edgequeues.http.routes import Dialect, Request, Response, Route
from edgequeues.openapi.chapters import CHAPTERS
from edgequeues.openapi.document import document

PATH = "/openapi.json"


def dialect(others: Sequence[Dialect]) -> Dialect:
    """The table. others: what is described, beside this route itself."""

    @lru_cache(maxsize=1)
    def written() -> tuple[str, bytes]:
        body = codec.encode(document([*others, made], CHAPTERS))
        return hashlib.sha256(body).hexdigest()[:32], body

    async def openapi(request: Request) -> Response:
        """Describe every route, as OpenAPI 3.1 has it."""
        params.only(request.query, ())
        tag, body = written()
        headers = [(b"etag", b'"%b"' % tag.encode()), (b"cache-control", b"no-cache")]
        if tag in known_tags(request.headers):
            return Response(status=304, headers=headers)
        return Response(body, headers=headers)

    made = Dialect("openapi", (PATH,), [Route("GET", PATH, openapi, None)], problems.refuse)
    return made
