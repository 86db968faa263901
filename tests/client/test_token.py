"""The access token: sent with every request to the server, and shown nowhere."""

from __future__ import annotations

import httpx
import pytest

from edgequeues.client import Client, ClientError, Refused, Retry, Transport

from .script import Handler, Script, problem

Q = "dxn:queue:demo:log"
TOKEN = "eq_0123456789ab_sEcrEt-_"
EMPTY: dict[str, object] = {"entries": [], "nextCursor": None, "prevCursor": None}


def scripted(*steps: httpx.Response | Exception | Handler) -> tuple[Client, Script]:
    """A client with the token, whose requests go to a Script."""
    script = Script(steps)
    network = httpx.MockTransport(script)
    transport = Transport("http://server:1", token=TOKEN, retry=Retry(attempts_max=1), transport=network)
    return Client("", transport=transport), script


async def test_it_is_sent_as_bearer_with_every_request() -> None:
    client, script = scripted(httpx.Response(200, json=EMPTY), httpx.Response(200, json={"deleted": 1}))
    await client.read(Q)
    await client.delete(Q, ids=["a"])
    assert [one.headers["authorization"] for one in script.requests] == [f"Bearer {TOKEN}"] * 2


@pytest.mark.parametrize(("status", "code"), [(401, "unauthenticated"), (403, "forbidden")])
async def test_where_it_does_not_do_the_call_is_refused(status: int, code: str) -> None:
    client, _ = scripted(problem(status, code))
    with pytest.raises(Refused) as caught:
        await client.read(Q)
    assert (caught.value.status, caught.value.code) == (status, code)


@pytest.mark.parametrize(
    "step",
    [
        problem(401, "unauthenticated"),
        problem(500, "internal"),
        problem(503, "overloaded"),
        httpx.Response(200, text="hello"),
        httpx.ReadError("broken"),
    ],
)
async def test_no_error_and_no_repr_shows_it(step: httpx.Response | Exception) -> None:
    client, script = scripted(step)
    with pytest.raises(ClientError) as caught:
        await client.read(Q)
    error = caught.value
    shown = [repr(client), str(error), repr(error), repr(vars(error)), repr(script.requests[0].headers)]
    assert not [text for text in shown if "sEcrEt" in text]


async def test_it_does_not_follow_a_redirection() -> None:
    client, script = scripted(httpx.Response(307, headers={"location": "http://elsewhere:1/"}))
    with pytest.raises(ClientError):
        await client.read(Q)
    assert [one.url.host for one in script.requests] == ["server"]


@pytest.mark.parametrize(
    "token", ["", " ", f"{TOKEN}\n", f"{TOKEN} ", f"a {TOKEN}", f"{TOKEN}\u00e9", "\udcff"]
)
def test_one_that_cannot_be_sent_is_refused_at_once_and_not_shown(token: str) -> None:
    with pytest.raises(ValueError, match="the access token cannot be sent") as caught:
        Client("http://server:1", token=token)
    assert "sEcrEt" not in str(caught.value)
