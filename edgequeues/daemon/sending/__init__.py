"""How replies leave: what may be sent at all, the mail as text, and the providers that take it."""
