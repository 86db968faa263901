"""From bytes to events, without I/O."""
