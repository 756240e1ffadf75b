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

from keywright import bfv as bfv
from keywright import errors as errors
from keywright import keys as keys
from keywright import thin as thin
from keywright._core import (
    Bootstrapper,
    BootstrapperPlan,
    Ciphertext,
    Decryptor,
    EncryptionPool,
    Encryptor,
    EvaluationKeys,
    Evaluator,
    Flooding,
    KeyGenerator,
    KeySpec,
    LinearTransform,
    Parameters,
    PublicKey,
    SecretKey,
    SeededCiphertext,
    set_threads,
    threads,
)
from keywright._core import __version__ as __version__
from keywright.errors import KeywrightError
from keywright.values import Encrypted

# numpy imports it at its first use, in the first encryption; a process that is forked meanwhile would wait.
import_module("numpy.ma")

if TYPE_CHECKING:
    from keywright import client as client
    from keywright import compiler as compiler
    from keywright import federated as federated
    from keywright import model as model
    from keywright import plan as plan
    from keywright import runtime as runtime
    from keywright import search as search
    from keywright import security as security
    from keywright import serve as serve
    from keywright.model import (
        Model,
        compile,  # noqa: A004 (read as keywright.compile)
        load,
        load_client,
        load_server,
    )

__all__ = [
    "Bootstrapper",
    "BootstrapperPlan",
    "Ciphertext",
    "Decryptor",
    "Encrypted",
    "EncryptionPool",
    "Encryptor",
    "EvaluationKeys",
    "Evaluator",
    "Flooding",
    "KeyGenerator",
    "KeySpec",
    "KeywrightError",
    "LinearTransform",
    "Model",
    "Parameters",
    "PublicKey",
    "SecretKey",
    "SeededCiphertext",
    "compile",
    "load",
    "load_client",
    "load_server",
    "set_threads",
    "threads",
]

_ROOMS = ("client", "compiler", "federated", "model", "plan", "runtime", "search", "security", "serve")
_OF_MODEL = ("Model", "compile", "load", "load_client", "load_server")


def __getattr__(name: str) -> Any:
    """Import subpackages on first use, because their dependencies take long to load."""
    if name in _ROOMS:
        return import_module(f"keywright.{name}")
    if name in _OF_MODEL:
        return getattr(import_module("keywright.model"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, and the subpackages, whether or not they were imported."""
    return sorted({*__all__, *_ROOMS, "__version__", "bfv", "errors", "keys", "thin"})
