"""Levels: what a network is compiled for, what operations cost there, and where bootstraps go."""
