"""One run's life: record, queue, meter, ask, cancel, recover."""
