"""The dashboard: pages for people, which get all they show from the public API. Its files are in `static`."""
