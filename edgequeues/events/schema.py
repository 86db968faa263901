"""The JSON Schema of events, made of their structs and of the rules that these cannot say.

`python -m edgequeues.events` writes it; docs/protocol/switchboard-event.schema.json is kept as it says.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgequeues.events.event import SwitchboardEvent

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ID = "https://edgequeues.local/schema/switchboard-event/1"


def schema() -> dict[str, Any]:
    """The schema, of the dialect 2020-12."""
    _, defs = msgspec.json.schema_components([SwitchboardEvent], ref_template="#/$defs/{name}")
    made: dict[str, Any] = _without_null(defs)
    event = made.pop("SwitchboardEvent")
    made["BlobRef"]["dependentRequired"] = {
        "presignedGetUrl": ["expiresAt"],
        "expiresAt": ["presignedGetUrl"],
    }
    email = _needs("email", {"participants": ["fromEmail", "toEmail"]})
    sms = _needs(
        "sms", {"participants": ["fromPhoneE164", "toPhoneE164"], "correlation": ["twilioMessageSid"]}
    )
    return {"$schema": DIALECT, "$id": ID, **event, "allOf": [email, sms], "$defs": made}


def text() -> str:
    """The schema as it is written down."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n"


def _needs(source: str, members: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "if": {"properties": {"source": {"const": source}}, "required": ["source"]},
        "then": {"properties": {name: {"required": needed} for name, needed in members.items()}},
    }


def _without_null(part: Any) -> Any:
    """A part of a schema in which what is absent is left out, never null."""
    if isinstance(part, list):
        return [_without_null(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {name: _without_null(one) for name, one in part.items() if not (name == "default" and one is None)}
    choices = [one for one in kept.pop("anyOf", ()) if one != {"type": "null"}]
    return kept | (choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {})
