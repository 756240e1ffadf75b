"""Fewest keys for a set of automorphisms: exact, two hops at most."""
