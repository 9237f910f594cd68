"""What the doctor looks at, one subject in each file."""
