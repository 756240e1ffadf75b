"""The compiled form of a network: instructions, what they refer to, and its file."""
