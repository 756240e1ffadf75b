"""The compiled form of a network: instructions, their operands, and its file."""
