"""Getting Retinue onto a machine: hosts' configuration files and the doctor. Knows nothing of runs."""
