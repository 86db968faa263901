"""Durable queues where each space is an actor that owns one SQLite file."""

__version__ = "0.1.0"
