"""The server's ciphertexts: reads the ciphertexts of clients, and writes answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from keywright._copies import Unpicklable
from keywright._core import (
    Ciphertext,
    ClientParameters,
    EvaluationKeys,
    Evaluator,
    Parameters,
    SeededCiphertext,
    inspect,
)
from keywright.errors import KeywrightError
from keywright.errors.service import InvalidObjectError
from keywright.model.served import framing
from keywright.model.served.manifest import Manifest
from keywright.runtime.runner import Runner

ANSWER_GROWTH = 1.25
"""By how much truncation may increase the error of an answer."""

ANSWER_BOUND = 2.0**-8
"""Answers are truncated only if the bound on their error is at most this."""

UPLOAD_SCALE_TOLERANCE = 1 / 128
"""Relative tolerance between the scale of a bootstrapping's input and the planned scale."""

HEADER_BYTES = 8192
"""An upper bound on the bytes of a ciphertext or a key that are not residues."""


@dataclass(frozen=True)
class Answer:
    """The answer to a batch of samples.

    Attributes:
        objects: bytes of the ciphertexts.
        error_bound: derived bound on the error of every result by encryption, before its scale is undone.
    """

    objects: list[bytes]
    error_bound: float


class Requests(
    Unpicklable,
    elsewhere="save the model with keywright.Model.save, and load it elsewhere with keywright.load_server",
):
    """Ciphertexts that a model takes and returns.

    Thread safety: any number of threads may use one at the same time.

    Args:
        manifest: of the model.
        parameters: parameters of the manifest.
        client: parameters of thin clients; None if clients encrypt slots.
    """

    def __init__(self, manifest: Manifest, parameters: Parameters, client: ClientParameters | None) -> None:
        self.manifest, self.parameters, self.client = manifest, parameters, client

    @property
    def most_bytes(self) -> int:
        """Maximum bytes of the ciphertexts of a batch of samples."""
        level = self.manifest.input.level
        return self.manifest.input.places.ciphertexts * (
            2 * self.parameters.n * 8 * (level + 1) + HEADER_BYTES
        )

    def read_all(self, messages: Sequence[bytes]) -> list[Ciphertext]:
        """Read the ciphertexts of a message, or the sums of the ciphertexts of several messages whose samples
        are at different places (`Model.joins`).

        Raises:
            BadRequestError, InvalidObjectError: as for `framing.split` and `read`.
        """
        count = self.manifest.input.places.ciphertexts
        rows = [[self.read(data) for data in framing.split(message, count)] for message in messages]
        add = Evaluator(self.parameters).add
        return [reduce(add, column) for column in zip(*rows, strict=True)]

    def read(self, data: bytes) -> Ciphertext:
        """Read a ciphertext of a sample in any form that clients send: full, seeded, or compact (thin
        clients).

        Raises:
            InvalidObjectError: the bytes are malformed, or have another level, packing or parameters than the
                model takes.
        """
        try:
            kind = inspect(data)["kind"]
            if self.client is not None:
                return self.client.read_upload(data, self.parameters)
            if kind == "a seeded CKKS ciphertext":
                ciphertext = SeededCiphertext.from_bytes(data, self.parameters).expand()
            elif kind == "a CKKS ciphertext":
                ciphertext = Ciphertext.from_bytes(data, self.parameters)
            else:
                raise InvalidObjectError(
                    f"expected a ciphertext, got {kind}; send a ciphertext of the model's parameters"
                )
        except KeywrightError as error:
            if isinstance(error, InvalidObjectError):
                raise
            raise InvalidObjectError(f"a ciphertext cannot be read: {error}") from error
        manifest = self.manifest
        slots, ring = manifest.input.places.size, manifest.input.log_n or self.parameters.log_n
        expected = (manifest.input.level, slots, 1, ring)
        if (ciphertext.level, ciphertext.slots, ciphertext.degree, ciphertext.log_n) != expected:
            raise InvalidObjectError(
                f"the model takes {slots} slots at level {manifest.input.level}, degree 1, in a ring of "
                f"degree 2^{ring}; got {ciphertext!r}"
            )
        if abs(ciphertext.scale / manifest.format.scale - 1.0) > UPLOAD_SCALE_TOLERANCE:
            raise InvalidObjectError(
                f"the model takes ciphertexts of scale {manifest.format.scale}, got {ciphertext.scale:.0f}"
            )
        return ciphertext

    def answer(
        self,
        runner: Runner,
        keys: EvaluationKeys,
        inputs: Sequence[Ciphertext],
        advance: Callable[[float, str], object] | None = None,
        on_step: Callable[[], object] | None = None,
    ) -> Answer:
        """Evaluate a batch of samples and write its answer; arguments and errors as for `Runner.run`."""
        results = runner.run(keys, inputs, advance, on_step)
        return Answer(
            [self.write(result) for result in results], max(result.error_bound for result in results)
        )

    def write(self, result: Ciphertext) -> bytes:
        """Return a ciphertext of a run as a client receives it. A thin client receives the coefficients that
        hold numbers. If the bound on the error is tight enough, their low bits are truncated. The worst-case
        bound of a deep network is too loose to justify truncation, so its answers are sent in full."""
        tight = result.error_bound < ANSWER_BOUND
        fits = (result.magnitude_bound + result.error_bound) * result.scale < self.parameters.q[0] / 2
        if self.client is None or not (tight and fits):
            return result.to_bytes()
        return self.client.write_answer(result, ANSWER_GROWTH)
