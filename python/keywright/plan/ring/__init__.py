"""What everything is over: the primes with the shapes of keys, and the group of automorphisms."""
