"""Shared code of commands: arguments, inputs, folders, programs with their keys, pictures."""
