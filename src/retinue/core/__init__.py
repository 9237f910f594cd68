"""The words we use: values, ports and errors. Knows nothing of any other room."""
