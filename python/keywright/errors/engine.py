"""The exceptions of the engine: one class per kind of mistake, with the offending value and its bound."""

from collections.abc import Mapping
from pathlib import Path


class KeywrightError(Exception):
    """Base of every error of Keywright.

    Attributes:
        stage: the stage of a bootstrap that failed, otherwise None.
        stage_level: input level of that stage.
        code: the kind of mistake, if the class covers several; otherwise empty.
    """

    stage: str | None = None
    stage_level: int | None = None
    code: str = ""

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.__dict__.update(details)


class ParameterError(KeywrightError, ValueError):
    """A number outside its range or an unknown name: ring degrees, primes, alpha, slots, threads, presets.

    Attributes:
        what: name of the number.
        value: the offending value.
        minimum: smallest legal value, None if there is no such bound.
        maximum: largest legal value, None if there is no such bound.
    """

    what: str = ""
    value: int | float | str | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None


class SecurityError(KeywrightError, ValueError):
    """A key or parameters below 128 bits of security, or a secret for which no bound is known.

    Attributes:
        object: the insecure object; None if no bound is known.
        modulus_bits: its modulus, bits.
        bound: largest modulus allowed, bits.
        log_n: log2 of the ring degree.
        secret: distribution of the secret.
    """

    object: str | None
    modulus_bits: float | None
    bound: int | None
    log_n: int
    secret: str


class LevelError(KeywrightError, ValueError):
    """A level that does not exist, or an operation that needs more levels than there are.

    Attributes:
        level: the offending level, if one was asked for.
        maximum: highest level of `object`.
        object: the object with that highest level.
        operation: operation that needs levels.
        needed: levels that it needs.
        available: available levels.
    """

    level: int | None = None
    maximum: int | None = None
    object: str | None = None
    operation: str | None = None
    needed: int | None = None
    available: int | None = None


class ScaleError(KeywrightError, ValueError):
    """Operands of different scale, or a scale that does not fit the modulus.

    Attributes:
        left_log_scale: log2 of the left operand's scale.
        right_log_scale: log2 of the right operand's scale.
        log_scale: log2 of the scale that does not fit.
        log_q: log2 of the modulus.
        level: level of that modulus.
    """

    left_log_scale: float | None = None
    right_log_scale: float | None = None
    log_scale: float | None = None
    log_q: float | None = None
    level: int | None = None


class PackingError(KeywrightError, ValueError):
    """Operands with different numbers of slots, or coefficients where slots are needed.

    Attributes:
        left: packing of the left operand.
        right: packing of the right operand, or the required packing.
    """

    left: str
    right: str


class DegreeError(KeywrightError, ValueError):
    """A ciphertext of degree 2 where degree 1 is needed.

    Attributes:
        operation: operation that needs degree 1.
        degree: the offending degree.
    """

    operation: str
    degree: int


class MissingKeyError(KeywrightError, LookupError):
    """No key serves an operation at its level.

    Attributes:
        element: "galois g", "relinearization" or "secret n".
        rotation: steps of the rotation, None for other automorphisms.
        level: requested level.
        nearest: the nearest existing keys, in words.
    """

    element: str
    rotation: int | None
    level: int
    nearest: str | None


class DerivationError(KeywrightError, LookupError):
    """The master keys cannot derive a key, or a derived key cannot be written.

    Attributes:
        element: "galois g", "relinearization" or "secret n".
        reason: "kind": it is not a Galois key. "unreachable": it is the identity, or none of the products of
            the master keys' automorphisms that derivation tries equals it. "written": derived keys are not
            stored; store the master keys.
    """

    element: str
    reason: str


class KeyUseError(KeywrightError, ValueError):
    """A key does not support the requested use, or the keys of a bootstrap have other special primes than its
    matrices.

    Attributes:
        level: requested level.
        element: as for `MissingKeyError`.
        key_level: highest level of the key.
        alpha: its primes per digit.
        coalesce: requested rows per digit.
        special: special primes of the matrix.
        found: the keys that do not match it, in words.
    """

    level: int
    element: str | None = None
    key_level: int | None = None
    alpha: int | None = None
    coalesce: int | None = None
    special: list[int] | None = None
    found: str | None = None


class PlanMismatchError(KeywrightError, ValueError):
    """A plan, keys and a program that do not belong together, or a plan with a wrong result.

    Attributes:
        level: level of the mismatch, None if it has none.
        galois_element: Galois element of the refused hop, if there is one.
        found: the digest found, if digests differ.
        expected: the digest expected.
    """

    level: int | None = None
    galois_element: int | None = None
    found: str | None = None
    expected: str | None = None


class KeyMemoryError(KeywrightError, MemoryError):
    """A key exceeds the memory budget of keys.

    Attributes:
        needed: bytes of the keys that must be in memory at once.
        budget: bytes allowed.
        element: the key, as "galois 5".
        level: its level.
    """

    needed: int
    budget: int
    element: str
    level: int


class MemoryBudgetError(KeywrightError, MemoryError):
    """A program exceeds the memory budget of the process.

    Attributes:
        needed: predicted peak of the smallest plan, bytes.
        budget: bytes allowed.
        parts: parts of that peak, by name.
    """

    needed: int
    budget: int
    parts: Mapping[str, int]


class OutOfMemoryError(KeywrightError, MemoryError):
    """The system has no memory for a result or an intermediate value. The process continues.

    Attributes:
        bytes: size of the failed allocation.
    """

    bytes: int


class KeySourceError(KeywrightError, OSError):
    """A key of a streamed set cannot be read.

    Attributes:
        element: as for `MissingKeyError`.
        level: level of the key.
    """

    element: str
    level: int


class EncodeError(KeywrightError, ValueError):
    """Numbers that cannot be encoded: not finite, too many, too large, of the wrong shape or dtype.

    Attributes:
        value: the offending number, if one number is at fault.
        index: its index.
        magnitude: the declared magnitude that the number is above.
        count: number of values, if there are too many.
        bound: maximum number of values.
        minimum: smallest integer that represents a residue.
        maximum: largest integer that represents a residue.
        needed_bits: bits of the largest coefficient with its sign, if it is too large.
        available_bits: bits of the modulus.
    """

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
    """A BFV result that may not decrypt, or a ciphertext that does not.

    Attributes:
        operation: the operation whose result would have too much noise, or "decrypt".
        budget: estimated noise budget of the result, in bits; None for a failed decryption.
    """

    operation: str
    budget: float | None = None


class FloodingError(KeywrightError, ArithmeticError):
    """A decryption that must not be handed out: noise would hide the values, or no query is left.

    Attributes:
        queries: number of decryptions that the flooding covers.
        bits: its bits of statistical security; None if all queries are used.
        lost_bits: bits of precision that it costs.
        error_bound: bound on the error after flooding.
        limit: the upper limit of that bound: the bound on the values, or the capacity of the modulus.
    """

    queries: int
    bits: int | None = None
    lost_bits: float | None = None
    error_bound: float | None = None
    limit: float | None = None


class MixedParametersError(KeywrightError, ValueError):
    """Objects of different parameters in one operation, or a file of other parameters.

    Attributes:
        left: one object, or the fingerprint found.
        right: the other object, or the fingerprint expected.
    """

    left: str
    right: str


class MessageOverflowError(KeywrightError, ArithmeticError):
    """A decryption with values beyond the ciphertext's bound: they overflowed, or the key is wrong.

    Attributes:
        log_value: log2 of the largest coefficient.
        log_limit: log2 of the bound.
    """

    log_value: float
    log_limit: float


class KeyMismatchError(KeywrightError, ValueError):
    """Keys and ciphertexts of different owners in one operation, for example a wrong secret key.

    Attributes:
        left: identity of one object's key, 32 hexadecimal digits.
        right: identity of the other object's key.
    """

    left: str
    right: str


class FormatError(KeywrightError, ValueError):
    """Bytes that are not the expected object: truncated, damaged, foreign, of another kind or version.

    Attributes:
        reason: "truncated", "trailing", "foreign", "version", "kind", "checksum", "length", "field",
            "residue", "secret", "number of keys" or "contents".
        found: what the bytes contain.
        expected: what they should contain.
    """

    reason: str
    found: object = None
    expected: object = None


class AggregationError(KeywrightError, ValueError):
    """Encrypted updates that do not belong together, or a sum that cannot be decoded.

    Attributes:
        reason: "session", "round", "number of values", "client", "weight", "shapes", "duplicate", "too few",
            "no share", "set-up" or "undecodable".
        client: client of the update, None if no single update is at fault.
        found: what the update contains.
        expected: what was expected.
    """

    reason: str
    client: int | None = None
    found: object = None
    expected: object = None


class PoolEmptyError(KeywrightError, LookupError):
    """A pool is empty and may not make entries itself, or has no thread that fills it.

    Attributes:
        made: entries made so far, None if the pool has no thread.
        taken: entries taken so far, None if the pool has no thread.
    """

    made: int | None
    taken: int | None


class PoolFileError(KeywrightError, ValueError):
    """A pool file that is damaged, was copied, or belongs to another pool.

    Attributes:
        reason: "foreign", "length", "file key", "parameters", "key", "entries", "unregistered", "copied",
            "register" or "tampered".
        path: the file.
    """

    reason: str
    path: Path


class ForkedError(KeywrightError, RuntimeError):
    """A forked process uses an object of its parent: a pool, or an object made with `entropy=`. The parent
    would use the same randomness again. Make a separate object in each process.

    Attributes:
        owner: the process that made it.
        process: the process that uses it.
    """

    owner: int
    process: int


class BackendError(KeywrightError):
    """KEYWRIGHT_BACKEND names a back end that cannot run here.

    Attributes:
        backend: its name.
        available: names of the available back ends.
    """

    backend: str
    available: str


class RandomnessError(KeywrightError, OSError):
    """The operating system gave no randomness."""
