"""The identity of a message's program."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from keywright._reading.documents import Limits
from keywright._reading.sealed import SealedFolder, seal
from keywright.errors.choices import require_choice
from keywright.errors.engine import FormatError
from keywright.errors.model import program_mismatch
from keywright.program.file.storage import digest
from keywright.program.program import Program

FORMAT = "keywright-identity-3"

Holds = Literal["request", "answer"]
"""What a folder of ciphertexts holds."""

Reader = Callable[[str, int], bytes]

IDENTITY = "program.json"
"""Name of an identity in a folder of ciphertexts."""

LIMITS = Limits(32 << 20, 1 << 19)
"""Of an identity: it has a line of some 100 bytes for each ciphertext, which has 10,000 or more."""


@dataclass(frozen=True)
class Identity:
    """The program for which a request was encrypted, or from which an answer came.

    Attributes:
        program: its SHA-256, 32 bytes.
        created: when it was compiled, in milliseconds since 1970; 0 if that is unknown.
    """

    program: bytes
    created: int = 0

    @staticmethod
    def of(program: Program) -> "Identity":
        """Return the identity of a program; all its arrays are read for it."""
        return Identity(bytes.fromhex(digest(program)), program.created)

    def require(self, own: "Identity", here: str, there: str) -> None:
        """Check that a message of the other side belongs to the program of this side.

        Args:
            own: of this side.
            here, there: names of the sides: "client" or "server".

        Raises:
            MismatchError: it belongs to another program; says which side is older if both know when
                their program was compiled.
        """
        if self.program == own.program:
            return
        older = None
        if self.created and own.created and self.created != own.created:
            older = there if self.created < own.created else here
        raise program_mismatch(here, own.program.hex(), there, self.program.hex(), older)

    def save(self, folder: Path, holds: Holds, samples: int) -> None:
        """Write the identity, the kind and number of the samples, and the SHA-256 of each file into the
        folder that has all their ciphertexts.

        Raises:
            ParameterError: they are neither a request nor an answer.
        """
        require_choice("holds", holds, get_args(Holds))
        entry = {"format": FORMAT, "holds": holds, "program": self.program.hex(), "created": self.created}
        seal(folder, IDENTITY, entry | {"samples": samples})

    @staticmethod
    def load(folder: Path, holds: Holds, samples: int) -> tuple["Identity", Reader]:
        """Read the identity from a folder of ciphertexts of samples, which are a request or an answer.
        Returns also what reads a ciphertext by its file's name and the most bytes, and raises FormatError if
        it was exchanged or damaged.

        Raises:
            FormatError: it is missing or malformed, the ciphertexts are the other, or some are missing.
            ParameterError: they are neither a request nor an answer.
        """
        require_choice("holds", holds, get_args(Holds))
        path = folder / IDENTITY
        if not path.is_file():
            raise FormatError(
                f"{folder} lacks {IDENTITY}, which names the program of its ciphertexts; make them again "
                "with this release",
                code="message",
            )
        try:
            sealed = SealedFolder(folder, IDENTITY, FORMAT, LIMITS)
            entry = sealed.fields
            program, created, held = bytes.fromhex(entry["program"]), entry["created"], entry["holds"]
            stored = entry["samples"]
        except (ValueError, LookupError, TypeError) as error:
            raise FormatError(f"{path} is not the identity of a program: {error}", code="message") from error
        numbers = isinstance(created, int) and isinstance(stored, int) and 0 <= stored < 1 << 63
        if len(program) != 32 or not numbers or not 0 <= created < 1 << 63:
            raise FormatError(f"{path} is not the identity of a program", code="message")
        if held != holds:
            writer = "keywright encrypt" if holds == "request" else "keywright run"
            raise FormatError(
                f"{folder} holds no {holds}; name the folder that {writer} has written", code="message"
            )
        if stored != samples:
            raise FormatError(
                f"{folder} holds ciphertexts of {samples} samples, and {stored} were written; copy it again",
                code="message",
            )
        return Identity(program, created), sealed.read
