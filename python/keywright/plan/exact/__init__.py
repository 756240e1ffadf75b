"""Proven plans: the mixed-integer program of small workloads, and lower bounds for all plans."""
