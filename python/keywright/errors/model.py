"""Errors of compiling, saving, loading and running a private model, besides those of `keywright.compiler`.

Messages name arguments as ``name=value``; the command line writes ``--name value`` instead.
"""

from . import KeywrightError


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
