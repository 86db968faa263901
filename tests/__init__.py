"""Everything is tested through what a user of that layer calls; see each folder's own first lines."""
