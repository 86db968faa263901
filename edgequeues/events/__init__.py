"""What goes through a switchboard: events made of mail and text messages, and the rules about them. No I/O."""
