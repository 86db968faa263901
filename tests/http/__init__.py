"""The HTTP surface, called in-process as an ASGI app, in virtual time."""
