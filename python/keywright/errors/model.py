"""Errors of saving, loading and running a private model.

Messages name arguments as ``name=value``; the command line writes ``--name value`` instead.
"""

from .engine import KeywrightError, MismatchError


class FolderError(KeywrightError, ValueError):
    """A folder or file that cannot be read or written as a model's.

    * ``missing``: files are missing.
    * ``exists``: the name is already taken.
    * ``place``: the path is a folder, a pipe, or in a folder that is missing or not writable.
    * ``model_folder``: the folder holds no compiled model that can be served.
    * ``secret``: the folder for a server holds a secret key.
    * ``locked``: another process holds the lock of a file for two minutes.

    What to do: name another place, remove the existing file or folder, or compile the model again.
    """

    code = "missing"


class SecretFileWarning(UserWarning):
    """A file with a secret key can be read by other users.

    What to do: remove the permissions of other users, e.g. by chmod 600 FILE.
    """


def program_mismatch(here: str, program: str, there: str, found: str, older: str | None) -> MismatchError:
    """Return the error of a request or an answer that belongs to another program.

    Args:
        here: "client" or "server", this side.
        program: SHA-256 of its program.
        there: the other side.
        found: SHA-256 of the program that the message belongs to.
        older: the side with the older program; None if that is unknown.
    """
    age = "" if older is None else f", and the {older}'s is older"
    way = f"give the {older} the newer model" if older is not None else "give both the same model"
    return MismatchError(
        f"the message is for the program {found[:16]} of the {there}, but the {here} has {program[:16]}"
        f"{age}; {way}",
        code="program",
        program=program,
        found=found,
        older=older,
    )
