"""Keywright: private inference on encrypted data, with RNS-CKKS and planned keys.

`keywright.compile` takes a model and does everything else: see docs/tutorials/quickstart.md. The lower layer
has parameters, keys and ciphertexts:

>>> import keywright as kw
>>> parameters = kw.Parameters.preset("N13_QP214_S38")
>>> secret = kw.SecretKey.generate(parameters)
>>> generator = kw.KeyGenerator(secret)
>>> encryptor = kw.Encryptor(generator.public_key())
>>> evaluator = kw.Evaluator(parameters, generator.evaluation_keys(rotations=[1]))
>>> x = evaluator(encryptor.encrypt([1.0, 2.0, 3.0, 4.0], slots=4))
>>> y = x * x + 2 * (x << 1)
>>> kw.Decryptor(secret).decrypt(y).round(3).tolist()
[5.0, 10.0, 17.0, 18.0]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keywright._core import (
    BfvCiphertext,
    BfvDecryptor,
    BfvEncryptor,
    BfvEvaluator,
    BfvParameters,
    BfvSeededCiphertext,
    Bootstrapper,
    BootstrapperPlan,
    Ciphertext,
    Client,
    ClientEncryptor,
    ClientKeyStream,
    ClientParameters,
    Decryptor,
    Derivation,
    EncryptionPool,
    Encryptor,
    ErrorModel,
    EvaluationKeys,
    Evaluator,
    Flooding,
    KeyGenerator,
    KeySpec,
    LinearTransform,
    MasterKeys,
    Parameters,
    PublicKey,
    SecretKey,
    SeededCiphertext,
    SwitchingKey,
    __version__,
    bfv_presets,
    bootstrap_presets,
    inspect,
    key_set_head,
    presets,
    read_key_set_head,
    set_threads,
    threads,
)
from keywright.errors import (
    AggregationError,
    BackendError,
    DegreeError,
    DerivationError,
    EncodeError,
    FloodingError,
    ForkedError,
    FormatError,
    KeyMemoryError,
    KeyMismatchError,
    KeySourceError,
    KeyUseError,
    KeywrightError,
    LevelError,
    MemoryBudgetError,
    MessageOverflowError,
    MissingKeyError,
    MixedParametersError,
    NoiseError,
    OutOfMemoryError,
    PackingError,
    ParameterError,
    PlanMismatchError,
    PoolEmptyError,
    PoolFileError,
    RandomnessError,
    ScaleError,
    SecurityError,
)
from keywright.values import Encrypted, EncryptedIntegers

if TYPE_CHECKING:
    from keywright import client, compiler, federated, model, runtime, security, serve
    from keywright.model import (
        CompiledModel,
        compile,  # noqa: A004 (read as keywright.compile)
        load_client,
        load_server,
    )

__all__ = [
    "AggregationError",
    "BackendError",
    "BfvCiphertext",
    "BfvDecryptor",
    "BfvEncryptor",
    "BfvEvaluator",
    "BfvParameters",
    "BfvSeededCiphertext",
    "Bootstrapper",
    "BootstrapperPlan",
    "Ciphertext",
    "Client",
    "ClientEncryptor",
    "ClientKeyStream",
    "ClientParameters",
    "CompiledModel",
    "Decryptor",
    "DegreeError",
    "Derivation",
    "DerivationError",
    "EncodeError",
    "Encrypted",
    "EncryptedIntegers",
    "EncryptionPool",
    "Encryptor",
    "ErrorModel",
    "EvaluationKeys",
    "Evaluator",
    "Flooding",
    "FloodingError",
    "ForkedError",
    "FormatError",
    "KeyGenerator",
    "KeyMemoryError",
    "KeyMismatchError",
    "KeySourceError",
    "KeySpec",
    "KeyUseError",
    "KeywrightError",
    "LevelError",
    "LinearTransform",
    "MasterKeys",
    "MemoryBudgetError",
    "MessageOverflowError",
    "MissingKeyError",
    "MixedParametersError",
    "NoiseError",
    "OutOfMemoryError",
    "PackingError",
    "ParameterError",
    "Parameters",
    "PlanMismatchError",
    "PoolEmptyError",
    "PoolFileError",
    "PublicKey",
    "RandomnessError",
    "ScaleError",
    "SecretKey",
    "SecurityError",
    "SeededCiphertext",
    "SwitchingKey",
    "__version__",
    "bfv_presets",
    "bootstrap_presets",
    "client",
    "compile",
    "compiler",
    "federated",
    "inspect",
    "key_set_head",
    "load_client",
    "load_server",
    "model",
    "presets",
    "read_key_set_head",
    "runtime",
    "security",
    "serve",
    "set_threads",
    "threads",
]


_ROOMS = ("client", "compiler", "federated", "model", "runtime", "security", "serve")
_OF_MODEL = ("CompiledModel", "compile", "load_client", "load_server")


def __getattr__(name: str) -> Any:
    """Import subpackages on first use, because their dependencies take long to load."""
    if name in _ROOMS:
        return import_module(f"keywright.{name}")
    if name in _OF_MODEL:
        return getattr(import_module("keywright.model"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
