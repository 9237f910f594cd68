"""What survives a restart. Knows nothing of what runs mean or who asks."""
