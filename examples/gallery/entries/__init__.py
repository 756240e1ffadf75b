"""A module for each published model, with its `ENTRY`."""
