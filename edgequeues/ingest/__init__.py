"""From mail and text messages to events: parsing, without I/O."""
