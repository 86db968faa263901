"""What runs the user's handler: a Python function, a command that speaks JSON lines, or a URL; see `opening`."""
