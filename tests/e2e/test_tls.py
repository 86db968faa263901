"""TLS: what is spoken, what is refused, and clients that do not do their part of it."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from edgequeues.client import Client, Unreachable
from edgequeues.http.listen import BadTls, TlsFiles, tls_context

from .local import GUARD_S, QUICK, Running, head, serving, until_end

BOTH_FRONTS = True

Q = "/v1/dxn:queue:demo:log"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    folder = tmp_path_factory.mktemp("tls")
    issued = authority.issue_cert("localhost", "127.0.0.1")
    chain, key = folder / "chain.pem", folder / "key.pem"
    for one in issued.cert_chain_pems:
        one.write_to_path(chain, append=True)
    issued.private_key_pem.write_to_path(key)
    return TlsFiles(str(chain), str(key))


@pytest.fixture
def trust(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
async def server(tmp_path: Path, files: TlsFiles) -> AsyncIterator[Running]:
    async with serving(tmp_path, tls=files, deadlines=QUICK) as running:
        yield running


async def fill(client: httpx.AsyncClient, megabytes: int) -> None:
    for _ in range(megabytes):
        await client.post(Q, json={"entries": [{"data": "x" * 1_000_000}]})


async def test_requests_are_answered_over_tls(server: Running, trust: ssl.SSLContext) -> None:
    assert server.url.startswith("https://127.0.0.1:")
    async with httpx.AsyncClient(base_url=server.url, verify=trust) as client:
        for n in range(1, 4):
            reply = await client.post(Q, json={"entries": [{"data": n}]})
            assert reply.json()["results"][0]["position"] == n
        await fill(client, 3)
        assert len((await client.get(Q)).content) > 3_000_000


async def test_the_client_trusts_the_authority_that_ssl_cert_file_names(
    server: Running, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    async with Client(server.url) as client:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await client.append("dxn:queue:demo:log", [1])
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    async with Client(server.url) as client:
        assert (await client.append("dxn:queue:demo:log", [1])).results[0].position == 1


async def test_the_certificate_is_the_one_given(server: Running) -> None:
    stream = await server.secure(ssl.create_default_context())
    with pytest.raises(trio.BrokenResourceError) as raised:
        await stream.do_handshake()
    assert isinstance(raised.value.__cause__, ssl.SSLCertVerificationError)
    await stream.transport_stream.aclose()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_http_1_1_is_what_is_agreed_on(
    server: Running, trust: ssl.SSLContext, version: ssl.TLSVersion
) -> None:
    trust.set_alpn_protocols(["h2", "http/1.1"])
    trust.minimum_version = trust.maximum_version = version
    stream = await server.secure(trust)
    await stream.do_handshake()
    assert stream.selected_alpn_protocol() == "http/1.1"
    await stream.aclose()


async def test_nothing_below_tls_1_2_is_spoken(files: TlsFiles) -> None:
    assert tls_context(files).minimum_version == ssl.TLSVersion.TLSv1_2


async def test_plain_http_is_told_where_it_is(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    answer = await server.raw(head("GET", "/healthz"))
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"https://" in answer
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00", b"\x16\x03\x01" + b"\xff" * 600, b"\0" * 50])
async def test_a_handshake_that_ends_early_harms_nobody(
    server: Running, trust: ssl.SSLContext, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await server.connect()
    if sent:
        await stream.send_all(sent)
    await stream.aclose()
    async with httpx.AsyncClient(base_url=server.url, verify=trust) as client:
        assert (await client.get("/healthz")).status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00"])
async def test_a_handshake_that_never_ends_is_ended(server: Running, sent: bytes) -> None:
    stream = await server.connect()
    if sent:
        await stream.send_all(sent)
    with trio.fail_after(GUARD_S):
        assert await until_end(stream) == b""
    await stream.aclose()


async def test_events_arrive_one_by_one_over_tls(server: Running, trust: ssl.SSLContext) -> None:
    stream = await server.secure(trust)
    await stream.send_all(head("GET", f"{Q}/subscribe"))
    assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
    async with httpx.AsyncClient(base_url=server.url, verify=trust) as client:
        for n in range(3):
            await client.post(Q, json={"entries": [{"data": n}]})
            with trio.fail_after(GUARD_S):
                assert b'"data":%d}\n\n' % n in await stream.receive_some()
    await stream.aclose()


async def test_headers_that_drip_over_tls_are_answered_408(server: Running, trust: ssl.SSLContext) -> None:
    stream = await server.secure(trust)
    await stream.send_all(b"GET /hea")
    with trio.fail_after(GUARD_S):
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 408")
    await stream.transport_stream.aclose()


@pytest.mark.slow
async def test_a_client_that_does_not_read_over_tls_is_dropped(
    server: Running, trust: ssl.SSLContext
) -> None:
    async with httpx.AsyncClient(base_url=server.url, verify=trust) as client:
        await fill(client, 8)
    stream = await server.secure(trust)
    await stream.send_all(head("GET", Q, "Accept-Encoding: identity"))
    await trio.sleep(QUICK.write_s + 0.5)
    with pytest.raises(trio.BrokenResourceError), trio.fail_after(GUARD_S):
        await until_end(stream)
    await stream.transport_stream.aclose()


async def test_stopping_ends_within_its_grace_with_tls_clients_of_every_kind(
    tmp_path: Path, files: TlsFiles, trust: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, tls=files, grace_s=0.5) as server:
        async with httpx.AsyncClient(base_url=server.url, verify=trust) as client:
            await fill(client, 8)
        silent, idle, stuck = await server.connect(), await server.secure(trust), await server.secure(trust)
        await idle.do_handshake()
        await stuck.send_all(head("GET", Q, "Accept-Encoding: identity"))
        await trio.sleep(0.3)
        with trio.fail_after(GUARD_S):
            server.shutdown.set()
            await server.ended.wait()
        await silent.aclose()
        for stream in (idle, stuck):
            await stream.transport_stream.aclose()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


# -- files -----------------------------------------------------------------------------------------------


def test_files_that_cannot_be_used_are_named_with_a_remedy(files: TlsFiles, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().issue_cert("localhost").private_key_pem.write_to_path(str(other))
    noise = tmp_path / "noise.pem"
    noise.write_text("not PEM")
    locked = tmp_path / "locked.pem"
    key = load_pem_private_key(Path(files.key).read_bytes(), None)
    locked.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    )
    missing = str(tmp_path / "missing.pem")
    for bad, named, said in (
        (TlsFiles(missing, files.key), missing, "no such file"),
        (TlsFiles(files.cert, missing), missing, "no such file"),
        (TlsFiles(files.cert, str(other)), str(other), "belong together"),
        (TlsFiles(str(noise), files.key), str(noise), "not PEM"),
        (TlsFiles(files.cert, str(noise)), str(noise), "not PEM"),
        (TlsFiles(files.cert, str(locked)), str(locked), "passphrase"),
    ):
        with pytest.raises(BadTls) as raised:
            tls_context(bad)
        assert named in str(raised.value)
        assert said in str(raised.value)
        assert "\n" not in str(raised.value)
