"""Everything that reads the user's files. Knows nothing of agents, runs, budgets' owners or hosts."""
