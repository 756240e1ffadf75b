"""The primes with the shapes of keys, and the group of automorphisms."""

from .galois import Automorphism

__all__ = ["Automorphism"]
