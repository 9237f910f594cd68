"""The `local` executor: a loop over a model of one's own and a box of tools. Knows nothing of any server."""
