"""Sums that any t of n clients decrypt together."""
