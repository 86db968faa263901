"""Inbound queues of sessions: each message of a user is delivered once, in order, however long it takes."""
