"""The dashboard in a real browser: Debian's chromium before a server in a process of its own."""
