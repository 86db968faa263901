"""How does edgequeues do beside others? Servers that anybody can install, on loopback, given the same jobs."""
