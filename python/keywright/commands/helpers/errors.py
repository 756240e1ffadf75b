"""What a command refuses with."""


class CommandError(Exception):
    """What the command line was asked for cannot be done; the text says what to do instead."""
