"""Private inference with one object: `compile` a model, try it, save it, load it as a client and as a server.

>>> import keywright as kw                                  # doctest: +SKIP
>>> model = kw.compile("model.onnx", calibration=samples)   # doctest: +SKIP
>>> print(model.report)                                     # doctest: +SKIP
>>> scores = model.predict_encrypted(samples[:8])           # doctest: +SKIP
"""

from keywright.model.folder.identity import Identity

from .client import ModelClient, load_client
from .compiling import compile  # noqa: A004 (read as keywright.compile)
from .encrypted_error import EncryptedError
from .messages import Message
from .model import CompiledModel, load
from .report import ModelReport
from .served.manifest import Manifest, Places
from .served.model import Model, ModelRunner
from .server import ModelServer, load_server
from .session import Inference, infer

__all__ = [
    "CompiledModel",
    "EncryptedError",
    "Identity",
    "Inference",
    "Manifest",
    "Message",
    "Model",
    "ModelClient",
    "ModelReport",
    "ModelRunner",
    "ModelServer",
    "Places",
    "compile",
    "infer",
    "load",
    "load_client",
    "load_server",
]
