"""Readers of files: arrays, and numbers of records."""
