"""Every route, by the protocol it belongs to."""

from __future__ import annotations

from typing import Any, cast

from edgequeues.http import admin, binding, blobs, cloudflare, dxos, hooks, ingest, native
from edgequeues.http.routes import Dialect
from edgequeues.http.waits import Waits

from .tables import BY, first_sentence, table

INTRO = """# Routes

What the server answers, and which verb a token must have for it; where none is named, the request proves itself in
another way or needs no proof. `{dxn}` is the address of a queue, or of one of its entries. How tokens are made:
[guides/exposure.md](../guides/exposure.md).
"""
TITLES = {
    "native": ("Native", "../protocol/native.md"),
    "admin": ("Administration", "../protocol/admin.md"),
    "dxos": ("DXOS", "../protocol/dxos.md"),
    "cloudflare": ("Cloudflare", "../protocol/cloudflare.md"),
    "binding": ("workerd's queue binding", "../protocol/cloudflare.md"),
    "hooks": ("Webhooks", "../protocol/hooks.md"),
    "blobs": ("Object store", "../protocol/blobs.md"),
    "ingest": ("Mail and text messages", "../protocol/ingest.md"),
}


def dialects() -> list[Dialect]:
    """All protocols. Their routes are looked at and not called, so nothing is behind them."""
    nothing = cast(Any, None)
    waits = Waits()
    return [
        native.dialect(nothing, waits, nothing),
        admin.dialect(nothing, waits, nothing, nothing),
        dxos.dialect(nothing, waits),
        cloudflare.dialect(nothing, waits),
        binding.dialect(nothing, nothing),
        hooks.dialect(nothing),
        blobs.dialect(nothing, nothing, ""),
        ingest.dialect(nothing),
    ]


def page() -> str:
    """docs/reference/routes.md."""
    parts = []
    for dialect in dialects():
        title, link = TITLES[dialect.name]
        rows = [
            (
                one.method,
                f"`{one.template}`",
                f"`{one.verb}`" if one.verb else "",
                first_sentence(one.handler),
            )
            for one in dialect.routes
        ]
        contract = link.removeprefix("../")
        parts.append(f"\n## {title}\n\nThe contract: [{contract}]({link}).\n\n")
        parts.append(table(("method", "path", "verb", "what it does"), rows))
    return BY + INTRO + "".join(parts)
