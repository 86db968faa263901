"""What a handler may be, and the types that TypeScript has of what it is given and gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgequeues.daemon import contract
from edgequeues.daemon.handlers.spec import HandlerSpec, UnusableHandler
from edgequeues.events import event

TYPES = Path(__file__).parents[3] / "examples" / "handlers" / "switchboard.d.ts"
STRUCTS: list[type[msgspec.Struct]] = [
    event.BlobRef,
    event.Attachment,
    event.Participants,
    event.Content,
    event.Correlation,
    event.ReplyTo,
    event.SwitchboardEvent,
    contract.EmailReply,
    contract.SmsReply,
    contract.Artifact,
    contract.Result,
]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"at_once": 0}, "1 to 1000 events at once, and not 0"),
        ({"at_once": 1_001}, "and not 1001"),
        ({"budget_s": 0.0}, "up to 43200 s"),
        ({"budget_s": 43_201.0}, "and not 43201"),
        ({"budget_s": float("nan")}, "and not nan"),
        ({"target": "shop.mail"}, "write module:function"),
        ({"target": "shop/mail.py:handle"}, "write module:function"),
        ({"kind": "command", "target": "node handler.mjs", "loop": "asyncio"}, "leave the loop out"),
        ({"kind": "command", "target": "node 'handler.mjs"}, "cannot be read: no closing quotation"),
        ({"kind": "command", "target": " "}, "is empty; write, for example"),
        ({"kind": "command", "target": "node handler.mjs", "at_once": 65}, "65 is too many, 64"),
        ({"kind": "url", "target": "ftp://127.0.0.1/"}, "write https://host/path"),
        ({"kind": "url", "target": "https:///path"}, "write https://host/path"),
        ({"kind": "url", "target": "http://127.0.0.1:99999/"}, "write https://host/path"),
        ({"kind": "url", "target": "http://127.0.0.1/a b"}, "write https://host/path"),
        ({"kind": "url", "target": "https://me:secret@shop.example/"}, "neither a password"),
        ({"kind": "url", "target": "https://shop.example/#top"}, "nor a fragment"),
    ],
)
def test_a_handler_that_cannot_be_is_refused_with_what_to_do(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UnusableHandler, match=re.escape(said)) as raised:
        HandlerSpec(**{"kind": "python", "target": "shop.mail:handle"} | given)
    assert "secret@" not in str(raised.value)


def test_a_command_line_is_split_as_a_shell_would_and_nothing_in_it_is_replaced() -> None:
    spec = HandlerSpec(kind="command", target="node 'my handler.mjs' $HOME")
    assert spec.words() == ["node", "my handler.mjs", "$HOME"]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_typescript_has_exactly_the_members_of_each_struct(struct: type[msgspec.Struct]) -> None:
    """A member that may be left out has a question mark."""
    found = re.search(rf"^export interface {struct.__name__} {{\n(.*?)^}}", TYPES.read_text(), re.M | re.S)
    assert found is not None
    members = dict(re.findall(r"^  (\w+)(\??):", found[1], re.M))
    expected = {one.encode_name: "" if one.required else "?" for one in msgspec.structs.fields(struct)}
    if struct.__struct_config__.tag is not None:
        expected[struct.__struct_config__.tag_field or "type"] = ""
    assert members == expected
