"""The primes with the shapes of keys, and the group of automorphisms."""
