"""The verbs of a space, run as turns without an event loop."""
