"""The file of a program: writing, reading and validation."""
