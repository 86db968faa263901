"""What is said of each dialect, by its name."""

from __future__ import annotations

from edgequeues.openapi import admin, binding, blobs, cloudflare, dxos, hooks, native
from edgequeues.openapi.op import ANYTHING, JSON, Answer, Chapter, Op, Param

ITSELF = Chapter(
    "This document.",
    {
        "GET /openapi.json": Op(
            {
                200: Answer("The document.", {JSON: ANYTHING}, {"etag": "Of this document."}),
                304: Answer("It is as it was.", headers={"etag": "Of this document."}),
            },
            headers=(Param("if-none-match", str, "Tags that are known."),),
        )
    },
    {},
)

CHAPTERS = {
    "native": native.CHAPTER,
    "dxos": dxos.CHAPTER,
    "admin": admin.CHAPTER,
    "cloudflare": cloudflare.CHAPTER,
    "binding": binding.CHAPTER,
    "hooks": hooks.HOOKS,
    "ingest": hooks.INGEST,
    "blobs": blobs.CHAPTER,
    "openapi": ITSELF,
}
