"""Mail over SMTP, taken by a real server: its headers, its faults, TLS and logins."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from urllib.parse import quote

import msgspec
import pytest
import trio
import trustme

from edgequeues.daemon.contract import EmailReply, GiveUp, TryAgain
from edgequeues.daemon.sending.sender import Sender, open_sender
from edgequeues.daemon.sending.smtp import server

from .replies import ASKER, OURS, Counts, answer
from .smtp_server import PASSWORD, USER, mail_server


@asynccontextmanager
async def sending(
    url: str, tls: ssl.SSLContext | None = None, counts: Counts | None = None
) -> AsyncIterator[Sender]:
    providers = msgspec.structs.replace(OURS, email_provider="smtp", smtp_url=url)
    async with open_sender(providers, tls=tls, count=Counts() if counts is None else counts) as sender:
        yield sender


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_a_reply_arrives_in_its_thread() -> None:
    counts = Counts()
    with mail_server() as mails:
        async with sending(f"smtp://127.0.0.1:{mails.port}", counts=counts) as sender:
            await sender.send(
                answer(EmailReply(text="On its way, \u00fcber night.\n.\nBye", html="<b>On its way</b>"))
            )
    [mail] = mails.parsed
    assert mails.envelopes == [("shop@example.com", [ASKER])]
    assert (mail["From"], mail["To"]) == ("Shop <shop@example.com>", ASKER)
    assert mail["Subject"] == "Re: Where is my order?"
    assert mail["In-Reply-To"] == "<q3@example.org>"
    assert mail["References"] == "<q1@example.org> <q2@example.com> <q3@example.org>"
    assert mail["Message-ID"] == "<0190a0b1-mail~reply@example.com>"
    assert mail["Auto-Submitted"] == "auto-replied"
    text = mail.get_body(("plain",))
    assert text is not None
    assert text.get_content() == "On its way, \u00fcber night.\r\n.\r\nBye\r\n"
    assert counts == [("email", "sent")]


async def test_a_long_thread_arrives_id_by_id() -> None:
    ids = [f"<{'x' * 200}{number}@example.org>" for number in range(15)]
    it = msgspec.structs.replace(answer(), references=" ".join(ids))
    with mail_server() as mails:
        async with sending(f"smtp://127.0.0.1:{mails.port}") as sender:
            await sender.send(it)
    parsed = message_from_bytes(mails.raw[0], policy=policy.compat32)
    assert parsed["References"].split() == ids


async def test_a_repeat_is_known_by_its_message_id_and_within_one_process_never_leaves() -> None:
    with mail_server() as mails:
        for _ in range(2):  # two processes, the first of which died before it could ack
            counts = Counts()
            async with sending(f"smtp://127.0.0.1:{mails.port}", counts=counts) as sender:
                await sender.send(answer())
                await sender.send(answer())
            assert counts == [("email", "sent"), ("email", "repeat")]
    first, second = mails.parsed
    assert first["Message-ID"] == second["Message-ID"]


@pytest.mark.parametrize(
    ("said", "kind"), [("451 try later", TryAgain), ("550 no such user ann@example.org", GiveUp)]
)
@pytest.mark.parametrize("where", [ASKER, ""])
async def test_a_refusal_is_for_now_or_for_good_as_its_code_says(
    said: str, kind: type[TryAgain] | type[GiveUp], where: str
) -> None:
    counts = Counts()
    with mail_server() as mails:
        mails.refusals[where] = [said]
        async with sending(f"smtp://127.0.0.1:{mails.port}", counts=counts) as sender:
            with pytest.raises(kind) as raised:
                await sender.send(answer())
            await sender.send(answer())
    assert raised.value.code == "REPLY_EMAIL_SEND_FAILED"
    assert said[:3] in str(raised.value)
    assert "ann" not in str(raised.value)
    assert counts == [("email", "again" if kind is TryAgain else "refused"), ("email", "sent")]


async def test_where_one_is_refused_for_now_nobody_has_it_twice() -> None:
    it = answer(EmailReply(text="x", to=["a@example.org", "b@example.org", "c@example.org"]))
    with mail_server() as mails:
        mails.refusals = {"b@example.org": ["450 later"], "c@example.org": ["550 no", "550 no"]}
        async with sending(f"smtp://127.0.0.1:{mails.port}") as sender:
            with pytest.raises(TryAgain):
                await sender.send(it)
            await sender.send(it)
    assert [to for _, to in mails.envelopes] == [["a@example.org", "b@example.org"]]


async def test_starttls_is_used_where_it_is_offered_and_the_certificate_is_checked() -> None:
    authority = trustme.CA()
    with mail_server(authority=authority, login=True) as mails:
        url = f"smtp://{quote(USER, safe='')}:{quote(PASSWORD, safe='')}@127.0.0.1:{mails.port}"
        async with sending(url) as sender:
            with pytest.raises(TryAgain, match="SMTP_URL"):
                await sender.send(answer())
        async with sending(url, trusting(authority)) as sender:
            await sender.send(answer())
    assert (mails.secured, mails.logins) == ([True], [USER])


async def test_smtps_is_tls_from_the_start() -> None:
    authority = trustme.CA()
    with mail_server(authority=authority, from_the_start=True) as mails:
        async with sending(f"smtps://127.0.0.1:{mails.port}", trusting(authority)) as sender:
            await sender.send(answer())
        async with sending(f"smtps://127.0.0.1:{mails.port}") as sender:
            with pytest.raises(TryAgain, match="SMTP_URL"):
                await sender.send(answer())
    assert len(mails.raw) == 1


async def test_a_server_elsewhere_without_starttls_gets_nothing_unless_it_is_said() -> None:
    """0.0.0.0 is this machine too, but not by an address that says so."""
    with mail_server() as mails:
        async with sending(f"smtp://0.0.0.0:{mails.port}") as sender:
            with pytest.raises(TryAgain, match="STARTTLS"):
                await sender.send(answer())
        assert mails.raw == []
        async with sending(f"smtp+insecure://0.0.0.0:{mails.port}") as sender:
            await sender.send(answer())
    assert mails.secured == [False]


async def test_a_login_that_is_not_taken_is_given_up_and_not_shown() -> None:
    authority = trustme.CA()
    with mail_server(authority=authority, login=True) as mails:
        for user in ("shop:wrong@", ""):
            url = f"smtp://{user}127.0.0.1:{mails.port}"
            async with sending(url, trusting(authority)) as sender:
                with pytest.raises(GiveUp) as raised:
                    await sender.send(answer())
            assert raised.value.code == "OUTBOUND_UNAUTHORIZED"
            assert "wrong" not in str(raised.value)
    assert mails.raw == []


async def test_an_address_beyond_ascii_is_sent_as_it_is_and_its_domain_as_dns_has_it() -> None:
    with mail_server() as mails:
        async with sending(f"smtp://127.0.0.1:{mails.port}") as sender:
            await sender.send(answer(EmailReply(text="x", to=["j\u00f6rg@b\u00fccher.example"])))
            await sender.send(answer(EmailReply(text="x", to=["jo@b\u00fccher.example"])))
    assert [to for _, to in mails.envelopes] == [
        ["j\u00f6rg@xn--bcher-kva.example"],
        ["jo@xn--bcher-kva.example"],
    ]


async def test_a_server_that_is_not_there_is_asked_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with sending(f"smtp://127.0.0.1:{taken.getsockname()[1]}") as sender:
            with pytest.raises(TryAgain) as raised:
                await sender.send(answer())
    assert raised.value.code == "REPLY_EMAIL_SEND_FAILED"


async def test_a_server_that_says_nothing_does_not_outlive_who_waits_for_it() -> None:
    """Cancelling ends the wait at once, and the connection with it."""
    async with trio.open_nursery() as nursery:
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
        accepted, hung_up = trio.Event(), trio.Event()

        async def silent(stream: trio.SocketStream) -> None:
            accepted.set()
            while await stream.receive_some():
                pass
            hung_up.set()

        nursery.start_soon(trio.serve_listeners, silent, [listener])
        port = listener.socket.getsockname()[1]

        async def send(task_status: trio.TaskStatus[trio.CancelScope] = trio.TASK_STATUS_IGNORED) -> None:
            with trio.CancelScope() as scope:
                task_status.started(scope)
                async with sending(f"smtp://127.0.0.1:{port}") as sender:
                    await sender.send(answer())

        scope = await nursery.start(send)
        await accepted.wait()
        scope.cancel()
        with trio.fail_after(20):
            await hung_up.wait()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://mail.example.com",
        "mail.example.com",
        "smtp://",
        "smtp://user:secret@mail.example.com:x",
        "smtp://h/path",
    ],
)
def test_an_address_of_no_mail_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="SMTP_URL") as raised:
        server(url)
    assert "secret" not in str(raised.value)


def test_a_server_has_the_port_of_its_kind_and_shows_no_password() -> None:
    at = server("smtps://user%40example.com:p%3Aw@mail.example.com")
    assert (at.port, at.user, at.password) == (465, "user@example.com", "p:w")
    assert "p:w" not in repr(at)
    assert server("smtp://mail.example.com").port == 587
