"""What Keywright can raise: one class per kind of mistake, with the offending value and its bound.

A message says what is wrong, where and why, and behind its last semicolon what to do. Arguments that it
names are written ``name=value``: the command line shows both parts on lines of their own, with ``--name
value``. File-system errors stay `OSError`, wrong Python types stay `TypeError`.
"""

from collections.abc import Mapping
from pathlib import Path


class KeywrightError(Exception):
    """Base of every error of Keywright.

    Attributes:
        stage: stage of bootstrapping that cannot do its work, None elsewhere.
        stage_level: level at which that stage takes its input.
    """

    stage: str | None = None
    stage_level: int | None = None

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.__dict__.update(details)


class ParameterError(KeywrightError, ValueError):
    """A number outside its range or an unknown name: ring degrees, primes, alpha, slots, threads, presets.

    Attributes:
        what: which number.
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
        object: what would be insecure; None if no bound is known.
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
        maximum: the highest level of `object`.
        object: what has that highest level.
        operation: what needs levels.
        needed: levels that it needs.
        available: levels that there are.
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
        right: packing of the right operand, or the one that is needed.
    """

    left: str
    right: str


class DegreeError(KeywrightError, ValueError):
    """A ciphertext of degree 2 where degree 1 is needed.

    Attributes:
        operation: what needs degree 1.
        degree: the offending degree.
    """

    operation: str
    degree: int


class MissingKeyError(KeywrightError, LookupError):
    """No key serves an operation at its level.

    Attributes:
        element: "galois g", "relinearization" or "secret n".
        rotation: steps of the rotation, None if it is none.
        level: level that was asked for.
        nearest: the nearest keys there are, in words.
    """

    element: str
    rotation: int | None
    level: int
    nearest: str | None


class DerivationError(KeywrightError, LookupError):
    """A key that master keys do not make, or a derived key where only those made by their owner can be.

    Attributes:
        element: "galois g", "relinearization" or "secret n".
        reason: "kind" (no Galois key), "unreachable" (no product of so few master keys' automorphisms, or
            the identity), "written" (derived keys are not stored: store the master keys).
    """

    element: str
    reason: str


class KeyUseError(KeywrightError, ValueError):
    """A key cannot be used as asked, or keys of a bootstrapping have other special primes than its matrices.

    Attributes:
        level: level asked for.
        element: as of `MissingKeyError`.
        key_level: highest level that the key serves.
        alpha: its primes per digit.
        coalesce: rows per digit asked for.
        special: special primes of the matrix.
        found: the keys that do not fit it, in words.
    """

    level: int
    element: str | None = None
    key_level: int | None = None
    alpha: int | None = None
    coalesce: int | None = None
    special: list[int] | None = None
    found: str | None = None


class PlanMismatchError(KeywrightError, ValueError):
    """A plan, keys and a program that do not belong together, or a plan that does not make what it should.

    Attributes:
        level: level at which it shows, None if it shows before.
        galois_element: of the hop that is refused, if one is.
        found: the digest that was found, if digests differ.
        expected: the one expected.
    """

    level: int | None = None
    galois_element: int | None = None
    found: str | None = None
    expected: str | None = None


class KeyMemoryError(KeywrightError, MemoryError):
    """A key does not fit into the memory that keys may take.

    Attributes:
        needed: bytes of the keys that have to be in memory at once.
        budget: bytes allowed.
        element: of the key, as "galois 5".
        level: its level.
    """

    needed: int
    budget: int
    element: str
    level: int


class MemoryBudgetError(KeywrightError, MemoryError):
    """What is to be run does not fit into the memory that the process may take.

    Attributes:
        needed: predicted peak of the least plan, bytes.
        budget: bytes allowed.
        parts: what that peak is made of, by name.
    """

    needed: int
    budget: int
    parts: Mapping[str, int]


class OutOfMemoryError(KeywrightError, MemoryError):
    """The system has no memory for a result, or for what is computed on the way. The process goes on.

    Attributes:
        bytes: size of what could not be allocated.
    """

    bytes: int


class KeySourceError(KeywrightError, OSError):
    """A key of a streamed set cannot be read.

    Attributes:
        element: as of `MissingKeyError`.
        level: level of the key.
    """

    element: str
    level: int


class EncodeError(KeywrightError, ValueError):
    """Numbers that cannot be encoded: not finite, too many, too large, of the wrong shape or dtype.

    Attributes:
        value: the offending number, if one number is at fault.
        index: its place.
        count: number of values, if there are too many.
        bound: what the count may be at most.
        minimum: smallest integer that stands for a residue.
        maximum: largest integer that does.
        needed_bits: bits of the largest coefficient with its sign, if it is too large.
        available_bits: bits of the modulus.
    """

    value: float | complex | None = None
    index: int | None = None
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
        budget: noise budget that its estimate leaves, bits; None of a ciphertext that does not decrypt.
    """

    operation: str
    budget: float | None = None


class FloodingError(KeywrightError, ArithmeticError):
    """A decryption that cannot be handed out: noise would leave nothing of the values, or no query is left.

    Attributes:
        queries: decryptions that the flooding is for.
        bits: its statistical bits; None where all queries are spent.
        lost_bits: bits of precision that it costs.
        error_bound: bound on the error that it leaves.
        limit: what that would have to be below: the values' bound, or what the modulus has room for.
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
    """A decryption with values that its ciphertext does not allow: they overflowed, or the key is another.

    Attributes:
        log_value: log2 of the largest coefficient.
        log_limit: log2 of what is allowed.
    """

    log_value: float
    log_limit: float


class KeyMismatchError(KeywrightError, ValueError):
    """Keys and ciphertexts of different owners in one operation, such as another secret key than decrypts.

    Attributes:
        left: identity of the key of one object, 32 hexadecimal digits.
        right: that of the other's.
    """

    left: str
    right: str


class FormatError(KeywrightError, ValueError):
    """Bytes that are not the object asked for: truncated, damaged, foreign, of another kind or version.

    Attributes:
        reason: "truncated", "trailing", "foreign", "version", "kind", "checksum", "length", "field",
            "residue", "secret", "number of keys" or "contents".
        found: what the bytes say.
        expected: what they should say.
    """

    reason: str
    found: object = None
    expected: object = None


class AggregationError(KeywrightError, ValueError):
    """Encrypted updates that do not belong together, or a sum that is none.

    Attributes:
        reason: "session", "round", "number of values", "client", "weight", "shapes", "duplicate", "too few",
            "no share", "set-up" or "undecodable".
        client: whose update, None if it is not one update that is at fault.
        found: what it says.
        expected: what was expected.
    """

    reason: str
    client: int | None = None
    found: object = None
    expected: object = None


class PoolEmptyError(KeywrightError, LookupError):
    """A pool has no entry, and was told not to make one, or nothing fills it.

    Attributes:
        made: entries made so far, None if the pool has no thread.
        taken: entries taken so far, None likewise.
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
    """A forked process uses what belongs to its parent: a pool, or an object made with `entropy=`. The parent
    would use the same once more. Make another one in each process.

    Attributes:
        owner: the process that made it.
        process: the process that asked.
    """

    owner: int
    process: int


class BackendError(KeywrightError):
    """KEYWRIGHT_BACKEND names a back end that cannot run here.

    Attributes:
        backend: its name.
        available: names of those that can.
    """

    backend: str
    available: str


class RandomnessError(KeywrightError, OSError):
    """The operating system gave no randomness."""
