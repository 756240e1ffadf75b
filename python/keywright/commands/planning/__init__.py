"""The commands about parameters, keys and time."""
