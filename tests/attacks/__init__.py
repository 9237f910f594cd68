"""Attacks on Retinue, by repositories, models, web pages, child runs and other users. Each must fail."""
