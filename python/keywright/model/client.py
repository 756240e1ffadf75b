"""The client: makes keys, encrypts samples, decrypts results."""

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._copies import Unpicklable
from keywright._core import Ciphertext, EvaluationKeys, Flooding, KeyGenerator, PublicKey, SecretKey
from keywright._files import new_folder
from keywright._progress import Progress, silent
from keywright.errors.engine import FormatError, MissingKeyError
from keywright.plan.keys.execution import PlanExecution
from keywright.runtime.range_guard import guard, largest_result

from .exchange.encryption import Encryption, require_secret
from .exchange.identity import Identity
from .exchange.messages import Message
from .executable import Executable
from .folder.files import EVALUATION_KEYS, MASTER_KEYS, PLAN, PUBLIC_KEY, SECRET_KEY
from .served.demands import Demands


class ModelClient(
    Unpicklable,
    elsewhere="save() the client with its secret key, and load it elsewhere with keywright.load_client",
):
    """Keys, encryption and decryption for a model that a server evaluates.

    Thread safety: any number of threads may use one at the same time.

    Args:
        executable: the program and its parameters.
        secret: the secret key; None for a client that only encrypts, with ``public``.
        public: the public key; by default made from the secret key.
        execution: of the keys; by default that of the executable.
        demands: limits on the keys of a folder that somebody else made.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        secret: SecretKey | None = None,
        public: PublicKey | None = None,
        execution: PlanExecution | None = None,
        demands: Demands | None = None,
    ) -> None:
        self.program, self.parameters = executable.program, executable.parameters
        self._executable, self._secret, self._public = executable, secret, public
        self._execution, self._demands = execution, demands

    def keys(self, progress: Progress = silent) -> bytes:
        """Make the evaluation keys that the server needs, in the format of `EvaluationKeys.to_bytes`. They
        contain no secret.

        Raises:
            MissingKeyError: the client has no secret key, or no key plan.
        """
        return bytes(self.evaluation_keys(progress).to_bytes())

    def evaluation_keys(self, progress: Progress = silent) -> EvaluationKeys:
        """Make the keys of `keys`, as an object."""
        specs = self.execution.key_specs
        with progress("evaluation keys", len(specs)) as advance:
            return self._generator.evaluation_keys(
                relinearization=False, specs=specs, progress=lambda done, total: advance(1)
            )

    def save_evaluation_keys(self, path: Path, progress: Progress = silent) -> None:
        """Write the keys of `keys` into a file, one key in memory at a time."""
        save_evaluation_keys(path, self._owner, self.execution, progress)

    def master_keys(self, progress: Progress = silent) -> bytes:
        """Make the master keys from which the server derives other keys, if the plan has any.

        Raises:
            MissingKeyError: the client has no secret key, or no key plan.
            MismatchError: the plan has no master keys.
        """
        masters = self.execution.plan.masters
        with progress("master keys", 0 if masters is None else len(masters.automorphisms)) as advance:
            result = self.execution.make_masters(self._owner, lambda done, total: advance(1))
        return bytes(result.to_bytes())

    def save_keys(self, folder: Path, progress: Progress = silent) -> None:
        """Write the evaluation keys, and master keys if the plan has any, into an existing server folder, one
        key in memory at a time."""
        save_keys(folder, self._owner, self.execution, progress)

    def guard(self, samples: Any) -> None:
        """Refuse samples that leave the ranges of the program, which a server cannot detect.

        Raises:
            OutOfRangeError: names the layer, the value and the range.
            EncodeError: another shape, no samples, or values that are not finite.
        """
        self.guard_features(self.program.features(samples)[0])

    def guard_features(self, values: NDArray[np.float64]) -> None:
        """Refuse features, (count, *input_shape), as `guard` does samples."""
        program = self.program
        guard(program, values, largest_result(self.parameters, program.output.level))
        declared = program.input.magnitude or self.parameters.default_magnitude
        if self._executable.entry is not None:
            # Beyond it, the bootstrap by which thin clients enter wraps.
            self._executable.interface.require_range(values, joint=False)
            declared = self._executable.interface.input_magnitude
        program.input.require_magnitude(values, declared)

    def encrypt(self, samples: Any, *, force: bool = False) -> bytes:
        """Encrypt samples and return the message for the server. With the secret key, half of every
        ciphertext is a 32-byte seed; with a public key alone, messages take twice the bytes.

        Args:
            samples: one, of shape ``program.input.shape``, or several, (count, *input_shape); if the model
                has first steps, any samples that `Program.features` takes.
            force: also encrypt samples that leave a range of the program; their results are wrong.

        Raises:
            EncodeError: another shape, no samples, or values that are not finite.
            OutOfRangeError: names the layer, the value and the range.
            EncodeError: a forced sample is above the magnitude that the program declares for its inputs.
            MissingKeyError: the client has neither a secret nor a public key.
        """
        values, single = self.program.features(samples)
        if not force:
            self.guard_features(values)
        batches = self.program.batches(values)
        objects = [data for batch in batches for data in self.encrypt_batch(batch)]
        return Message(None if single else len(values), objects, self.identity).to_bytes()

    def decrypt(self, message: bytes, flooding: Flooding | None = None) -> NDArray[np.float64]:
        """Decrypt a server's answer. Returns the outputs, (count, *output_shape), or output_shape if one
        sample was encrypted without a batch axis.

        Args:
            flooding: adds noise, so that the outputs may be handed to others; every ciphertext of the answer
                is one of its queries.

        Raises:
            FormatError: these bytes are not an answer.
            MismatchError: the answer comes from another program.
            NoiseError: the noise would hide the outputs, or no query is left.
            MissingKeyError: the client has no secret key.
        """
        program, read = self.program, Message.from_bytes(message)
        read.identity.require(self.identity, "client", "server")
        outputs = [
            self.decrypt_batch(objects, count, flooding)
            for count, objects in read.batches(program.batch, program.output.layout.ciphertexts)
        ]
        if not outputs:
            raise FormatError("the message has no samples", code="message")
        results = np.concatenate(outputs)
        return np.asarray(results[0] if read.samples is None else results)

    def answers(self, outputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's own outputs by name, such as labels and probabilities, from the result of
        `decrypt` for several samples; see `keywright.compiler.Program.answers`, also for errors."""
        return self.program.answers(outputs)

    def encrypt_batch(self, batch: NDArray[np.float64]) -> list[bytes]:
        """Encrypt up to ``program.batch`` samples, (count, *input_shape), which `guard` does not check.

        Raises:
            EncodeError: another shape, no samples, more of them, or values that are not finite.
        """
        parts = self.program.batches(batch)
        self.program.require_count(sum(map(len, parts)))
        return self._encryption.encrypt(parts[0])

    def decrypt_batch(
        self, objects: Sequence[bytes], count: int, flooding: Flooding | None = None
    ) -> NDArray[np.float64]:
        """Return the outputs of ``count`` samples, (count, *output_shape); flooding as for `decrypt`.

        Raises:
            EncodeError: a count that is not from 1 to ``program.batch``.
        """
        self.program.require_count(count)
        return self._encryption.decrypt(objects, count, flooding=flooding)

    @property
    def most_bytes(self) -> int:
        """Maximum bytes of a ciphertext of an answer."""
        return self._executable.requests.most_bytes

    def error_bound(self, objects: Sequence[bytes], flooding: Flooding | None = None) -> float:
        """Return the bound on the errors of the outputs of an answer's ciphertexts, in the worst case over
        all inputs, against the program in the clear. It is infinite for thin clients, whose answers lack the
        numbers that it needs.

        Args:
            objects: ciphertexts of a batch.
            flooding: the noise that `decrypt_batch` will add.
        """
        if self._executable.entry is not None:
            return math.inf
        read = [Ciphertext.from_bytes(data, self.parameters) for data in objects]
        bounds = [each.error_bound if flooding is None else flooding.error_bound(each) for each in read]
        return max(bounds) * self.program.output.unit

    def save(self, folder: str | Path) -> None:
        """Create a folder for this client, with its secret key, that `load_client` reads. The folder stays
        with its owner.

        Raises:
            FolderError: the folder exists.
        """
        with new_folder(Path(folder)) as result:
            self.write(result)

    def write(self, folder: Path) -> None:
        """Write the files of `save` into a folder, and make it unreadable for other users."""
        folder.chmod(0o700)
        self._generator.public_key().save(folder / PUBLIC_KEY)
        self._executable.write(folder)
        # Write this last: a process that is killed before leaves no secret behind.
        self._owner.save(folder / SECRET_KEY)

    @property
    def identity(self) -> Identity:
        """The identity of the client's program, which its messages carry."""
        return self._executable.identity

    @cached_property
    def execution(self) -> PlanExecution:
        """The key plan, ready to execute.

        Raises:
            MissingKeyError: there is none.
            LimitError: the plan exceeds the limits of `load_client`.
        """
        if self._execution is not None:
            return self._execution
        if self._demands is None:
            return self._executable.execution
        if self._executable.key_plan is None:
            raise MissingKeyError(
                f"the client's folder lacks {PLAN}, which lists the keys to make; load the model's folder",
                code="client",
            )
        execution = self._executable.execution
        self._demands.require_plan(execution)
        return execution

    @property
    def _owner(self) -> SecretKey:
        return require_secret(self._secret)

    @cached_property
    def _generator(self) -> KeyGenerator:
        return KeyGenerator(self._owner)

    @cached_property
    def _encryption(self) -> Encryption:
        return Encryption(self._executable.interface, self.parameters, self._secret, self._public)


def save_keys(folder: Path, secret: SecretKey, execution: PlanExecution, progress: Progress = silent) -> None:
    """Write the keys of a plan into an existing server folder, one key in memory at a time."""
    masters = execution.plan.masters
    if masters is not None:
        with progress("master keys", len(masters.automorphisms)) as advance:
            result = execution.make_masters(secret, lambda done, total: advance(1))
        result.save(folder / MASTER_KEYS)
    save_evaluation_keys(folder / EVALUATION_KEYS, secret, execution, progress)


def save_evaluation_keys(path: Path, secret: SecretKey, execution: PlanExecution, progress: Progress) -> None:
    """Write the evaluation keys of a plan into a file, one key in memory at a time."""
    specs = execution.key_specs
    with progress("evaluation keys", len(specs)) as advance:
        KeyGenerator(secret).save_evaluation_keys(path, specs, progress=lambda done, total: advance(1))
