"""The error that a command raises."""


class CommandError(Exception):
    """A command cannot do its task; the text states the remedy."""
