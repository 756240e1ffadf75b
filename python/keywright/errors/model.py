"""Errors of compiling, saving, loading and running a private model, besides those of `keywright.compiler`.

Messages name arguments as ``name=value``; the command line writes ``--name value`` instead.
"""

from .engine import KeywrightError
from .network import RefusalError


class InferenceError(KeywrightError):
    """Base of the errors of `keywright.model`."""


class ChoiceError(InferenceError, ValueError):
    """Arguments that contradict each other."""


class BatchError(InferenceError, ValueError):
    """A batch has more samples than a ciphertext has slots.

    Attributes:
        batch: number of samples.
        slots: of a ciphertext.
    """

    def __init__(self, batch: int, slots: int) -> None:
        super().__init__(
            f"batch={batch} exceeds the {slots} slots of a ciphertext; use at most {slots} samples"
        )
        self.batch, self.slots = batch, slots


class UnknownPresetError(InferenceError, ValueError):
    """A program bootstraps with a preset that this release does not have."""


class FolderError(InferenceError):
    """A folder lacks files, or already exists."""


class KeysMissingError(InferenceError):
    """An operation needs a secret key that the client lacks, or evaluation keys that the server lacks."""


class MessageError(InferenceError, ValueError):
    """Bytes that are not a message of ciphertexts, or are for another program."""


class SecretFileWarning(UserWarning):
    """A file with a secret key can be read by other users."""


class PrecisionError(RefusalError):
    """The predicted error of encryption is too large beside the outputs.

    Attributes:
        share: of the spread of an output.
        allowed: largest share.
    """

    def __init__(self, text: str, share: float, allowed: float) -> None:
        super().__init__(
            f"{text}; use parameters with a larger scale (preset=, parameters=), outputs of similar size, or "
            f"allow more than {allowed:g} times the spread (noise=)"
        )
        self.share, self.allowed = share, allowed


class ProgramMismatchError(InferenceError, ValueError):
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
