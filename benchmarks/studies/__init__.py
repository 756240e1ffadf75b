"""Measurements: a module or a package for each question, each with its own command."""
