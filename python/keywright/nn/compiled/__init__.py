"""Compiled networks: instructions, their key switches, and the file format."""
