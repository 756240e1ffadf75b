"""The fewest keys for a set of automorphisms: exact, at most two hops."""
