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
    """Sets the number of threads that operations are shared among, for the whole process.

    Results do not depend on it. Operations already running finish on the threads they have.

    Args:
        n: number of threads, 1 to 256; None for the default, which is RAYON_NUM_THREADS if set, else all cores.

    Raises:
        ParameterError: n is 0, above 256, or more than the system can start.
    """

def threads() -> int:
    """The number of threads that operations are shared among."""

def memory_use() -> dict[str, int]:
    """Bytes of the buffers of at least 8 KiB in which ciphertexts, keys, diagonals and scratch are: "live" are in use, "idle" are kept for the
    next ones, "peak" is the most that were in use at a time since `reset_memory_peak`, or the start.
    """

def reset_memory_peak() -> None:
    """Begins anew to look for the peak of `memory_use`."""

def trim_memory() -> None:
    """Gives idle buffers, and what the system's allocator has to spare, back to the operating system."""

def recycled_bytes(peak: int) -> int:
    """Bytes of idle buffers that a process keeps at most, whose buffers in use have been so many at most."""

def transform_scratch(
    parameters: Parameters,
    level: int,
    special: Sequence[int],
    *,
    babies: int,
    giants: int,
    inputs: int = 1,
    above: int = 0,
    periods: Sequence[int] | None = None,
    threads: int | None = None,
) -> int:
    """Bytes that `Evaluator.linear_transform` holds while it runs, its result among them and its inputs, keys and diagonals not.

    Args:
        parameters: of the ciphertexts.
        level: of the transforms.
        special: indices of their special primes.
        babies: baby steps other than 0, of all transforms of a block row.
        giants: giant steps of all of them, 0 among them.
        inputs: transforms of a block row.
        above: inputs above the level, of which copies are made.
        periods: of the diagonals that are kept as coefficients.
        threads: that compute; those of the process by default.

    Raises:
        LevelError: the level does not exist.
        ParameterError: a special prime is none, a period is not a power of two.
    """

def polynomial_scratch(
    relinearization: KeySpec,
    level: int,
    coefficients: ArrayLike,
    basis: str = "monomial",
    *,
    threads: int | None = None,
) -> int:
    """Bytes that `Evaluator.polynomial` holds while it runs, its result among them and its input and keys not.

    Args:
        relinearization: a key, which says the parameters too.
        level: of the input.
        coefficients: by ascending degree.
        basis: "monomial", or "chebyshev" on [-1, 1].
        threads: that compute; those of the process by default.

    Raises:
        ParameterError: another basis, a coefficient that is not finite.
        LevelError: the level is above that of the key, or below the depth of the polynomial.
    """

def contains_secret(data: _Bytes) -> bool:
    """Whether a secret key begins anywhere in some bytes: an object of Keywright whose kind is secret. One whose head is cut off
    at the end is not seen.
    """

def inspect(source: _Path | _Bytes) -> dict[str, Any]:
    """What bytes or a file of Keywright are, from their header alone, without the parameters they belong to.

    Args:
        source: a path, or the object's bytes, of which what follows the header may be missing.

    Returns:
        A dict with `kind`, `format_version`, `bytes`, `log_n`, `q_count`, `p_count`, `insecure`, `fingerprint` (of the
        parameters), `key_identity` (of the secret that it belongs to; None of a joint key, of an object of no key,
        and of files of format version 1), `secret` (whether it must stay with its owner), and, by kind, `keys` (of
        a set, or master keys: element, level, alpha, seeded, bytes each), `log_scale` or `plaintext_modulus`.

    Raises:
        FormatError: they are not of Keywright, or their header is damaged.
    """

def key_set_head(specs: Sequence[KeySpec], parameters: _KeyParameters | None = None) -> _Bytes:
    """The bytes that a stored set of these keys begins with: its header, which names every key and the length of the whole.

    They are known before any key is made, so a server can say with them which keys it wants, in which order.

    Args:
        specs: at least one, all of the same parameters.
        parameters: those that the specs are of, where some are of subrings; by default those of the first spec.

    Raises:
        ValueError: there are none.
        MixedParametersError: they belong to different parameters.
    """

def read_key_set_head(data: _Bytes, parameters: _KeyParameters) -> list[KeySpec]:
    """The keys that the head of a set names, in order. Each is checked for security.

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
    """Measures operations on real keys and ciphertexts, whose results are decrypted and compared first.

    Ctrl-C stops after the operation that runs.

    Args:
        emit: called with each figure as it is made, one JSON object in a string; may raise to stop.
        set: name of the parameter set, of `bench_sets()`.
        alpha: primes per digit; None for all that the set measures.
        works: what to measure, of `bench_works()`; empty for everything.
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
    """Measures a bootstrapping: keys, matrices, whole bootstraps of random values that are decrypted and compared, and the stages.

    Ctrl-C stops after the key or the bootstrap that runs.

    Args:
        emit: called with the figure, one JSON object in a string.
        preset: name of the bootstrapping, of `bench_presets()`.
        runs: timed bootstraps.
        progress: called with the name of a phase, the steps of it that are done and their total; may raise to stop.

    Raises:
        ParameterError: the name is unknown, or runs is 0.
    """

def bench_presets() -> list[str]:
    """Names of the bootstrappings that `bench_bootstrap` knows: the shipped ones, and a quick one without security."""

def bench_sets() -> dict[str, dict[str, Any]]:
    """The parameter sets that `bench` knows: by name, log2 of the ring degree, bits of the ciphertext primes and of the scale,
    and what is measured: primes per digit, levels, ring degrees of transforms and bits of their prime.
    """

def bench_works() -> list[str]:
    """Names of the works that `bench` knows."""

def bfv_presets() -> list[str]:
    """Names of the shipped BFV parameter sets, smallest first: ring degree, bits of all primes, bits of the plaintext modulus."""

def bootstrap_presets() -> list[str]:
    """Names of the shipped bootstrappings, with parameters that fit them."""

def polynomial_arithmetic(coefficients: ArrayLike, basis: str) -> list[tuple[int, dict[str, int]]]:
    """What the evaluation of a polynomial computes beside relinearizations, as `keywright.plan.Operation` counts it: pairs of how far below
    the level of the input it is, and the counts.

    Args:
        coefficients: by ascending degree.
        basis: "monomial", or "chebyshev" on [-1, 1].

    Raises:
        ParameterError: another basis, a coefficient that is not finite.
    """

def polynomial_depth(degree: int) -> int:
    """Levels that the evaluation of a polynomial of a degree takes: ceil(log2(degree + 1)). In the Chebyshev basis of an
    interval that is not 2 wide it takes one more.
    """

def polynomial_relinearizations(coefficients: ArrayLike, basis: str) -> list[int]:
    """The relinearizations that the evaluation of a polynomial does, each as how many levels below its input it is, ascending. Zeros among
    the coefficients can save some.

    Args:
        coefficients: by ascending degree.
        basis: "monomial", or "chebyshev" on [-1, 1].

    Raises:
        ParameterError: another basis, a coefficient that is not finite.
    """

def kernel_counts() -> dict[str, tuple[int, int]]:
    """What this process has computed so far, in words, modulo primes of at most 50 bits and modulo wider ones: zeros unless the back end
    is `KEYWRIGHT_BACKEND=counted`.
    """

@final
class Parameters:
    """CKKS parameters: ring degree, primes, scale. Immutable, checked for security, cheap to share.

    Made by `preset`, `from_bits` or `from_bytes`. Ciphertexts at level l have the primes q_0 .. q_l; a key also has
    special primes. Unless `insecure` is asked for, every modulus is checked against the bound for 128 bits of classical
    security with a uniform ternary secret (Security Guidelines for Implementing Homomorphic Encryption, 2024, table 5.2).
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
            p_bits: widths of the special primes, which only keys have.
            log_scale: log2 of the factor by which fresh messages are scaled; near the widths of q_1, q_2, ...
            insecure: allow moduli above the 128-bit bound, for experiments on data that need no protection.
            secret_weight: how many coefficients of the secret are not 0; about two thirds of them where not given. The bound is that of
                such secrets: there is one from degree 2^15 on, for weights of 192 or more.

        Raises:
            SecurityError: the ciphertext modulus is above the bound, or there is none.
            ParameterError: there are no such primes.
            ScaleError: a value of 1 does not fit q_0.
        """
    @staticmethod
    def for_circuit(
        *, depth: int, precision: int = 20, slots: int = 1, magnitude: float = 16.0
    ) -> Parameters:
        """The parameters of the smallest ring that has so many levels, slots and bits at 128 bits of security.

        Args:
            depth: levels of the products, matrices and polynomials that follow each other.
            precision: bits after the point that an encryption has, in all slots at once except with probability below 2^-40; every
                operation adds up its operands' errors, and its own, which is smaller.
            slots: values in a ciphertext.
            magnitude: largest absolute value of a result.

        Raises:
            ParameterError: a number is out of its bounds, or no ring has so many levels of so many bits.
        """
    def with_subrings(self, subrings: Sequence[tuple[int, int, Sequence[int] | None]]) -> Parameters:
        """The same parameters with further subrings: smaller rings, to which ciphertexts of low levels can be switched.

        Parameters with other subrings are other parameters: secrets, keys and ciphertexts of the one are none of the other.

        Args:
            subrings: of each, log2 of its degree, its highest level, and the indices of its special primes, counted through
                q_0 .. q_L, p_0, ...: special primes, or ciphertext primes above its level. None for all special primes: a key takes as
                many of them as its own bound leaves room for.

        Raises:
            SecurityError: the ciphertext modulus of a subring is above the bound of its degree.
            ParameterError: a subring is not smaller than the ring, a degree stands twice, or a level or a special prime is not legal.
        """
    @property
    def subrings(self) -> list[Parameters]:
        """The parameters of the subrings, from the largest down: parameters like any others, with their own levels and special primes."""
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
        """Highest level L, that of fresh ciphertexts: the number of rescalings they admit."""
    @property
    def max_slots(self) -> int:
        """Slots of a full packing, N/2."""
    @property
    def scale(self) -> float:
        """Factor by which fresh messages are scaled."""
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
        """What is enforced of every key: "128-bit classical", or "none (insecure)"."""
    @property
    def insecure(self) -> bool:
        """Whether the security bound is switched off."""
    @property
    def secret_distribution(self) -> str:
        """Distribution of the secret: "ternary", or "ternary of weight h"."""
    @property
    def backend(self) -> str:
        """Instruction set of the kernels: "portable", "avx2" or "avx512"; KEYWRIGHT_BACKEND forces one."""
    def to_bytes(self) -> _Bytes:
        """The parameters as bytes, to be read by `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes) -> Parameters:
        """Parameters from the bytes of `to_bytes`, checked like any others.

        Raises:
            FormatError: the bytes are not whole, intact parameters.
            SecurityError: they are above the bound and not marked insecure.
        """
    def save(self, path: _Path) -> None:
        """Writes the parameters to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path) -> Parameters:
        """Reads the parameters of a file; errors as of `from_bytes`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BfvParameters:
    """BFV parameters: ring degree, primes, plaintext modulus. Immutable, checked for security, cheap to share.

    Made by `preset`, `from_bits` or `from_bytes`. Values are integers modulo the plaintext modulus t, and results are exact. If t is a
    prime that is 1 modulo 2N there are N slots, in 2 rows of N/2; else values are packed in coefficients. Keys are made by
    `SecretKey` and `KeyGenerator` as for CKKS, and checked for security in the same way.
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
            p_bits: widths of the special primes, which only keys have.
            plaintext_modulus: t, below 2^60 and below every ciphertext prime.
            insecure: allow moduli above the 128-bit bound, for experiments on data that need no protection.

        Raises:
            SecurityError: the ciphertext modulus is above the bound.
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
        """What is enforced of every key: "128-bit classical", or "none (insecure)"."""
    @property
    def insecure(self) -> bool:
        """Whether the security bound is switched off."""
    def to_bytes(self) -> _Bytes:
        """The parameters as bytes, to be read by `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes) -> BfvParameters:
        """Parameters from the bytes of `to_bytes`, checked like any others.

        Raises:
            FormatError: the bytes are not whole, intact parameters.
            SecurityError: they are above the bound and not marked insecure.
        """
    def save(self, path: _Path) -> None:
        """Writes the parameters to a file, which appears whole or not at all."""
    @staticmethod
    def load(path: _Path) -> BfvParameters:
        """Reads the parameters of a file; errors as of `from_bytes`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BfvCiphertext:
    """Encrypted integers modulo t, with their level and an estimate of their noise. Immutable."""
    @property
    def parameters(self) -> BfvParameters:
        """The parameters it belongs to."""
    @property
    def key_identity(self) -> str | None:
        """The identity of the secret key that decrypts it, 32 hexadecimal digits; None if it is not known."""
    @property
    def level(self) -> int:
        """Number of times that `mod_switch` can still drop a prime."""
    @property
    def degree(self) -> int:
        """Degree in the secret: 1, or 2 after `multiply_lazy`."""
    @property
    def packing(self) -> str:
        """ "slots" or "coefficients": where its values are."""
    @property
    def bytes(self) -> int:
        """Bytes of its residues in memory."""
    @property
    def budget_bound(self) -> float:
        """Lower bound on the noise budget in bits, derived without decrypting; the budget is below it with probability below 2^-40."""
    def to_bytes(self) -> _Bytes:
        """The ciphertext as bytes, to be read by `from_bytes`."""
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
        """Reads the ciphertext of a file; errors as of `from_bytes`."""

@final
class BfvSeededCiphertext:
    """A BFV ciphertext made with the secret key, one half of which is a 32-byte seed: half the bytes to send. `expand` gives
    the ciphertext to compute with.
    """
    @property
    def parameters(self) -> BfvParameters:
        """The parameters it belongs to."""
    @property
    def key_identity(self) -> str | None:
        """The identity of the secret key that decrypts it, 32 hexadecimal digits; None if it is not known."""
    @property
    def level(self) -> int:
        """Number of times that `mod_switch` can drop a prime."""
    @property
    def packing(self) -> str:
        """ "slots" or "coefficients": where its values are."""
    @property
    def bytes(self) -> int:
        """Bytes of its residues and its seed in memory."""
    def expand(self) -> BfvCiphertext:
        """The ciphertext to compute with."""
    def to_bytes(self) -> _Bytes:
        """The ciphertext as bytes, to be read by `from_bytes`."""
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
        """Reads the ciphertext of a file; errors as of `from_bytes`."""

@final
class BfvEncryptor:
    """Encrypts integers modulo t with a public key of BFV parameters.

    Args:
        public_key: of whoever is to decrypt.
        entropy: 32 bytes that decide the randomness, for tests only.

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
            values: at most N integers from -t/2 to t - 1, which stand for their residues; zeros follow them. One integer alone
                fills all slots, without a transform, or all coefficients.
            packing: "slots" or "coefficients"; slots by default, where there are any.
            level: level of the ciphertext, the highest by default.

        Raises:
            EncodeError: the values are not a vector of integers in that range, or too many.
            ParameterError: there are no slots.
            LevelError: there is no such level.
            NoiseError: the level's modulus is too small for the plaintext modulus.
        """

@final
class BfvDecryptor:
    """Decrypts with a secret of BFV parameters, measures noise, and encrypts with the secret: half the bytes of a public-key
    encryption.

    Args:
        secret: the secret key.
        entropy: 32 bytes that decide the randomness of encryptions, for tests only.

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
            ciphertext: a ciphertext, or what operators returned.

        Raises:
            NoiseError: the noise is too large to tell the values; or the ciphertext belongs to another key.
            MixedParametersError: the ciphertext belongs to other parameters.
        """
    def noise_budget(self, ciphertext: BfvCiphertext | EncryptedIntegers) -> float:
        """Bits by which the noise may still grow before decryption fails, measured; at least 1 is needed to decrypt.

        It depends on the secret: do not hand it to others.

        Raises:
            MixedParametersError: the ciphertext belongs to other parameters.
        """
    def encrypt(
        self, values: ArrayLike, packing: str | None = None, level: int | None = None
    ) -> BfvSeededCiphertext:
        """Encrypts integers; arguments and errors as of `BfvEncryptor.encrypt`."""

@final
class BfvEvaluator:
    """Computes on BFV ciphertexts with the keys it was given. `evaluator(ciphertext)` gives a value with operators.

    Every operation returns a new ciphertext. An operand may be a ciphertext at the same level, or integers from -t/2 to t - 1: a vector,
    or a scalar, which stands for every value and costs no transform. Values in slots are multiplied one by one, coefficients as
    polynomials modulo X^N + 1.

    All raise NoiseError where the estimated noise says that the result may not decrypt, MixedParametersError for ciphertexts of
    other parameters, PackingError and LevelError for operands that do not fit, EncodeError for integers out of range. Those
    that need a key raise MissingKeyError.

    Args:
        parameters: of the ciphertexts.
        keys: those of the owner of the data; an empty set by default, which is enough for sums.
    """
    def __new__(cls, parameters: BfvParameters, keys: EvaluationKeys | None = None) -> Self: ...
    @property
    def parameters(self) -> BfvParameters:
        """The parameters it computes with."""
    @property
    def keys(self) -> EvaluationKeys:
        """The keys it may use. Keys added to them are used from then on."""
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
        """a b at degree 2: sums of such products need one `relinearize` in all.

        Raises:
            DegreeError: an operand has degree 2.
        """
    def relinearize(self, a: BfvCiphertext) -> BfvCiphertext:
        """a at degree 1."""
    def rotate_rows(self, a: BfvCiphertext, steps: int) -> BfvCiphertext:
        """Both rows of slots moved to the left: numpy.roll(slots.reshape(2, -1), -steps, axis=1).

        Raises:
            PackingError: the values are in coefficients.
            DegreeError: a has degree 2.
        """
    def rotate_rows_hoisted(self, a: BfvCiphertext, steps: Sequence[int]) -> list[BfvCiphertext]:
        """Several rotations of one ciphertext, which share its decomposition; errors as of `rotate_rows`, before anything is
        computed.
        """
    def swap_rows(self, a: BfvCiphertext) -> BfvCiphertext:
        """The two rows of slots swapped. Needs the key that `KeyGenerator.conjugation_key` makes.

        Raises:
            PackingError, DegreeError: as of `rotate_rows`.
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
    """The secret of the owner of the data. Wiped from memory when dropped, never shown, never given to a server."""
    @staticmethod
    def generate(parameters: _KeyParameters, entropy: _Bytes | None = None) -> SecretKey:
        """A new secret.

        Args:
            parameters: what it is for.
            entropy: 32 bytes that decide the secret, for tests only: who knows them knows the secret. The operating
                system's randomness by default.

        Raises:
            RandomnessError: the operating system gives no randomness.
        """
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters it belongs to."""
    @property
    def key_identity(self) -> str:
        """What tells keys and ciphertexts of this secret from those of others: 32 hexadecimal digits, which say
        nothing of it.
        """
    def to_bytes(self) -> _Bytes:
        """The secret as bytes, unencrypted: keep them as you keep a password. Python does not wipe them."""
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
        """Reads the secret of a file; errors as of `from_bytes`."""

@final
class PublicKey:
    """A key that anyone may have, to encrypt for the owner of the secret."""
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters it belongs to."""
    @property
    def key_identity(self) -> str | None:
        """What tells keys and ciphertexts of this secret from those of others: 32 hexadecimal digits; None if it is
        not known.
        """
    def to_bytes(self) -> _Bytes:
        """The key as bytes, to be read by `from_bytes`."""
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
        """Reads the key of a file; errors as of `from_bytes`."""

@final
class KeySpec:
    """Description of one switching key: what it switches, the highest level it serves, its digits and special primes.

    Made by `rotation`, `conjugation`, `relinearization` or `galois`. A key costs
    (1 if seeded else 2) * N * 8 * digits * (level + 1 + special primes) bytes, so a key at the level where it is used is
    smaller than one at the top. All constructors take:

        level: highest ciphertext level it serves; the parameters' highest by default.
        alpha: most primes per digit; by default the one that makes the fewest transforms at that level.
        seeded: store a 32-byte seed for the uniform half: half the bytes.
        special: indices of its special primes, among q_0 .. q_L, p_0, ...; chosen by default.

    and raise LevelError, ParameterError or SecurityError for what is not legal.
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
        """The keys with which `Evaluator.switch_ring` goes down to a smaller ring: one for each of the 2^(source - log_n) parts of the larger
        ring's secret. All are needed, and of one shape.

        Args:
            parameters: with the subring.
            log_n: log2 of the degree of the smaller ring, of which the keys are: level and special are those of that ring.
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
        """The key with which `Evaluator.switch_ring` goes up to a larger ring.

        Args:
            parameters: with the subring.
            source: log2 of the degree of the smaller ring.
            log_n: log2 of the degree of the larger ring, of which the key is; that of the parameters by default.

        Raises:
            ParameterError: the parameters have no such ring, or it is not larger.
        """
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters it is for: those of its ring."""
    @property
    def log_n(self) -> int:
        """log2 of the degree of its ring."""
    @property
    def source_log_n(self) -> int | None:
        """log2 of the degree of the other ring, of a key that leads from one ring to another; None for others."""
    @property
    def part(self) -> int | None:
        """Which part of the larger ring's secret a "ring_down" key is for; None for others."""
    @property
    def kind(self) -> str:
        """ "rotation", "conjugation", "galois", "relinearization", "secret", "dense_to_sparse", "sparse_to_dense", "sparse_to_dense_galois",
        "ring_down", "ring_up" or "ring_up_to_sparse".
        """
    @property
    def steps(self) -> int | None:
        """Steps of the rotation, from -N/4+1 to N/4; None if it is not a rotation."""
    @property
    def galois_element(self) -> int | None:
        """Galois element; None if it is not an automorphism."""
    @property
    def level(self) -> int:
        """Highest ciphertext level it serves."""
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
        """Bytes of such a key in memory: residues, and the seed of a seeded one."""
    @property
    def unseeded_bytes(self) -> int:
        """Bytes of the same key with both halves stored."""
    def scratch_bytes(
        self, level: int | None = None, *, keys: int = 1, rescale: bool = False, threads: int | None = None
    ) -> int:
        """Bytes that a key switch with such a key holds while it runs, its results among them and its input and keys not. A product of
        ciphertexts holds three polynomials beside.

        Args:
            level: of the ciphertext; that of the key by default.
            keys: how many keys of this shape serve one ciphertext at once.
            rescale: whether the switch ends with a rescaling, as in `multiply`.
            threads: that compute; those of the process by default.

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
        """The parameters it belongs to."""
    @property
    def key_identity(self) -> str | None:
        """What tells keys and ciphertexts of this secret from those of others: 32 hexadecimal digits; None if it is
        not known.
        """
    @property
    def spec(self) -> KeySpec:
        """What it switches, at which level, with which digits."""
    @property
    def bytes(self) -> int:
        """Bytes in memory; a seeded key has half of an unseeded one."""
    @property
    def error_variance(self) -> float:
        """Variance of a coefficient of its rows' errors: that of derived keys is larger than that of others."""
    def truncate(self, level: int) -> SwitchingKey:
        """The same key for ciphertexts of at most a lower level: fewer bytes.

        Raises:
            LevelError: the level is above the key's.
        """
    def to_bytes(self) -> _Bytes:
        """The key as bytes, to be read by `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: _KeyParameters) -> SwitchingKey:
        """A key from the bytes of `to_bytes`.

        Raises:
            FormatError: the bytes are not a whole, intact switching key.
            MixedParametersError: it belongs to other parameters.
        """

@final
class KeyGenerator:
    """Makes the keys that belong to one secret.

    Args:
        secret: the secret of the owner of the data.
        entropy: 32 bytes that decide the keys, for tests only. The operating system's randomness by default.

    The methods that make switching keys take `level`, `alpha` and `seeded` as `KeySpec` does, and raise the same errors.
    """
    def __new__(cls, secret: SecretKey, entropy: _Bytes | None = None) -> Self: ...
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters of the secret."""
    def public_key(self, log_n: int | None = None) -> PublicKey:
        """A public key, to be given to whoever encrypts.

        Args:
            log_n: log2 of the degree of the ring that is encrypted in; that of the parameters by default.

        Raises:
            ParameterError: the parameters have no such ring.
        """
    def relinearization_key(
        self, level: int | None = None, alpha: int | None = None, seeded: bool = True
    ) -> SwitchingKey:
        """A key that makes products of ciphertexts degree 1 again."""
    def rotation_key(
        self, steps: int, level: int | None = None, alpha: int | None = None, seeded: bool = True
    ) -> SwitchingKey:
        """A key for rotations by a number of steps to the left."""
    def conjugation_key(
        self, level: int | None = None, alpha: int | None = None, seeded: bool = True
    ) -> SwitchingKey:
        """A key for the complex conjugation of slots; of BFV, for the swap of the rows."""
    def switching_key(self, spec: KeySpec) -> SwitchingKey:
        """The key that a spec describes.

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
            rotations: steps of the rotations, all with a key at the same level.
            relinearization: whether to make the key for products.
            conjugation: whether to make the key for conjugation.
            specs: further keys, each as described; ephemeral keys in pairs of one weight.
            progress: called after each key with the number of keys made and their total; may raise to stop.

        Raises:
            MixedParametersError: a spec is for other parameters.
            ParameterError: not exactly one key to an ephemeral secret of a weight and one back.
        """
    def save_evaluation_keys(
        self,
        path: _Path,
        specs: Sequence[KeySpec],
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """Makes keys and writes each to a file as soon as it exists: the set need not fit in memory. The file appears whole
        or not at all, and `EvaluationKeys.load` reads it.

        Args:
            path: the file.
            specs: the keys.
            progress: as of `evaluation_keys`.
        """

@final
class EvaluationKeys:
    """The switching keys that a server holds: any number per rotation, at any levels. Iterates over its `KeySpec`s.

    For each operation the evaluator takes the key, and the number of its rows per digit, that make the fewest transforms; or, of a set
    that follows a plan, what the plan says.
    """
    def __new__(cls, parameters: _KeyParameters) -> Self: ...
    @staticmethod
    def outline(parameters: _KeyParameters, specs: Sequence[KeySpec]) -> EvaluationKeys:
        """A set that knows its keys and has none of them: what errors they would add is known before any is made (`ErrorModel`). Whatever
        computes with one raises KeySourceError.

        Raises:
            MixedParametersError: a spec is for other parameters.
            KeySpecError: there are two keys to or from an ephemeral secret of one weight.
        """
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters of its keys."""
    @property
    def key_identity(self) -> str | None:
        """What tells keys and ciphertexts of this secret from those of others: 32 hexadecimal digits; None if it is
        not known.
        """
    def add(self, key: SwitchingKey) -> None:
        """Adds a key; operations that run already go on without it.

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
        """The keys as bytes, to be read by `from_bytes`."""
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
        """Reads the keys of a file; errors as of `from_bytes`."""
    def following(
        self,
        routes: Sequence[tuple[int, Sequence[int], Sequence[tuple[int, int, KeySpec]]]],
        relinearizations: Sequence[tuple[int, KeySpec]],
    ) -> EvaluationKeys:
        """The same keys, used as a plan says: each group of automorphisms by its hops, each relinearization with the key of its level. Keys
        to and from ephemeral secrets are used as without.

        Args:
            routes: for each group its level, the Galois elements that are needed, and its hops as (parent, child, key): every parent is 1,
                the ciphertext itself, or a child before it; the key is that of child / parent.
            relinearizations: the key for each level.

        Raises:
            PlanMismatchError: hops that do not make what they should.
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
        """Keys of which at most `memory` bytes are in memory at a time: those of a file, which are read, and those that are derived from master
        keys, again where they were forgotten. A thread makes those of the coming steps; for want of room the key leaves that is needed
        furthest in the future. An operation whose keys do not fit takes them one after the other. Operations with these keys are done one at
        a time.

        Args:
            path: a file of `save` or `KeyGenerator.save_evaluation_keys`.
            memory: bytes of keys, the master keys included.
            steps: the keys that each step of the program uses, in order; it may be run any number of times. Other keys are made as well,
                when they are used.
            masters: what the others are derived from, by as many threads as there are for computing.
            derived: the keys that are derived; that a derived key is seeded is not possible, and not read.
            max_hops: as of `MasterKeys.derive`.

        Raises:
            FormatError, MixedParametersError: as of `from_bytes`.
            KeyMemoryError: a key does not fit.
            DerivationError: as of `MasterKeys.derive`.
        """
    @staticmethod
    def load_shared(
        path: _Path, parameters: _KeyParameters, steps: Sequence[Sequence[KeySpec]]
    ) -> EvaluationKeys:
        """The keys of a file, read in the order in which a program uses them, into memory that other processes can map: see `share`. Operations
        begin with the first of them and wait for the others; a thread reads meanwhile.

        Args:
            path: a file of `save` or `KeyGenerator.save_evaluation_keys`.
            steps: the keys that each step of the program uses, in order. Other keys are read after them.

        Raises:
            FormatError, MixedParametersError: as of `from_bytes`, for the head; for a key, of the operation that uses it.
            OSError: the file cannot be read, or the system has no such memory: Linux has.
        """
    def share(self) -> int:
        """Waits until all keys of `load_shared` have been read, and gives a descriptor of their memory, which nobody can write to any more; the
        caller closes it. Other processes of this machine that are given it map the same memory: `open_shared`.

        Raises:
            OSError: a key cannot be read, or the keys are not those of `load_shared`.
        """
    @staticmethod
    def open_shared(descriptor: int, parameters: _KeyParameters) -> EvaluationKeys:
        """The keys in the memory of a descriptor of `share`, which the caller may close: they stay mapped while this is there.

        Raises:
            OSError: it is not a descriptor of such memory.
            FormatError, MixedParametersError: as of `from_bytes`.
        """
    @property
    def streaming(self) -> dict[str, float] | None:
        """Of keys that are streamed, what was done so far: "loads" of keys, by reading or deriving, those "ahead" of their use, their "bytes", "peak_bytes" in
        memory at once, and "waited_s", how long operations waited for keys. None for keys that are all in memory.
        """

@final
class MasterKeys:
    """Keys of which a server derives the Galois keys that a program needs: made by the client once, few, and sent instead of those.

    A master key is over the primes of the parameters and extra ones; all of them together are checked against the 128-bit bound. Not
    a secret.
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
        """Makes master keys; what the client does.

        Args:
            secret: the secret of the owner of the data.
            rotations: steps of the rotations with a master key.
            extra_bits: widths of the extra primes, which are not above 61 bits. More of them make fewer and smaller rows.
            level: highest level of the keys that will be derived; the parameters' highest by default.
            conjugation: whether to make a master key of the conjugation as well.
            galois_elements: further automorphisms with a master key.
            special: number of primes that a master key divides by: the extra ones, then ciphertext primes above the level. By default what makes the
                fewest bytes.
            entropy: 32 bytes that decide the keys, for tests only. The operating system's randomness by default.
            progress: called after each key with the number of keys made and their total; may raise to stop.

        Raises:
            SecurityError: the modulus of a master key is above the bound.
            ParameterError: there are no such primes, or they are too narrow for a digit of one prime.
        """
    @property
    def parameters(self) -> _KeyParameters:
        """The parameters that keys are derived for."""
    @property
    def extra(self) -> list[int]:
        """The extra primes."""
    @property
    def shapes(self) -> list[tuple[int, int, int, int]]:
        """The keys as they are described over their chain, by element: Galois element, level, most primes of a digit, and number of primes divided by."""
    @property
    def galois_elements(self) -> list[int]:
        """Galois elements of the master keys."""
    @property
    def bytes(self) -> int:
        """Bytes of all master keys in memory."""
    @property
    def modulus_bits(self) -> float:
        """Bits of the largest modulus of a master key, which the security bound is compared with."""
    def __len__(self) -> int: ...
    def derive(
        self,
        specs: Sequence[KeySpec],
        max_hops: int = ...,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """Derives keys; what the server does. The same specs give the same keys again, whatever was forgotten.

        Args:
            specs: the keys; that a derived key is seeded is not possible, and not read.
            max_hops: most derivations from the master keys to a key, from 1 to `MAX_DERIVATION_HOPS`; each adds to its noise.
                `DEFAULT_DERIVATION_HOPS` where it is not given.
            progress: called after each key with the number of keys made and their total; may raise to stop.

        Raises:
            DerivationError: the master keys do not reach a key, or it is no Galois key.
            MixedParametersError: a spec is for other parameters.
        """
    def derivation(self, specs: Sequence[KeySpec], max_hops: int = ...) -> Derivation:
        """The same keys one by one, so that not all have to be in memory: an iterator of `SwitchingKey`."""
    def to_bytes(self) -> _Bytes:
        """The keys as bytes, to be read by `from_bytes`."""
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
        """Reads the keys of a file; errors as of `from_bytes`."""

@final
class Derivation:
    """Keys that are derived when they are asked for: what `MasterKeys.derivation` gives. An iterator; its length is the number of
    keys that are left.
    """
    @property
    def derived(self) -> int:
        """Keys that are derived, those on the way to others included."""
    @property
    def decomposed(self) -> int:
        """Keys that others are derived from."""
    @property
    def depth(self) -> int:
        """Most derivations from the master keys to a key."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Derivation: ...
    def __next__(self) -> SwitchingKey: ...

@final
class DerivationTree:
    """Which key is derived from which: for the planner, which weighs master keys before any is made.

    Args:
        log_n: log2 of the ring degree N.
        masters: Galois elements of the master keys.
        targets: Galois elements of the keys that are wanted.
        max_hops: most derivations to a key, from 1 to `MAX_DERIVATION_HOPS`, the default.

    Raises:
        DerivationError: the master keys do not reach a target.
        ParameterError: an element that is even or above 2N, another ring degree, another number of hops.
    """
    def __new__(
        cls, log_n: int, masters: Sequence[int], targets: Sequence[int], max_hops: int = ...
    ) -> Self: ...
    @property
    def steps(self) -> list[tuple[int, int, int, int]]:
        """For every key that is derived: its Galois element, that of the key it is derived from (1: of none), that of the
        master key, and the number of derivations to it.
        """
    @property
    def depth(self) -> int:
        """Most derivations to a key."""
    def decompositions(self, rows: int, primes: int) -> int:
        """Decompositions of each row of a key while all keys are derived, by master keys of one shape.

        Args:
            rows: of a derived key.
            primes: those of the master keys' chain that derived keys are made over.
        """

def master_key_bytes(
    parameters: _KeyParameters,
    extra_bits: Sequence[int],
    level: int | None = None,
    special: int | None = None,
) -> int:
    """Bytes of one master key, its uniform halves as a seed: of what `MasterKeys.generate` makes with the same arguments.

    Raises:
        SecurityError, ParameterError, LevelError: as of `MasterKeys.generate`.
    """

def maximum_log_qp(log_n: int, weight: int | None = None) -> int:
    """Most bits of the modulus of a key that 128 bits of security allow.

    Args:
        log_n: log2 of the ring degree, 10 to 17.
        weight: Hamming weight of a sparse secret; None for a uniform ternary one.

    Raises:
        SecurityError: there is no bound for that degree and secret.
    """

@final
class PrimeWidths:
    """The widths of the primes of parameters, chosen or not: what sizes of keys and counts of work are computed from.

    Primes are numbered through q_0 .. q_L, p_0, ...; those of at most 50 bits are narrow.
    """
    def __new__(cls, log_n: int, q: Sequence[float], p: Sequence[float]) -> Self: ...
    def digits(self, level: int, alpha: int, special: Sequence[int]) -> list[tuple[int, int]] | None:
        """The digits of a key as (first prime, one past the last): runs of at most alpha primes whose product is at most that of
        the special primes; None if a prime alone is above it, or alpha is 0.
        """
    def special_candidates(self, level: int, bound: float) -> list[int]:
        """What can be special primes of a key for a level, in the order in which a key takes them: the special ones, then the
        ciphertext primes above it from the top down, as long as the key's modulus has at most `bound` bits.
        """
    def key_bytes(self, digits: int, primes: int, seeded: bool) -> int:
        """Bytes of a key in memory: residues of one half and a seed, or of both."""
    def switch(
        self, key_level: int, alpha: int, special: Sequence[int], seeded: bool, level: int
    ) -> tuple[list[tuple[int, int]], list[int], float, list[list[int]]] | None:
        """How the engine uses a key at a level: digits, removed primes, noise over that of the rounding of a division, and work.
        None above the key's level, or if its digits are not legal.
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
        """The work of a switch between rings, in limbs of the ring of these widths: what `switch` is for other switches. None where that is.

        Args:
            key_level, alpha, special, seeded: of its keys, which are of this ring.
            level: of the ciphertext.
            parts: for the way down from a larger ring, how many times as large that is; None for the way up from any smaller one.
        """
    def derivation_noise(
        self, key_level: int, alpha: int, special: Sequence[int], level: int
    ) -> list[float] | None:
        """Variance that a derivation with a master key adds to the errors of a derived key, over that of a fresh key's errors:
        of the first derivation, and of every other one. The secret is uniform ternary; sparse ones add less. None where
        `switch` is.

        Args:
            key_level: of the master key, as are alpha and special.
            level: that of the derived key in the master key's chain.
        """
    def operation(
        self, level: int, counts: Mapping[str, int], removed: Sequence[int], relinearization: Sequence[int]
    ) -> list[int]:
        """What an operation beside key switches computes once: the work of its counts, at a level.

        Args:
            level: of its ciphertexts.
            counts: by the names of `keywright.plan.Operation`.
            removed: the primes that key switches at the level remove.
            relinearization: those that the relinearization key of the level removes.
        """

@final
class ErrorModel:
    """Variances of the errors that operations add, as the engine knows them from keys that need not be made (`EvaluationKeys.outline`).

    Every variance is a pair `(plain, secret)`, of one coefficient: with `X` the squared absolute value of the secret at a slot over its mean, it is
    `plain + secret X` there. `deviation_unit` brings its square root to a part of a slot, in units of the message.

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
        """What a coefficient's error of deviation 1 is in each part of a slot, in units of a message at a scale.

        Raises:
            ParameterError: the number of slots is not legal.
        """
    def encryption(self, public: bool = False) -> tuple[float, float]:
        """Of a fresh encryption, with the public key or with the secret one, the rounding of its encoding included."""
    @property
    def rescaling(self) -> tuple[float, float]:
        """Of a rescaling, at the scale after it. A relinearization before it adds nothing of that size: it is divided by the prime."""
    def rotation(self, steps: int, slots: int, level: int) -> tuple[float, float]:
        """Of a rotation to the left of a ciphertext of so many slots at a level, all its hops together.

        Raises:
            MissingKeyError, PlanMismatchError: as of `Evaluator.rotate`.
        """
    def switch_ring(self, source: int, log_n: int, level: int) -> tuple[float, float]:
        """Of a switch from the ring of degree 2^source to that of degree 2^log_n, at a level.

        Raises:
            MissingKeyError: as of `Evaluator.switch_ring`.
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
        """Of a linear transform of one or several ciphertexts: for each of them and each of its baby steps, ascending, what is added to the rotated ciphertext
        before it meets diagonals, and what is added to the result. `diagonal` is not in it.

        Args:
            diagonals: for each ciphertext the indices of its diagonals.
            slots: of the ciphertexts.
            n1: number of possible baby steps.
            level: of the ciphertexts.
            special: indices of the primes that the transform's key switches divide by.

        Raises:
            MissingKeyError, PlanMismatchError, SpecialPrimesError: as of `Evaluator.linear_transform`.
            ParameterError: n1 is not legal, or there are no diagonals.
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
        """By how much the evaluation of a polynomial amplifies a rounding (`rescaling`) at scale 1, at each of some values of the input.

        Args:
            coefficients, basis: as of `Evaluator.polynomial`, on [-1, 1].
            level, scale: of the input; the result has its scale.
            values: real.

        Raises:
            LevelError: there are too few levels.
            ParameterError: another basis, a coefficient that is not finite.
        """

@final
class LinearTransform:
    """A matrix on the slots, encoded for one level: `transform @ x`, or `Evaluator.linear_transform`, is the product with the
    column of the slots.

    Diagonal r of a matrix M over n slots is M[i, (i + r) mod n]; those that are 0 take no time. Baby-step giant-step with double hoisting (Bossuat et
    al., Eurocrypt 2021, algorithm 6): r = i + j with the baby step i = r mod n1 and the giant step j. Its rotations
    share ModUp and ModDown if their keys have the special primes of the transform: `key_specs` lists such keys. With other keys
    the result is as right, and each such rotation takes a ModDown of its own.

    Args:
        parameters: of the ciphertexts.
        matrix: real or complex, of up to `slots` rows and columns: slots behind its columns are ignored, results behind its rows are
            0. Or a dict of its diagonals: for each r, a vector of `slots` numbers.
        slots: a power of two up to N/2, the default.
        level: of the ciphertexts it takes, the highest by default; the result is one lower.
        n1: number of possible baby steps; by default the one of least work.
        special: indices of the special primes of its keys; by default those of `KeySpec.rotation` at that level.
        storage: "encoded" keeps a diagonal of the period p as its values modulo every prime, 16 p (level + 1 + len(special)) bytes;
            "coefficients" as its integer coefficients, 16 p bytes, which every use transforms. Results are the same.

    Raises:
        LevelError: the level does not exist or is 0.
        EncodeError: a matrix of another shape, a diagonal that is not a vector of `slots` finite numbers, or one that has coefficients of 2^62 or more that are to be kept.
        ParameterError: slots, n1 or a special prime is not legal, there are no diagonals, or a storage is not known.
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
        """The transform of real diagonals that repeat, from one array: encoded on all threads, without the interpreter.

        Args:
            indices: of the diagonals; those that coincide modulo `slots` are summed.
            values: of shape (len(indices), period), the diagonals as rows. The period is a power of two; a diagonal repeats its row up to `slots`
                values.
            slots, level, n1, special, storage: as for the class.

        Raises:
            as for the class; ParameterError: the period is not a power of two up to `slots`.
        """
    @staticmethod
    def predicted_bytes(periods: Sequence[int], primes: int, storage: str = "encoded") -> int:
        """Bytes of the diagonals that a transform would keep.

        Args:
            periods: for each diagonal the least power of two after which it repeats; a number of slots is always one.
            primes: level + 1 + len(special).
            storage: as for the class.

        Raises:
            ParameterError: a period is not a power of two up to 2^16, or a storage is not known.
        """
    @staticmethod
    def coefficient_transforms(parameters: Parameters, periods: Sequence[int]) -> float:
        """How many transforms of whole polynomials modulo one prime have as many butterflies as those that an evaluation makes, modulo each
        prime, of diagonals kept as coefficients: those of degree 2p for the period p, and at least 2^10.

        Args:
            parameters: of the ciphertexts.
            periods: as for `predicted_bytes`.

        Raises:
            ParameterError: a period is not a power of two up to 2^16.
        """
    @property
    def storage(self) -> str:
        """ "encoded" or "coefficients": how the diagonals are kept."""
    @property
    def parameters(self) -> Parameters:
        """The parameters it is encoded for."""
    @property
    def slots(self) -> int:
        """Number of slots."""
    @property
    def level(self) -> int:
        """Level of the ciphertexts it takes."""
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
        """Bytes of the diagonals that are kept: `predicted_bytes`."""
    def key_specs(self, seeded: bool = True) -> list[KeySpec]:
        """The keys it needs, at its level."""

@final
class Ciphertext:
    """An encrypted vector, with its level, its scale and an estimate of its error. Immutable."""
    @property
    def parameters(self) -> Parameters:
        """The parameters it belongs to."""
    @property
    def key_identity(self) -> str | None:
        """The identity of the secret key that decrypts it, 32 hexadecimal digits; None if it is not known."""
    @property
    def log_n(self) -> int:
        """log2 of the degree of its ring."""
    @property
    def n(self) -> int:
        """Degree of its ring."""
    @property
    def level(self) -> int:
        """Number of rescalings it still admits."""
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
        """ "slots" or "coefficients": where its values are."""
    @property
    def slots(self) -> int | None:
        """Number of slots; None if its values are in coefficients."""
    @property
    def bytes(self) -> int:
        """Bytes of its residues in memory."""
    @property
    def error_bound(self) -> float:
        """Bound on the absolute error of every value, derived without decrypting; exceeded with probability below
        2^-40. Infinite if values as large as `magnitude_bound` do not fit the modulus, where they may have
        overflowed.
        """
    @property
    def magnitude_bound(self) -> float:
        """Bound on the absolute value of every value, derived without decrypting."""
    @property
    def precision_bits(self) -> float:
        """-log2 of the error bound: bits after the point that are right."""
    def to_bytes(self) -> _Bytes:
        """The ciphertext as bytes, to be read by `from_bytes`."""
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
        """Reads the ciphertext of a file; errors as of `from_bytes`."""

@final
class SeededCiphertext:
    """A ciphertext made with the secret key, one half of which is a 32-byte seed: half the bytes to send. `expand` gives
    the ciphertext to compute with.
    """
    @property
    def parameters(self) -> Parameters:
        """The parameters it belongs to."""
    @property
    def key_identity(self) -> str | None:
        """The identity of the secret key that decrypts it, 32 hexadecimal digits; None if it is not known."""
    @property
    def log_n(self) -> int:
        """log2 of the degree of its ring."""
    @property
    def level(self) -> int:
        """Number of rescalings it admits."""
    @property
    def packing(self) -> str:
        """ "slots" or "coefficients": where its values are."""
    @property
    def slots(self) -> int | None:
        """Number of slots; None if its values are in coefficients."""
    @property
    def bytes(self) -> int:
        """Bytes of its residues and its seed in memory."""
    def expand(self) -> Ciphertext:
        """The ciphertext to compute with."""
    def to_bytes(self) -> _Bytes:
        """The ciphertext as bytes, to be read by `from_bytes`."""
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
        """Reads the ciphertext of a file; errors as of `from_bytes`."""

@final
class Encryptor:
    """Encrypts with a public key.

    Args:
        public_key: of whoever is to decrypt.
        entropy: 32 bytes that decide the randomness, for tests only.
    """
    def __new__(cls, public_key: PublicKey, entropy: _Bytes | None = None) -> Self: ...
    @property
    def parameters(self) -> Parameters:
        """The parameters of the key."""
    def encrypt(self, values: ArrayLike, slots: int | None = None, level: int | None = None) -> Ciphertext:
        """Encrypts a vector of real or complex numbers in slots.

        Args:
            values: at most `slots` numbers; zeros follow them.
            slots: a power of two up to N/2, which is the default. Rotations act modulo this number.
            level: level of the ciphertext, the highest by default. A lower one makes it smaller and faster.

        Raises:
            EncodeError: the values are not a vector of finite numbers, too many, or too large for the modulus.
            ParameterError: slots is not a power of two up to N/2.
            LevelError: there is no such level.
        """
    def encrypt_coefficients(self, values: ArrayLike, level: int | None = None) -> Ciphertext:
        """Encrypts up to N real numbers in the coefficients of the plaintext: no transform for a thin client, and no
        rotations or slot-wise products until they are moved to slots.

        Raises:
            EncodeError, LevelError: as of `encrypt`.
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
    """Encryptions of zero made ahead, in background threads, each used for one message: what is left of an encryption when
    the message is known is an addition. As secure as encrypting directly; see docs/explanation/cached-encryption.md.

    Entries are one-time masks of their messages: a file of them is encrypted, and must not be on a disk that is cloned or rolled back.
    A forked process cannot use its parent's pool.

    Args:
        key: a public key, which gives `Ciphertext`s, or a secret key, which gives `SeededCiphertext`s: half the memory. With a key
            of BFV parameters `encrypt_integers` gives a `BfvCiphertext` or `BfvSeededCiphertext`.
        capacity: most entries in memory.
        level: of every ciphertext, the highest by default.
        threads: background threads. With 0, `fill` alone makes entries.
        when_empty: "encrypt" makes an entry directly, "block" waits for a thread, "error" raises `PoolEmptyError`.
        file: keeps entries beyond those in memory; made if it does not exist.
        file_key: 32 secret bytes that the file is encrypted with.
        file_capacity: entries of a file that is made; `capacity` by default.
        register: folder where it is recorded which entries of the file are used; $XDG_STATE_HOME/keywright/pools by default.
        entropy: 32 bytes that decide the randomness, for tests only.

    Raises:
        ParameterError: a number outside its range, an unknown `when_empty`, a file without its key.
        LevelError: there is no such level.
        PoolFileError: the file is damaged, copied, or another pool's.
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
        """What it has done: "capacity", "fill" (entries in memory), "in_file" (None without a file), "made", "taken", "hits" (taken
        from memory without waiting), "misses", "hit_rate", and "failure": why its threads ended, None while they run.
        """
    def fill(self, count: int | None = None) -> int:
        """Makes entries now, on the threads of `keywright.set_threads`, as far as there is room in memory; those of the file come
        first.

        Args:
            count: how many at most; by default until memory is full.

        Returns:
            the number of entries in memory.
        """
    def encrypt(self, values: ArrayLike, slots: int | None = None) -> _Encrypted:
        """Encrypts a vector of real or complex numbers in slots; arguments and errors as of `Encryptor.encrypt`.

        Raises:
            PoolEmptyError: there is no entry and `when_empty` is "error", or the pool blocks and was closed.
            ForkedError: the pool belongs to another process.
        """
    def encrypt_coefficients(self, values: ArrayLike) -> _Encrypted:
        """Encrypts up to N real numbers in coefficients; errors as of `encrypt`."""
    def encrypt_scalar(self, value: float, slots: int | None = None) -> _Encrypted:
        """Encrypts one real number, the same in every slot: neither FFT nor NTT. Errors as of `encrypt`."""
    def encrypt_scalars(self, values: ArrayLike, slots: int | None = None) -> list[_Encrypted]:
        """Encrypts every number of a vector by itself, as `encrypt_scalar` does. All are checked before an entry is taken."""
    def encrypt_integers(
        self, values: ArrayLike, packing: str | None = None
    ) -> BfvCiphertext | BfvSeededCiphertext:
        """Encrypts integers, with a key of BFV parameters; arguments and errors as of `BfvEncryptor.encrypt`. One integer alone fills all
        slots without a transform.

        Raises:
            PoolEmptyError, ForkedError: as of `encrypt`.
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
    """NOT SECURE. Cached encryption after Protocol 1 of Zhao's Chem: every ciphertext is a sum of cached ones, so that linear
    algebra tells messages apart (`ChemDistinguisher`). Here to be measured and broken; use `keywright.EncryptionPool`.

    Args:
        public_key: of whoever is to decrypt. With CKKS parameters `encrypt` makes ciphertexts, with BFV parameters
            `encrypt_integers`.
        bits: of a message, 1 to 128. The cache has that many encryptions of zero.
        radix: of the cached powers.
        acknowledge: "Chem does not hide messages".
        unit: the integer message m stands for the number m * unit; 1 by default, and always with BFV.
        level: of every ciphertext, the highest by default.
        entropy: 32 bytes that decide the randomness, for tests only.

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
        """Encrypts every integer of a list by itself, the same in every slot.

        Raises:
            EncodeError: a message has more bits.
            MixedParametersError: the key was made for BFV.
        """
    def encrypt_integers(self, messages: Sequence[int]) -> list[BfvCiphertext]:
        """Encrypts every integer of a list by itself modulo t, the same in every slot.

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
    """The attack on `ChemEncryptor`: learns from ciphertexts of one message, by linear algebra modulo the first prime, which other
    ciphertexts are of it. It needs no key. A few more ciphertexts than Chem has bits are enough.

    Args:
        known: ciphertexts of one message, at least one.

    Raises:
        EncodeError: there is none.
        MixedParametersError: they belong to several parameters.
    """
    def __new__(cls, known: Sequence[Ciphertext] | Sequence[BfvCiphertext]) -> Self: ...
    def recognises(self, ciphertext: Ciphertext | BfvCiphertext) -> bool:
        """Whether a ciphertext is of the known message.

        Raises:
            MixedParametersError: it belongs to other parameters.
        """
    @property
    def rank(self) -> int:
        """Dimension of the span of the differences of the known ciphertexts."""

@final
class Decryptor:
    """Decrypts with the secret, and encrypts with it: half the bytes of a public-key encryption.

    What it decrypts contains the error of the ciphertext, which depends on the secret: without flooding do not hand
    it to those who know the ciphertext and its message (IND-CPA-D, see SECURITY.md).

    Args: secret: the secret key. entropy: 32 bytes that decide the randomness of encryptions and of flooding, for
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
            ciphertext: a ciphertext, or what operators returned.
            flooding: adds the noise with which the values may be handed out; `Flooding.error_bound` says how far off
                they are. Every call is one of its queries.

        Raises:
            MixedParametersError: the ciphertext belongs to other parameters.
            KeyMismatchError: it was made with another key.
            MessageOverflowError: its values are larger than it allows.
            FloodingError: the noise would leave nothing of the values, or no query is left.
        """
    def decrypt_complex(
        self, ciphertext: Ciphertext | Encrypted, flooding: Flooding | None = None
    ) -> NDArray[np.complex128]:
        """The slots as complex128; arguments as of `decrypt`.

        Raises:
            MixedParametersError: the ciphertext belongs to other parameters.
            KeyMismatchError: it was made with another key.
            MessageOverflowError: its values are larger than it allows.
            PackingError: its values are in coefficients.
            FloodingError: as of `decrypt`.
        """
    def encrypt(
        self,
        values: ArrayLike,
        slots: int | None = None,
        level: int | None = None,
        log_n: int | None = None,
    ) -> SeededCiphertext:
        """Encrypts a vector of real numbers in slots; arguments and errors as of `Encryptor.encrypt`.
        `log_n` is log2 of the degree of the ring that is encrypted in, that of the parameters by default.
        """
    def encrypt_coefficients(self, values: ArrayLike, level: int | None = None) -> SeededCiphertext:
        """Encrypts up to N real numbers in coefficients; arguments and errors as of `Encryptor.encrypt_coefficients`."""

@final
class Flooding:
    """How decryptions under one secret are flooded before they are handed out, and how many may still be.

    Gaussian noise hides the error of a ciphertext, which depends on the secret. Whoever sees the ciphertexts and
    all flooded decryptions finds the secret with a probability of at most 2^-bits where he could not without them,
    and tells them from decryptions that never met the secret with an advantage of at most 2^-(bits/2 + 2). See
    docs/explanation/handing-out.md (Li, Micciancio, Schultz and Sorrell, CRYPTO 2022).

    Make one for a secret and keep it: every decryption that leaves the owner counts, whatever process made it.

    Args: bits: statistical bits over all queries, 1 to 64. queries: decryptions that will be handed out in all, of
    one ciphertext each, 1 to 2^32.

    Raises: ParameterError: bits or queries are outside their range.
    """
    def __new__(cls, bits: int, queries: int) -> Self: ...
    @property
    def bits(self) -> int:
        """Statistical bits over all queries."""
    @property
    def queries(self) -> int:
        """Decryptions that it was made for."""
    @property
    def remaining(self) -> int:
        """Decryptions that are left of them."""
    def error_bound(self, ciphertext: Ciphertext) -> float:
        """Bound on the absolute error of every value of a flooded decryption of this ciphertext; exceeded with
        probability below 2^-40.

        Raises: FloodingError: that is as large as the values may be, or does not fit the modulus.
        """

@final
class Evaluator:
    """Computes on ciphertexts with the keys it was given. `evaluator(ciphertext)` gives a value with operators.

    Every operation returns a new ciphertext. Where an operand may be numbers (a scalar or a vector that numpy takes),
    they are encoded for the level of the ciphertext at the scale that makes the result exact. Binary operations bring both
    ciphertexts to the lower of their levels.

    Ciphertexts may be of any ring of the parameters: each operation is done in the ring of its operands, with the keys of that ring.

    All raise MixedParametersError for ciphertexts of other parameters, and for two of different rings; those that need a key raise MissingKeyError, naming
    element, rotation and level, and the nearest keys there are.

    Args:
        parameters: of the ciphertexts.
        keys: those of the owner of the data; an empty set by default, which is enough for sums.
    """
    def __new__(cls, parameters: Parameters, keys: EvaluationKeys | None = None) -> Self: ...
    @property
    def parameters(self) -> Parameters:
        """The parameters it computes with."""
    @property
    def keys(self) -> EvaluationKeys:
        """The keys it may use. Keys added to them are used from then on."""
    def __call__(self, ciphertext: Ciphertext) -> Encrypted: ...
    def add(self, a: Ciphertext, b: Ciphertext | ArrayLike) -> Ciphertext:
        """a + b, with b a ciphertext or numbers.

        Raises:
            ScaleError: the scales differ by more than one part in 2^30.
            PackingError: the packings differ.
        """
    def sub(self, a: Ciphertext, b: Ciphertext | ArrayLike) -> Ciphertext:
        """a - b, with b a ciphertext or numbers; errors as of `add`."""
    def neg(self, a: Ciphertext) -> Ciphertext:
        """-a."""
    def multiply(self, a: Ciphertext, b: Ciphertext | ArrayLike) -> Ciphertext:
        """a b, with b a ciphertext or numbers: relinearized, rescaled, one level less.

        A product with numbers keeps the scale of a exactly; one with a Python integer costs no level.

        Raises:
            LevelError: there is no level left.
            DegreeError: an operand has degree 2; relinearize it first.
            PackingError: the packings differ.
        """
    def square(self, a: Ciphertext) -> Ciphertext:
        """a^2, relinearized and rescaled: two products of polynomials instead of four; errors as of `multiply`."""
    def multiply_lazy(self, a: Ciphertext, b: Ciphertext | ArrayLike) -> Ciphertext:
        """a b of two ciphertexts at degree 2, or of a ciphertext and numbers at degree 1; not rescaled. Sums of such
        products need one `relinearize_rescale` in all.

        Raises:
            ScaleError: the product's scale does not fit the modulus.
            DegreeError, PackingError: as of `multiply`.
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
        """The slots moved to the left: numpy.roll(slots, -steps), modulo their number.

        Raises:
            PackingError: the values are in coefficients.
            DegreeError: a has degree 2.
        """
    def rotate_hoisted(self, a: Ciphertext, steps: Sequence[int]) -> list[Ciphertext]:
        """Several rotations of one ciphertext, which share its decomposition: cheaper than one by one; errors as of
        `rotate`, before anything is computed.
        """
    def conjugate(self, a: Ciphertext) -> Ciphertext:
        """The complex conjugate of all slots.

        Raises:
            DegreeError: a has degree 2.
        """
    def multiply_by_i(self, a: Ciphertext) -> Ciphertext:
        """Each slot times the imaginary unit: exact, no level.

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
            PackingError, DegreeError: as of `rotate`.
        """
    def drop_to_level(self, a: Ciphertext, level: int) -> Ciphertext:
        """a with fewer primes and the same message.

        Raises:
            LevelError: the level is above that of a.
        """
    def switch_ring(self, a: Ciphertext, log_n: int) -> Ciphertext:
        """The same values in another ring of the parameters, at the same level and scale.

        Down, to a smaller ring, it needs the keys of `KeySpec.ring_down`, up the key of `KeySpec.ring_up`.

        Args:
            log_n: log2 of the degree of the ring: that of the parameters, or of one of their subrings.

        Raises:
            ParameterError: the parameters have no such ring.
            PackingError: the values are in coefficients, or in more slots than the smaller ring has: see `view_slots`.
            LevelError: a is above the highest level of that ring.
            DegreeError: a has degree 2.
        """
    def view_slots(self, a: Ciphertext, slots: int) -> Ciphertext:
        """a seen as a ciphertext of another number of slots: nothing is computed.

        Seen with more slots, the values repeat. Seen with fewer, they must repeat already, to their errors: slot j is read as the mean of
        the slots j + m slots, and if they differ, products are not those of the means. The error bound stays or, with more slots, grows by
        the square root of their ratio.

        Args:
            slots: a power of two up to half the degree of the ring of a.

        Raises:
            ParameterError: slots is not such a number.
            PackingError: the values are in coefficients.
        """
    def set_scale(self, a: Ciphertext, scale: float) -> Ciphertext:
        """a at another scale, exactly, one level lower: so that it can be added to what has that scale.

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
        matrix. One level less, at the scale of the input; ciphertexts of higher levels are taken at the transforms'.

        Args:
            a: a ciphertext, or a sequence of them.
            transform: a transform, or as many as ciphertexts, with equal slots, levels and special primes.

        Raises:
            ParameterError: the numbers of ciphertexts and transforms differ, or the transforms do not fit each other.
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
            interval: where the slots' values are, for the Chebyshev basis; (-1, 1) by default. One that is not 2 wide costs a
                level more.
            scale: exact scale of the result, that of a by default.

        Raises:
            LevelError: there are too few levels.
            EncodeError: a coefficient is not finite.
            ParameterError: the basis is unknown or the interval empty.
            ScaleError, PackingError, DegreeError: as of `multiply`.
        """

@final
class BootstrapperPlan:
    """What a bootstrapping does, stage by stage: levels, scales and keys, before any key is made.

    Levels, from the top, of the order "slots_to_coeffs_first": `mod_raise` lifts level 0 to the highest level used, `coeffs_to_slots` takes one for each of its factors,
    `eval_mod` 7 to 12, complex values of fewer than N/2 slots one more. What is left is the output level, at which the result
    comes; `slots_to_coeffs` goes from the input level to 0. In the order "mod_raise_first" the input level is 0 and `slots_to_coeffs` ends at
    the output level.

    Args:
        parameters: of the ciphertexts. Results have their scale, and so have inputs.
        slots: a power of two up to N/2, the default.
        values: "complex" or "real": what the slots hold, each part of absolute value at most 1. The imaginary parts of
            "real" values are lost.
        order: "slots_to_coeffs_first", or "mod_raise_first" for the order of most other libraries, in which errors of coefficients meet in slots.
        slots_to_coeffs: levels of that stage, the matrices into which the Fourier transform is factored.
        coeffs_to_slots: levels of that stage.
        key_budget: how many bytes the keys may have in memory: a number, "fastest" for any, "fewest" for as few as can be. Fewer take
            longer; within the budget the fastest way to evaluate every factor is chosen.
        stages_apart: whether each stage is to be usable alone. By default `mod_raise` and the first factor of `coeffs_to_slots` are one
            where they can be (N/2 slots, an ephemeral secret): less time, fewer bytes.
        alpha: the digits of keys, with the stages apart; None, the default, for what makes the least work within the budget. A number is the
            same in all of them: digits of at most so many primes over as many special primes of the parameters; "maximum" is the number of
            their special primes. "dynamic" chooses for each key what makes the fewest transforms at its level from the special primes of the
            parameters, "dynamic_dropped" also from primes that ciphertexts at its level no longer have.
        key_levels: of keys with such an alpha: "needed" for the level where they are used, "top" for as high as their special primes
            and the security bound allow.
        ephemeral_weight: Hamming weight of the ephemeral secret under which the modulus is raised; None for the main
            secret, of which the range of `eval_mod` then depends.
        log2_failure: log2 of the probability that a bootstrap fails, -40 by default.
        log_ratio: log2 of q_0 over the scale of the coefficients. One more is a bit of precision less and an easier arcsine.
        cosine_degree: even degree of the cosine that `eval_mod` evaluates.
        double_angles: double angles after it, a level each.
        arcsine_degree: odd degree of the arcsine at its end; 1 for none.
        iterations: passes in all. Each after the first bootstraps what the one before left, scaled up, and adds it: it takes as long, and no levels.
        log_precision: bits after the point that the bound on the error of one pass has at least, by which the next one corrects it. Needed for
            2 iterations or more, and for these alone.
        output_level: level of results, the highest by default. A lower one is cheaper.
        input_log_n: log2 of the degree of the ring that inputs are of: a subring of the parameters, in which `slots_to_coeffs` is done with
            smaller keys. Then `slots` is up to half of that degree. Results are always of the parameters' own ring.

    Raises:
        LevelError: the parameters have too few levels, or the output level is below the input level.
        SecurityError: a key would be above the bound for its secret.
        ParameterError: a number is not legal, as an alpha above the number of special primes; no approximation has these degrees, or so many
            bits as `log_precision`; the key budget is below its `minimum`, the fewest bytes that there can be.
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
        """A shipped bootstrapping; its `parameters` are made with it.

        Args:
            name: one of `keywright.bootstrap_presets()`.
            key_budget: another one than the preset's.
            slots: another number of slots: fewer of them take smaller transforms.
            subrings: those that the parameters are to have, as of `Parameters.with_subrings`.
            input_log_n: log2 of the degree of the ring that inputs are of, one of these; that of the preset by default.
            output_level: level of the result; the highest by default. The modulus is raised as far as that takes.

        Raises:
            ParameterError: there is no such preset; the budget is below its `minimum`; slots is not a power of two up to half the degree of
                the ring of inputs.
            SecurityError, LevelError: as of the constructor and of `Parameters.with_subrings`.
        """
    @property
    def input_log_n(self) -> int:
        """log2 of the degree of the ring that inputs are of; that of `slots_to_coeffs` and its keys."""
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
        """Level at which ciphertexts are bootstrapped; those above are taken at it."""
    @property
    def output_level(self) -> int:
        """Level of results."""
    @property
    def levels_left(self) -> int:
        """Levels to compute on between two bootstraps."""
    @property
    def coefficients_scale(self) -> float:
        """Scale of the coefficients that `mod_raise` takes."""
    @property
    def levels(self) -> dict[str, tuple[int, int]]:
        """For each stage, in their order, the levels of its input and of its output."""
    @property
    def stage_keys(self) -> dict[str, list[KeySpec]]:
        """For each stage, in their order, the keys it uses. A key may serve several stages."""
    @property
    def factor_options(self) -> dict[str, list[list[tuple[int, float]]]]:
        """For each factor of `slots_to_coeffs` and `coeffs_to_slots`, in the order in which they are applied, the ways to evaluate it: pairs of
        the bytes of its keys, ascending, and its predicted work, in multiplications for each coefficient of a polynomial modulo one
        prime. What a key budget chooses from.
        """
    @property
    def factors(self) -> list[tuple[int, int]]:
        """How each factor of `slots_to_coeffs` and `coeffs_to_slots` is evaluated, in the order in which they are applied: the layers of the Fourier
        transform that it merges, and its number of baby steps, 0 among them.
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
        """For each of these factors its stage, its level, and the ways to evaluate it that a key planner chooses from: the number of baby steps,
        the key switches of one evaluation as of `key_groups` (form, Galois elements, how often), and what it computes beside, as of
        `operations` (number of special primes of its own keys or None, counts).
        """
    def with_factors(self, factors: Sequence[tuple[int, int]]) -> BootstrapperPlan:
        """The same plan with its factors evaluated so: what a key planner chose.

        Args:
            factors: layers and baby steps of each, as of `factors`. Layers are as many in each stage as there are.

        Raises:
            ParameterError: another number of factors, layers that are not all, a number of baby steps that `factor_ways` does not have.
        """
    def with_key_budget(self, key_budget: int | str) -> BootstrapperPlan:
        """The same plan with the factors that another key budget makes the best ones.

        Raises:
            ParameterError: the budget is below its `minimum`.
        """
    @property
    def key_bytes(self) -> dict[str, int]:
        """Bytes of the keys of each stage, in their order; a key of several stages counts for the first."""
    def predicted_bits(self, vectors: int = 1) -> tuple[float, float] | None:
        """The precision to expect of what bootstrapping adds to the input's values, of parts uniform in [-1, 1]: `docs/explanation/bootstrapping.md` derives it.

        Args:
            vectors: how many vectors under one secret the worst part is looked for in.

        Returns:
            tuple[float, float] | None: -log2 of the mean error of a part, and of the largest one; None if slots_to_coeffs comes last.
        """
    def errors_of(self, messages: ArrayLike) -> dict[str, Any] | None:
        """The errors that a bootstrap adds to parts of values that are known, in units of the message; None for the order "mod_raise_first". Raising the
        modulus adds an integer to each of them, which is not known: a part with integer i and message m has an error of mean `bias[i][m]` and variance
        `rest + (steps[i][m] + other) / 2 * rounding`, where `rest` and `rounding` are pairs as of `ErrorModel`, of a slot.

        Args:
            messages: parts of values, in [-1, 1].

        Returns: a dictionary of `probabilities` of the integers, `steps`, `other`, `bias`, `rest` and `rounding`.
        """
    @property
    def key_groups(
        self,
    ) -> list[tuple[str, Literal["whole", "baby", "giant"], int, list[int], int]]:
        """The key switches of one bootstrapping that can be made in more than one way, in the order of the stages: stage, form ("whole", "baby"
        or "giant", as of `keywright.plan.Group`), level of the ciphertext, the Galois elements that are needed of it, none for a
        relinearization, and how often.
        """
    @property
    def operations(self) -> list[tuple[str, int, int | None, dict[str, int], int]]:
        """What one bootstrapping computes beside these key switches, in the order of the stages: stage, level, number of special primes of keys
        that have one way to be used or None, counts as of `keywright.plan.Operation`, and how often.
        """
    def with_special_primes(self, special: Mapping[int, Sequence[int]]) -> BootstrapperPlan:
        """The same plan with the diagonals at each of these levels encoded for those special primes, for keys that follow a plan: what
        `PlanExecution.bootstrapper_plans` does.

        Args:
            special: by level, indices of primes, counted through q_0 .. q_L, p_0, ...; a `Bootstrapper` checks them.
        """
    @property
    def fixed_keys(self) -> list[KeySpec]:
        """The keys to and from an ephemeral secret, which have one way to be used."""
    def diagonal_bytes(self, storage: str = "encoded") -> int:
        """Bytes of the matrices that a `Bootstrapper` with this storage keeps: "encoded", "coefficients" or "streamed".

        Raises:
            ParameterError: the storage is not known.
        """
    def scratch_bytes(self, storage: str = "encoded", *, threads: int | None = None) -> dict[str, int]:
        """For each stage, in order, the bytes that it holds while it runs, its results among them and its input, keys and kept matrices not.

        Args:
            storage: how a `Bootstrapper` keeps the matrices.
            threads: that compute; those of the process by default.

        Raises:
            ParameterError: the storage is not known.
        """
    @property
    def required_keys(self) -> list[KeySpec]:
        """Every key that bootstrapping uses, each once, at the level at which it is used: the `specs` of
        `KeyGenerator.evaluation_keys` or, if they are not to be in memory all at once, `save_evaluation_keys`.
        """
    def client_parameters(self, fraction_bits: int) -> ClientParameters:
        """What thin clients of `Bootstrapper.bootstrap_coefficients` have to know: numbers of at most 1, at the scale and in the places from which it takes
        coefficients.

        Args:
            fraction_bits: bits of a number after the point.

        Raises:
            ParameterError: more fraction bits than the scale has.
        """

@final
class ClientParameters:
    """What a thin client knows of a server: one prime, a fixed-point format and where numbers go. Numbers are integers in units of `2^-fraction_bits`.

    A server whose bootstrapping takes a client's numbers hands out `BootstrapperPlan.client_parameters`; this constructor is for one that computes on
    coefficients or slots as they are.

    Args:
        parameters: the server's; the client has their first prime alone.
        scale: the coefficient of the number 1, an integer of at most 53 significant bits and at most a quarter of the prime.
        fraction_bits: bits of a number after the point, at most log2 of the scale. Numbers are at most 1, so integers at most `2^fraction_bits`.
        slots: numbers go where `coeffs_to_slots` takes them to so many slots, a power of two up to N/2; number j to coefficient j by default.
        values: "complex", whose imaginary parts are the second half of the numbers, or "real".

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
        """Slots that numbers come to; None if they stay in coefficients."""
    @property
    def values(self) -> str | None:
        """ "complex" or "real": whether the second half of the numbers is imaginary parts; None if they stay in coefficients."""
    def ciphertext_bytes(self, *, secret: bool = True, dropped: tuple[int, int] | None = None) -> int:
        """Bytes of a ciphertext.

        Args:
            secret: made with the secret, so that half of it is a seed; with the public key otherwise.
            dropped: of one in compact form, low bits dropped from each half; None for a whole one.
        """
    def group_size(self, bits: int) -> int:
        """Integers of so many bits that go into one number: see `group`.

        Raises:
            ParameterError: a number does not hold one.
        """
    def group(self, integers: ArrayLike, bits: int) -> NDArray[np.int64]:
        """Numbers of several small integers each, to encrypt: `group_size(bits)` integers `x_i` as `x_0 + 2^bits x_1 + ..`.

        A server adds them, and multiplies them by small integers, as long as every sum of integers stays below `2^bits`; it does not split them.

        Args:
            integers: non-negative ones below `2^bits`.
            bits: of one of them, with room for the sums that the server makes.

        Raises:
            EncodeError: an integer out of range.
            ParameterError: as of `group_size`.
        """
    def split(self, numbers: ArrayLike, bits: int, count: int | None = None) -> NDArray[np.int64]:
        """The small integers of decrypted numbers: the inverse of `group`. Exact where every number's error is below half a unit of its last place.

        Args:
            numbers: of `Client.decrypt`.
            bits: as of `group`.
            count: how many integers; as many as the numbers hold by default.

        Raises:
            EncodeError: count is more than the numbers hold.
            ParameterError: as of `group_size`.
        """
    def to_bytes(self) -> _Bytes:
        """The parameters as bytes, which a server hands out."""
    @staticmethod
    def from_bytes(data: _Bytes) -> ClientParameters:
        """Parameters from the bytes of `to_bytes`.

        Raises:
            FormatError: the bytes are not whole, intact parameters of a client.
            ParameterError, SecurityError: they say what no client does.
        """
    def read_upload(self, data: _Bytes, parameters: Parameters) -> Ciphertext:
        """What a server reads of a client's upload, in any of its forms: a ciphertext at level 0 with its values in coefficients.

        Raises:
            FormatError: the bytes are not a whole, intact ciphertext of such a client; a secret key is none.
            MixedParametersError: it belongs to other parameters.
        """
    def write_answer(self, ciphertext: Ciphertext, growth: float | None = None) -> _Bytes:
        """What a server answers: the numbers' coefficients modulo the first prime, of a ciphertext at any level whose values are in coefficients.

        Args:
            growth: low bits are dropped as long as the error's deviation grows at most by this factor; None drops none.

        Raises:
            PackingError: its values are in slots.
            ScaleError: values and error do not fit the first prime.
            ParameterError: growth is not above 1.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Client:
    """A thin client with a new secret: it encrypts integers modulo one prime, decrypts answers, and makes the keys that a server asks for. No floating point,
    no Fourier transform, no second prime.

    Args:
        parameters: what the server handed out.
        entropy: 32 bytes that decide all randomness, for tests only: who knows them knows the secret. The operating system's by default.

    Raises:
        RandomnessError: the operating system gives no randomness, or the bytes given are all equal.
    """
    def __new__(cls, parameters: ClientParameters, entropy: _Bytes | None = None) -> Self: ...
    @staticmethod
    def from_secret_bytes(
        data: _Bytes, parameters: ClientParameters, entropy: _Bytes | None = None
    ) -> Client:
        """A client of the secret that `secret_bytes` gave, or `SecretKey.to_bytes` of the server's parameters.

        Raises:
            FormatError: the bytes are not a whole, intact secret.
            MixedParametersError: it belongs to other parameters.
            RandomnessError: as of the constructor.
        """
    @property
    def parameters(self) -> ClientParameters:
        """What the server handed out."""
    def secret_bytes(self) -> _Bytes:
        """The secret as bytes, unencrypted: keep them as you keep a password. `SecretKey.from_bytes` reads them. Python does not wipe them."""
    def public_key(self) -> _Bytes:
        """A new public key as bytes, for a `ClientEncryptor`."""
    def encrypt(self, numbers: ArrayLike, *, dropped: int | None = None) -> _Bytes:
        """Encrypts integers with the secret: the bytes to send, half of what a public key makes.

        Args:
            numbers: at most `parameters.capacity` integers in units of `2^-fraction_bits`, of absolute value at most `parameters.maximum`.
            dropped: None for a whole ciphertext; a number for one in compact form, only the coefficients that carry numbers, without so many
                low bits. That adds `2^(2 dropped) / 12` to the variance of the coefficients' errors.

        Raises:
            EncodeError: the numbers are not a vector of integers, too many or too large.
            ParameterError: more dropped bits than there are.
        """
    def decrypt(self, answer: _Bytes, count: int | None = None) -> NDArray[np.int64]:
        """Decrypts the numbers of an answer, in units of `2^-fraction_bits`.

        Args:
            answer: a ciphertext at level 0 as bytes, with its values in coefficients.
            count: how many numbers; all by default.

        Raises:
            FormatError: the bytes are not a whole, intact answer.
            MixedParametersError: it belongs to other parameters.
            EncodeError: count is above the capacity.
            ParameterError: it is not at level 0, or at a scale that its numbers cannot be read at.
        """
    def session(self) -> _Bytes:
        """32 secret bytes from which the keys of a `key_stream` come: kept beside the secret until all keys have arrived, they make the same keys again.
        They serve any list of keys: a key that was not made before has randomness of its own.
        """
    def key_stream(self, specs: Sequence[KeySpec], session: _Bytes) -> ClientKeyStream:
        """The keys that a server asks for, made one after another in little memory, whatever their size.

        Args:
            specs: seeded keys, of the server's parameters.
            session: 32 bytes of `session`.

        Raises:
            MixedParametersError: the keys belong to other parameters than the client.
            ParameterError: a key that is not seeded, or no client's to make.
            SecurityError: a key below 128 bits of security.
        """

@final
class ClientKeyStream:
    """The keys of `Client.key_stream`, one after another: a few polynomials of memory, whatever the keys. Each is an object of its own, as `SwitchingKey.from_bytes`
    reads it.
    """
    def __len__(self) -> int: ...
    @property
    def next(self) -> int:
        """Place of the next key: as many have been written or skipped."""
    @property
    def sizes(self) -> list[int]:
        """Bytes of every key as an object."""
    @property
    def total_bytes(self) -> int:
        """Bytes of all keys."""
    def skip_to(self, index: int) -> None:
        """Goes on with key `index`: after those that arrived, or again with one that did not.

        Raises:
            ParameterError: there are not so many keys.
            RuntimeError: a key is being written.
        """
    def write_next(
        self, write: Callable[[_Bytes], object], progress: Callable[[int, int], object] | None = None
    ) -> bool:
        """Makes the next key and hands its bytes out as they are made, a piece of at most a mebibyte at a time.

        Where it raises, the stream stays at this key, which is made anew, with the same bytes, by the next call.

        Args:
            write: takes the pieces: `file.write`, for one. What it raises ends the key.
            progress: is told the bytes of keys that are made and those of all keys, now and then.

        Returns:
            False if there was no key left.

        Raises:
            RuntimeError: `write` or another thread calls it while a key is being written.
        """

@final
class ClientEncryptor:
    """Encrypts integers under somebody's public key, and can do nothing else: a camera, a sensor.

    Args:
        public_key: bytes of `Client.public_key`.
        parameters: what the server handed out.
        entropy: 32 bytes that decide the randomness, for tests only.

    Raises:
        FormatError: the bytes are not a whole, intact public key at the first prime.
        MixedParametersError: it belongs to other parameters.
        RandomnessError: the operating system gives no randomness, or the bytes given are all equal.
    """
    def __new__(
        cls, public_key: _Bytes, parameters: ClientParameters, entropy: _Bytes | None = None
    ) -> Self: ...
    @property
    def parameters(self) -> ClientParameters:
        """What the server handed out."""
    def encrypt(self, numbers: ArrayLike, *, dropped: tuple[int, int] | None = None) -> _Bytes:
        """Encrypts integers: the bytes to send.

        Args:
            numbers: as of `Client.encrypt`.
            dropped: None for a whole ciphertext; two numbers for one in compact form, without so many low bits of the coefficients of each half. That adds
                `2^(2 dropped[0]) / 12 + |s|^2 2^(2 dropped[1]) / 12` to the variance of the errors, for the secret's `|s|^2`, about 2N/3 or its weight.

        Raises:
            EncodeError, ParameterError: as of `Client.encrypt`.
        """

@final
class Bootstrapper:
    """Bootstrapping with its matrices encoded: gives a ciphertext without levels new ones, at the same values.

    It belongs to no key: evaluators of several owners may use it. `bootstrap` is the composition of the stages
    `slots_to_coeffs`, `mod_raise`, `coeffs_to_slots` and `eval_mod`, each of which can be used alone. All of them raise,
    before anything is computed and with the stage's name as `stage` and the level of its input as `stage_level`,

        MissingKeyError: a key of `plan.required_keys` is missing.
        KeyUseError: a key has other special primes than the matrices it is for.
        LevelError: the ciphertext is below the stage's level.
        ScaleError: its scale is more than a part in 128 from the one planned.
        PackingError: it has another number of slots, or slots where coefficients are needed.
        DegreeError: it has degree 2.
        MixedParametersError: it, or the evaluator, belongs to other parameters.

    Values above 1 are not seen: their results are wrong. `inspect_input` tells who has the secret.

    Args:
        plan: what it does.
        storage: what is kept of the matrices: "encoded", the fastest, which takes up to a gigabyte at N = 2^16, "coefficients", a tenth of it or
            less, or "streamed": nothing, they are made for each use. `plan.diagonal_bytes` says how much. Results are the same.

    Raises:
        ParameterError: a storage is not known.
        EncodeError: coefficients that are to be kept are 2^62 or more.
    """
    def __new__(cls, plan: BootstrapperPlan, *, storage: str = "encoded") -> Self: ...
    @property
    def plan(self) -> BootstrapperPlan:
        """What it does."""
    @property
    def parameters(self) -> Parameters:
        """Parameters of the ciphertexts."""
    @property
    def input_level(self) -> int:
        """Level at which ciphertexts are bootstrapped; those above are taken at it."""
    @property
    def output_level(self) -> int:
        """Level of results."""
    @property
    def bytes(self) -> int:
        """Bytes of the matrices that are kept: `plan.diagonal_bytes`."""
    def bootstrap(self, evaluator: Evaluator, ciphertext: Ciphertext) -> Ciphertext:
        """The same values at the output level and the parameters' scale.

        Args:
            evaluator: with the keys of `plan.required_keys`.
            ciphertext: `plan.slots` slots of values whose parts are at most 1, at the input level or above. Its scale is that of the parameters or,
                in the order "mod_raise_first", any up to `plan.coefficients_scale` at level 0, and any at levels above.

        Raises:
            ParameterError: the bound on the error of a pass has fewer bits than `log_precision`, by which the next one corrects it.
        """
    def bootstrap_coefficients(self, evaluator: Evaluator, ciphertext: Ciphertext) -> Ciphertext:
        """`bootstrap` of values in coefficients, without `slots_to_coeffs`: to the level at which `eval_mod` leaves them.

        Args:
            ciphertext: coefficients at the scale `plan.coefficients_scale` to a part in 128, of any level. Of n slots, slot j gets
                coefficient brv(j) N/2n, and as its imaginary part N/2 + brv(j) N/2n; brv reverses the log2(n) bits of j.
        """
    def slots_to_coeffs(self, evaluator: Evaluator, ciphertext: Ciphertext) -> Ciphertext:
        """Values in slots, at the plan's level of the stage or above, to values in coefficients.

        Coefficient brv(j) N/2n is the real part of slot j, N/2 + brv(j) N/2n its imaginary part, all others are 0. A client
        without a Fourier transform can read such a result.
        """
    def mod_raise(self, evaluator: Evaluator, ciphertext: Ciphertext) -> Ciphertext:
        """Level 0 to the highest level used.

        The result has the scale q_0 and in each coefficient m / r + I for the message m, the ratio r of q_0 to the input's scale and
        a small integer I.

        Raises:
            LevelError: the ciphertext is not at level 0.
        """
    def coeffs_to_slots(self, evaluator: Evaluator, ciphertext: Ciphertext) -> list[Ciphertext]:
        """Coefficients to slots, as fractions of the range of `eval_mod`.

        Returns:
            One ciphertext of n real values, for real values; one of 2n, real parts before imaginary parts, for complex values
            in n < N/2 slots; two, of the real and of the imaginary parts, for N/2.
        """
    def eval_mod(
        self, evaluator: Evaluator, ciphertext: Ciphertext, ratio: float | None = None
    ) -> Ciphertext:
        """Removes the integers that `mod_raise` added, from one of the ciphertexts of `coeffs_to_slots`.

        Args:
            ratio: q_0 over the scale of what `mod_raise` was given; by default that of the plan.
        """
    def inspect_input(self, secret: SecretKey, ciphertext: Ciphertext) -> tuple[int, float]:
        """Decrypts an input of `eval_mod` and tells how much of its range is used: why a bootstrap went wrong.

        What it returns depends on the secret; keep it.

        Returns:
            The largest absolute value of an integer, and the largest distance from one: the message in units of q_0.

        Raises:
            EncodeError: a slot is outside the range, with its number as `index` and its `value`.
        """

@final
class SumParameters:
    """Ring, modulus and scale for exact sums of encrypted vectors of integers.

    The modulus is the smallest whole number of bytes, 4 to 7, that has room for the sums and their error; the ring is the
    smallest of 128-bit security for it.

    Args:
        max_inputs: vectors of one sum, at most 2^20.
        magnitude: largest absolute value of an integer of one vector, at most 2^48.

    Raises:
        ParameterError: one of them is outside its range, or no modulus has room for the sums.
    """
    def __new__(cls, max_inputs: int, magnitude: int) -> Self: ...
    @property
    def max_inputs(self) -> int:
        """Number of vectors that was asked for."""
    @property
    def capacity(self) -> int:
        """Number of vectors that the modulus has room for: at least `max_inputs`. More are refused."""
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
    """The secret that the clients share and the server does not have: it encrypts updates and decrypts sums."""
    @staticmethod
    def generate(parameters: SumParameters, entropy: _Bytes | None = None) -> SumKey:
        """A new secret.

        Args:
            parameters: what it is for.
            entropy: 32 bytes that decide the secret and all randomness of its encryptions, for tests only.

        Raises:
            RandomnessError: the operating system gives no randomness.
        """
    @property
    def parameters(self) -> SumParameters:
        """What it is for."""
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
            values: int64 vector, nothing above the declared magnitude.
            session: 16 bytes that name the run.
            round: number of the round.
            client: number of the client.
            weight: what the values were multiplied with, at least 1. Public.

        Raises:
            EncodeError: a value is above the declared magnitude.
            ParameterError: there is no value, or the weight is 0.
        """
    def decrypt(self, sum: EncryptedSum) -> NDArray[np.int64]:  # noqa: A002
        """The sum of the integers, exactly. It contains nothing of the encryption's error and may be published.

        Raises:
            AggregationError: the bytes are no sum of as many updates as they claim, or made with another key.
            ParameterError: they have another shape.
        """
    def to_bytes(self) -> _Bytes:
        """The secret as bytes, unencrypted: keep them as you keep a password. Python does not wipe them."""
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
        """Reads the secret of a file; errors as of `from_bytes`."""

@final
class EncryptedUpdate:
    """One client's encrypted vector, bound to session, round, client and weight: with other claims it does not decrypt."""
    @property
    def session(self) -> _Bytes:
        """The run it claims to belong to, 16 bytes."""
    @property
    def round(self) -> int:
        """The round it claims to be made in."""
    @property
    def client(self) -> int:
        """Who claims to have made it."""
    @property
    def weight(self) -> int:
        """The weight it claims."""
    @property
    def count(self) -> int:
        """Number of values."""
    def to_bytes(self) -> _Bytes:
        """The update as bytes, to be read by `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: SumParameters) -> EncryptedUpdate:
        """An update from the bytes of `to_bytes`.

        Raises:
            FormatError: the bytes are not a whole, intact update, or declare other bounds.
            MixedParametersError: it belongs to another ring.
        """

@final
class EncryptedSum:
    """A sum of updates, made without any key."""
    @staticmethod
    def of(updates: Sequence[EncryptedUpdate], parameters: SumParameters) -> EncryptedSum:
        """Adds updates of one session and round, each client once.

        Raises:
            AggregationError: they differ in session, round or number of values, or a client is there twice.
            ParameterError: there is none, or more than the modulus has room for.
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
        """The sum as bytes, to be read by `from_bytes`."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: SumParameters) -> EncryptedSum:
        """A sum from the bytes of `to_bytes`; errors as of `EncryptedUpdate.from_bytes`."""

@final
class ThresholdParameters:
    """Ring, modulus and smudging for sums that a threshold of parties decrypts together. Parties are numbered from 1.

    Args:
        parties: all that take part in the set-up, 2 to 1024.
        threshold: how many decrypt together, 2 to `parties`.
        max_inputs: most updates of one sum.
        magnitude: largest absolute value of an integer of one update.
        max_values: most integers of one update; smudging hides all of them.

    Raises:
        ParameterError: a number is outside its range, or no modulus has room.
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
        """log2 of the range of smudging: 2^-40 is the statistical distance that it leaves over all values of a sum."""
    def check_half(self, half: _Bytes) -> None:
        """Refuses bytes that are no public half of a joint key.

        Raises:
            FormatError, MixedParametersError: they are none.
            ParameterError: it has another shape.
        """
    def check_update(self, update: _Bytes, count: int) -> None:
        """Refuses bytes that are no update of `count` integers.

        Raises:
            FormatError, MixedParametersError: they are none.
            ParameterError: it is one of another number of ciphertexts.
        """
    def check_partial(self, partial: _Bytes, count: int) -> None:
        """Refuses bytes that are no partial decryption of a sum of `count` integers. Whether it is a right one is seen with the others alone.

        Raises:
            FormatError, MixedParametersError: they are none.
            ParameterError: it has another shape.
        """
    def add(self, updates: Sequence[_Bytes]) -> _Bytes:
        """Adds encrypted updates. Needs no key.

        Raises:
            FormatError, MixedParametersError: bytes that are no whole, intact update.
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
            sum: what was decrypted partially.
            partials: one of every active party.
            inputs: number of updates that were added.
            count: number of integers.

        Raises:
            AggregationError: the parts do not belong to the sum, or a party deviated.
            FormatError, ParameterError: bytes that are no such parts.
        """

@final
class ThresholdParty:
    """One party's secret during the set-up. Wiped when dropped, never shown."""
    @staticmethod
    def generate(
        parameters: ThresholdParameters, seed: _Bytes, entropy: _Bytes | None = None
    ) -> ThresholdParty:
        """A new secret, for one joint key.

        Args:
            parameters: what it is for.
            seed: 32 bytes that all parties agree on, and nobody alone decides.
            entropy: 32 bytes that decide the secret, for tests only.
        """
    def public_half(self) -> _Bytes:
        """The party's half of the joint public key, to be published."""
    def deal(self) -> list[_Bytes]:
        """One share of the secret for every party, in order. Secret: each is for that party alone."""

@final
class ThresholdShare:
    """A party's share of the joint secret. Wiped when dropped, never shown."""
    @staticmethod
    def combine(
        parameters: ThresholdParameters, party: int, dealt: Sequence[_Bytes], keys: Sequence[_Bytes]
    ) -> ThresholdShare:
        """The share of a party from what all parties dealt to it, its own included.

        Args:
            parameters: of the group.
            party: its number, from 1.
            dealt: by every party, in order.
            keys: 32 secret bytes for every party, in order: what this one and that one alone know; in the party's own place 32
                random bytes that nobody else knows.

        Raises:
            FormatError, ParameterError: a dealt share is none, or a share or a key is missing.
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
        """The party's part of a decryption. The same question has the same answer, bit for bit. Answer for one sum in a round, and for at most
        `MAX_SETS` sets.

        Args:
            sum: what is decrypted.
            active: the numbers of those who decrypt; all of them have to answer the same question.
            session: 16 bytes that name the run and its keys.
            round: the round.

        Raises:
            ParameterError: `active` are not as many parties as the threshold, this one among them.
            FormatError, MixedParametersError: the sum is none.
        """
    def to_bytes(self) -> _Bytes:
        """The share as bytes, unencrypted and without the keys: keep both as you keep a password. Python does not wipe them."""
    @staticmethod
    def from_bytes(
        data: _Bytes, parameters: ThresholdParameters, party: int, keys: Sequence[_Bytes]
    ) -> ThresholdShare:
        """A share from the bytes of `to_bytes`; errors as of `combine`."""

@final
class ThresholdKey:
    """The joint public key: of the sum of all parties' secrets, which nobody has."""
    @staticmethod
    def combine(parameters: ThresholdParameters, seed: _Bytes, halves: Sequence[_Bytes]) -> ThresholdKey:
        """The key from the halves that all parties published for one seed.

        Raises:
            FormatError, ParameterError: a half is none, or one is missing.
        """
    def encrypt(self, values: NDArray[np.int64]) -> _Bytes:
        """Encrypts a vector of integers.

        Raises:
            EncodeError: a value is above the declared magnitude.
            ParameterError: there is no value, or more than declared.
        """
    def to_bytes(self) -> _Bytes:
        """The key as bytes, to be read by `from_bytes`. Public."""
    @staticmethod
    def from_bytes(data: _Bytes, parameters: ThresholdParameters) -> ThresholdKey:
        """A key from the bytes of `to_bytes`.

        Raises:
            FormatError, MixedParametersError: the bytes are no whole, intact key of these parameters.
        """
