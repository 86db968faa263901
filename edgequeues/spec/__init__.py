"""Specs: queues, webhooks and schedules as an app declares them, from text or JSON to what a server does."""
