"""The consumer daemon: pulls events over HTTP, has one handler deal with each, says what became of them."""
