"""The ways to perform one task. Knows nothing of queues, budgets or what a run is recorded as."""
