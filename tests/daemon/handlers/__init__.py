"""Tests of what runs a user's handler; time is real, as threads and processes know no other."""
