"""Protection of a shared key against a server that alters sums."""
