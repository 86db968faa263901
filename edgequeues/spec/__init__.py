"""Specs: queues and webhooks as an app declares them, from text or JSON to what a server does."""
