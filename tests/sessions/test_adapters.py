"""Adapters make messages of what platforms send, whatever that is, and hand them to a manager."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from edgequeues import inbound
from edgequeues.inbound import Inbound
from edgequeues.sessions.adapters import ADAPTERS, contract, discord, telegram, terminal
from edgequeues.sessions.adapters.contract import BadMessage
from edgequeues.sessions.manager import open_manager
from tests.core.captures import capture
from tests.house.test_modules import imported
from tests.house.tree import modules

from .deliveries import Deliveries
from .memory import MemoryInbox

# A message whose user id has 54 bits, with a line separator, an emoji of several characters, and BEL.
TELEGRAM = capture("telegram").request.body

Body = dict[str, Any]


def telegram_body(**message: Any) -> bytes:
    base = json.loads(TELEGRAM)
    del base["message"]["text"]
    base["message"].update(message)
    return json.dumps(base).encode()


def from_telegram(body: bytes) -> Inbound | None:
    return telegram.message(body, lambda chat, topic: f"{chat}/{topic}")


def discord_message(**more: Any) -> Body:
    author = {
        "id": "80351110224678912",
        "username": "nelly",
        "global_name": "Nelly",
        "avatar": "8342729096ea",
    }
    return {"id": "1334", "channel_id": "290926", "type": 0, "content": "Hi", "author": author, **more}


def from_discord(message: Body) -> Inbound | None:
    event = {"op": 0, "s": 42, "t": "MESSAGE_CREATE", "d": message}
    return discord.message(json.dumps(event).encode(), lambda channel: f"channel {channel}")


# -- Telegram ----------------------------------------------------------------------------------------------


def test_an_update_is_a_message_with_ids_exact_and_text_as_it_was_typed() -> None:
    assert from_telegram(TELEGRAM) == Inbound(
        session_id="-1001234567890/None",
        origin="telegram",
        content="/run \u2028 👨\u200d👩\u200d👧 `rm -rf`\u0007",
        actor_id="9007199254740993",
        actor_name="Ж",
        source_message_id="17",
        source_channel_id="-1001234567890",
    )


@pytest.mark.parametrize(
    ("fields", "kind", "facts"),
    [
        (
            {"voice": {"file_id": "v", "duration": 3, "mime_type": "audio/ogg"}},
            "voice",
            {"file_id": "v", "kind": "voice", "mime_type": "audio/ogg", "duration": 3},
        ),
        (
            {"photo": [{"file_id": "small"}, {"file_id": "large", "file_size": 9}]},
            "file",
            {"file_id": "large", "kind": "photo", "file_size": 9},
        ),
        (
            {"document": {"file_id": "d", "file_name": "a\ud83d.pdf"}},
            "file",
            {"file_id": "d", "kind": "document", "file_name": "a\ufffd.pdf"},
        ),
        ({"video": {"file_id": "w"}}, "file", {"file_id": "w", "kind": "video"}),
        (
            {"animation": {"file_id": "g"}, "document": {"file_id": "g"}},
            "file",
            {"file_id": "g", "kind": "animation"},
        ),
    ],
)
def test_a_voice_or_a_file_comes_with_its_facts_and_its_caption(fields: Body, kind: str, facts: Body) -> None:
    message = from_telegram(telegram_body(caption="look", **fields))
    assert message is not None
    assert message.payload is not UNSET
    assert (message.message_type, message.content) == (kind, "look")
    assert json.loads(bytes(message.payload)) == facts


@pytest.mark.parametrize(
    "body",
    [
        telegram_body(sticker={"file_id": "s"}),
        telegram_body(new_chat_members=[]),
        telegram_body(text="Hi", **{"from": {"id": 1, "is_bot": True, "first_name": "Bot"}}),
        telegram_body(text="Hi", **{"from": None}),
        TELEGRAM.replace(b'"message":', b'"edited_message":'),
        TELEGRAM.replace(b'"message":', b'"channel_post":'),
        b'{"update_id": 1, "callback_query": {"id": "1"}}',
    ],
)
def test_an_update_without_a_message_of_a_user_is_none(body: bytes) -> None:
    assert from_telegram(body) is None


def test_the_name_is_first_and_last_else_the_username_cut() -> None:
    names = []
    for sender in (
        {"first_name": "Ada", "last_name": "King", "username": "ada"},
        {"first_name": "", "username": "ada"},
        {"first_name": "x" * 300},
        {},
    ):
        message = from_telegram(telegram_body(text="Hi", **{"from": {"id": 1, **sender}}))
        assert message is not None
        names.append(message.actor_name)
    assert names == ["Ada King", "ada", "x" * 256, None]


def test_a_topic_has_a_session_of_its_own_and_an_answer_has_not() -> None:
    topic = from_telegram(telegram_body(text="Hi", message_thread_id=5, is_topic_message=True))
    answer = from_telegram(telegram_body(text="Hi", message_thread_id=5))
    assert topic is not None
    assert answer is not None
    assert (topic.session_id, answer.session_id) == ("-1001234567890/5", "-1001234567890/None")


def test_a_chat_without_a_session_gives_no_message_and_one_that_cannot_be_is_refused() -> None:
    assert telegram.message(TELEGRAM, lambda chat, topic: None) is None
    with pytest.raises(BadMessage, match="session_id"):
        telegram.message(TELEGRAM, lambda chat, topic: "a\nb")


def test_another_bot_has_another_origin() -> None:
    other = replace(telegram.ADAPTER, origin="telegram:second")
    message = telegram.message(TELEGRAM, lambda chat, topic: "s", other)
    first = telegram.message(TELEGRAM, lambda chat, topic: "s")
    assert message is not None
    assert first is not None
    assert inbound.repeat_key(message) != inbound.repeat_key(first)


# -- Discord -----------------------------------------------------------------------------------------------


def test_an_event_of_the_gateway_is_a_message() -> None:
    assert from_discord(discord_message()) == Inbound(
        session_id="channel 290926",
        origin="discord",
        content="Hi",
        actor_id="80351110224678912",
        actor_name="Nelly",
        actor_avatar_url="https://cdn.discordapp.com/avatars/80351110224678912/8342729096ea.png",
        source_message_id="1334",
        source_channel_id="290926",
    )


def test_an_event_sent_to_a_webhook_is_the_same_message() -> None:
    event = {
        "version": 1,
        "type": 1,
        "event": {"type": "GAME_DIRECT_MESSAGE_CREATE", "timestamp": "x", "data": discord_message()},
    }
    message = discord.message(json.dumps(event).encode(), lambda channel: f"channel {channel}")
    assert message == from_discord(discord_message())


@pytest.mark.parametrize(("flags", "kind"), [(0, "file"), (1 << 13, "voice")])
def test_attachments_come_with_their_facts(flags: int, kind: str) -> None:
    file = {"id": "9", "filename": "a.ogg", "url": "https://cdn.example/a", "size": 7, "duration_secs": 1.5}
    message = from_discord(discord_message(content="", attachments=[file], flags=flags))
    assert message is not None
    assert message.payload is not UNSET
    assert (message.message_type, message.content) == (kind, "")
    assert json.loads(bytes(message.payload)) == {"files": [file]}


@pytest.mark.parametrize(
    "event",
    [
        {"t": "MESSAGE_CREATE", "d": discord_message(content="")},
        {"t": "MESSAGE_CREATE", "d": discord_message(type=7)},
        {"t": "MESSAGE_CREATE", "d": discord_message(webhook_id="1")},
        {"t": "MESSAGE_CREATE", "d": discord_message(author={"id": "1", "username": "b", "bot": True})},
        {"t": "MESSAGE_UPDATE", "d": discord_message()},
        {"t": None, "op": 11, "d": None},
        {"version": 1, "type": 0},
        {"version": 1, "type": 1, "event": {"type": "APPLICATION_AUTHORIZED", "data": {}}},
    ],
)
def test_an_event_without_a_message_of_a_user_is_none(event: Body) -> None:
    assert discord.message(json.dumps(event).encode(), lambda channel: "s") is None


def test_a_picture_that_would_lead_elsewhere_is_left_out() -> None:
    author = {"id": "1", "username": "mallory", "avatar": "../../x?"}
    message = from_discord(discord_message(author=author))
    assert message is not None
    assert (message.actor_name, message.actor_avatar_url) == ("mallory", None)


# -- a terminal --------------------------------------------------------------------------------------------


def test_a_line_is_a_message_that_nothing_repeats() -> None:
    message = terminal.message("  ls -l \r\n", "s1", actor_name="Ada")
    assert message == Inbound(session_id="s1", origin="terminal", content="  ls -l ", actor_name="Ada")
    assert inbound.repeat_key(message) is None


@pytest.mark.parametrize("line", ["", "\n", " \t\r\n"])
def test_a_blank_line_is_no_message(line: str) -> None:
    assert terminal.message(line, "s1") is None


# -- whatever comes ----------------------------------------------------------------------------------------

NAMES = [
    *("update_id", "message", "message_id", "from", "chat", "id", "is_bot", "first_name", "text", "caption"),
    *("voice", "photo", "document", "file_id", "file_name", "t", "d", "event", "type", "data", "channel_id"),
    *("author", "username", "avatar", "content", "attachments", "filename", "url", "size", "flags"),
]
TEXTS = st.one_of(st.sampled_from(["MESSAGE_CREATE", "1", "1\n", "", "\ud83d"]), st.text(max_size=6))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.just(2**200), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=8),
    max_leaves=20,
)


def damaged(draw: st.DrawFn, value: Any) -> Any:
    """What a platform sends, with parts that are gone or something else."""
    if draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    if isinstance(value, dict):
        return {name: damaged(draw, inner) for name, inner in value.items() if draw(st.integers(0, 19))}
    if isinstance(value, list):
        return [damaged(draw, inner) for inner in value]
    return value


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    file = {"file_id": "f", "file_name": "n", "file_size": 1}
    event = {
        "t": "MESSAGE_CREATE",
        "d": discord_message(attachments=[{"id": "1", "filename": "a", "url": "u"}]),
    }
    sound = draw(
        st.sampled_from([json.loads(TELEGRAM), json.loads(telegram_body(voice=file, photo=[file])), event])
    )
    text = json.dumps(damaged(draw, sound)).encode()
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


READERS: list[Callable[[bytes], Inbound | None]] = [
    lambda body: telegram.message(body, lambda chat, topic: chat),
    lambda body: discord.message(body, lambda channel: channel),
]


@pytest.mark.parametrize("read", READERS, ids=["telegram", "discord"])
@given(body=st.one_of(bodies(), VALUES.map(lambda value: json.dumps(value).encode()), st.binary(max_size=40)))
@example(body=b'{"update_id": 1, "\\ud800": 1, "d": {"\\udfff": 1}}')
def test_whatever_comes_is_a_message_that_can_be_or_none_or_refused(
    read: Callable[[bytes], Inbound | None], body: bytes
) -> None:
    try:
        message = read(body)
    except BadMessage:
        return
    if message is not None:
        assert inbound.check(inbound.read(inbound.body(message).encode())) == message
        assert message.source_message_id is not None


@pytest.mark.parametrize("read", READERS, ids=["telegram", "discord"])
def test_depth_and_numbers_beyond_bounds_are_refused(read: Callable[[bytes], Inbound | None]) -> None:
    for body in (b'{"d":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"update_id":1e999}', b"[]", b""):
        with pytest.raises(BadMessage):
            read(body)


# -- the contract ------------------------------------------------------------------------------------------


def test_every_adapter_has_an_origin_of_its_own() -> None:
    assert sorted(one.origin for one in ADAPTERS) == ["discord", "telegram", "terminal"]
    assert [one.origin for one in ADAPTERS if not one.numbers_messages] == ["terminal"]


def a_message(**fields: Any) -> Inbound:
    return Inbound(**{"session_id": "s", "origin": "telegram", "content": "Hi", **fields})


@pytest.mark.parametrize(
    ("adapter", "message", "missing"),
    [
        (telegram.ADAPTER, a_message(source_channel_id="1"), "source_message_id"),
        (telegram.ADAPTER, a_message(source_message_id="1"), "source_channel_id"),
        (discord.ADAPTER, a_message(origin="discord"), "source_message_id"),
        (discord.ADAPTER, a_message(source_message_id="1"), "origin"),
        (terminal.ADAPTER, a_message(origin="terminal", session_id=""), "session_id"),
        (terminal.ADAPTER, a_message(origin="terminal", content="\ud83d"), "content"),
    ],
)
async def test_a_message_without_what_its_platform_gives_is_not_handed_over(
    adapter: contract.Adapter, message: Inbound, missing: str
) -> None:
    handed = []

    async def enqueue(**fields: object) -> int:
        handed.append(fields)
        return 1

    with pytest.raises(BadMessage, match=missing):
        await contract.receive(adapter, message, enqueue)
    assert handed == []


async def test_typing_is_shown_after_a_success_and_never_for_a_repeat() -> None:
    shown = []

    async def typing(session_id: str, origin: str) -> None:
        shown.append((session_id, origin))
        raise OSError("the platform is away")

    async def hangs(session_id: str, origin: str) -> None:
        await trio.sleep_forever()

    deliver, inbox = Deliveries(), MemoryInbox()
    voice = from_telegram(telegram_body(voice={"file_id": "v"}, message_id=18))
    first = from_telegram(TELEGRAM)
    assert first is not None
    assert voice is not None
    async with open_manager(inbox, deliver) as manager:
        positions = [
            await contract.receive(telegram.ADAPTER, message, manager.enqueue, sign)
            for message, sign in ((first, typing), (first, typing), (voice, hangs))
        ]
        await trio.sleep(1)
    assert positions == [1, None, 2]
    assert shown == [("-1001234567890/None", "telegram")]
    assert [row["content"] for row in deliver.begun] == [first.content, ""]
    assert deliver.begun[0]["payload_json"] is None
    assert json.loads(deliver.begun[1]["payload_json"] or "") == {"file_id": "v", "kind": "voice"}


async def test_a_message_that_was_not_taken_in_has_no_sign_and_its_platform_is_told() -> None:
    shown = []

    async def enqueue(**fields: object) -> int | None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        await contract.receive(
            terminal.ADAPTER, a_message(origin="terminal"), enqueue, lambda *what: shown.append(what)
        )
    assert shown == []


def test_an_adapter_knows_messages_and_nothing_of_who_queues_or_delivers_them() -> None:
    adapters = [path for path in modules() if path.startswith("edgequeues/sessions/adapters/")]
    assert len(adapters) == len(ADAPTERS) + 1
    ours = {
        name for path in adapters for name in imported(path) if name.startswith(("edgequeues.", "shards"))
    }
    known = ("edgequeues.core", "edgequeues.inbound", "edgequeues.sessions.adapters")
    assert [name for name in sorted(ours) if not name.startswith(known)] == []
