"""The error that a command raises."""


class CommandError(Exception):
    """A command cannot do what was asked; the text says what to do instead."""
