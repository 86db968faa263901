"""Events: what is one, and the rules about them."""
