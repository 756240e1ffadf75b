"""The client: makes keys, encrypts samples, decrypts results; see `load_client`."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._core import (
    Ciphertext,
    Decryptor,
    Encryptor,
    Flooding,
    KeyGenerator,
    Parameters,
    PublicKey,
    SecretKey,
    SeededCiphertext,
)
from keywright._progress import Progress, silent
from keywright.errors.model import KeysMissingError, MessageError
from keywright.model.folder.files import (
    EVALUATION_KEYS,
    MASTER_KEYS,
    PARAMETERS,
    PLAN,
    PROGRAM,
    PUBLIC_KEY,
    SECRET_KEY,
    has_file,
    new_folder,
    warn_of_readers,
)
from keywright.model.folder.identity import Identity
from keywright.model.folder.loading import load
from keywright.model.served.demands import KEY_BYTES, KEY_COUNT, Demands
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.program.file import storage
from keywright.program.program import Program
from keywright.runtime.encrypted.backend import decrypt_result, encrypt_sample, encrypt_sample_seeded
from keywright.runtime.range_guard import guard, require_magnitude

from .messages import Message

MOST_BITS = 1000.0
"""Results with more bits than floating point has have no bound."""


class ModelClient:
    """Keys, encryption and decryption for a program that a server evaluates.

    Args:
        program: the program that the server evaluates.
        parameters: of its ciphertexts.
        execution: returns the execution of its key plan, when keys are made; None if there is no plan.
        secret: the secret key; None for a client that only encrypts, with ``public``.
        public: the public key; by default made from the secret key.
    """

    def __init__(
        self,
        program: Program,
        parameters: Parameters,
        execution: Callable[[], PlanExecution | None] = lambda: None,
        *,
        secret: SecretKey | None = None,
        public: PublicKey | None = None,
    ) -> None:
        self.program, self.parameters = program, parameters
        self._find_execution, self._secret, self._public = execution, secret, public

    def keys(self, progress: Progress = silent) -> bytes:
        """Make the evaluation keys that the server needs, in the format of `EvaluationKeys.to_bytes`. They
        contain no secret.

        Raises:
            KeysMissingError: the client has no secret key, or no key plan.
        """
        specs = self.execution.key_specs
        with progress("evaluation keys", len(specs)) as advance:
            keys = self._generator.evaluation_keys(
                relinearization=False, specs=specs, progress=lambda done, total: advance(1)
            )
        return bytes(keys.to_bytes())

    def master_keys(self, progress: Progress = silent) -> bytes:
        """Make the master keys from which the server derives other keys, if the plan has any.

        Raises:
            KeysMissingError: the client has no secret key, or no key plan.
            PlanMismatchError: the plan has no master keys.
        """
        masters = self.execution.plan.masters
        with progress("master keys", 0 if masters is None else len(masters.automorphisms)) as advance:
            made = self.execution.make_masters(self._owner, lambda done, total: advance(1))
        return bytes(made.to_bytes())

    def save_keys(self, folder: Path, progress: Progress = silent) -> None:
        """Write the evaluation keys, and master keys if the plan has any, into an existing server folder, one
        key in memory at a time."""
        save_keys(folder, self._owner, self.execution, progress)

    def guard(self, samples: ArrayLike) -> None:
        """Refuse samples that leave the ranges of the program, which a server cannot detect.

        Raises:
            OutOfRangeError: names the layer, the value and the range.
        """
        q, program = self.parameters.q, self.program
        bits = sum(map(math.log2, q[: program.output_level + 1])) - self.parameters.log_scale - 1
        guard(program, samples, 2.0 ** min(bits, MOST_BITS))
        declared = program.input_magnitude or self.parameters.default_magnitude
        values = np.asarray(samples, np.float64)
        for batch in program.batches(values[None] if values.shape == program.input_shape else values):
            require_magnitude(batch, program.entering(batch), declared)

    def encrypt(self, samples: ArrayLike, *, force: bool = False) -> bytes:
        """Encrypt samples and return the message for the server. With the secret key, half of every
        ciphertext is a 32-byte seed; with a public key alone, messages take twice the bytes.

        Args:
            samples: one, of shape ``program.input_shape``, or several, (count, *input_shape).
            force: also encrypt samples that leave a range of the program; their results are wrong.

        Raises:
            InvalidSamplesError: another shape, no samples, or values that are not finite.
            OutOfRangeError: names the layer, the value and the range.
            EncodeError: a forced sample is above the magnitude that the program declares for its inputs.
            KeysMissingError: the client has neither a secret nor a public key.
        """
        values = np.asarray(samples, np.float64)
        single = values.shape == self.program.input_shape
        if not force:
            self.guard(values)
        batches = self.program.batches(values[None] if single else values)
        objects = [bytes(ct.to_bytes()) for batch in batches for ct in self.encrypt_batch(batch)]
        return Message(None if single else len(values), objects, self.identity).to_bytes()

    def decrypt(self, message: bytes, flooding: Flooding | None = None) -> NDArray[np.float64]:
        """Decrypt a server's answer. Returns the outputs, (count, *output_shape), or output_shape if one
        sample was encrypted without a batch axis.

        Args:
            flooding: adds noise, so that the outputs may be handed to others; every ciphertext of the answer
                is one of its queries.

        Raises:
            MessageError: these bytes are not an answer.
            ProgramMismatchError: the answer is of another program.
            FloodingError: the noise would hide the outputs, or no query is left.
            KeysMissingError: the client has no secret key.
        """
        program, read = self.program, Message.from_bytes(message)
        read.identity.require(self.identity, "client", "server")
        outputs = [
            self.decrypt_batch(
                [Ciphertext.from_bytes(data, self.parameters) for data in objects], count, flooding
            )
            for count, objects in read.batches(program.batch, program.output_layout.ciphertexts)
        ]
        if not outputs:
            raise MessageError("the message has no samples")
        results = np.concatenate(outputs)
        return np.asarray(results[0] if read.samples is None else results)

    def answers(self, outputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's own outputs by name, such as labels and probabilities, from the result of
        `decrypt` for several samples; see `keywright.compiler.Program.answers`. None if the results are
        already the model's output."""
        return self.program.answers(outputs)

    def encrypt_batch(self, batch: ArrayLike) -> Sequence[Ciphertext | SeededCiphertext]:
        """Encrypt up to ``program.batch`` samples, (count, *input_shape)."""
        if self._secret is not None:
            return encrypt_sample_seeded(self.program, self._decryptor, batch)
        return encrypt_sample(self.program, self._encryptor, batch)

    def decrypt_batch(
        self, ciphertexts: Sequence[Ciphertext], count: int, flooding: Flooding | None = None
    ) -> NDArray[np.float64]:
        """Return the outputs of ``count`` samples, (count, *output_shape); flooding as for `decrypt`."""
        return decrypt_result(self.program, self._decryptor, ciphertexts, count, flooding)

    def save(self, folder: str | Path) -> None:
        """Create a folder for this client, with its secret key, that `load_client` reads. It stays with its
        owner.

        Raises:
            FolderError: the folder exists.
        """
        with new_folder(Path(folder)) as made:
            self.write(made)

    def write(self, folder: Path) -> None:
        """Write the files of `save` into a folder, and make it unreadable for other users."""
        folder.chmod(0o700)
        self._generator.public_key().save(folder / PUBLIC_KEY)
        self.parameters.save(folder / PARAMETERS)
        storage.save(self.program, folder / PROGRAM)
        plan_file.save(self.execution.plan, folder / PLAN)
        # Write this last: a process that is killed before leaves no secret behind.
        self._owner.save(folder / SECRET_KEY)

    @cached_property
    def identity(self) -> Identity:
        """Which program the client has; its messages carry it."""
        return Identity.of(self.program)

    @cached_property
    def execution(self) -> PlanExecution:
        """The key plan, ready to execute.

        Raises:
            KeysMissingError: there is none.
            DemandError: the plan exceeds the limits of `load_client`.
        """
        found = self._find_execution()
        if found is None:
            raise KeysMissingError(
                f"the client's folder lacks {PLAN}, which lists the keys to make; load the model's folder"
            )
        return found

    @property
    def _owner(self) -> SecretKey:
        if self._secret is None:
            raise KeysMissingError(
                "the client has a public key but no secret key, so it can only encrypt; the owner of the "
                "secret key makes keys and decrypts"
            )
        return self._secret

    @cached_property
    def _generator(self) -> KeyGenerator:
        return KeyGenerator(self._owner)

    @cached_property
    def _decryptor(self) -> Decryptor:
        return Decryptor(self._owner)

    @cached_property
    def _encryptor(self) -> Encryptor:
        if self._public is None:
            raise KeysMissingError(
                f"the client can not encrypt: it has neither {PUBLIC_KEY} nor {SECRET_KEY}"
            )
        return Encryptor(self._public)


def save_keys(folder: Path, secret: SecretKey, execution: PlanExecution, progress: Progress = silent) -> None:
    """Write the keys of a plan into an existing server folder, one key in memory at a time."""
    masters, specs = execution.plan.masters, execution.key_specs
    if masters is not None:
        with progress("master keys", len(masters.automorphisms)) as advance:
            made = execution.make_masters(secret, lambda done, total: advance(1))
        made.save(folder / MASTER_KEYS)
    with progress("evaluation keys", len(specs)) as advance:
        KeyGenerator(secret).save_evaluation_keys(
            folder / EVALUATION_KEYS, specs, progress=lambda done, total: advance(1)
        )


def load_client(
    folder: str | Path, *, insecure: bool = False, key_bytes: int = KEY_BYTES, key_count: int = KEY_COUNT
) -> ModelClient:
    """Load the client of a model, from a folder of `CompiledModel.save`, `ModelClient.save`, or
    ``keywright keygen``.

    A secret key in the folder is read, with a `SecretFileWarning` if other users can read it. Without a
    secret and a public key, a new secret key is made, which `ModelClient.save` stores. The author of a
    model's folder chooses the parameters and the keys, so both are checked before a secret is made or read.

    Args:
        folder: the folder.
        insecure: whether parameters below 128 bits of security are accepted, for experiments on made-up data.
        key_bytes, key_count: most bytes and most keys that the folder's plan may ask for, master keys among
            them; 32 GiB and 4096 by default. They are checked when keys are made.

    Raises:
        FolderError: files are missing, or the model is for thin clients.
        SecurityError: the parameters have less than 128 bits of security.
        ParameterError: a limit is below 1.
    """
    demands = Demands(insecure, key_bytes, key_count)
    loaded = load(Path(folder), "client folder of keywright keygen, or the model's folder")
    place, parameters, program = loaded.folder, loaded.parameters, loaded.program
    demands.require_secure(parameters)

    def plan() -> PlanExecution | None:
        execution = loaded.execution
        if execution is not None:
            require_plan(execution, demands)
        return execution

    if has_file(place, SECRET_KEY):
        warn_of_readers(place / SECRET_KEY)
        secret = SecretKey.load(place / SECRET_KEY, parameters)
    elif has_file(place, PUBLIC_KEY):
        public = PublicKey.load(place / PUBLIC_KEY, parameters)
        return ModelClient(program, parameters, plan, public=public)
    else:
        secret = SecretKey.generate(parameters)
    return ModelClient(program, parameters, plan, secret=secret)


def require_plan(execution: PlanExecution, demands: Demands) -> None:
    """Refuse a plan with more keys than the limits, before one is made.

    Raises:
        DemandError: they are too many, or too large.
    """
    masters = execution.plan.masters
    extra = 0 if masters is None else len(masters.automorphisms) * masters.shape.stored_bytes
    specs = execution.key_specs
    count = len(specs) + (0 if masters is None else len(masters.automorphisms))
    demands.require_keys(count, extra + sum(spec.bytes for spec in specs))
