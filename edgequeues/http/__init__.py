"""The HTTP surface: one module a dialect, route tables, one small ASGI app."""
