"""The one room that reads setting files and the environment. Knows nothing of what settings are for."""
