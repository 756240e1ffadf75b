"""Private inference with one object: `compile` a model, try it, save it, load it as a client and as a server.

>>> import keywright as kw                                  # doctest: +SKIP
>>> model = kw.compile("model.onnx", calibration=samples)   # doctest: +SKIP
>>> print(model.report)                                     # doctest: +SKIP
>>> scores = model.predict(samples[:8])                     # doctest: +SKIP
"""

from keywright.plan.ring.entry import Entry

from .client import ModelClient, save_keys
from .compilation import compile  # noqa: A004 (read as keywright.compile)
from .exchange.encryption import Encryption
from .exchange.identity import Identity
from .exchange.messages import Message
from .exchange.requests import Answer, Requests
from .executable import Executable
from .loading import load_client, load_server
from .model import Model
from .parameters.parameter_choice import BOOTSTRAP_PRESETS, DEEP_PRESETS, Client, Ring
from .report.encrypted_error import EncryptedError
from .report.report import ModelReport, RingFigures, RunFigures, Sizes
from .served.demands import Demands
from .served.input_output import ManifestInput, ManifestOutput, Places
from .served.manifest import CiphertextFormat, KeyList, Manifest
from .server import ModelServer
from .session import Batches, Inference, Preparation

load = Model.load

__all__ = [
    "BOOTSTRAP_PRESETS",
    "DEEP_PRESETS",
    "Answer",
    "Batches",
    "CiphertextFormat",
    "Client",
    "Demands",
    "EncryptedError",
    "Encryption",
    "Entry",
    "Executable",
    "Identity",
    "Inference",
    "KeyList",
    "Manifest",
    "ManifestInput",
    "ManifestOutput",
    "Message",
    "Model",
    "ModelClient",
    "ModelReport",
    "ModelServer",
    "Places",
    "Preparation",
    "Requests",
    "Ring",
    "RingFigures",
    "RunFigures",
    "Sizes",
    "compile",
    "load",
    "load_client",
    "load_server",
    "save_keys",
]
