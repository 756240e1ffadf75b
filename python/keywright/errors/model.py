"""Errors of saving, loading and running a private model.

Messages name arguments as ``name=value``; the command line writes ``--name value`` instead.
"""

from .engine import KeywrightError


class FolderError(KeywrightError):
    """A folder lacks files, or already exists."""


class KeysMissingError(KeywrightError):
    """An operation needs a secret key that the client lacks, or evaluation keys that the server lacks."""


class MessageError(KeywrightError, ValueError):
    """Bytes that are not a message of ciphertexts, or are for another program."""


class SecretFileWarning(UserWarning):
    """A file with a secret key can be read by other users."""


class ProgramMismatchError(KeywrightError, ValueError):
    """A request or an answer belongs to another program: client and server have different models.

    Attributes:
        program: SHA-256 of the program of this side.
        found: SHA-256 of the program that the message belongs to.
        older: "client" or "server", the side with the older program; None if that is unknown.
    """

    def __init__(self, here: str, program: str, there: str, found: str, older: str | None) -> None:
        age = "" if older is None else f"; the {older}'s is older"
        way = f"give the {older} the newer model" if older is not None else "give both the same model"
        super().__init__(
            f"the message is for the program {found[:16]} of the {there}, but the {here} has {program[:16]}"
            f"{age}: {way}"
        )
        self.program, self.found, self.older = program, found, older
