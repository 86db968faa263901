"""Types of message fields: what a spec declares, and whether a value is of that type."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

AttrName = Literal["json", "string", "int", "float", "bool", "time", "enum", "map"]


class AttrType(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The type of one field. values: of an enum. of: the type of a map's values; its keys are strings.

    time: unix seconds, an integer or a fraction. optional: may be missing or null. default: stands in for what is
    missing or null.
    """

    type: AttrName = "json"
    optional: bool = False
    default: Any = None
    values: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    of: AttrType | None = None
