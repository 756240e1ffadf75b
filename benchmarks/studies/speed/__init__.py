"""Bootstraps: work and time for each level that they leave and each value."""
