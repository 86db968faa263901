"""The same worlds as the tests of HTTP have."""

from __future__ import annotations

from tests.http.conftest import client, clock, control, front, server, world

__all__ = ["client", "clock", "control", "front", "server", "world"]
