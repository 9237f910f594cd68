"""A page on this machine on which a person sees the runs and answers what they wait for."""
