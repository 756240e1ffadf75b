"""A plan: its keys, its file, its predicted time, derived keys, and its execution."""
