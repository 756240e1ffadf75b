"""Runs Keywright and its peers interleaved at equal parameters and threads, and writes the comparison."""
