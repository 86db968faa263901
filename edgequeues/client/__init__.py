"""The Python client: speaks the native protocol, imports nothing of the server."""
