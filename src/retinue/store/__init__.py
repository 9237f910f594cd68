"""What survives: runs, messages, events, ledgers and logs in one data folder that many processes share."""
