"""Who does something: what the audit says of them. Never a token, only its id and its name."""

from __future__ import annotations

from typing import NamedTuple


class Who(NamedTuple):
    """id: of a token; for everybody else one of the words below. name: of the token, as its maker called it."""

    id: str
    name: str


LOOPBACK = Who("loopback", "")  # whoever is on this machine, where no token is needed
ANYBODY = Who("anybody", "")  # without a token, from anywhere
SERVER = Who("server", "")  # nobody asked: a spec named at the start, a schedule
