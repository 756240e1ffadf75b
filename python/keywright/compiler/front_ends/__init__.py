"""Reads models, one file for each source format, and adds their operators to a graph."""
