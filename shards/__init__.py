"""A Durable Object runtime on trio: actors that each own one SQLite file."""
