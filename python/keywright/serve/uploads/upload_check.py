"""What is looked for in the file of a whole key set, before a worker reads it."""

from pathlib import Path

from keywright._core import HEAD_BYTES
from keywright.errors.service import InvalidObjectError

from .secret_scanner import SecretScanner
from .uploaded import UploadedKeys

PIECE_BYTES = 1 << 20


def look_at_joints(path: Path, joints: set[int]) -> None:
    """Look for secret keys where parts meet that came apart.

    Raises:
        SecretRefusedError: there is one.
    """
    with path.open("rb") as file:
        for joint in sorted(joints):
            file.seek(max(0, joint - HEAD_BYTES + 1))
            SecretScanner().look(file.read(2 * (HEAD_BYTES - 1)))


def look_through(path: Path, uploaded: UploadedKeys) -> None:
    """Look at a whole set, of which nobody has seen all, as at one that comes in pieces.

    Raises:
        SecretRefusedError: there is a secret key in it.
        InvalidObjectError: it is not the one that was asked for.
    """
    wanted, scanner = uploaded.configuration.key_set, SecretScanner()
    with path.open("rb") as file:
        if file.read(len(wanted)) != wanted:
            raise InvalidObjectError("these are not the keys that the manifest asks for: their head differs")
        file.seek(0)
        while piece := file.read(PIECE_BYTES):
            scanner.look(piece)
