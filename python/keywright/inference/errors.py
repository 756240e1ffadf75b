"""What compiling, saving, loading and running a private model can raise, beside the errors of `keywright.nn`.

Arguments are named as ``name=value``; the command line says ``--name value`` in their place.
"""

from keywright.errors import KeywrightError


class InferenceError(KeywrightError):
    """Base of the errors of `keywright.inference`."""


class ChoiceError(InferenceError, ValueError):
    """Arguments that contradict each other."""


class BatchError(InferenceError, ValueError):
    """More samples are to share a ciphertext than it has slots.

    Attributes:
        batch: how many.
        slots: of a ciphertext.
    """

    def __init__(self, batch: int, slots: int) -> None:
        super().__init__(f"batch={batch}: a ciphertext has {slots} slots, of {slots} samples at most")
        self.batch, self.slots = batch, slots


class UnknownPresetError(InferenceError, ValueError):
    """A program that bootstraps with parameters that this release does not have."""


class FolderError(InferenceError):
    """A folder that lacks files, or that exists where one is to be made."""


class KeysMissingError(InferenceError):
    """Something is asked of a client without the secret, or of a server without evaluation keys."""


class MessageError(InferenceError, ValueError):
    """Bytes that are not a message of ciphertexts, or one for another program."""


class SecretFileWarning(UserWarning):
    """A secret key lies in a file that others than its owner may read."""
