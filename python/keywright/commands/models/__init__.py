"""The commands that take a model."""
