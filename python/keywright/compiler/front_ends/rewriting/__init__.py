"""Rewrites the operators of exporters and runtimes as standard ones of real numbers."""
