"""Types of the compiled engine. Docstrings are those of the extension: scripts/stub_docstrings.py puts them here."""

from builtins import bytes as _Bytes  # `bytes` is a property of several classes
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import GenericAlias
from typing import Any, Final, Generic, Literal, Self, TypeAlias, TypedDict, TypeVar, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright.values import Encrypted, EncryptedIntegers

_Path: TypeAlias = str | PathLike[str]
_Encrypted = TypeVar("_Encrypted", Ciphertext, SeededCiphertext)
_KeyParameters: TypeAlias = "Parameters | BfvParameters"  # keys serve both schemes

__all__ = [
    "DEFAULT_DERIVATION_HOPS",
    "ERROR_DEVIATION",
    "HEAD_BYTES",
    "MAX_DERIVATION_HOPS",
    "MAX_EXTRA_PRIMES",
    "RANK_WEIGHTS",
    "SCALE_TOLERANCE",
    "BfvCiphertext",
    "BfvDecryptor",
    "BfvEncryptor",
    "BfvEvaluator",
    "BfvParameters",
    "BfvSeededCiphertext",
    "Bootstrapper",
    "BootstrapperPlan",
    "ChemDistinguisher",
    "ChemEncryptor",
    "Ciphertext",
    "Client",
    "ClientEncryptor",
    "ClientKeyStream",
    "ClientParameters",
    "Decryptor",
    "Derivation",
    "DerivationTree",
    "EncryptedSum",
    "EncryptedUpdate",
    "EncryptionPool",
    "Encryptor",
    "ErrorModel",
    "EvaluationKeys",
    "Evaluator",
    "Flooding",
    "KeyGenerator",
    "KeySpec",
    "LinearTransform",
    "MasterKeys",
    "Parameters",
    "PrimeWidths",
    "PublicKey",
    "SecretKey",
    "SeededCiphertext",
    "SumKey",
    "SumParameters",
    "SwitchingKey",
    "ThresholdKey",
    "ThresholdParameters",
    "ThresholdParty",
    "ThresholdShare",
    "__version__",
    "bench",
    "bench_bootstrap",
    "bench_presets",
    "bench_sets",
    "bench_works",
    "bfv_presets",
    "bootstrap_presets",
    "contains_secret",
    "inspect",
    "kernel_counts",
    "key_set_head",
    "master_key_bytes",
    "maximum_log_qp",
    "memory_use",
    "polynomial_arithmetic",
    "polynomial_depth",
    "polynomial_relinearizations",
    "polynomial_scratch",
    "presets",
    "read_key_set_head",
    "recycled_bytes",
    "reset_memory_peak",
    "set_threads",
    "threads",
    "transform_scratch",
    "trim_memory",
]

__version__: Final[str]
DEFAULT_DERIVATION_HOPS: Final[int]
ERROR_DEVIATION: Final[float]
HEAD_BYTES: Final[int]
MAX_DERIVATION_HOPS: Final[int]
MAX_EXTRA_PRIMES: Final[int]
RANK_WEIGHTS: Final[list[int]]
SCALE_TOLERANCE: Final[float]

def presets() -> list[str]:
    """Names of the shipped parameter sets, smallest first: ring degree, bits of all primes, bits of the scale."""

def set_threads(n: int | None = None) -> None:
    """Sets the number of threads that share each operation, for the whole process.

    Results do not depend on it. Running operations finish on their threads.

    Args:
        n: number of threads, 1 to 256; None for the default, which is RAYON_NUM_THREADS if set, else all cores.

    Raises:
        ParameterError: n is 0, above 256, or more than the system can start.
    """

def threads() -> int:
    """The number of threads that share each operation."""

def memory_use() -> dict[str, int]:
    """Bytes of the buffers of at least 8 KiB that hold ciphertexts, keys, diagonals and scratch: "live" bytes are in use,
    "idle" bytes are kept for reuse, and "peak" is the most in use at a time since `reset_memory_peak`, or the start.
    """

def reset_memory_peak() -> None:
    """Resets the peak of `memory_use`."""

def trim_memory() -> None:
    """Returns idle buffers, and what the system's allocator can spare, to the operating system."""

def recycled_bytes(peak: int) -> int:
    """The most bytes of idle buffers that a process keeps, given the peak of its buffers in use."""

def transform_scratch(
    parameters: Parameters,
    level: int,
    special: Sequence[int],
    *,
    babies: int,
    giants: int,
    inputs: int = 1,
    made: int = 0,
    decomposed: int | None = None,
    above: int = 0,
    periods: Sequence[int] | None = None,
    threads: int | None = None,
) -> int:
    """Peak bytes of `Evaluator.linear_transform`, including its result but not its inputs, keys and diagonals.

    Args:
        parameters: of the ciphertexts.
        level: of the transforms.
        special: indices of their special primes.
        babies: baby steps other than 0, of all transforms of a block row.
        giants: giant steps of all of them, including 0.
        inputs: transforms of a block row.
        made: ciphertexts that are made from the inputs before baby steps.
        decomposed: decompositions of these and of the inputs; one for each by default.
        above: inputs above the level, which are copied.
        periods: of the diagonals kept as coefficients.
        threads: number of computing threads; those of the process by default.

    Raises:
        LevelError: the level does not exist.
        ParameterError: a special prime does not exist, or a period is not a power of two.
    """

def polynomial_scratch(
    relinearization: KeySpec,
    level: int,
    coefficients: ArrayLike,
    basis: str = "monomial",
    *,
    threads: int | None = None,
) -> int:
    """Peak bytes of `Evaluator.polynomial`, including its result but not its input and keys.

    Args:
        relinearization: a key, which also gives the parameters.
        level: of the input.
        coefficients: by ascending degree.
        basis: "monomial", or "chebyshev" on [-1, 1].
        threads: number of computing threads; those of the process by default.

    Raises:
        ParameterError: another basis, a coefficient that is not finite.
        LevelError: the level is above that of the key, or below the depth of the polynomial.
    """

def contains_secret(data: _Bytes) -> bool:
    """Whether a secret key begins anywhere in some bytes: a Keywright object whose kind is secret. Misses one whose head
    is cut off at the end.
    """

def inspect(source: _Path | _Bytes) -> dict[str, Any]:
    """Identifies Keywright bytes or a file from their header alone, without their parameters.

    Args:
        source: a path, or the object's bytes, of which everything after the header may be missing.

    Returns:
        A dict with `kind`, `format_version`, `bytes`, `log_n`, `q_count`, `p_count`, `insecure`, `fingerprint` (of the
        parameters), `key_identity` (of the secret that it belongs to; None of a joint key, of an object of no key,
        and of files of format version 1), `secret` (whether it must stay with its owner), and, by kind, `keys` (of
        a set, or master keys: element, level, alpha, seeded, bytes each), `log_scale` or `plaintext_modulus`.

    Raises:
        FormatError: they are not of Keywright, or their header is damaged.
    """

def key_set_head(specs: Sequence[KeySpec], parameters: _KeyParameters | None = None) -> _Bytes:
    """The first bytes of a stored set of these keys: its header, with every key and the length of the whole.

    They are known before any key is made, so a server uses them to request keys in a certain order.

    Args:
        specs: at least one, all of the same parameters.
        parameters: those of the specs, if some belong to subrings; by default those of the first spec.

    Raises:
        ValueError: there are none.
        MixedParametersError: they belong to different parameters.
    """

def read_key_set_head(data: _Bytes, parameters: _KeyParameters) -> list[KeySpec]:
    """The keys in the head of a set, in order. Each is checked for security.

    Raises:
        FormatError: the bytes do not begin with a whole, intact header of a key set.
        MixedParametersError: it belongs to other parameters.
    """

def bench(
    emit: Callable[[str], object],
    *,
    set: str = "main",  # noqa: A002 (the name of the option)
    alpha: int | None = None,
    works: Sequence[str] = ...,
    runs: int = 5,
    seeded: bool = True,
) -> None:
    """Measures operations on real keys and ciphertexts. Decrypts and compares their results first.

    Ctrl-C stops after the current operation.

    Args:
        emit: called with each record as it is made, one JSON object in a string; may raise to stop.
        set: name of the parameter set, of `bench_sets()`.
        alpha: primes per digit; None for all of the set.
        works: the operations, of `bench_works()`; empty for all.
        runs: timed runs of each.
        seeded: whether keys are seeded.

    Raises:
        ParameterError: a name is unknown, or runs is 0.
    """

def bench_bootstrap(
    emit: Callable[[str], object],
    *,
    preset: str,
    runs: int = 5,
    progress: Callable[[str, int, int], object] | None = None,
) -> None:
    """Measures a bootstrapping: keys, matrices, whole bootstraps of random values that are decrypted and compared, and the
    stages.

    Ctrl-C stops after the current key or bootstrap.

    Args:
        emit: called with the record, one JSON object in a string.
        preset: name of the bootstrapping, of `bench_presets()`.
        runs: timed bootstraps.
        progress: called with the name of a phase, its finished steps and their total; may raise to stop.

    Raises:
        ParameterError: the name is unknown, or runs is 0.
    """

def bench_presets() -> list[str]:
    """Names of the bootstrappings of `bench_bootstrap`: the shipped ones, and a quick insecure one."""

def bench_sets() -> dict[str, dict[str, Any]]:
    """The parameter sets of `bench`: for each its name, log2 of the ring degree, bits of the ciphertext primes and of the
    scale, and the measurements: primes per digit, levels, ring degrees of transforms and bits of their prime.
    """

def bench_works() -> list[str]:
    """Names of the operations of `bench`."""

def bfv_presets() -> list[str]:
    """Names of the shipped BFV parameter sets, smallest first: ring degree, bits of all primes, bits of the plaintext
    modulus.
    """

def bootstrap_presets() -> list[str]:
    """Names of the shipped bootstrappings, each with matching parameters."""

def polynomial_arithmetic(coefficients: ArrayLike, basis: str) -> list[tuple[int, dict[str, int]]]:
    """The operations of the evaluation of a polynomial other than relinearizations, as `keywright.plan.Operation` counts
    them: pairs of the depth below the level of the input, and the counts.

    Args:
        coefficients: by ascending degree.
        basis: "monomial", or "chebyshev" on [-1, 1].

    Raises:
        ParameterError: another basis, a coefficient that is not finite.
    """

def polynomial_depth(degree: int) -> int:
    """Levels of the evaluation of a polynomial of a degree: ceil(log2(degree + 1)). In the Chebyshev basis of an interval
    of another width than 2 it takes one more.
    """

def polynomial_relinearizations(coefficients: ArrayLike, basis: str) -> list[int]:
    """The relinearizations in the evaluation of a polynomial, each as its depth in levels below the input, ascending. Zero
    coefficients can save some.

    Args:
        coefficients: by ascending degree.
        basis: "monomial", or "chebyshev" on [-1, 1].

    Raises:
        ParameterError: another basis, a coefficient that is not finite.
    """

def kernel_counts() -> dict[str, tuple[int, int]]:
    """The words that this process has computed so far, modulo primes of at most 50 bits and modulo wider ones: zeros
    unless the back end is `KEYWRIGHT_BACKEND=counted`.
    """

@final
class Parameters:
    """CKKS parameters: ring degree, primes, scale. Immutable, checked for security, cheap to share.

    Made by `preset`, `from_bits` or `from_bytes`. Ciphertexts at level l have the primes q_0 .. q_l; a key also has
    special primes. Unless `insecure` is set, every modulus is checked against the bound for 128 bits of classical
    security with a uniform ternary secret (Security Guidelines for Implementing Homomorphic Encryption, 2024, table
    5.2).
    """
    @staticmethod
    def preset(name: str) -> Parameters:
        """A shipped parameter set.

        Args:
            name: one of `keywright.presets()`.

        Raises:
            ParameterError: there is no such set.
        """
    @staticmethod
    def from_bits(
        log_n: int,
        q_bits: Sequence[int],
        p_bits: Sequence[int],
        log_scale: float,
        insecure: bool = False,
        *,
        secret_weight: int | None = None,
    ) -> Parameters:
        """Parameters from widths of primes; the largest primes of each width are chosen.

        Args:
            log_n: log2 of the ring degree N, 10 to 17.
            q_bits: widths of the ciphertext primes q_0, q_1, ..., at most 61; one rescaling consumes one of them.
            p_bits: widths of the special primes, which only keys use.
            log_scale: log2 of the factor by which fresh messages are scaled; near the widths of q_1, q_2, ...
            insecure: allow moduli above the 128-bit bound, for experiments on data that need no protection.
            secret_weight: number of nonzero coefficients of the secret; about two thirds of all by default. The bound
                is that of such secrets, which exists from degree 2^15 on, for weights of 192 or more.

        Raises:
            SecurityError: the ciphertext modulus exceeds the bound, or no bound exists.
            ParameterError: there are no such primes.
            ScaleError: a value of 1 does not fit q_0 q_1, or q_0 alone if there is no other.
        """
    @staticmethod
    def for_circuit(
        *, depth: int, precision: int = 20, slots: int = 1, magnitude: float = 16.0
    ) -> Parameters:
        """The parameters of the smallest ring with this many levels, slots and bits at 128 bits of security.

        Args:
            depth: multiplicative depth: successive products, matrices and polynomials.
            precision: bits after the point of an encryption, in all slots at once except with probability below 2^-40.
                Every operation adds its operands' errors and its own, which is smaller.
            slots: values in a ciphertext.
            magnitude: largest absolute value of a result.

        Raises:
            ParameterError: a number is out of range, or no ring has that many levels of that many bits.
        """
    def with_subrings(self, subrings: Sequence[tuple[int, int, Sequence[int] | None]]) -> Parameters:
        """The same parameters with further subrings: smaller rings, to which ciphertexts of low levels can be switched.

        Parameters with other subrings are different parameters: they do not share secrets, keys and ciphertexts.

        Args:
            subrings: for each, log2 of its degree, its highest level, and the indices of its special primes among q_0
                .. q_L, p_0, ...: special primes, or ciphertext primes above its level. None for all special primes: a
                key takes as many of them as its own bound allows.

        Raises:
            SecurityError: the ciphertext modulus of a subring exceeds the bound of its degree.
            ParameterError: a subring is not smaller than the ring, a degree is repeated, or a level or a special prime
                is illegal.
        """
    @property
    def subrings(self) -> list[Parameters]:
        """The parameters of the subrings, from the largest down: ordinary parameters, with their own levels and special
        primes.
        """
    def subring(self, log_n: int) -> Parameters:
        """The ring of a degree: these parameters themselves, or a subring.

        Raises:
            ParameterError: they have no such ring.
        """
    @property
    def log_n(self) -> int:
        """log2 of the ring degree."""
    @property
    def n(self) -> int:
        """Ring degree N."""
    @property
    def max_level(self) -> int:
        """Highest level L, that of fresh ciphertexts: the number of rescalings that they allow."""
    @property
    def max_slots(self) -> int:
        """Slots of a full packing, N/2."""
    @property
    def scale(self) -> float:
        """Factor by which fresh messages are scaled."""
    @property
    def default_magnitude(self) -> float:
        """The largest absolute value that a message may have where `magnitude=` declares no other: the largest power of two
        of which the product of two still fits level 0, and at least 1.
        """
    @property
    def log_scale(self) -> float:
        """log2 of the scale."""
    @property
    def q(self) -> list[int]:
        """Ciphertext primes q_0 .. q_L."""
    @property
    def p(self) -> list[int]:
        """Special primes."""
    @property
    def log_q(self) -> float:
        """log2 of the ciphertext modulus at the highest level."""
    @property
    def log_qp(self) -> float:
        """log2 of the modulus of all primes."""
    @property
    def security(self) -> str:
        """The security that is enforced for every key: "128-bit classical", or "none (insecure)"."""
    @property
    def insecure(self) -> bool:
        """Whether the security bound is switched off."""
    @property
    def secret_distribution(self) -> str:
        """Distribution of the secret: "ternary", or "ternary of weight h"."""
    @property
    def backend(self) -> str:
        """Instruction set of the kernels: "portable", "avx2", "avx512" or "neon"; KEYWRIGHT_BACKEND forces one."""
    def to_bytes(self) -> _Bytes:
        """The parameters as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes) -> Parameters:
        """Parameters from the bytes of `to_bytes`, with the usual checks.

        Raises:
            FormatError: the bytes are not whole, intact parameters.
            SecurityError: they exceed the bound and are not marked insecure.
        """
    def save(self, path: _Path) -> None:
        """Writes the parameters to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path) -> Parameters:
        """Reads the parameters of a file; errors as for `from_bytes`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BfvParameters:
    """BFV parameters: ring degree, primes, plaintext modulus. Immutable, checked for security, cheap to share.

    Made by `preset`, `from_bits` or `from_bytes`. Values are integers modulo the plaintext modulus t, and results are
    exact. If t is a prime that is 1 modulo 2N there are N slots, in 2 rows of N/2; otherwise values are packed in
    coefficients. `SecretKey` and `KeyGenerator` make keys as for CKKS, with the same check for security.
    """
    @staticmethod
    def preset(name: str) -> BfvParameters:
        """A shipped parameter set.

        Args:
            name: one of `keywright.bfv_presets()`.

        Raises:
            ParameterError: there is no such set.
        """
    @staticmethod
    def from_bits(
        log_n: int,
        q_bits: Sequence[int],
        p_bits: Sequence[int],
        plaintext_modulus: int,
        insecure: bool = False,
    ) -> BfvParameters:
        """Parameters from widths of primes; the largest primes of each width are chosen.

        Args:
            log_n: log2 of the ring degree N, 10 to 17.
            q_bits: widths of the ciphertext primes q_0, q_1, ..., at most 61.
            p_bits: widths of the special primes, which only keys use.
            plaintext_modulus: t, below 2^60 and below every ciphertext prime.
            insecure: allow moduli above the 128-bit bound, for experiments on data that need no protection.

        Raises:
            SecurityError: the ciphertext modulus exceeds the bound.
            ParameterError: there are no such primes, or the plaintext modulus is out of range.
        """
    @property
    def log_n(self) -> int:
        """log2 of the ring degree."""
    @property
    def n(self) -> int:
        """Ring degree N: values of one ciphertext."""
    @property
    def plaintext_modulus(self) -> int:
        """Plaintext modulus t."""
    @property
    def has_slots(self) -> bool:
        """Whether values can be packed in slots."""
    @property
    def max_level(self) -> int:
        """Highest level, that of fresh ciphertexts: the number of times that `mod_switch` can drop a prime."""
    @property
    def q(self) -> list[int]:
        """Ciphertext primes q_0 .. q_L."""
    @property
    def p(self) -> list[int]:
        """Special primes."""
    @property
    def log_q(self) -> float:
        """log2 of the ciphertext modulus at the highest level."""
    @property
    def log_qp(self) -> float:
        """log2 of the modulus of all primes."""
    @property
    def security(self) -> str:
        """The security that is enforced for every key: "128-bit classical", or "none (insecure)"."""
    @property
    def insecure(self) -> bool:
        """Whether the security bound is switched off."""
    def to_bytes(self) -> _Bytes:
        """The parameters as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes) -> BfvParameters:
        """Parameters from the bytes of `to_bytes`, with the usual checks.

        Raises:
            FormatError: the bytes are not whole, intact parameters.
            SecurityError: they exceed the bound and are not marked insecure.
        """
    def save(self, path: _Path) -> None:
        """Writes the parameters to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path) -> BfvParameters:
        """Reads the parameters of a file; errors as for `from_bytes`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BfvCiphertext:
    """Encrypted integers modulo t, with their level and an estimate of their noise. Immutable."""
    @property
    def parameters(self) -> BfvParameters:
        """The parameters of the ciphertext."""
    @property
    def key_identity(self) -> str | None:
        """The identity of the secret key that decrypts it, 32 hexadecimal digits; None if unknown."""
    @property
    def level(self) -> int:
        """Number of times that `mod_switch` can still drop a prime."""
    @property
    def degree(self) -> int:
        """Degree in the secret: 1, or 2 after `multiply_lazy`."""
    @property
    def packing(self) -> str:
        """ "slots" or "coefficients": the places of its values."""
    @property
    def bytes(self) -> int:
        """Bytes of its residues in memory."""
    @property
    def budget_bound(self) -> float:
        """Lower bound on the noise budget in bits, derived without decrypting; the budget is smaller with probability
        below 2^-40.
        """
    def to_bytes(self) -> _Bytes:
        """The ciphertext as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: BfvParameters) -> BfvCiphertext:
        """A ciphertext from the bytes of `to_bytes`, of any ring of the parameters.

        Raises:
            FormatError: the bytes are not a whole, intact ciphertext of this class.
            MixedParametersError: it belongs to other parameters.
        """
    def save(self, path: _Path) -> None:
        """Writes the ciphertext to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path, parameters: BfvParameters) -> BfvCiphertext:
        """Reads a ciphertext from a file; errors as for `from_bytes`."""

@final
class BfvSeededCiphertext:
    """A BFV ciphertext made with the secret key. One half of it is a 32-byte seed: half the bytes to send. `expand`
    returns the ciphertext for computation.
    """
    @property
    def parameters(self) -> BfvParameters:
        """The parameters of the ciphertext."""
    @property
    def key_identity(self) -> str | None:
        """The identity of the secret key that decrypts it, 32 hexadecimal digits; None if unknown."""
    @property
    def level(self) -> int:
        """Number of times that `mod_switch` can drop a prime."""
    @property
    def packing(self) -> str:
        """ "slots" or "coefficients": the places of its values."""
    @property
    def bytes(self) -> int:
        """Bytes of its residues and its seed in memory."""
    def expand(self) -> BfvCiphertext:
        """The ciphertext to compute with."""
    def to_bytes(self) -> _Bytes:
        """The ciphertext as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: BfvParameters) -> BfvSeededCiphertext:
        """A ciphertext from the bytes of `to_bytes`, of any ring of the parameters.

        Raises:
            FormatError: the bytes are not a whole, intact ciphertext of this class.
            MixedParametersError: it belongs to other parameters.
        """
    def save(self, path: _Path) -> None:
        """Writes the ciphertext to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path, parameters: BfvParameters) -> BfvSeededCiphertext:
        """Reads a ciphertext from a file; errors as for `from_bytes`."""

@final
class BfvEncryptor:
    """Encrypts integers modulo t with a public key of BFV parameters.

    Args:
        public_key: of the owner who decrypts.
        entropy: 32 bytes that determine the randomness, for tests only.

    Raises:
        MixedParametersError: the key was made for CKKS.
    """
    def __new__(cls, public_key: PublicKey, entropy: _Bytes | None = None) -> Self: ...
    @property
    def parameters(self) -> BfvParameters:
        """The parameters of the key."""
    def encrypt(
        self, values: ArrayLike, packing: str | None = None, level: int | None = None
    ) -> BfvCiphertext:
        """Encrypts integers.

        Args:
            values: at most N integers from -t/2 to t - 1, which represent their residues; zeros fill the rest. A single
                integer fills all slots, without a transform, or all coefficients.
            packing: "slots" or "coefficients"; slots by default, if there are any.
            level: level of the ciphertext, the highest by default.

        Raises:
            EncodeError: the values are not a vector of integers in that range, or too many.
            ParameterError: there are no slots.
            LevelError: there is no such level.
            NoiseError: the level's modulus is too small for the plaintext modulus.
        """

@final
class BfvDecryptor:
    """Decrypts with a secret of BFV parameters, measures noise, and encrypts with the secret into half the bytes of a
    public-key encryption.

    Args:
        secret: the secret key.
        entropy: 32 bytes that determine the randomness of encryptions, for tests only.

    Raises:
        MixedParametersError: the secret was made for CKKS.
    """
    def __new__(cls, secret: SecretKey, entropy: _Bytes | None = None) -> Self: ...
    @property
    def parameters(self) -> BfvParameters:
        """The parameters of the secret."""
    def decrypt(self, ciphertext: BfvCiphertext | EncryptedIntegers) -> NDArray[np.int64]:
        """The N values as int64, centred: above -t/2 and at most t/2.

        Args:
            ciphertext: a ciphertext, or a result of operators.

        Raises:
            NoiseError: the noise is too large to recover the values, or the ciphertext belongs to another key.
            MixedParametersError: the ciphertext belongs to other parameters.
        """
    def noise_budget(self, ciphertext: BfvCiphertext | EncryptedIntegers) -> float:
        """Bits by which the noise may still grow before decryption fails, measured; decryption needs at least 1.

        The result depends on the secret: do not share it.

        Raises:
            MixedParametersError: the ciphertext belongs to other parameters.
        """
    def encrypt(
        self, values: ArrayLike, packing: str | None = None, level: int | None = None
    ) -> BfvSeededCiphertext:
        """Encrypts integers; arguments and errors as for `BfvEncryptor.encrypt`."""

@final
class BfvEvaluator:
    """Computes on BFV ciphertexts with the keys it was given. `evaluator(ciphertext)` returns a value with operators.

    Every operation returns a new ciphertext. An operand is a ciphertext at the same level, or integers from -t/2 to t -
    1: a vector, or a scalar that stands for every value and costs no transform. Values in slots are multiplied one by
    one, coefficients as polynomials modulo X^N + 1.

    All raise NoiseError if the result may not decrypt by its estimated noise, MixedParametersError for ciphertexts of
    other parameters, PackingError and LevelError for operands that do not match, and EncodeError for integers out of
    range. Those that need a key raise MissingKeyError.

    Args:
        parameters: of the ciphertexts.
        keys: those of the owner of the data; an empty set by default, which suffices for sums.
    """
    def __new__(cls, parameters: BfvParameters, keys: EvaluationKeys | None = None) -> Self: ...
    @property
    def parameters(self) -> BfvParameters:
        """The parameters it computes with."""
    @property
    def keys(self) -> EvaluationKeys:
        """Its keys. Keys added to them are used from then on."""
    def __call__(self, ciphertext: BfvCiphertext) -> EncryptedIntegers: ...
    def add(self, a: BfvCiphertext, b: BfvCiphertext | ArrayLike) -> BfvCiphertext:
        """a + b, with b a ciphertext or integers."""
    def sub(self, a: BfvCiphertext, b: BfvCiphertext | ArrayLike) -> BfvCiphertext:
        """a - b, with b a ciphertext or integers."""
    def neg(self, a: BfvCiphertext) -> BfvCiphertext:
        """-a."""
    def multiply(self, a: BfvCiphertext, b: BfvCiphertext | ArrayLike) -> BfvCiphertext:
        """a b, with b a ciphertext or integers: relinearized.

        Raises:
            DegreeError: an operand has degree 2; relinearize it first.
        """
    def square(self, a: BfvCiphertext) -> BfvCiphertext:
        """a^2, relinearized.

        Raises:
            DegreeError: a has degree 2.
        """
    def multiply_lazy(self, a: BfvCiphertext, b: BfvCiphertext) -> BfvCiphertext:
        """a b at degree 2; a sum of such products needs one `relinearize`.

        Raises:
            DegreeError: an operand has degree 2.
        """
    def relinearize(self, a: BfvCiphertext) -> BfvCiphertext:
        """a at degree 1."""
    def rotate_rows(self, a: BfvCiphertext, steps: int) -> BfvCiphertext:
        """Rotates both rows of slots to the left: numpy.roll(slots.reshape(2, -1), -steps, axis=1).

        Raises:
            PackingError: the values are in coefficients.
            DegreeError: a has degree 2.
        """
    def rotate_rows_hoisted(self, a: BfvCiphertext, steps: Sequence[int]) -> list[BfvCiphertext]:
        """Several rotations of one ciphertext, which share its decomposition; errors as for `rotate_rows`, raised before
        anything is computed.
        """
    def swap_rows(self, a: BfvCiphertext) -> BfvCiphertext:
        """Swaps the two rows of slots. Needs the key from `KeyGenerator.conjugation_key`.

        Raises:
            PackingError, DegreeError: as for `rotate_rows`.
        """
    def mod_switch(self, a: BfvCiphertext) -> BfvCiphertext:
        """a one level lower, with the same values: smaller and faster, with room for less noise.

        Raises:
            LevelError: a is at level 0.
        """
    def mod_switch_to(self, a: BfvCiphertext, level: int) -> BfvCiphertext:
        """a at a lower level.

        Raises:
            LevelError: the level is above that of a.
        """

@final
class SecretKey:
    """The secret of the owner of the data. Wiped from memory when dropped, never printed, never given to a server."""
    @staticmethod
    def generate(parameters: _KeyParameters, entropy: _Bytes | None = None) -> SecretKey:
        """A new secret.

        Args:
            parameters: of the secret.
            entropy: 32 bytes that determine the secret, for tests only: anyone who knows them knows the secret. The
                operating system's randomness by default.

        Raises:
            RandomnessError: the operating system returns no random bytes.
        """
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters of the secret."""
    @property
    def key_identity(self) -> str | None:
        """Identifies keys and ciphertexts of this secret: 32 hexadecimal digits, which do not reveal it. None for a secret
        of less than 128 bits, which a digest would let others guess.
        """
    def to_bytes(self) -> _Bytes:
        """The secret as bytes, unencrypted: protect them like a password. Python does not wipe them."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: _KeyParameters) -> SecretKey:
        """A secret from the bytes of `to_bytes`.

        Raises:
            FormatError: the bytes are not a whole, intact secret.
            MixedParametersError: it belongs to other parameters.
        """
    def save(self, path: _Path) -> None:
        """Writes the secret, unencrypted, to a file that only its owner can read and that appears whole or not at all."""
    @staticmethod
    def load(path: _Path, parameters: _KeyParameters) -> SecretKey:
        """Reads the secret of a file; errors as for `from_bytes`."""

@final
class PublicKey:
    """A key for encrypting to the owner of the secret; anyone may have it."""
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters of the key."""
    @property
    def key_identity(self) -> str | None:
        """Identifies the secret of keys and ciphertexts: 32 hexadecimal digits; None if unknown."""
    def to_bytes(self) -> _Bytes:
        """The key as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: _KeyParameters) -> PublicKey:
        """A key from the bytes of `to_bytes`.

        Raises:
            FormatError: the bytes are not a whole, intact public key.
            MixedParametersError: it belongs to other parameters.
        """
    def save(self, path: _Path) -> None:
        """Writes the key to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path, parameters: _KeyParameters) -> PublicKey:
        """Reads the key of a file; errors as for `from_bytes`."""

@final
class KeySpec:
    """The description of one switching key: its source, highest level, digits and special primes.

    Made by `rotation`, `conjugation`, `relinearization` or `galois`. A key has `digits * (level + 1 + special primes)`
    residue polynomials of N words per half, and a seeded key stores one half. A key at the level where it is used is
    therefore smaller than one at the top. All constructors take:

        level: highest ciphertext level of its use; the parameters' highest by default.
        alpha: most primes per digit; by default the number that needs the fewest transforms at that level.
        seeded: store a 32-byte seed for the uniform half: half the bytes.
        special: indices of its special primes, among q_0 .. q_L, p_0, ...; chosen by default.

    and raise LevelError, ParameterError or SecurityError for illegal values.
    """
    @staticmethod
    def rotation(
        parameters: _KeyParameters,
        steps: int,
        level: int | None = None,
        alpha: int | None = None,
        seeded: bool = True,
        special: Sequence[int] | None = None,
    ) -> KeySpec:
        """A rotation by a number of steps to the left: numpy.roll(slots, -steps)."""
    @staticmethod
    def conjugation(
        parameters: _KeyParameters,
        level: int | None = None,
        alpha: int | None = None,
        seeded: bool = True,
        special: Sequence[int] | None = None,
    ) -> KeySpec:
        """The complex conjugation of all slots."""
    @staticmethod
    def relinearization(
        parameters: _KeyParameters,
        level: int | None = None,
        alpha: int | None = None,
        seeded: bool = True,
        special: Sequence[int] | None = None,
    ) -> KeySpec:
        """The relinearization of products."""
    @staticmethod
    def galois(
        parameters: _KeyParameters,
        element: int,
        level: int | None = None,
        alpha: int | None = None,
        seeded: bool = True,
        special: Sequence[int] | None = None,
    ) -> KeySpec:
        """The automorphism X -> X^element, for odd elements below 2N."""
    @staticmethod
    def ring_down(
        parameters: _KeyParameters,
        log_n: int,
        level: int | None = None,
        alpha: int | None = None,
        seeded: bool = True,
        special: Sequence[int] | None = None,
        source: int | None = None,
    ) -> list[KeySpec]:
        """The keys with which `Evaluator.switch_ring` switches down to a smaller ring: one for each of the 2^(source -
        log_n) parts of the larger ring's secret. All are required, and have one shape.

        Args:
            parameters: with the subring.
            log_n: log2 of the degree of the smaller ring, the keys' own: level and special are those of that ring.
            source: log2 of the degree of the larger ring; that of the parameters by default.

        Raises:
            ParameterError: the parameters have no such ring, or it is not smaller.
        """
    @staticmethod
    def ring_up(
        parameters: _KeyParameters,
        source: int,
        level: int | None = None,
        alpha: int | None = None,
        seeded: bool = True,
        special: Sequence[int] | None = None,
        log_n: int | None = None,
    ) -> KeySpec:
        """The key with which `Evaluator.switch_ring` switches up to a larger ring.

        Args:
            parameters: with the subring.
            source: log2 of the degree of the smaller ring.
            log_n: log2 of the degree of the larger ring, the key's own; that of the parameters by default.

        Raises:
            ParameterError: the parameters have no such ring, or it is not larger.
        """
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters of the key's ring."""
    @property
    def log_n(self) -> int:
        """log2 of the degree of its ring."""
    @property
    def source_log_n(self) -> int | None:
        """log2 of the degree of the other ring, for a key between rings; None for others."""
    @property
    def part(self) -> int | None:
        """The part of the larger ring's secret for a "ring_down" key; None for others."""
    @property
    def kind(self) -> str:
        """ "rotation", "conjugation", "galois", "relinearization", "secret", "dense_to_sparse", "sparse_to_dense",
        "sparse_to_dense_galois", "ring_down", "ring_up" or "ring_up_to_sparse".
        """
    @property
    def steps(self) -> int | None:
        """Steps of the rotation, from -N/4+1 to N/4; None if it is not a rotation."""
    @property
    def galois_element(self) -> int | None:
        """Galois element; None if it is not an automorphism."""
    @property
    def level(self) -> int:
        """Highest ciphertext level of its use."""
    @property
    def alpha(self) -> int:
        """Most primes per digit."""
    @property
    def special(self) -> list[int]:
        """Indices of its special primes, counted through q_0 .. q_L, p_0, ..."""
    @property
    def seeded(self) -> bool:
        """Whether the uniform half is a 32-byte seed."""
    @property
    def digits(self) -> list[tuple[int, int]]:
        """The primes of each digit, as ranges (first, one past the last)."""
    @property
    def bytes(self) -> int:
        """Bytes of the key in memory: residues, and the seed of a seeded one."""
    @property
    def unseeded_bytes(self) -> int:
        """Bytes of the same key with both halves stored."""
    def scratch_bytes(
        self, level: int | None = None, *, keys: int = 1, rescale: bool = False, threads: int | None = None
    ) -> int:
        """Peak bytes of a key switch with such a key, including its results but not its input and keys. A product of
        ciphertexts holds three more polynomials.

        Args:
            level: of the ciphertext; that of the key by default.
            keys: number of keys of this shape that serve one ciphertext at once.
            rescale: whether the switch ends with a rescaling, as in `multiply`.
            threads: number of computing threads; those of the process by default.

        Raises:
            LevelError: the level is above that of the key.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class SwitchingKey:
    """A key with which a server rotates, conjugates, relinearizes, or switches to another secret."""
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters of the key."""
    @property
    def key_identity(self) -> str | None:
        """Identifies the secret of keys and ciphertexts: 32 hexadecimal digits; None if unknown."""
    @property
    def spec(self) -> KeySpec:
        """The description of the key."""
    @property
    def bytes(self) -> int:
        """Bytes in memory; a seeded key has half of an unseeded one."""
    @property
    def error_variance(self) -> float:
        """Variance of a coefficient of its rows' errors; larger for derived keys."""
    def truncate(self, level: int) -> SwitchingKey:
        """The same key for ciphertexts up to a lower level: fewer bytes.

        Raises:
            LevelError: the level is above the key's.
        """
    def to_bytes(self) -> _Bytes:
        """The key as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: _KeyParameters) -> SwitchingKey:
        """A key from the bytes of `to_bytes`.

        Raises:
            FormatError: the bytes are not a whole, intact switching key.
            MixedParametersError: it belongs to other parameters.
        """

@final
class KeyGenerator:
    """Makes the keys of one secret.

    Args:
        secret: the secret of the owner of the data.
        entropy: 32 bytes that determine the keys, for tests only. The operating system's randomness by default.

    The methods that make switching keys take `level`, `alpha` and `seeded` like `KeySpec`, and raise the same errors.
    """
    def __new__(cls, secret: SecretKey, entropy: _Bytes | None = None) -> Self: ...
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters of the secret."""
    def public_key(self, log_n: int | None = None) -> PublicKey:
        """A public key, for encrypting.

        Args:
            log_n: log2 of the degree of the encryption's ring; that of the parameters by default.

        Raises:
            ParameterError: the parameters have no such ring.
        """
    def relinearization_key(
        self, level: int | None = None, alpha: int | None = None, seeded: bool = True
    ) -> SwitchingKey:
        """A key for relinearization."""
    def rotation_key(
        self, steps: int, level: int | None = None, alpha: int | None = None, seeded: bool = True
    ) -> SwitchingKey:
        """A key for rotations by a number of steps to the left."""
    def conjugation_key(
        self, level: int | None = None, alpha: int | None = None, seeded: bool = True
    ) -> SwitchingKey:
        """A key for the complex conjugation of slots; for BFV, for the swap of the rows."""
    def switching_key(self, spec: KeySpec) -> SwitchingKey:
        """The key of a spec.

        Raises:
            MixedParametersError: the spec is for other parameters.
        """
    def evaluation_keys(
        self,
        rotations: Sequence[int] = ...,
        relinearization: bool = True,
        conjugation: bool = False,
        level: int | None = None,
        alpha: int | None = None,
        seeded: bool = True,
        specs: Sequence[KeySpec] = ...,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """The keys that a server needs.

        Args:
            rotations: steps of the rotations; all their keys have the same level.
            relinearization: whether to make the key for products.
            conjugation: whether to make the key for conjugation.
            specs: further keys; ephemeral keys in pairs of one weight.
            progress: called after each key with the number of keys made and their total; may raise to stop.

        Raises:
            MixedParametersError: a spec is for other parameters.
            ParameterError: the key to an ephemeral secret of a weight, or the key back, is missing or repeated.
        """
    def save_evaluation_keys(
        self,
        path: _Path,
        specs: Sequence[KeySpec],
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """Makes keys and writes each to a file as soon as it exists: the set need not fit in memory. The file appears
        whole or not at all. `EvaluationKeys.load` reads it.

        Args:
            path: the file.
            specs: the keys.
            progress: as for `evaluation_keys`.
        """

@final
class EvaluationKeys:
    """The switching keys of a server: any number per rotation, at any levels. Iterates over its `KeySpec`s.

    For each operation the evaluator uses the key, and the number of its rows per digit, that need the fewest
    transforms. A set that follows a plan uses what the plan prescribes.
    """
    def __new__(cls, parameters: _KeyParameters) -> Self: ...
    @staticmethod
    def outline(parameters: _KeyParameters, specs: Sequence[KeySpec]) -> EvaluationKeys:
        """A set with the descriptions of its keys only. It tells which errors they would add before any is made
        (`ErrorModel`). Computing with one raises KeySourceError.

        Raises:
            MixedParametersError: a spec is for other parameters.
            KeySpecError: there are two keys to or from an ephemeral secret of one weight.
        """
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters of its keys."""
    @property
    def key_identity(self) -> str | None:
        """Identifies the secret of keys and ciphertexts: 32 hexadecimal digits; None if unknown."""
    def add(self, key: SwitchingKey) -> None:
        """Adds a key; running operations continue without it.

        Raises:
            KeyMismatchError: the key was made with another secret than the others.
            MixedParametersError: the key belongs to other parameters.
        """
    @property
    def bytes(self) -> int:
        """Bytes of all keys, in memory or not."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[KeySpec]: ...
    def to_bytes(self) -> _Bytes:
        """The keys as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: _KeyParameters) -> EvaluationKeys:
        """Keys from the bytes of `to_bytes`. Each key is checked for security.

        Raises:
            FormatError: the bytes are not a whole, intact key set.
            MixedParametersError: it belongs to other parameters.
        """
    def save(self, path: _Path) -> None:
        """Writes the keys to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path, parameters: _KeyParameters) -> EvaluationKeys:
        """Reads the keys of a file; errors as for `from_bytes`."""
    def following(
        self,
        routes: Sequence[tuple[int, Sequence[int], Sequence[tuple[int, int, KeySpec]]]],
        relinearizations: Sequence[tuple[int, KeySpec]],
    ) -> EvaluationKeys:
        """The same keys, used as planned: each group of automorphisms by its hops, each relinearization with the key of
        its level. Keys to and from ephemeral secrets are used as without a plan.

        Args:
            routes: for each group its level, the required Galois elements, and its hops as (parent, child, key): every
                parent is 1, the ciphertext itself, or an earlier child; the key is that of child / parent.
            relinearizations: the key for each level.

        Raises:
            PlanMismatchError: hops that do not make the required elements.
            MissingKeyError: the set lacks one of the keys.
        """
    @staticmethod
    def stream(
        path: _Path,
        parameters: _KeyParameters,
        memory: int,
        steps: Sequence[Sequence[KeySpec]],
        masters: MasterKeys | None = None,
        derived: Sequence[KeySpec] = ...,
        max_hops: int = ...,
    ) -> EvaluationKeys:
        """Keys that take at most `memory` bytes of memory at a time. Keys of a file are read; others are derived from
        master keys, again after an eviction. A thread makes the keys of coming steps. When memory is full, the idle key
        needed furthest in the future is evicted. An operation whose keys do not fit takes them one after the other.
        Operations with these keys run one at a time.

        Args:
            path: a file of `save` or `KeyGenerator.save_evaluation_keys`.
            memory: bytes of keys, including the master keys.
            steps: the keys that each step of the program uses, in order; it may run any number of times. Other keys are
                made too, at use.
            masters: the master keys of the derived ones; as many threads as compute derive them.
            derived: the keys to derive. A derived key cannot be seeded, so that field is ignored.
            max_hops: as for `MasterKeys.derive`.

        Raises:
            FormatError, MixedParametersError: as for `from_bytes`.
            KeyMemoryError: a key does not fit.
            DerivationError: as for `MasterKeys.derive`.
        """
    @staticmethod
    def load_shared(
        path: _Path,
        parameters: _KeyParameters,
        steps: Sequence[Sequence[KeySpec]],
        arrival: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """The keys of a file, read in the order in which a program uses them, into memory that other processes can map:
        see `share`. Operations begin with the first keys and wait for the others, while a thread reads.

        Args:
            path: a file of `save` or `KeyGenerator.save_evaluation_keys`.
            steps: the keys that each step of the program uses, in order. Other keys are read after them.
            arrival: for a file that is being written, whose length and head, up to that of its first key, are there.
                Called before a key is read, with where its bytes begin and end. Returns when they are there, or raises
                `OSError` if they will not come.

        Raises:
            FormatError, MixedParametersError: as for `from_bytes`, for the head; for a key, raised by the operation
                that uses it.
            OSError: the file cannot be read, or the system has no sealed shared memory, as Linux has.
        """
    def share(self) -> int:
        """Waits until all keys of `load_shared` are read, and returns a descriptor of their memory, which is sealed
        against writes. The caller closes it. Other processes of this machine that get the descriptor map the same
        memory: `open_shared`.

        Raises:
            OSError: a key cannot be read, or the keys are not those of `load_shared`.
        """
    @staticmethod
    def open_shared(descriptor: int, parameters: _KeyParameters) -> EvaluationKeys:
        """The keys in the memory of a descriptor from `share`. The caller may close it: the keys stay mapped while this
        object exists.

        Raises:
            OSError: it is not a descriptor of such memory.
            FormatError, MixedParametersError: as for `from_bytes`.
        """
    @property
    def streaming(self) -> dict[str, float] | None:
        """Statistics of streamed keys: "loads" of keys, by reading or deriving; those "ahead" of their use; their "bytes";
        "peak_bytes" in memory at once; and "waited_s", how long operations waited for keys. None for keys that are all
        in memory.
        """

@final
class MasterKeys:
    """Keys from which a server derives the Galois keys of a program. The client makes these few keys once, and sends them
    instead.

    A master key is over the primes of the parameters and extra ones; the product of all is checked against the 128-bit
    bound. Not a secret.
    """
    @staticmethod
    def generate(
        secret: SecretKey,
        rotations: Sequence[int],
        extra_bits: Sequence[int],
        level: int | None = None,
        conjugation: bool = False,
        galois_elements: Sequence[int] = ...,
        special: int | None = None,
        entropy: _Bytes | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> MasterKeys:
        """Makes master keys, on the client.

        Args:
            secret: the secret of the owner of the data.
            rotations: steps of the rotations with a master key.
            extra_bits: widths of the extra primes, at most 61 bits. More of them make fewer and smaller rows.
            level: highest level of the derived keys; the parameters' highest by default.
            conjugation: whether to make a master key of the conjugation too.
            galois_elements: further automorphisms with a master key.
            special: number of primes by which a master key divides: the extra ones, then ciphertext primes above the
                level. By default the number that needs the fewest bytes.
            entropy: 32 bytes that determine the keys, for tests only. The operating system's randomness by default.
            progress: called after each key with the number of keys made and their total; may raise to stop.

        Raises:
            SecurityError: the modulus of a master key exceeds the bound.
            ParameterError: there are no such primes, or they are too narrow for a digit of one prime.
        """
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters of derived keys."""
    @property
    def extra(self) -> list[int]:
        """The extra primes."""
    @property
    def shapes(self) -> list[tuple[int, int, int, int]]:
        """The keys over their chain, by element: Galois element, level, most primes per digit, and number of special
        primes.
        """
    @property
    def galois_elements(self) -> list[int]:
        """Galois elements of the master keys."""
    @property
    def bytes(self) -> int:
        """Bytes of all master keys in memory."""
    @property
    def modulus_bits(self) -> float:
        """Bits of the largest modulus of a master key, for comparison with the security bound."""
    def __len__(self) -> int: ...
    def derive(
        self,
        specs: Sequence[KeySpec],
        max_hops: int = ...,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """Derives keys, on the server. The same specs always give the same keys again, even after eviction.

        Args:
            specs: the keys. A derived key cannot be seeded, so that field is ignored.
            max_hops: most derivations from the master keys to a key, from 1 to `MAX_DERIVATION_HOPS`; each adds to its
                noise. `DEFAULT_DERIVATION_HOPS` by default.
            progress: called after each key with the number of keys made and their total; may raise to stop.

        Raises:
            DerivationError: the master keys do not reach a key, or it is not a Galois key.
            MixedParametersError: a spec is for other parameters.
        """
    def derivation(self, specs: Sequence[KeySpec], max_hops: int = ...) -> Derivation:
        """The same keys one by one, so that they need not all be in memory: an iterator of `SwitchingKey`."""
    def to_bytes(self) -> _Bytes:
        """The keys as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: _KeyParameters) -> MasterKeys:
        """Keys from the bytes of `to_bytes`. Each key is checked for security.

        Raises:
            FormatError: the bytes are not a whole, intact set of master keys.
            MixedParametersError: it belongs to other parameters.
        """
    def save(self, path: _Path) -> None:
        """Writes the keys to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path, parameters: _KeyParameters) -> MasterKeys:
        """Reads the keys of a file; errors as for `from_bytes`."""

@final
class Derivation:
    """Keys that are derived on request: the result of `MasterKeys.derivation`. An iterator; its length is the number of
    keys left.
    """
    @property
    def derived(self) -> int:
        """Derived keys, including intermediate ones."""
    @property
    def decomposed(self) -> int:
        """Keys from which others are derived."""
    @property
    def depth(self) -> int:
        """Most derivations from the master keys to a key."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Derivation: ...
    def __next__(self) -> SwitchingKey: ...

@final
class DerivationTree:
    """The tree of derivations, for the planner, which chooses master keys before any is made.

    Args:
        log_n: log2 of the ring degree N.
        masters: Galois elements of the master keys.
        targets: Galois elements of the required keys.
        max_hops: most derivations to a key, from 1 to `MAX_DERIVATION_HOPS`, the default.

    Raises:
        DerivationError: the master keys do not reach a target.
        ParameterError: an element that is even or above 2N, an illegal ring degree or number of hops.
    """
    def __new__(
        cls, log_n: int, masters: Sequence[int], targets: Sequence[int], max_hops: int = ...
    ) -> Self: ...
    @property
    def steps(self) -> list[tuple[int, int, int, int]]:
        """For every derived key: its Galois element, that of its parent (1: none), that of the master key, and its number
        of derivations.
        """
    @property
    def depth(self) -> int:
        """Most derivations to a key."""
    def decompositions(self, rows: int, primes: int) -> int:
        """Decompositions of each row of a key while all keys are derived, by master keys of one shape.

        Args:
            rows: of a derived key.
            primes: of the master keys' chain over which derived keys are made.
        """

def master_key_bytes(
    parameters: _KeyParameters,
    extra_bits: Sequence[int],
    level: int | None = None,
    special: int | None = None,
) -> int:
    """Bytes of one master key from `MasterKeys.generate` with the same arguments, with its uniform halves as a seed.

    Raises:
        SecurityError, ParameterError, LevelError: as for `MasterKeys.generate`.
    """

def maximum_log_qp(log_n: int, weight: int | None = None) -> int:
    """The most bits of a key's modulus at 128 bits of security.

    Args:
        log_n: log2 of the ring degree, 10 to 17.
        weight: Hamming weight of a sparse secret; None for a uniform ternary one.

    Raises:
        SecurityError: there is no bound for that degree and secret.
    """

@final
class PrimeWidths:
    """The widths of the primes of parameters, chosen or not, from which sizes of keys and operation counts are computed.

    Primes are numbered through q_0 .. q_L, p_0, ...; those of at most 50 bits are narrow.
    """
    def __new__(cls, log_n: int, q: Sequence[float], p: Sequence[float]) -> Self: ...
    def digits(self, level: int, alpha: int, special: Sequence[int]) -> list[tuple[int, int]] | None:
        """The digits of a key as (first prime, one past the last): runs of at most alpha primes whose product is at most
        that of the special primes; None if a single prime exceeds it, or alpha is 0.
        """
    def special_candidates(self, level: int, bound: float) -> list[int]:
        """Candidates for the special primes of a key at a level, in the order in which a key takes them: the special ones,
        then the ciphertext primes above it from the top down, while the key's modulus has at most `bound` bits.
        """
    def key_bytes(self, digits: int, primes: int, seeded: bool) -> int:
        """Bytes of a key in memory: residues of one half and a seed, or of both."""
    def switch(
        self, key_level: int, alpha: int, special: Sequence[int], seeded: bool, level: int
    ) -> tuple[list[tuple[int, int]], list[int], float, list[list[int]]] | None:
        """The engine's use of a key at a level: digits, removed primes, noise relative to the rounding of a division, and
        work. None above the key's level, or if its digits are illegal.
        """
    def ring_switch(
        self,
        key_level: int,
        alpha: int,
        special: Sequence[int],
        seeded: bool,
        level: int,
        parts: int | None = None,
    ) -> list[int] | None:
        """The work of a switch between rings, in limbs of the ring of these widths, as `switch` gives for other switches.
        None where that is.

        Args:
            key_level, alpha, special, seeded: of its keys, which belong to this ring.
            level: of the ciphertext.
            parts: for switching down from a larger ring, the ratio of the degrees; None for switching up from any
                smaller ring.
        """
    def derivation_noise(
        self, key_level: int, alpha: int, special: Sequence[int], level: int
    ) -> list[float] | None:
        """Variance that a derivation with a master key adds to the errors of a derived key, relative to a fresh key's
        errors: of the first derivation, and of every other one. The secret is uniform ternary; sparse ones add less.
        None where `switch` is.

        Args:
            key_level: of the master key, as are alpha and special.
            level: of the derived key in the master key's chain.
        """
    def operation(
        self, level: int, counts: Mapping[str, int], removed: Sequence[int], relinearization: Sequence[int]
    ) -> list[int]:
        """The work of one operation other than a key switch: that of its counts, at a level.

        Args:
            level: of its ciphertexts.
            counts: by the names of `keywright.plan.Operation`.
            removed: the primes that key switches at the level remove.
            relinearization: the primes that the relinearization key of the level removes.
        """

@final
class ErrorModel:
    """Variances of the errors that operations add, computed by the engine for keys that need not exist
    (`EvaluationKeys.outline`).

    Every variance is a pair `(plain, secret)`, of one coefficient. With `X` the squared absolute value of the secret at
    a slot divided by its mean, the variance there is `plain + secret X`. `deviation_unit` converts its square root to a
    part of a slot, in units of the message.

    Args:
        parameters: of the ciphertexts: those of the keys, or of one of their subrings for operations in that ring.
        keys: those that the operations would use.

    Raises:
        MixedParametersError: the keys are of other parameters.
    """
    def __new__(cls, parameters: Parameters, keys: EvaluationKeys) -> Self: ...
    @property
    def parameters(self) -> Parameters:
        """The parameters of the ciphertexts."""
    def deviation_unit(self, slots: int, scale: float) -> float:
        """The error in each part of a slot, in units of a message at a scale, that a coefficient error of deviation 1
        causes.

        Raises:
            ParameterError: the number of slots is illegal.
        """
    def encryption(self, public: bool = False) -> tuple[float, float]:
        """Variance of a fresh encryption, with the public key or with the secret one, including the rounding of its
        encoding.
        """
    @property
    def rescaling(self) -> tuple[float, float]:
        """Variance of a rescaling, at the scale after it. A relinearization before it adds nothing of that size, since it
        is divided by the prime.
        """
    def rotation(self, steps: int, slots: int, level: int) -> tuple[float, float]:
        """Variance of a rotation to the left of a ciphertext with this many slots at a level, including all its hops.

        Raises:
            MissingKeyError, PlanMismatchError: as for `Evaluator.rotate`.
        """
    def switch_ring(self, source: int, log_n: int, level: int) -> tuple[float, float]:
        """Variance of a switch from the ring of degree 2^source to that of degree 2^log_n, at a level.

        Raises:
            MissingKeyError: as for `Evaluator.switch_ring`.
            ParameterError: the parameters have no such ring.
        """
    def linear_transform(
        self,
        diagonals: Sequence[Sequence[int]],
        slots: int,
        n1: int,
        level: int,
        special: Sequence[int],
    ) -> tuple[list[list[tuple[int, tuple[float, float]]]], tuple[float, float]]:
        """Variances of a linear transform of one or several ciphertexts. For each ciphertext and each of its baby steps,
        ascending: the error added to the rotated ciphertext before the diagonals multiply it. Then the error added to
        the result. Does not include `diagonal`.

        Args:
            diagonals: for each ciphertext the indices of its diagonals.
            slots: of the ciphertexts.
            n1: number of possible baby steps.
            level: of the ciphertexts.
            special: indices of the primes that the transform's key switches divide by.

        Raises:
            MissingKeyError, PlanMismatchError, SpecialPrimesError: as for `Evaluator.linear_transform`.
            ParameterError: n1 is illegal, or there are no diagonals.
        """
    def diagonal(self, period: int, level: int) -> float:
        """Variance of each part of every slot of an encoded diagonal, for a transform at a level.

        Args:
            period: of its entries, a power of two.
            level: of the transform.

        Raises:
            LevelError: there is no such level.
        """
    def polynomial(
        self,
        coefficients: ArrayLike,
        basis: str,
        level: int,
        scale: float,
        values: ArrayLike,
    ) -> list[float]:
        """The factor by which the evaluation of a polynomial amplifies a rounding (`rescaling`) at scale 1, at each of
        some values of the input.

        Args:
            coefficients, basis: as for `Evaluator.polynomial`, on [-1, 1].
            level, scale: of the input; the result has its scale.
            values: real.

        Raises:
            LevelError: there are too few levels.
            ParameterError: another basis, a coefficient that is not finite.
        """

@final
class LinearTransform:
    """A matrix on the slots, encoded for one level: `transform @ x`, or `Evaluator.linear_transform`, is its product with
    the column of slots.

    Diagonal r of a matrix M over n slots is M[i, (i + r) mod n]; zero diagonals take no time. Evaluation is baby-step
    giant-step with double hoisting (Bossuat et al., Eurocrypt 2021, algorithm 6): r = i + j with the baby step i = r
    mod n1 and the giant step j. Its rotations share ModUp and ModDown if their keys have the special primes of the
    transform; `key_specs` lists such keys. With other keys the result is equally right, but each such rotation needs
    its own ModDown.

    Args:
        parameters: of the ciphertexts.
        matrix: real or complex, of up to `slots` rows and columns: slots beyond its columns are ignored, results beyond
            its rows are 0. Or a dict of its diagonals: for each r, a vector of `slots` numbers.
        slots: a power of two up to N/2, the default.
        level: of its input ciphertexts, the highest by default; the result is one lower.
        n1: number of possible baby steps; by default the one of least work.
        special: indices of the special primes of its keys; by default those of `KeySpec.rotation` at that level.
        storage: "encoded" keeps a diagonal of period p as its values modulo every prime, 16 p (level + 1 +
            len(special)) bytes; "coefficients" keeps its integer coefficients, 16 p bytes, and transforms them at every
            use. A real matrix takes half of these bytes. Results are the same.

    Raises:
        LevelError: the level does not exist or is 0.
        EncodeError: a matrix of the wrong shape, a diagonal that is not a vector of `slots` finite numbers, or
            coefficients of 2^62 or more that must be kept.
        ParameterError: slots, n1 or a special prime is illegal, there are no diagonals, or the storage is unknown.
    """
    def __new__(
        cls,
        parameters: Parameters,
        matrix: ArrayLike | Mapping[int, ArrayLike],
        slots: int | None = None,
        level: int | None = None,
        n1: int | None = None,
        special: Sequence[int] | None = None,
        *,
        storage: str = "encoded",
    ) -> Self: ...
    @staticmethod
    def from_rows(
        parameters: Parameters,
        indices: Sequence[int],
        values: ArrayLike,
        slots: int | None = None,
        level: int | None = None,
        n1: int | None = None,
        special: Sequence[int] | None = None,
        *,
        storage: str = "encoded",
    ) -> LinearTransform:
        """The transform of periodic real diagonals, from one array: encoded on all threads, without the interpreter.

        Args:
            indices: of the diagonals; those equal modulo `slots` are summed.
            values: of shape (len(indices), period), the diagonals as rows. The period is a power of two; a diagonal
                repeats its row up to `slots` values.
            slots, level, n1, special, storage: as for the class.

        Raises:
            as for the class; ParameterError: the period is not a power of two up to `slots`.
        """
    @staticmethod
    def predicted_bytes(
        periods: Sequence[int], primes: int, storage: str = "encoded", *, real: bool = True
    ) -> int:
        """Bytes of the diagonals that a transform would keep.

        Args:
            periods: for each diagonal the smallest power of two after which it repeats; the number of slots always
                works.
            primes: level + 1 + len(special).
            storage: as for the class.
            real: whether all diagonals are real.

        Raises:
            ParameterError: a period is not a power of two up to 2^16, or the storage is unknown.
        """
    @staticmethod
    def coefficient_transforms(parameters: Parameters, periods: Sequence[int]) -> float:
        """The number of whole-polynomial transforms modulo one prime with as many butterflies as an evaluation needs,
        modulo each prime, for diagonals kept as coefficients. These have degree 2p for the period p, and at least 2^10.

        Args:
            parameters: of the ciphertexts.
            periods: as for `predicted_bytes`.

        Raises:
            ParameterError: a period is not a power of two up to 2^16.
        """
    @property
    def storage(self) -> str:
        """ "encoded" or "coefficients": the storage of the diagonals."""
    @property
    def parameters(self) -> Parameters:
        """The parameters of the encoding."""
    @property
    def slots(self) -> int:
        """Number of slots."""
    @property
    def level(self) -> int:
        """Level of its input ciphertexts."""
    @property
    def n1(self) -> int:
        """Number of possible baby steps."""
    @property
    def special(self) -> list[int]:
        """Indices of the special primes of its keys."""
    @property
    def rotations(self) -> list[int]:
        """Rotations that need a key, ascending."""
    @property
    def bytes(self) -> int:
        """Bytes of the kept diagonals: `predicted_bytes`."""
    def key_specs(self, seeded: bool = True) -> list[KeySpec]:
        """The keys it needs, at its level."""

@final
class Ciphertext:
    """An encrypted vector, with its level, its scale and an estimate of its error. Immutable."""
    @property
    def parameters(self) -> Parameters:
        """The parameters of the ciphertext."""
    @property
    def key_identity(self) -> str | None:
        """The identity of the secret key that decrypts it, 32 hexadecimal digits; None if unknown."""
    @property
    def log_n(self) -> int:
        """log2 of the degree of its ring."""
    @property
    def n(self) -> int:
        """Degree of its ring."""
    @property
    def level(self) -> int:
        """Number of rescalings left."""
    @property
    def degree(self) -> int:
        """Degree in the secret: 1, or 2 after `multiply_lazy`."""
    @property
    def scale(self) -> float:
        """Factor by which the message is scaled."""
    @property
    def log_scale(self) -> float:
        """log2 of the scale."""
    @property
    def packing(self) -> str:
        """ "slots" or "coefficients": the places of its values."""
    @property
    def slots(self) -> int | None:
        """Number of slots; None if its values are in coefficients."""
    @property
    def bytes(self) -> int:
        """Bytes of its residues in memory."""
    @property
    def error_bound(self) -> float:
        """Bound on the absolute error of every value, derived without decrypting; exceeded with probability below 2^-40.
        Infinite if values as large as `magnitude_bound` do not fit the modulus, since they may have overflowed.
        """
    @property
    def magnitude_bound(self) -> float:
        """Bound on the absolute value of every value, derived without decrypting."""
    @property
    def precision_bits(self) -> float:
        """-log2 of the error bound: bits after the point that are right."""
    def to_bytes(self) -> _Bytes:
        """The ciphertext as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: Parameters) -> Ciphertext:
        """A ciphertext from the bytes of `to_bytes`, of any ring of the parameters.

        Raises:
            FormatError: the bytes are not a whole, intact ciphertext of this class.
            MixedParametersError: it belongs to other parameters.
        """
    def save(self, path: _Path) -> None:
        """Writes the ciphertext to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path, parameters: Parameters) -> Ciphertext:
        """Reads a ciphertext from a file; errors as for `from_bytes`."""

@final
class SeededCiphertext:
    """A ciphertext made with the secret key. One half of it is a 32-byte seed: half the bytes to send. `expand` returns
    the ciphertext for computation.
    """
    @property
    def parameters(self) -> Parameters:
        """The parameters of the ciphertext."""
    @property
    def key_identity(self) -> str | None:
        """The identity of the secret key that decrypts it, 32 hexadecimal digits; None if unknown."""
    @property
    def log_n(self) -> int:
        """log2 of the degree of its ring."""
    @property
    def level(self) -> int:
        """Number of rescalings left."""
    @property
    def packing(self) -> str:
        """ "slots" or "coefficients": the places of its values."""
    @property
    def slots(self) -> int | None:
        """Number of slots; None if its values are in coefficients."""
    @property
    def bytes(self) -> int:
        """Bytes of its residues and its seed in memory."""
    def expand(self) -> Ciphertext:
        """The ciphertext to compute with."""
    def to_bytes(self) -> _Bytes:
        """The ciphertext as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: Parameters) -> SeededCiphertext:
        """A ciphertext from the bytes of `to_bytes`, of any ring of the parameters.

        Raises:
            FormatError: the bytes are not a whole, intact ciphertext of this class.
            MixedParametersError: it belongs to other parameters.
        """
    def save(self, path: _Path) -> None:
        """Writes the ciphertext to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path, parameters: Parameters) -> SeededCiphertext:
        """Reads a ciphertext from a file; errors as for `from_bytes`."""

@final
class Encryptor:
    """Encrypts with a public key.

    Args:
        public_key: of the owner who decrypts.
        entropy: 32 bytes that determine the randomness, for tests only.
    """
    def __new__(cls, public_key: PublicKey, entropy: _Bytes | None = None) -> Self: ...
    @property
    def parameters(self) -> Parameters:
        """The parameters of the key."""
    def encrypt(
        self,
        values: ArrayLike,
        slots: int | None = None,
        level: int | None = None,
        magnitude: float | None = None,
    ) -> Ciphertext:
        """Encrypts a vector of real or complex numbers in slots.

        Args:
            values: at most `slots` numbers; zeros fill the rest.
            slots: a power of two up to N/2, which is the default. Rotations act modulo this number.
            level: level of the ciphertext, the highest by default. A lower one makes it smaller and faster.
            magnitude: the largest absolute value that the message may have. The ciphertext states it, and its error bound
                follows from it, so it must not depend on the values. `Parameters.default_magnitude` by default.

        Raises:
            EncodeError: the values are not a vector of finite numbers, too many, above the declared magnitude, or too
                large for the modulus.
            ParameterError: slots is not a power of two up to N/2, or magnitude is not a positive number.
            LevelError: there is no such level.
        """
    def encrypt_coefficients(
        self, values: ArrayLike, level: int | None = None, magnitude: float | None = None
    ) -> Ciphertext:
        """Encrypts up to N real numbers in the coefficients of the plaintext. A thin client needs no transform for this.
        The values support no rotations or slot-wise products until they are moved to slots.

        Raises:
            EncodeError, ParameterError, LevelError: as for `encrypt`.
        """

class _PoolMetrics(TypedDict):
    capacity: int
    fill: int
    in_file: int | None
    made: int
    taken: int
    hits: int
    misses: int
    hit_rate: float
    failure: str | None

@final
class EncryptionPool(Generic[_Encrypted]):
    """Encryptions of zero made ahead of time, in background threads, each used for one message: encrypting a message is
    then one addition. As secure as encrypting directly; see docs/explanation/cached-encryption.md.

    Entries are one-time masks of their messages: a file of them is encrypted, and must not be on a disk that is cloned
    or rolled back. A forked process cannot use its parent's pool.

    Args:
        key: a public key, which gives `Ciphertext`s, or a secret key, which gives `SeededCiphertext`s at half the
            memory. With a key of BFV parameters `encrypt_integers` returns a `BfvCiphertext` or `BfvSeededCiphertext`.
        capacity: most entries in memory.
        level: of every ciphertext, the highest by default.
        threads: background threads. With 0, only `fill` makes entries.
        when_empty: "encrypt" makes an entry directly, "block" waits for a thread, "error" raises `PoolEmptyError`.
        file: the file of the entries beyond those in memory; created if it does not exist.
        file_key: 32 secret bytes with which the file is encrypted.
        file_capacity: entries of a new file; `capacity` by default.
        register: folder of the record of used entries; $XDG_STATE_HOME/keywright/pools by default.
        entropy: 32 bytes that determine the randomness, for tests only.

    Raises:
        ParameterError: a number outside its range, an unknown `when_empty`, a file without its key.
        LevelError: there is no such level.
        PoolFileError: the file is damaged, copied, or of another pool.
    """
    @overload
    def __new__(
        cls,
        key: PublicKey,
        capacity: int,
        *,
        level: int | None = None,
        threads: int = 1,
        when_empty: str = "encrypt",
        file: _Path | None = None,
        file_key: _Bytes | None = None,
        file_capacity: int | None = None,
        register: _Path | None = None,
        entropy: _Bytes | None = None,
    ) -> EncryptionPool[Ciphertext]: ...
    @overload
    def __new__(
        cls,
        key: SecretKey,
        capacity: int,
        *,
        level: int | None = None,
        threads: int = 1,
        when_empty: str = "encrypt",
        file: _Path | None = None,
        file_key: _Bytes | None = None,
        file_capacity: int | None = None,
        register: _Path | None = None,
        entropy: _Bytes | None = None,
    ) -> EncryptionPool[SeededCiphertext]: ...
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...
    @property
    def parameters(self) -> Parameters | BfvParameters:
        """The parameters of its key."""
    @property
    def level(self) -> int:
        """Level of its ciphertexts."""
    @property
    def capacity(self) -> int:
        """Most entries in memory."""
    @property
    def entry_bytes(self) -> int:
        """Bytes of one entry in memory."""
    @property
    def metrics(self) -> _PoolMetrics:
        """Statistics: "capacity", "fill" (entries in memory), "in_file" (None without a file), "made", "taken", "hits"
        (taken from memory without waiting), "misses", "hit_rate", and "failure": why its threads ended, None while they
        run.
        """
    def fill(self, count: int | None = None) -> int:
        """Makes entries now, on the threads of `keywright.set_threads`, as far as there is room in memory; takes those of
        the file first.

        Args:
            count: the most to make; by default until memory is full.

        Returns:
            the number of entries in memory.
        """
    def encrypt(
        self, values: ArrayLike, slots: int | None = None, magnitude: float | None = None
    ) -> _Encrypted:
        """Encrypts a vector of real or complex numbers in slots; arguments and errors as for `Encryptor.encrypt`.

        Raises:
            PoolEmptyError: there is no entry and `when_empty` is "error", or the pool blocks and was closed.
            ForkedError: the pool belongs to another process.
        """
    def encrypt_coefficients(self, values: ArrayLike, magnitude: float | None = None) -> _Encrypted:
        """Encrypts up to N real numbers in coefficients; errors as for `encrypt`."""
    def encrypt_scalar(
        self, value: float, slots: int | None = None, magnitude: float | None = None
    ) -> _Encrypted:
        """Encrypts one real number, the same in every slot, without FFT or NTT. Errors as for `encrypt`."""
    def encrypt_scalars(
        self, values: ArrayLike, slots: int | None = None, magnitude: float | None = None
    ) -> list[_Encrypted]:
        """Encrypts every number of a vector separately, as `encrypt_scalar` does. Checks all before taking an entry."""
    def encrypt_integers(
        self, values: ArrayLike, packing: str | None = None
    ) -> BfvCiphertext | BfvSeededCiphertext:
        """Encrypts integers, with a key of BFV parameters; arguments and errors as for `BfvEncryptor.encrypt`. A single
        integer fills all slots without a transform.

        Raises:
            PoolEmptyError, ForkedError: as for `encrypt`.
        """
    def close(self) -> None:
        """Ends the threads. Entries in memory go to the file, if there is one, as far as it has room."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

# The classes of `keywright.insecure` are in builds with the feature `insecure` alone, which no wheel is.

@final
class ChemEncryptor:
    """NOT SECURE. Cached encryption after Protocol 1 of Zhao's Chem. Every ciphertext is a sum of cached ones, so linear
    algebra distinguishes messages (`ChemDistinguisher`). It is here to be measured and broken; use
    `keywright.EncryptionPool`.

    Args:
        public_key: of the owner who decrypts. With CKKS parameters `encrypt` makes ciphertexts, with BFV parameters
            `encrypt_integers`.
        bits: of a message, 1 to 128. The cache has that many encryptions of zero.
        radix: of the cached powers.
        acknowledge: "Chem does not hide messages".
        unit: the integer message m represents the number m * unit; 1 by default, and always with BFV.
        level: of every ciphertext, the highest by default.
        entropy: 32 bytes that determine the randomness, for tests only.

    Raises:
        SecurityError: `acknowledge` is anything else.
        ParameterError: bits, radix or unit outside their ranges.
        EncodeError: the largest message does not fit the modulus.
    """
    def __new__(
        cls,
        public_key: PublicKey,
        bits: int,
        radix: int = 2,
        *,
        acknowledge: str,
        unit: float | None = None,
        level: int | None = None,
        entropy: _Bytes | None = None,
    ) -> Self: ...
    def encrypt(self, messages: Sequence[int]) -> list[Ciphertext]:
        """Encrypts every integer of a list separately, the same in every slot.

        Raises:
            EncodeError: a message has more bits.
            MixedParametersError: the key was made for BFV.
        """
    def encrypt_integers(self, messages: Sequence[int]) -> list[BfvCiphertext]:
        """Encrypts every integer of a list separately modulo t, the same in every slot.

        Raises:
            EncodeError: a message has more bits.
            NoiseError: the sum has no budget left.
            MixedParametersError: the key was made for CKKS.
        """
    @property
    def cached(self) -> int:
        """Cached ciphertexts."""
    @property
    def bytes(self) -> int:
        """Bytes of the cache."""

@final
class ChemDistinguisher:
    """The attack on `ChemEncryptor`: from ciphertexts of one message it learns, by linear algebra modulo the first prime,
    which other ciphertexts encrypt that message. It needs no key. A few more ciphertexts than Chem has bits suffice.

    Args:
        known: ciphertexts of one message, at least one.

    Raises:
        EncodeError: there is none.
        MixedParametersError: they belong to several parameters.
    """
    def __new__(cls, known: Sequence[Ciphertext] | Sequence[BfvCiphertext]) -> Self: ...
    def recognises(self, ciphertext: Ciphertext | BfvCiphertext) -> bool:
        """Whether a ciphertext encrypts the known message.

        Raises:
            MixedParametersError: it belongs to other parameters.
        """
    @property
    def rank(self) -> int:
        """Dimension of the span of the differences of the known ciphertexts."""

@final
class Decryptor:
    """Decrypts with the secret, and encrypts with it into half the bytes of a public-key encryption.

    Decrypted values contain the error of the ciphertext, which depends on the secret. Without flooding, do not give
    them to anyone who knows the ciphertext and its message (IND-CPA-D, see SECURITY.md).

    Args: secret: the secret key. entropy: 32 bytes that determine the randomness of encryptions and of flooding, for
    tests only.
    """
    def __new__(cls, secret: SecretKey, entropy: _Bytes | None = None) -> Self: ...
    @property
    def parameters(self) -> Parameters:
        """The parameters of the secret."""
    def decrypt(
        self, ciphertext: Ciphertext | Encrypted, flooding: Flooding | None = None
    ) -> NDArray[np.float64]:
        """The real parts of the slots, or the coefficients, as float64: `ciphertext.slots` or N of them.

        Args:
            ciphertext: a ciphertext, or a result of operators.
            flooding: adds the noise with which the values may be shared; `Flooding.error_bound` bounds their error.
                Every call is one of its queries.

        Raises:
            MixedParametersError: the ciphertext belongs to other parameters.
            KeyMismatchError: it was made with another key.
            MessageOverflowError: its values are larger than its declared magnitude and its operations allow.
            FloodingError: the noise would destroy the values, or no query is left.
        """
    def decrypt_complex(
        self, ciphertext: Ciphertext | Encrypted, flooding: Flooding | None = None
    ) -> NDArray[np.complex128]:
        """The slots as complex128; arguments as for `decrypt`.

        Raises:
            MixedParametersError: the ciphertext belongs to other parameters.
            KeyMismatchError: it was made with another key.
            MessageOverflowError: its values are larger than its declared magnitude and its operations allow.
            PackingError: its values are in coefficients.
            FloodingError: as for `decrypt`.
        """
    def encrypt(
        self,
        values: ArrayLike,
        slots: int | None = None,
        level: int | None = None,
        log_n: int | None = None,
        magnitude: float | None = None,
    ) -> SeededCiphertext:
        """Encrypts a vector of real numbers in slots; arguments and errors as for `Encryptor.encrypt`. `log_n` is log2 of
        the degree of the encryption's ring, that of the parameters by default.
        """
    def encrypt_coefficients(
        self, values: ArrayLike, level: int | None = None, magnitude: float | None = None
    ) -> SeededCiphertext:
        """Encrypts up to N real numbers in coefficients; arguments and errors as for `Encryptor.encrypt_coefficients`."""

@final
class Flooding:
    """The flooding of decryptions under one secret before they are shared, and the number of decryptions left.

    Gaussian noise hides the error of a ciphertext, which depends on the secret. An observer of the ciphertexts and all
    flooded decryptions who could not find the secret without the errors finds it with a probability of at most 2^-bits.
    He distinguishes them from decryptions independent of the secret with an advantage of at most 2^-(bits/2 + 2). See
    docs/explanation/handing-out.md (Li, Micciancio, Schultz and Sorrell, CRYPTO 2022).

    Make one per secret and keep it: every decryption that leaves the owner counts, in any process.

    Args: bits: statistical bits over all queries, 1 to 64. queries: the number of decryptions that will be shared in
    all, of one ciphertext each, 1 to 2^32.

    Raises: ParameterError: bits or queries are outside their range.
    """
    def __new__(cls, bits: int, queries: int) -> Self: ...
    @property
    def bits(self) -> int:
        """Statistical bits over all queries."""
    @property
    def queries(self) -> int:
        """The planned number of decryptions."""
    @property
    def remaining(self) -> int:
        """The number of decryptions left."""
    def error_bound(self, ciphertext: Ciphertext) -> float:
        """Bound on the absolute error of every value of a flooded decryption of this ciphertext; exceeded with
        probability below 2^-40.

        Raises: FloodingError: the bound reaches the largest possible value, or does not fit the modulus.
        """

@final
class Evaluator:
    """Computes on ciphertexts with the keys it was given. `evaluator(ciphertext)` returns a value with operators.

    Every operation returns a new ciphertext. Operands that are numbers (a scalar or a vector that numpy accepts) are
    encoded for the level of the ciphertext, at the scale that makes the result exact. Binary operations lower both
    ciphertexts to the lower of their levels.

    Ciphertexts may be of any ring of the parameters: each operation runs in the ring of its operands, with the keys of
    that ring.

    All raise MixedParametersError for ciphertexts of other parameters, and for two of different rings. Those that need
    a key raise MissingKeyError, with element, rotation and level, and the nearest keys.

    Args:
        parameters: of the ciphertexts.
        keys: those of the owner of the data; an empty set by default, which suffices for sums.
    """
    def __new__(cls, parameters: Parameters, keys: EvaluationKeys | None = None) -> Self: ...
    @property
    def parameters(self) -> Parameters:
        """The parameters it computes with."""
    @property
    def keys(self) -> EvaluationKeys:
        """Its keys. Keys added to them are used from then on."""
    def __call__(self, ciphertext: Ciphertext) -> Encrypted: ...
    def add(self, a: Ciphertext, b: Ciphertext | ArrayLike, *, magnitude: float | None = None) -> Ciphertext:
        """a + b, with b a ciphertext or numbers.

        Args:
            magnitude: the largest absolute value that the numbers may have. The result states it instead of the largest
                of them, so that they may depend on data; by default, whoever sees the result learns their size.

        Raises:
            EncodeError: the numbers are above the declared magnitude, or b is a ciphertext, which states its own.
            ScaleError: the scales differ by more than one part in 2^30.
            PackingError: the packings differ.
        """
    def sub(self, a: Ciphertext, b: Ciphertext | ArrayLike, *, magnitude: float | None = None) -> Ciphertext:
        """a - b, with b a ciphertext or numbers; arguments and errors as for `add`."""
    def neg(self, a: Ciphertext) -> Ciphertext:
        """-a."""
    def multiply(
        self, a: Ciphertext, b: Ciphertext | ArrayLike, *, magnitude: float | None = None
    ) -> Ciphertext:
        """a b, with b a ciphertext or numbers: relinearized, rescaled, one level less.

        A product with numbers keeps the scale of a exactly; one with a Python integer consumes no level, unless a
        magnitude is declared: see `add`.

        Raises:
            LevelError: there is no level left.
            DegreeError: an operand has degree 2; relinearize it first.
            PackingError: the packings differ.
        """
    def square(self, a: Ciphertext) -> Ciphertext:
        """a^2, relinearized and rescaled: two products of polynomials instead of four; errors as for `multiply`."""
    def multiply_lazy(
        self, a: Ciphertext, b: Ciphertext | ArrayLike, *, magnitude: float | None = None
    ) -> Ciphertext:
        """a b of two ciphertexts at degree 2, or of a ciphertext and numbers at degree 1; not rescaled. A sum of such
        products needs one `relinearize_rescale`. `magnitude` as for `add`.

        Raises:
            ScaleError: the product's scale does not fit the modulus.
            DegreeError, PackingError: as for `multiply`.
        """
    def relinearize(self, a: Ciphertext) -> Ciphertext:
        """a at degree 1."""
    def relinearize_rescale(self, a: Ciphertext) -> Ciphertext:
        """a at degree 1, rescaled: one division for both.

        Raises:
            LevelError: a is at level 0.
        """
    def rescale(self, a: Ciphertext) -> Ciphertext:
        """a with message and scale divided by the last prime: one level less.

        Raises:
            LevelError: a is at level 0.
        """
    def rotate(self, a: Ciphertext, steps: int) -> Ciphertext:
        """Rotates the slots to the left: numpy.roll(slots, -steps), modulo their number.

        Raises:
            PackingError: the values are in coefficients.
            DegreeError: a has degree 2.
        """
    def rotate_hoisted(self, a: Ciphertext, steps: Sequence[int]) -> list[Ciphertext]:
        """Several rotations of one ciphertext, which share its decomposition: cheaper than one by one; errors as for
        `rotate`, raised before anything is computed.
        """
    def conjugate(self, a: Ciphertext) -> Ciphertext:
        """The complex conjugate of all slots.

        Raises:
            DegreeError: a has degree 2.
        """
    def multiply_by_i(self, a: Ciphertext) -> Ciphertext:
        """Each slot times the imaginary unit: exact, consumes no level.

        Raises:
            PackingError: the values are in coefficients.
        """
    def inner_sum(self, a: Ciphertext, stride: int = 1, count: int | None = None) -> Ciphertext:
        """In each slot i the sum of the slots i, i + stride, ..., i + (count - 1) stride.

        Needs keys for the rotations by stride 2^k below stride count.

        Args:
            count: a power of two; all slots by default.

        Raises:
            ParameterError: count is not a power of two.
            PackingError, DegreeError: as for `rotate`.
        """
    def drop_to_level(self, a: Ciphertext, level: int) -> Ciphertext:
        """a with fewer primes and the same message.

        Raises:
            LevelError: the level is above that of a.
        """
    def switch_ring(self, a: Ciphertext, log_n: int) -> Ciphertext:
        """The same values in another ring of the parameters, at the same level and scale.

        Switching down to a smaller ring needs the keys of `KeySpec.ring_down`; switching up needs the key of
        `KeySpec.ring_up`.

        Args:
            log_n: log2 of the degree of the ring: that of the parameters, or of one of their subrings.

        Raises:
            ParameterError: the parameters have no such ring.
            PackingError: the values are in coefficients, or in more slots than the smaller ring has: see `view_slots`.
            LevelError: a is above the highest level of that ring.
            DegreeError: a has degree 2.
        """
    def view_slots(self, a: Ciphertext, slots: int) -> Ciphertext:
        """a read as a ciphertext of another number of slots, without computation.

        With more slots, the values repeat. With fewer, they must repeat already, up to their errors: slot j becomes the
        mean of the slots j + m slots, and if these differ, products are not those of the means. The error bound stays
        or, with more slots, grows by the square root of their ratio.

        Args:
            slots: a power of two up to half the degree of the ring of a.

        Raises:
            ParameterError: slots is not such a number.
            PackingError: the values are in coefficients.
        """
    def declare(self, a: Ciphertext, magnitude: float) -> Ciphertext:
        """a with this bound on the absolute values of its message, as `magnitude_bound`. Nothing is computed: its caller
        vouches for the bound, for instance after a function whose results are smaller than its operands suggest. Error
        bounds and flooding rest on it, and decryption refuses values above it.

        Raises:
            ParameterError: magnitude is not a positive number.
        """
    def set_scale(self, a: Ciphertext, scale: float) -> Ciphertext:
        """a at another scale, exactly, one level lower, so that it can be added to a ciphertext at that scale.

        Raises:
            LevelError: a is at level 0.
            ScaleError: the scale cannot be reached from that of a.
        """
    def linear_transform(
        self,
        a: Ciphertext | Sequence[Ciphertext],
        transform: LinearTransform | Sequence[LinearTransform],
    ) -> Ciphertext:
        """A transform applied to the slots, or the sum of several transforms of several ciphertexts: a block row of a
        matrix. One level less, at the scale of the input; ciphertexts of higher levels are lowered to the transforms'.

        Args:
            a: a ciphertext, or a sequence of them.
            transform: a transform, or one per ciphertext, with equal slots, levels and special primes.

        Raises:
            ParameterError: the numbers of ciphertexts and transforms differ, or the transforms do not match.
            MissingKeyError: a rotation has no key at the level.
            LevelError: a ciphertext is below the level of the transforms.
        """
    def polynomial(
        self,
        a: Ciphertext,
        coefficients: ArrayLike,
        basis: str = "monomial",
        interval: tuple[float, float] | None = None,
        scale: float | None = None,
    ) -> Ciphertext:
        """A polynomial of every slot, ceil(log2(degree + 1)) levels lower; Paterson-Stockmeyer.

        Args:
            coefficients: real, the constant first.
            basis: "monomial" for powers, "chebyshev" for Chebyshev polynomials of the interval.
            interval: the range of the slots' values, for the Chebyshev basis; (-1, 1) by default. An interval of
                another width than 2 costs one more level.
            scale: exact scale of the result, that of a by default.

        Raises:
            LevelError: there are too few levels.
            EncodeError: a coefficient is not finite.
            ParameterError: the basis is unknown or the interval empty.
            ScaleError, PackingError, DegreeError: as for `multiply`.
        """

@final
class BootstrapperPlan:
    """A bootstrapping, stage by stage: levels, scales and keys, before any key is made.

    Levels, from the top, of the order "slots_to_coeffs_first": `mod_raise` raises level 0 to the highest level used.
    `coeffs_to_slots` consumes one level for each of its factors, `eval_mod` 7 to 12, and complex values of fewer than
    N/2 slots one more. The result is at the remaining level, the output level. `slots_to_coeffs` runs from the input
    level to 0. In the order "mod_raise_first" the input level is 0, and `slots_to_coeffs` ends at the output level.

    Args:
        parameters: of the ciphertexts. Inputs and results have their scale.
        slots: a power of two up to N/2, the default.
        values: "complex" or "real": the values in the slots, each part of absolute value at most 1. The imaginary parts
            of "real" values are lost.
        order: "slots_to_coeffs_first"; or "mod_raise_first", the order of most other libraries, in which errors of
            coefficients add up in slots.
        slots_to_coeffs: levels of that stage: the number of matrices into which the Fourier transform is factored.
        coeffs_to_slots: levels of that stage.
        key_budget: the bytes that the keys may take in memory: a number, "fastest" for no limit, or "fewest" for the
            minimum. Fewer bytes cost time; the fastest way to evaluate every factor within the budget is chosen.
        stages_apart: whether each stage must be usable alone. By default `mod_raise` and the first factor of
            `coeffs_to_slots` are fused if possible (N/2 slots, an ephemeral secret), which saves time and bytes.
        alpha: the digits of keys, with the stages apart; None, the default, for the least work within the budget. A
            number applies to all keys: digits of at most that many primes over as many special primes of the
            parameters. "maximum" is the number of their special primes. "dynamic" chooses for each key the digits that
            need the fewest transforms at its level, over the special primes of the parameters; "dynamic_dropped" also
            uses primes that ciphertexts at its level have dropped.
        key_levels: of keys with such an alpha: "needed" for the level where they are used, "top" for the highest that
            their special primes and the security bound allow.
        ephemeral_weight: Hamming weight of the ephemeral secret under which the modulus is raised; None for the main
            secret, which then determines the range of `eval_mod`.
        log2_failure: log2 of the probability that a bootstrap fails, -40 by default.
        log_ratio: log2 of q_0 divided by the scale of the coefficients. One more costs a bit of precision, and eases
            the arcsine.
        cosine_degree: even degree of the cosine that `eval_mod` evaluates.
        double_angles: double angles after it, one level each.
        arcsine_degree: odd degree of the arcsine at its end; 1 for none.
        iterations: passes in all. Each pass after the first bootstraps the scaled-up error of the one before, and adds
            it. It takes as long, but consumes no levels.
        log_precision: least bits after the point of the bound on the error of one pass; the next pass corrects it by
            this many bits. Required for 2 iterations or more, and only then.
        output_level: level of results, the highest by default. A lower one is cheaper.
        input_log_n: log2 of the degree of the inputs' ring: a subring of the parameters, in which `slots_to_coeffs`
            runs with smaller keys. `slots` is then at most half of that degree. Results are always in the parameters'
            own ring.

    Raises:
        LevelError: the parameters have too few levels, or the output level is below the input level.
        SecurityError: a key would exceed the bound for its secret.
        ParameterError: a number is illegal, such as an alpha above the number of special primes; no approximation has
            these degrees, or as many bits as `log_precision`; the key budget is below its `minimum`, the fewest
            possible bytes.
        ScaleError: the coefficients' scale is below 1.

    Errors of a stage have its name as `stage` and the level of its input as `stage_level`.
    """
    def __new__(
        cls,
        parameters: Parameters,
        *,
        slots_to_coeffs: int,
        coeffs_to_slots: int,
        log_ratio: float,
        cosine_degree: int,
        double_angles: int,
        arcsine_degree: int,
        slots: int | None = None,
        values: str = "complex",
        order: str = "slots_to_coeffs_first",
        key_budget: int | str = ...,
        stages_apart: bool = False,
        alpha: int | str | None = None,
        key_levels: str = "needed",
        ephemeral_weight: int | None = 32,
        log2_failure: float = ...,
        iterations: int = 1,
        log_precision: int | None = None,
        output_level: int | None = None,
        input_log_n: int | None = None,
    ) -> Self: ...
    @staticmethod
    def preset(
        name: str,
        key_budget: int | str | None = None,
        *,
        slots: int | None = None,
        subrings: Sequence[tuple[int, int, Sequence[int] | None]] = ...,
        input_log_n: int | None = None,
        output_level: int | None = None,
    ) -> BootstrapperPlan:
        """A shipped bootstrapping, with its own `parameters`.

        Args:
            name: one of `keywright.bootstrap_presets()`.
            key_budget: another budget than the preset's.
            slots: another number of slots: fewer slots need smaller transforms.
            subrings: of the parameters, as in `Parameters.with_subrings`.
            input_log_n: log2 of the degree of the inputs' ring, one of these; that of the preset by default.
            output_level: level of the result; the highest by default. The modulus is raised as far as this requires.

        Raises:
            ParameterError: there is no such preset; the budget is below its `minimum`; slots is not a power of two up
                to half the degree of the inputs' ring.
            SecurityError, LevelError: as for the constructor and `Parameters.with_subrings`.
        """
    @property
    def input_log_n(self) -> int:
        """log2 of the degree of the inputs' ring, which is also that of `slots_to_coeffs` and its keys."""
    @property
    def parameters(self) -> Parameters:
        """Parameters of the ciphertexts."""
    @property
    def slots(self) -> int:
        """Number of slots."""
    @property
    def values(self) -> str:
        """ "complex" or "real"."""
    @property
    def order(self) -> str:
        """ "slots_to_coeffs_first" or "mod_raise_first"."""
    @property
    def iterations(self) -> int:
        """Passes in all."""
    @property
    def input_level(self) -> int:
        """Level at which ciphertexts are bootstrapped; higher ones are lowered to it."""
    @property
    def output_level(self) -> int:
        """Level of results."""
    @property
    def levels_left(self) -> int:
        """Levels for computation between two bootstraps."""
    @property
    def coefficients_scale(self) -> float:
        """Scale of the coefficients that `mod_raise` takes."""
    @property
    def levels(self) -> dict[str, tuple[int, int]]:
        """For each stage, in their order, the levels of its input and of its output."""
    @property
    def stage_keys(self) -> dict[str, list[KeySpec]]:
        """For each stage, in order, its keys. A key may serve several stages."""
    @property
    def factor_options(self) -> dict[str, list[list[tuple[int, float]]]]:
        """For each factor of `slots_to_coeffs` and `coeffs_to_slots`, in the order of application, the ways to evaluate
        it: pairs of the bytes of its keys, ascending, and its predicted work, in multiplications per coefficient of a
        polynomial modulo one prime. A key budget chooses from these.
        """
    @property
    def factors(self) -> list[tuple[int, int]]:
        """How each factor of `slots_to_coeffs` and `coeffs_to_slots` is evaluated, in the order of application: the layers
        of the Fourier transform that it merges, and its number of baby steps, including 0.
        """
    @property
    def factor_ways(
        self,
    ) -> list[
        tuple[
            str,
            int,
            list[
                tuple[
                    int,
                    list[tuple[Literal["whole", "baby", "giant"], list[int], int]],
                    tuple[int | None, dict[str, int]],
                ]
            ],
        ]
    ]:
        """For each of these factors its stage, its level, and the ways to evaluate it from which a key planner chooses.
        Each way has the number of baby steps, the key switches of one evaluation as in `key_groups` (form, Galois
        elements, how often), and the other operations as in `operations` (number of special primes of its own keys or
        None, counts).
        """
    def with_factors(self, factors: Sequence[tuple[int, int]]) -> BootstrapperPlan:
        """The same plan with its factors evaluated as a key planner chose.

        Args:
            factors: layers and baby steps of each, as in `factors`. The layers of each stage must sum to the same
                number.

        Raises:
            ParameterError: another number of factors, a wrong sum of layers, or a number of baby steps that
                `factor_ways` lacks.
        """
    def with_key_budget(self, key_budget: int | str) -> BootstrapperPlan:
        """The same plan with the best factors for another key budget.

        Raises:
            ParameterError: the budget is below its `minimum`.
        """
    @property
    def key_bytes(self) -> dict[str, int]:
        """Bytes of the keys of each stage, in their order; a key of several stages counts for the first."""
    def predicted_bits(self, vectors: int = 1) -> tuple[float, float] | None:
        """The expected precision of the error that bootstrapping adds to the input's values, for parts uniform in [-1, 1];
        `docs/explanation/bootstrapping.md` derives it.

        Args:
            vectors: number of vectors under one secret over which the worst part is taken.

        Returns:
            tuple[float, float] | None: -log2 of the mean error of a part, and of the largest one; None if
                slots_to_coeffs comes last.
        """
    def errors_of(self, messages: ArrayLike) -> dict[str, Any] | None:
        """The errors that a bootstrap adds to parts of known values, in units of the message; None for the order
        "mod_raise_first". Raising the modulus adds an unknown integer to each part. A part with integer i and message m
        has an error of mean `bias[i][m]` and variance `rest + (steps[i][m] + other) / 2 * rounding`, where `rest` and
        `rounding` are pairs as in `ErrorModel`, of a slot.

        Args:
            messages: parts of values, in [-1, 1].

        Returns: a dictionary of `probabilities` of the integers, `steps`, `other`, `bias`, `rest` and `rounding`.
        """
    @property
    def key_groups(
        self,
    ) -> list[tuple[str, Literal["whole", "baby", "giant"], int, list[int], int]]:
        """The key switches of one bootstrapping that have more than one implementation, in the order of the stages: stage,
        form ("whole", "baby" or "giant", as in `keywright.plan.Group`), level of the ciphertext, its required Galois
        elements (none for a relinearization), and how often.
        """
    @property
    def operations(self) -> list[tuple[str, int, int | None, dict[str, int], int]]:
        """The operations of one bootstrapping other than these key switches, in the order of the stages: stage, level,
        number of special primes of keys with a single use or None, counts as in `keywright.plan.Operation`, and how
        often.
        """
    def with_special_primes(self, special: Mapping[int, Sequence[int]]) -> BootstrapperPlan:
        """The same plan with the diagonals at each of these levels encoded for those special primes, for keys that follow
        a plan. This is what `PlanExecution.bootstrapper_plans` does.

        Args:
            special: by level, indices of primes among q_0 .. q_L, p_0, ...; a `Bootstrapper` checks them.
        """
    @property
    def fixed_keys(self) -> list[KeySpec]:
        """The keys to and from an ephemeral secret, which have a single use."""
    def diagonal_bytes(self, storage: str = "encoded") -> int:
        """Bytes of the matrices that a `Bootstrapper` with this storage keeps: "encoded", "coefficients" or "streamed".

        Raises:
            ParameterError: the storage is unknown.
        """
    def scratch_bytes(self, storage: str = "encoded", *, threads: int | None = None) -> dict[str, int]:
        """For each stage, in order, the peak bytes of its buffers, including its results but not its input, keys and kept
        matrices.

        Args:
            storage: of the matrices in a `Bootstrapper`.
            threads: number of computing threads; those of the process by default.

        Raises:
            ParameterError: the storage is unknown.
        """
    @property
    def making_bytes(self) -> int:
        """Peak bytes of the numbers from which the matrices of a stage are made, for each use if they are "streamed".
        These are no buffers: idle buffers make no room for them.
        """
    @property
    def required_keys(self) -> list[KeySpec]:
        """Every key that bootstrapping uses, each once, at the level where it is used: the `specs` of
        `KeyGenerator.evaluation_keys`, or of `save_evaluation_keys` if they must not be in memory all at once.
        """
    def client_parameters(self, fraction_bits: int) -> ClientParameters:
        """The parameters for thin clients of `Bootstrapper.bootstrap_coefficients`: numbers of at most 1, at the scale and
        in the places of its input coefficients.

        Args:
            fraction_bits: bits of a number after the point.

        Raises:
            ParameterError: more fraction bits than the scale has.
        """

@final
class ClientParameters:
    """The data of a server that a thin client needs: one prime, a fixed-point format and the places of numbers. Numbers
    are integers in units of `2^-fraction_bits`.

    A server whose bootstrapping takes a client's numbers supplies `BootstrapperPlan.client_parameters`; use this
    constructor for a server that computes on coefficients or slots directly.

    Args:
        parameters: the server's; the client uses only their first prime.
        scale: the coefficient of the number 1, an integer of at most 53 significant bits and at most a quarter of the
            prime.
        fraction_bits: bits of a number after the point, at most log2 of the scale. Numbers are at most 1, so integers
            at most `2^fraction_bits`.
        slots: numbers are placed for this many slots of `coeffs_to_slots`, a power of two up to N/2; by default number
            j is in coefficient j.
        values: "complex", with imaginary parts as the second half of the numbers, or "real".

    Raises:
        ParameterError: a number outside its range.
        SecurityError: the first prime is too large for the ring.
    """
    def __new__(
        cls,
        parameters: Parameters,
        *,
        scale: int,
        fraction_bits: int,
        slots: int | None = None,
        values: str = "complex",
    ) -> Self: ...
    @property
    def log_n(self) -> int:
        """log2 of the ring degree."""
    @property
    def modulus(self) -> int:
        """The one prime."""
    @property
    def scale(self) -> int:
        """The coefficient of the number 1."""
    @property
    def fraction_bits(self) -> int:
        """Bits of a number after the point."""
    @property
    def maximum(self) -> int:
        """Largest absolute value of a number, in units of its last place."""
    @property
    def capacity(self) -> int:
        """Most numbers in a ciphertext."""
    @property
    def slots(self) -> int | None:
        """Number of slots of the numbers; None if they stay in coefficients."""
    @property
    def values(self) -> str | None:
        """ "complex" or "real": whether the second half of the numbers are imaginary parts; None if they stay in
        coefficients.
        """
    def ciphertext_bytes(self, *, secret: bool = True, dropped: tuple[int, int] | None = None) -> int:
        """Bytes of a ciphertext.

        Args:
            secret: made with the secret, so that half of it is a seed; otherwise with the public key.
            dropped: for compact form, the low bits dropped from each half; None for a whole ciphertext.
        """
    def group_size(self, bits: int) -> int:
        """The number of integers of this many bits in one number: see `group`.

        Raises:
            ParameterError: a number cannot hold one.
        """
    def group(self, integers: ArrayLike, bits: int) -> NDArray[np.int64]:
        """Numbers of several small integers each, for encryption: `group_size(bits)` integers `x_i` as
        `x_0 + 2^bits x_1 + ..`.

        A server can add them, and multiply them by small integers, while every sum of integers stays below `2^bits`; it
        must not split them.

        Args:
            integers: non-negative ones below `2^bits`.
            bits: of one of them, with room for the sums of the server.

        Raises:
            EncodeError: an integer out of range.
            ParameterError: as for `group_size`.
        """
    def split(self, numbers: ArrayLike, bits: int, count: int | None = None) -> NDArray[np.int64]:
        """The small integers of decrypted numbers: the inverse of `group`. Exact if the error of every number is below
        half a unit of its last place.

        Args:
            numbers: from `Client.decrypt`.
            bits: as for `group`.
            count: number of integers; as many as the numbers hold by default.

        Raises:
            EncodeError: count is more than the numbers hold.
            ParameterError: as for `group_size`.
        """
    def to_bytes(self) -> _Bytes:
        """The parameters as bytes, for a server to supply."""
    @staticmethod
    def from_bytes(data: _Bytes) -> ClientParameters:
        """Parameters from the bytes of `to_bytes`.

        Raises:
            FormatError: the bytes are not whole, intact parameters of a client.
            ParameterError, SecurityError: no client can have these parameters.
        """
    def read_upload(self, data: _Bytes, parameters: Parameters) -> Ciphertext:
        """Reads a client's upload, on the server, in any of its forms: a ciphertext at level 0 with its values in
        coefficients.

        Raises:
            FormatError: the bytes are not a whole, intact ciphertext of such a client; a secret key is refused too.
            MixedParametersError: it belongs to other parameters.
        """
    def write_answer(self, ciphertext: Ciphertext, growth: float | None = None) -> _Bytes:
        """Makes a server's answer: the numbers' coefficients modulo the first prime, of a ciphertext at any level whose
        values are in coefficients.

        Args:
            growth: low bits are dropped while the error's deviation grows at most by this factor; None drops none.

        Raises:
            PackingError: its values are in slots.
            ScaleError: values and error do not fit the first prime.
            ParameterError: growth is not above 1.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Client:
    """A thin client with a new secret. It encrypts integers modulo one prime, decrypts answers, and makes the keys that a
    server requests. It needs no floating point, no Fourier transform, no second prime.

    Args:
        parameters: those of the server for its clients.
        entropy: 32 bytes that determine all randomness, for tests only: anyone who knows them knows the secret. The
            operating system's by default.

    Raises:
        RandomnessError: the operating system returns no random bytes, or the given bytes are all equal.
    """
    def __new__(cls, parameters: ClientParameters, entropy: _Bytes | None = None) -> Self: ...
    @staticmethod
    def from_secret_bytes(
        data: _Bytes, parameters: ClientParameters, entropy: _Bytes | None = None
    ) -> Client:
        """A client with a secret from `secret_bytes`, or from `SecretKey.to_bytes` of the server's parameters.

        Raises:
            FormatError: the bytes are not a whole, intact secret.
            MixedParametersError: it belongs to other parameters.
            RandomnessError: as for the constructor.
        """
    @property
    def parameters(self) -> ClientParameters:
        """The server's parameters for its clients."""
    def secret_bytes(self) -> _Bytes:
        """The secret as bytes, unencrypted: protect them like a password. `SecretKey.from_bytes` reads them. Python does
        not wipe them.
        """
    def public_key(self) -> _Bytes:
        """A new public key as bytes, for a `ClientEncryptor`."""
    def encrypt(self, numbers: ArrayLike, *, dropped: int | None = None) -> _Bytes:
        """Encrypts integers with the secret: the bytes to send, half as many as with a public key.

        Args:
            numbers: at most `parameters.capacity` integers in units of `2^-fraction_bits`, of absolute value at most
                `parameters.maximum`.
            dropped: None for a whole ciphertext. A number selects compact form: only the coefficients that carry
                numbers, without this many low bits. That adds `2^(2 dropped) / 12` to the variance of the coefficients'
                errors.

        Raises:
            EncodeError: the numbers are not a vector of integers, too many or too large.
            ParameterError: more dropped bits than there are.
        """
    def decrypt(self, answer: _Bytes, count: int | None = None) -> NDArray[np.int64]:
        """Decrypts the numbers of an answer, in units of `2^-fraction_bits`.

        Args:
            answer: a ciphertext at level 0 as bytes, with its values in coefficients.
            count: number of numbers; all by default.

        Raises:
            FormatError: the bytes are not a whole, intact answer.
            MixedParametersError: it belongs to other parameters.
            EncodeError: count is above the capacity.
            ParameterError: it is not at level 0, or its scale does not suit its numbers.
        """
    def session(self) -> _Bytes:
        """32 secret bytes from which `key_stream` derives its keys. Store them with the secret until all keys have
        arrived: they make the same keys again. They serve any list of keys, since each key has its own randomness.
        """
    def key_stream(self, specs: Sequence[KeySpec], session: _Bytes) -> ClientKeyStream:
        """The keys that a server requests, made one after another. For any size of keys this takes little memory.

        Args:
            specs: seeded keys, of the server's parameters.
            session: 32 bytes from `session`.

        Raises:
            MixedParametersError: the keys belong to other parameters than the client.
            ParameterError: a key is not seeded, or a client cannot make it.
            SecurityError: a key below 128 bits of security.
        """

@final
class ClientKeyStream:
    """The keys of `Client.key_stream`, one after another, in the memory of a few polynomials. Each is an object of its
    own, which `SwitchingKey.from_bytes` reads.
    """
    def __len__(self) -> int: ...
    @property
    def next(self) -> int:
        """Index of the next key: the number of keys written or skipped."""
    @property
    def sizes(self) -> list[int]:
        """Bytes of every key as an object."""
    @property
    def total_bytes(self) -> int:
        """Bytes of all keys."""
    def skip_to(self, index: int) -> None:
        """Resumes at key `index`: after those that arrived, or again at one that did not.

        Raises:
            ParameterError: there are not that many keys.
            RuntimeError: a key is being written.
        """
    def write_next(
        self, write: Callable[[_Bytes], object], progress: Callable[[int, int], object] | None = None
    ) -> bool:
        """Makes the next key and passes its bytes on as they are made, in pieces of at most a mebibyte.

        If it raises, the stream stays at this key, and the next call makes it anew with the same bytes.

        Args:
            write: takes the pieces, for example `file.write`. An exception from it ends the key.
            progress: called now and then with the bytes of keys made so far and those of all keys.

        Returns:
            False if no key was left.

        Raises:
            RuntimeError: `write` or another thread calls it while a key is being written.
        """

@final
class ClientEncryptor:
    """Encrypts integers under another owner's public key, and can do nothing else: for a camera or a sensor.

    Args:
        public_key: bytes of `Client.public_key`.
        parameters: those of the server for its clients.
        entropy: 32 bytes that determine the randomness, for tests only.

    Raises:
        FormatError: the bytes are not a whole, intact public key at the first prime.
        MixedParametersError: it belongs to other parameters.
        RandomnessError: the operating system returns no random bytes, or the given bytes are all equal.
    """
    def __new__(
        cls, public_key: _Bytes, parameters: ClientParameters, entropy: _Bytes | None = None
    ) -> Self: ...
    @property
    def parameters(self) -> ClientParameters:
        """The server's parameters for its clients."""
    def encrypt(self, numbers: ArrayLike, *, dropped: tuple[int, int] | None = None) -> _Bytes:
        """Encrypts integers: the bytes to send.

        Args:
            numbers: as for `Client.encrypt`.
            dropped: None for a whole ciphertext. Two numbers select compact form, without these many low bits of the
                coefficients of each half. That adds `2^(2 dropped[0]) / 12 + |s|^2 2^(2 dropped[1]) / 12` to the
                variance of the errors, for the secret's `|s|^2`, about 2N/3 or its weight.

        Raises:
            EncodeError, ParameterError: as for `Client.encrypt`.
        """

@final
class Bootstrapper:
    """Bootstrapping with encoded matrices: gives a ciphertext without levels new ones, with the same values.

    It belongs to no key: evaluators of several owners may use it. `bootstrap` is the composition of the stages
    `slots_to_coeffs`, `mod_raise`, `coeffs_to_slots` and `eval_mod`, each of which can be used alone. Before anything
    is computed, each raises the following, with the stage's name as `stage` and the level of its input as
    `stage_level`:

        MissingKeyError: a key of `plan.required_keys` is missing.
        KeyUseError: the special primes of a key differ from those of its matrices.
        LevelError: the ciphertext is below the stage's level.
        ScaleError: its scale differs from the planned one by more than 1 part in 128.
        PackingError: it has another number of slots, or slots where coefficients are required.
        DegreeError: it has degree 2.
        MixedParametersError: it, or the evaluator, belongs to other parameters.

    Values above 1 are not detected: their results are wrong. `inspect_input` checks them for a holder of the secret.

    Args:
        plan: the plan of the bootstrapping.
        storage: how the matrices are kept. "encoded" is fastest, and takes up to a gigabyte at N = 2^16. "coefficients"
            takes a tenth of that or less. "streamed" keeps nothing, and makes them for each use. `plan.diagonal_bytes`
            gives the bytes. Results are the same.

    Raises:
        ParameterError: the storage is unknown.
        EncodeError: coefficients to be kept are 2^62 or more.
    """
    def __new__(cls, plan: BootstrapperPlan, *, storage: str = "encoded") -> Self: ...
    @property
    def plan(self) -> BootstrapperPlan:
        """The plan of the bootstrapping."""
    @property
    def parameters(self) -> Parameters:
        """Parameters of the ciphertexts."""
    @property
    def input_level(self) -> int:
        """Level at which ciphertexts are bootstrapped; higher ones are lowered to it."""
    @property
    def output_level(self) -> int:
        """Level of results."""
    @property
    def bytes(self) -> int:
        """Bytes of the kept matrices: `plan.diagonal_bytes`."""
    def bootstrap(self, evaluator: Evaluator, ciphertext: Ciphertext) -> Ciphertext:
        """The same values at the output level and the parameters' scale.

        Args:
            evaluator: with the keys of `plan.required_keys`.
            ciphertext: `plan.slots` slots of values whose parts are at most 1, at the input level or above. Its scale
                is that of the parameters. In the order "mod_raise_first" it is any scale up to
                `plan.coefficients_scale` at level 0, and any scale above.

        Raises:
            ParameterError: the bound on the error of a pass has fewer bits than `log_precision`, which the next pass
                needs.
        """
    def bootstrap_coefficients(self, evaluator: Evaluator, ciphertext: Ciphertext) -> Ciphertext:
        """Bootstraps values in coefficients, without `slots_to_coeffs`, to the level at which `eval_mod` leaves them.

        Args:
            ciphertext: coefficients of any level, at the scale `plan.coefficients_scale` within 1 part in 128. Of n
                slots, slot j gets coefficient brv(j) N/2n as its real part, and N/2 + brv(j) N/2n as its imaginary
                part; brv reverses the log2(n) bits of j.
        """
    def slots_to_coeffs(self, evaluator: Evaluator, ciphertext: Ciphertext) -> Ciphertext:
        """Moves values in slots, at the plan's level of the stage or above, to coefficients.

        Coefficient brv(j) N/2n is the real part of slot j, N/2 + brv(j) N/2n its imaginary part; all others are 0. A
        client without a Fourier transform can read such a result.
        """
    def mod_raise(self, evaluator: Evaluator, ciphertext: Ciphertext) -> Ciphertext:
        """Raises the modulus from level 0 to the highest level used.

        The result has the scale q_0. Each of its coefficients is m / r + I, for the message m, the ratio r of q_0 to
        the input's scale, and a small integer I.

        Raises:
            LevelError: the ciphertext is not at level 0.
        """
    def coeffs_to_slots(self, evaluator: Evaluator, ciphertext: Ciphertext) -> list[Ciphertext]:
        """Moves coefficients to slots, as fractions of the range of `eval_mod`.

        Returns:
            One ciphertext of n real values, for real values; one of 2n, real parts before imaginary parts, for complex
                values in n < N/2 slots; two, of the real and of the imaginary parts, for N/2.
        """
    def eval_mod(
        self, evaluator: Evaluator, ciphertext: Ciphertext, ratio: float | None = None
    ) -> Ciphertext:
        """Removes the integers that `mod_raise` added, from one of the ciphertexts of `coeffs_to_slots`.

        Args:
            ratio: q_0 divided by the scale of the input of `mod_raise`; by default that of the plan.
        """
    def inspect_input(self, secret: SecretKey, ciphertext: Ciphertext) -> tuple[int, float]:
        """Decrypts an input of `eval_mod` and reports how much of its range is used, for diagnosing a failed bootstrap.

        The result depends on the secret: do not share it.

        Returns:
            The largest absolute value of an integer, and the largest distance from one: the message in units of q_0.

        Raises:
            EncodeError: a slot is outside the range, with its number as `index` and its `value`.
        """

@final
class SumParameters:
    """Ring, modulus and scale for exact sums of encrypted vectors of integers.

    The modulus has the smallest whole number of bytes, 4 to 7, that holds the sums and their error; the ring is the
    smallest of 128-bit security for it.

    Args:
        max_inputs: vectors of one sum, at most 2^20.
        magnitude: largest absolute value of an integer of one vector, at most 2^48.

    Raises:
        ParameterError: one of them is outside its range, or no modulus holds the sums.
    """
    def __new__(cls, max_inputs: int, magnitude: int) -> Self: ...
    @property
    def max_inputs(self) -> int:
        """Requested number of vectors."""
    @property
    def capacity(self) -> int:
        """Number of vectors that the modulus can hold: at least `max_inputs`. More are refused."""
    @property
    def magnitude(self) -> int:
        """Largest absolute value of an integer of one vector."""
    @property
    def log_n(self) -> int:
        """log2 of the ring degree."""
    @property
    def modulus(self) -> int:
        """The modulus, a prime."""
    @property
    def value_bytes(self) -> int:
        """Bytes of one encrypted integer."""
    @property
    def noise_bits(self) -> int:
        """log2 of the factor that keeps integers above the error."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class SumKey:
    """The secret that the clients share and the server does not have. It encrypts updates and decrypts sums."""
    @staticmethod
    def generate(parameters: SumParameters, entropy: _Bytes | None = None) -> SumKey:
        """A new secret.

        Args:
            parameters: of the sums.
            entropy: 32 bytes that determine the secret and all randomness of its encryptions, for tests only.

        Raises:
            RandomnessError: the operating system returns no random bytes.
        """
    @property
    def parameters(self) -> SumParameters:
        """The parameters of the sums."""
    def encrypt(
        self,
        values: NDArray[np.int64],
        *,
        session: _Bytes,
        round: int,  # noqa: A002
        client: int,
        weight: int,
    ) -> EncryptedUpdate:
        """Encrypts a vector of integers.

        Args:
            values: int64 vector, with absolute values up to the declared magnitude.
            session: 16 bytes that name the run.
            round: number of the round.
            client: number of the client.
            weight: the factor by which the values were multiplied, at least 1. Public.

        Raises:
            EncodeError: a value is above the declared magnitude.
            ParameterError: there is no value, or the weight is 0.
        """
    def decrypt(self, sum: EncryptedSum) -> NDArray[np.int64]:  # noqa: A002
        """The sum of the integers, exactly. It contains no part of the encryption's error and may be published.

        Raises:
            AggregationError: the bytes are not a sum of as many updates as they claim, or made with another key.
            ParameterError: they have another shape.
        """
    def to_bytes(self) -> _Bytes:
        """The secret as bytes, unencrypted: protect them like a password. Python does not wipe them."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: SumParameters) -> SumKey:
        """A secret from the bytes of `to_bytes`.

        Raises:
            FormatError: the bytes are not a whole, intact secret.
            MixedParametersError: it belongs to another ring.
        """
    def save(self, path: _Path) -> None:
        """Writes the secret, unencrypted, to a file that only its owner can read and that appears whole or not at all."""
    @staticmethod
    def load(path: _Path, parameters: SumParameters) -> SumKey:
        """Reads the secret of a file; errors as for `from_bytes`."""

@final
class EncryptedUpdate:
    """One client's encrypted vector, bound to session, round, client and weight: with other claims it does not decrypt."""
    @property
    def session(self) -> _Bytes:
        """The claimed run, 16 bytes."""
    @property
    def round(self) -> int:
        """The claimed round."""
    @property
    def client(self) -> int:
        """The claimed client."""
    @property
    def weight(self) -> int:
        """The claimed weight."""
    @property
    def count(self) -> int:
        """Number of values."""
    def to_bytes(self) -> _Bytes:
        """The update as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: SumParameters) -> EncryptedUpdate:
        """An update from the bytes of `to_bytes`.

        Raises:
            FormatError: the bytes are not a whole, intact update, or declare other bounds.
            MixedParametersError: it belongs to another ring.
        """

@final
class EncryptedSum:
    """A sum of updates, computed without a key."""
    @staticmethod
    def of(updates: Sequence[EncryptedUpdate], parameters: SumParameters) -> EncryptedSum:
        """Adds updates of one session and round, each client once.

        Raises:
            AggregationError: they differ in session, round or number of values, or a client occurs twice.
            ParameterError: there is none, or more than the modulus can hold.
        """
    @property
    def session(self) -> _Bytes:
        """The run of its updates, 16 bytes."""
    @property
    def round(self) -> int:
        """The round of its updates."""
    @property
    def contributors(self) -> list[tuple[int, int]]:
        """Client and weight of every update, in the order in which they were added."""
    @property
    def total_weight(self) -> int:
        """Sum of the weights."""
    @property
    def count(self) -> int:
        """Number of values."""
    def to_bytes(self) -> _Bytes:
        """The sum as bytes, for `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: SumParameters) -> EncryptedSum:
        """A sum from the bytes of `to_bytes`; errors as for `EncryptedUpdate.from_bytes`."""

@final
class ThresholdParameters:
    """Ring, modulus and smudging for sums that a threshold of parties decrypts together. Parties are numbered from 1.

    Args:
        parties: number of parties in the set-up, 2 to 1024.
        threshold: number of parties that decrypt together, 2 to `parties`.
        max_inputs: most updates of one sum.
        magnitude: largest absolute value of an integer of one update.
        max_values: most integers of one update; smudging hides all of them.

    Raises:
        ParameterError: a number is outside its range, or no modulus holds the sums.
    """

    MAX_SETS: Final[int]
    def __new__(
        cls, parties: int, threshold: int, *, max_inputs: int, magnitude: int, max_values: int
    ) -> Self: ...
    @property
    def parties(self) -> int:
        """Number of parties of the set-up."""
    @property
    def threshold(self) -> int:
        """Number of parties that decrypt together."""
    @property
    def log_n(self) -> int:
        """log2 of the ring degree."""
    @property
    def log_q(self) -> float:
        """log2 of the modulus."""
    @property
    def smudging_bits(self) -> int:
        """log2 of the range of smudging, which leaves a statistical distance of 2^-40 over all values of a sum."""
    def check_half(self, half: _Bytes) -> None:
        """Refuses bytes that are not a public half of a joint key.

        Raises:
            FormatError, MixedParametersError: they are invalid.
            ParameterError: it has another shape.
        """
    def check_update(self, update: _Bytes, count: int) -> None:
        """Refuses bytes that are not an update of `count` integers.

        Raises:
            FormatError, MixedParametersError: they are invalid.
            ParameterError: it has another number of ciphertexts.
        """
    def check_partial(self, partial: _Bytes, count: int) -> None:
        """Refuses bytes that are not a partial decryption of a sum of `count` integers. Only all of them together show
        whether it is right.

        Raises:
            FormatError, MixedParametersError: they are invalid.
            ParameterError: it has another shape.
        """
    def add(self, updates: Sequence[_Bytes]) -> _Bytes:
        """Adds encrypted updates. Needs no key.

        Raises:
            FormatError, MixedParametersError: bytes that are not a whole, intact update.
            ParameterError: none, too many, or updates of different lengths.
        """
    def finish(
        self,
        sum: _Bytes,  # noqa: A002
        partials: Sequence[_Bytes],
        inputs: int,
        count: int,
    ) -> NDArray[np.int64]:
        """The integers of a sum, exactly, from the partial decryptions of as many parties as the threshold.

        Args:
            sum: the partially decrypted sum.
            partials: one of every active party.
            inputs: number of updates in the sum.
            count: number of integers.

        Raises:
            AggregationError: the parts do not belong to the sum, or a party deviated.
            FormatError, ParameterError: bytes that are not such parts.
        """

@final
class ThresholdParty:
    """One party's secret during the set-up. Wiped when dropped, never printed."""
    @staticmethod
    def generate(
        parameters: ThresholdParameters, seed: _Bytes, entropy: _Bytes | None = None
    ) -> ThresholdParty:
        """A new secret, for one joint key.

        Args:
            parameters: of the group.
            seed: 32 bytes that all parties agree on, and none decides alone.
            entropy: 32 bytes that determine the secret, for tests only.
        """
    def public_half(self) -> _Bytes:
        """The party's half of the joint public key, for publication."""
    def deal(self) -> list[_Bytes]:
        """One share of the secret for every party, in order. Secret: each is for that party alone."""

@final
class ThresholdShare:
    """A party's share of the joint secret. Wiped when dropped, never printed."""
    @staticmethod
    def combine(
        parameters: ThresholdParameters, party: int, dealt: Sequence[_Bytes], keys: Sequence[_Bytes]
    ) -> ThresholdShare:
        """The share of a party from the values that all parties dealt to it, including itself.

        Args:
            parameters: of the group.
            party: its number, from 1.
            dealt: by every party, in order.
            keys: 32 secret bytes for every party, in order, known only to it and this party; in the party's own place
                32 random bytes that no other party knows.

        Raises:
            FormatError, ParameterError: a dealt share is invalid, or a share or a key is missing.
            AggregationError: two keys are equal.
        """
    @property
    def party(self) -> int:
        """The party's number."""
    def partial(
        self,
        sum: _Bytes,  # noqa: A002
        active: Sequence[int],
        *,
        session: _Bytes,
        round: int,  # noqa: A002
    ) -> _Bytes:
        """The party's part of a decryption. The same question has the same answer, bit for bit. Answer for one sum per
        round, and for at most `MAX_SETS` sets.

        Args:
            sum: the sum to decrypt.
            active: the numbers of the decrypting parties; all of them must answer the same question.
            session: 16 bytes that name the run and its keys.
            round: the round.

        Raises:
            ParameterError: `active` has not as many parties as the threshold, or lacks this one.
            FormatError, MixedParametersError: the sum is invalid.
        """
    def to_bytes(self) -> _Bytes:
        """The share as bytes, unencrypted and without the keys: protect both like a password. Python does not wipe them."""
    @staticmethod
    def from_bytes(
        data: _Bytes, parameters: ThresholdParameters, party: int, keys: Sequence[_Bytes]
    ) -> ThresholdShare:
        """A share from the bytes of `to_bytes`; errors as for `combine`."""

@final
class ThresholdKey:
    """The joint public key, of the sum of all parties' secrets, which no party has."""
    @staticmethod
    def combine(parameters: ThresholdParameters, seed: _Bytes, halves: Sequence[_Bytes]) -> ThresholdKey:
        """The key from the published halves of all parties for one seed.

        Raises:
            FormatError, ParameterError: a half is invalid or missing.
        """
    def encrypt(self, values: NDArray[np.int64]) -> _Bytes:
        """Encrypts a vector of integers.

        Raises:
            EncodeError: a value is above the declared magnitude.
            ParameterError: there is no value, or more than declared.
        """
    def to_bytes(self) -> _Bytes:
        """The key as bytes, for `from_bytes`. Public."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: ThresholdParameters) -> ThresholdKey:
        """A key from the bytes of `to_bytes`.

        Raises:
            FormatError, MixedParametersError: the bytes are not a whole, intact key of these parameters.
        """
