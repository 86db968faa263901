"""Adapters: from what platforms send to messages for sessions. Each is a module with ADAPTER and `message`."""

from __future__ import annotations

from edgequeues.sessions.adapters import discord, telegram, terminal

ADAPTERS = (discord.ADAPTER, telegram.ADAPTER, terminal.ADAPTER)
