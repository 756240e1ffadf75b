"""The steps of a model that a client computes: before encryption and after decryption."""
