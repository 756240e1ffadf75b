"""The exceptions of the engine: one class for each remedy."""

from collections.abc import Mapping
from pathlib import Path


class KeywrightError(Exception):
    """Base of every error of Keywright.

    Each class stands for one remedy, and lists its reasons as codes.

    What to do: read the message, which ends with the remedy; distinguish reasons by `code`.

    Attributes:
        code: the reason.
        stage: stage of bootstrapping that failed, None elsewhere.
        stage_level: input level of that stage.
    """

    code: str = "engine"
    stage: str | None = None
    stage_level: int | None = None

    def __init__(self, message: str, *, code: str | None = None, **details: object) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.__dict__.update(details)


class ParameterError(KeywrightError, ValueError):
    """An argument outside its range, an unknown name, or arguments that contradict each other.

    * ``range``: a number out of range, or an unknown name.
    * ``arguments``: arguments that contradict each other.
    * ``backend``: KEYWRIGHT_BACKEND names a back end that cannot run here.
    * ``batch``: a batch of more samples than ciphertexts have slots.
    * ``bootstrap``: a bootstrap that gains no level, or that no preset has.
    * ``costs``: costs of operations that are too few, not positive, or contradict each other.
    * ``minimax``: a composition of polynomials that does not exist.
    * ``prediction``: a bootstrap whose errors the engine cannot predict.
    * ``preset``: a preset for something else.

    What to do: pass another value; the message states which are possible.

    Attributes:
        what: name of the number.
        value: the offending value.
        minimum: smallest legal value, None if there is no such bound.
        maximum: largest legal value, None if there is no such bound.
        backend: name of the back end (``backend``).
        available: names of the available ones.
    """

    code = "range"
    what: str = ""
    value: int | float | str | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    backend: str = ""
    available: str = ""


class SecurityError(KeywrightError, ValueError):
    """A key or parameters below 128 bits of security, or a secret for which no bound is known (``security``).

    What to do: use a larger ring or a smaller modulus, for example those of a preset.

    Attributes:
        object: the insecure object; None if no bound is known.
        modulus_bits: its modulus, bits.
        bound: largest modulus allowed, bits.
        log_n: log2 of the ring degree.
        secret: distribution of the secret.
    """

    code = "security"
    object: str | None
    modulus_bits: float | None
    bound: int | None
    log_n: int
    secret: str


class LevelError(KeywrightError, ValueError):
    """A level that does not exist, or an operation that needs more levels than there are (``level``).

    What to do: begin at a higher level, bootstrap earlier, or use parameters with more levels.

    Attributes:
        level: the offending level, if one was asked for.
        maximum: highest level of `object`.
        object: the object with that highest level.
        operation: operation that needs levels.
        needed: levels that it needs.
        available: available levels.
    """

    code = "level"
    level: int | None = None
    maximum: int | None = None
    object: str | None = None
    operation: str | None = None
    needed: int | None = None
    available: int | None = None


class ScaleError(KeywrightError, ValueError):
    """Operands of different scale, or a scale that does not fit the modulus (``scale``).

    What to do: rescale, or bring both operands to one level and scale.

    Attributes:
        left_log_scale: log2 of the left operand's scale.
        right_log_scale: log2 of the right operand's scale.
        log_scale: log2 of the scale that does not fit.
        log_q: log2 of the modulus.
        level: level of that modulus.
    """

    code = "scale"
    left_log_scale: float | None = None
    right_log_scale: float | None = None
    log_scale: float | None = None
    log_q: float | None = None
    level: int | None = None


class OperandError(KeywrightError, ValueError):
    """Operands that an operation does not accept, alone or together.

    * ``degree``: a ciphertext of degree 2 where degree 1 is needed.
    * ``levels``: fewer levels than the operation consumes, in the clear.
    * ``operands``: the program takes other numbers of ciphertexts, slots or levels, or other rings.
    * ``packing``: different numbers of slots, or coefficients where slots are needed.
    * ``range``: values that may be outside the range of a function, or complex values for a real function.

    What to do: relinearize, encrypt with the packing of the operation, pass the operands of the program, or
    declare a magnitude within the range.

    Attributes:
        left: packing of the left operand.
        right: packing of the right operand, or the required packing.
        operation: operation that needs degree 1.
        degree: the offending degree.
    """

    code = "operands"
    left: str = ""
    right: str = ""
    operation: str = ""
    degree: int = 1


class MismatchError(KeywrightError, ValueError):
    """Objects that were not made for each other.

    * ``key``: keys and ciphertexts of different owners, for example a wrong secret key.
    * ``parameters``: objects of different parameters, or a file of other parameters.
    * ``plan``: a plan, keys and a program that do not belong together, or a plan with a wrong result.
    * ``program``: a message of another program: client and server have different models.

    What to do: use objects that were made together, or make one of them again for the other.

    Attributes:
        left: one object, the fingerprint that it has, or the identity of its key.
        right: the other object, the fingerprint expected, or the identity of its key.
        level: level of the mismatch, None if it has none.
        galois_element: Galois element of the refused hop, if there is one.
        found: the digest found, if digests differ.
        expected: the digest expected.
        program: SHA-256 of the program of this side (``program``; `found` is the message's).
        older: "client" or "server", the side with the older program; None if that is unknown.
    """

    code = "parameters"
    left: str = ""
    right: str = ""
    level: int | None = None
    galois_element: int | None = None
    found: str | None = None
    expected: str | None = None
    program: str = ""
    older: str | None = None


class MissingKeyError(KeywrightError, LookupError):
    """No key serves an operation, or keys were not made, loaded or derived.

    * ``key``: no key serves the operation at its level.
    * ``use``: a key does not support the use, or its special primes differ from those of a bootstrap's
      matrices.
    * ``kind``: only Galois keys can be derived from master keys.
    * ``unreachable``: the element is the identity, or derivation reaches it by no product of the master keys'
      automorphisms.
    * ``written``: derived keys cannot be stored; store the master keys.
    * ``client``: the client has no secret key, or neither a secret nor a public one.
    * ``server``: the server has no evaluation keys.
    * ``closed``: a client of a service was closed, and its keys are deleted.

    What to do: generate or load the key; its element and level are in the message.

    Attributes:
        element: "galois g", "relinearization" or "secret n".
        rotation: steps of the rotation, None for other automorphisms.
        level: requested level.
        nearest: the nearest existing keys, in words.
        key_level: highest level of the key (``use``).
        alpha: its primes per digit.
        coalesce: requested rows per digit.
        special: special primes of the matrix.
        found: the keys that do not match it, in words.
    """

    code = "key"
    element: str
    rotation: int | None = None
    level: int
    nearest: str | None = None
    key_level: int | None = None
    alpha: int | None = None
    coalesce: int | None = None
    special: list[int] | None = None
    found: str | None = None


class KeySourceError(KeywrightError, OSError):
    """A key of a streamed set cannot be read (``key_source``).

    What to do: restore the file of keys, or load the whole set.

    Attributes:
        element: as for `MissingKeyError`.
        level: level of the key.
    """

    code = "key_source"
    element: str
    level: int


class OutOfMemoryError(KeywrightError, MemoryError):
    """A program or its keys exceed the memory that they may take; the process continues.

    * ``budget``: a program exceeds the memory budget of the process.
    * ``keys``: keys exceed the memory budget of keys.
    * ``system``: the system has no memory for a result or an intermediate value.

    What to do: allow more memory, take smaller batches, or plan for fewer keys.

    Attributes:
        needed: bytes that must be in memory at once.
        budget: bytes allowed.
        parts: parts of the bytes needed, by name.
        element: the key, as "galois 5" (``keys``).
        level: its level.
        bytes: size of the failed allocation (``system``).
    """

    code = "budget"
    needed: int
    budget: int
    parts: Mapping[str, int]
    element: str
    level: int
    bytes: int


class EncodeError(KeywrightError, ValueError):
    """Numbers that cannot be encoded, or samples that a model does not take.

    * ``encoding``: numbers that are not finite, too many, too large, of the wrong shape or dtype.
    * ``samples``: input data of the wrong shape, without samples, or with values that are not finite.

    What to do: pass finite numbers of the stated shape and size.

    Attributes:
        value: the offending number, if one number is at fault.
        index: its index.
        magnitude: the declared magnitude, which the number exceeds.
        count: number of values, if there are too many.
        bound: maximum number of values.
        minimum: smallest integer that represents a residue.
        maximum: largest integer that represents a residue.
        needed_bits: bits of the largest coefficient with its sign, if it is too large.
        available_bits: bits of the modulus.
    """

    code = "encoding"
    value: float | complex | None = None
    index: int | None = None
    magnitude: float | None = None
    count: int | None = None
    bound: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    needed_bits: float | None = None
    available_bits: float | None = None


class NoiseError(KeywrightError, ArithmeticError):
    """A result that noise or an overflow has made, or would make, worthless.

    * ``noise``: a BFV result that may not decrypt.
    * ``decryption``: a BFV ciphertext that does not decrypt.
    * ``flooding``: the noise that protects the key would hide the values.
    * ``queries``: all decryptions that the flooding covers are used.
    * ``overflow``: values beyond the ciphertext's bound: they overflowed, or the key is wrong.
    * ``values``: the errors of the operands would hide the result of a function, or values are too large for
      a bootstrap.
    * ``wrong_result``: a measured program whose error exceeds its bound.

    What to do: use parameters with a larger modulus or scale, fewer operations, or smaller values.

    Attributes:
        operation: the operation whose result would have too much noise, or "decrypt".
        budget: estimated noise budget of the result, in bits; None for a failed decryption.
        queries: number of decryptions that the flooding covers.
        bits: its bits of statistical security; None if all queries are used.
        lost_bits: bits of precision that it costs.
        error_bound: bound on the error after flooding, or of the operand (``values``).
        limit: the limit of that bound: the bound on the values, or the capacity of the modulus.
        log_value: log2 of the largest coefficient or value (``overflow``).
        log_limit: log2 of the bound.
    """

    code = "noise"
    operation: str = ""
    budget: float | None = None
    queries: int = 0
    bits: int | None = None
    lost_bits: float | None = None
    error_bound: float | None = None
    limit: float | None = None
    log_value: float = 0.0
    log_limit: float = 0.0


class FormatError(KeywrightError, ValueError):
    """Bytes or a file that are not the expected object.

    Codes of every object:

    * ``contents``, ``field``, ``residue``, ``length``, ``number_of_keys``: contents that the object
      cannot have.
    * ``truncated``, ``trailing``, ``checksum``: incomplete, too long or damaged.
    * ``foreign``, ``kind``, ``version``: not a Keywright object, or one of another kind or version.
    * ``secret``: a secret key whose coefficients are not ternary.

    Codes of files and messages:

    * ``calibration``, ``machine``: a malformed calibration, or one from another machine.
    * ``manifest``: a malformed manifest, or one whose hash differs from its contents.
    * ``message``: bytes that are not a message of ciphertexts.
    * ``program``: a program file that is damaged, foreign, of an unknown version or larger than allowed.
    * ``format``, ``query``, ``index``, ``revision``: bytes that are not an answer of a search, or the answer
      to another query, of another index, or of one that has changed.

    What to do: fetch the whole file or message again from its source, written by this version.

    Attributes:
        found: what the bytes contain, or the machine of a calibration.
        expected: what they should contain, or this machine.
    """

    code = "contents"
    found: object = None
    expected: object = None


class AggregationError(KeywrightError, ValueError):
    """Encrypted updates that do not belong together, or a sum that cannot be decoded.

    * ``session``, ``round``, ``number_of_values``, ``weight``, ``shapes``, ``types``: an update that differs
      in it from the others, or from the received model.
    * ``client``, ``duplicate``: an update in the name of another client, or a second update of a client.
    * ``too_few``, ``no_share``, ``sets``: missing clients or shares.
    * ``set_up``: keys of clients that do not fit together.
    * ``altered``, ``undecodable``: a sum that differs from that of the updates, or that no values have.

    What to do: begin the round again without the clients that the message names.

    Attributes:
        client: client of the update, None if no single update is at fault.
        found: what the update contains.
        expected: what was expected.
    """

    code = "undecodable"
    client: int | None = None
    found: object = None
    expected: object = None


class PoolError(KeywrightError, LookupError, ValueError):
    """A pool of encryptions has no entry, or its file cannot be used.

    * ``empty``: no entry is left, and the pool may not make one itself or has no thread that fills it.
    * ``foreign``, ``length``, ``contents``, ``tampered``: the file is not a pool file, or is damaged.
    * ``file_key``, ``parameters``, ``key``, ``entries``: the file belongs to another pool.
    * ``unregistered``, ``copied``, ``register``: the file was copied, so its entries may have been used.

    What to do: wait for entries or allow more, or delete the file and fill a new pool.

    Attributes:
        made: entries made so far, None if the pool has no thread.
        taken: entries taken so far, None if the pool has no thread.
        path: the file.
    """

    code = "empty"
    made: int | None = None
    taken: int | None = None
    path: Path | None = None


class RandomnessError(KeywrightError, OSError, RuntimeError):
    """Randomness that is missing, or would be used twice.

    * ``system``: the operating system provided none.
    * ``forked``: a forked process uses an object of its parent: a pool, or an object made with `entropy=`.
      The parent would use the same randomness again.

    What to do: make a separate object in each process (``forked``), or start the process where
    /dev/urandom can be read (``system``).

    Attributes:
        owner: the process that made the object.
        process: the process that uses it.
    """

    code = "system"
    owner: int = 0
    process: int = 0
