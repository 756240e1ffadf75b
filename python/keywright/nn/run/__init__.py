"""Runs compiled networks, on ciphertexts and in the clear; compares and times them."""
